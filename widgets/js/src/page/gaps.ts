// Gradients that are None in a mirrored picture.
import type { SceneEdge, SceneNode } from "../scene/generated";
import { BACKWARD, MIRROR } from "./mirror";
import { getOrMake } from "./order";
import { PLAIN } from "./stubs";
import type { Box, Visible } from "./visible";

/** The most reasons in one box, and the most edges into it. */
const MOST_LINES = 3;

/** A place where gradients stop, and what is responsible for it. */
type Cut = readonly [last: number, node: number, reason: string];

const lastPart = (name: string): string => name.slice(name.lastIndexOf("/") + 1);

const reasons = (cuts: readonly Cut[]): string =>
  cuts
    .slice(0, MOST_LINES)
    .map(([, , reason]) => reason)
    .join("\n");

/** The boxes of gaps, one beside each forward box with any, and the edges that lead to them. */
export function gapBoxes(visible: Visible): [SceneNode[], SceneEdge[]] {
  const { root } = visible;
  const frames = new Set(visible.frames.map(({ id }) => id));
  const inside = new Map<Box, { names: string[]; cuts: Map<string, Cut> }>();
  for (const { node, cuts } of root.space.head.gaps) {
    const box = visible.box(root, node);
    if (!box) continue;
    const found = getOrMake(inside, box, () => ({ names: [] as string[], cuts: new Map<string, Cut>() }));
    found.names.push(lastPart(root.name(node)));
    for (const cut of cuts) getOrMake(found.cuts, JSON.stringify(cut), () => cut);
  }
  const nodes: SceneNode[] = [];
  const edges: SceneEdge[] = [];
  for (const [box, { names, cuts: all }] of inside) {
    const id = `gap:${box.id}`;
    const cuts = [...all.values()];
    const culprit = cuts.find(([, node]) => node >= 0)?.[1];
    nodes.push({
      ...PLAIN,
      id,
      label: `no gradient of ${names.slice(0, MOST_LINES).join(", ")}${names.length > MOST_LINES ? ", …" : ""}`,
      kind: "stub",
      group: [MIRROR + (box.group || "/"), BACKWARD].find((frame) => frames.has(frame)) ?? "",
      role: "gradient",
      state: "error",
      error: reasons(cuts),
      count: 0,
      mirrors: box.id,
      stands_for: culprit === undefined ? box.id : root.name(culprit),
    });
    const sources = new Map<string, Cut[]>();
    for (const cut of cuts) {
      const source = visible.box(root, cut[0]);
      if (source) getOrMake(sources, source.id, (): Cut[] => []).push(cut);
    }
    for (const [source, here] of [...sources].slice(0, MOST_LINES)) {
      const at = here[0]?.[1] ?? -1;
      edges.push({
        id: `${source}->${id}`,
        source,
        target: id,
        kind: "data",
        label: at < 0 ? "None" : `stopped at ${lastPart(root.name(at))}`,
        count: 1,
        dims: [],
        error: reasons(here),
        clash: 0,
        reversed: true,
        loose: false,
        state: "normal",
        role: "gradient",
        lenses: {},
      });
    }
  }
  return [nodes, edges];
}
