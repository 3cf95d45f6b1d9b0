// Colocation groups: nodes that must be on one device.
import type { Colocation } from "../scene/generated";
import { counted, getOrMake, grouped } from "./order";
import type { Instance } from "./parts";
import { GROUP } from "./space";
import type { Box, Visible } from "./visible";

/** Boxes that are named; the others are counted. */
const MAX_NAMES = 4;

/** The groups to enclose, and the words for each box with nodes of groups. */
export function colocationsOf(root: Instance, visible: Visible): [Colocation[], ReadonlyMap<Box, string>] {
  const found: Colocation[] = [];
  const texts = new Map<Box, string>();
  const inside = new Map<Box, { nodes: number; groups: number; elsewhere: number }>();
  for (const [nodes, reasons] of root.space.head.colocations) {
    const members = new Map<Box, number[]>();
    for (const node of nodes) {
      const box = visible.box(root, node);
      if (box) getOrMake(members, box, (): number[] => []).push(node);
    }
    const shown = [...members].flatMap(([box, held]) => (held.includes(box.main) ? [box] : []));
    for (const [box, held] of members) {
      if (held.includes(box.main)) continue;
      const counts = getOrMake(inside, box, () => ({ nodes: 0, groups: 0, elsewhere: 0 }));
      counts.nodes += held.length;
      counts.groups += 1;
      if (members.size > 1) counts.elsewhere += 1;
    }
    if (shown.length === 0) continue;
    const text = textOf([...members].map(([box, held]) => words(root, box, held)));
    for (const box of shown) texts.set(box, text);
    if (shown.length > 1) found.push({ nodes: shown.map(({ id }) => id), text, reasons });
  }
  for (const [box, { nodes, groups, elsewhere }] of inside) {
    const rest = elsewhere ? `, ${grouped(elsewhere)} with nodes elsewhere` : "";
    if (!texts.has(box)) texts.set(box, `together: ${counted(nodes, "node")} in ${counted(groups, "group")}${rest}`);
  }
  return [found, texts];
}

/** The nodes of a group in one box. */
function words(root: Instance, { id, main, part }: Box, nodes: readonly number[]): string {
  if (nodes.length === 1) return root.name(nodes[0] as number);
  const closed = part.kind === GROUP ? part.label : id.replace(/\/$/, "");
  return `${main < 0 ? closed : root.name(main)} (${grouped(nodes.length)} nodes)`;
}

/** Names without the scope that all are in. */
function textOf(names: readonly string[]): string {
  const [first = "", ...others] = names.map((name) => name.slice(0, name.lastIndexOf("/") + 1));
  let scope = first;
  while (!others.every((other) => other.startsWith(scope)))
    scope = scope.slice(0, scope.lastIndexOf("/", scope.length - 2) + 1);
  const shown = names.slice(0, MAX_NAMES).map((name) => name.slice(scope.length));
  const more = names.length - shown.length;
  return `together: ${shown.join(", ")}${more ? ` and ${grouped(more)} more` : ""}`;
}
