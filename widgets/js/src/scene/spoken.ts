// The inputs of boxes in words, for screen readers.
import { shownName } from "./boxes";
import type { Scene, SceneNode } from "./generated";

/** The most inputs of a box that are read out. */
const MOST = 4;

const inputs = new WeakMap<SceneNode, string>();

/** Notes the inputs of the boxes of a picture. */
export function noteInputs({ nodes, edges }: Scene): void {
  const names = new Map(nodes.map(({ id, label }) => [id, shownName(id, label)]));
  const found = new Map<string, string[]>();
  for (const { source, target, kind, label } of edges) {
    if (kind === "control") continue;
    const words = [label, `from ${names.get(source) ?? source}`].filter(Boolean).join(" ");
    found.set(target, [...(found.get(target) ?? []), words]);
  }
  for (const node of nodes) {
    const all = found.get(node.id);
    if (!all) continue;
    const more = all.length > MOST ? [`${all.length - MOST} more`] : [];
    inputs.set(node, `takes ${[...all.slice(0, MOST), ...more].join(" and ")}`);
  }
}

/** The inputs of a box: `takes float [?,64] from x and float [64,10] from W`; "" for a box without. */
export const spokenInputs = (node: SceneNode): string => inputs.get(node) ?? "";
