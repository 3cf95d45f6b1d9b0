// The boxes upstream or downstream of others.
import type { Scene } from "./generated";

export type Way = "upstream" | "downstream";
/** The parts of a picture that can be highlighted around a selection. */
export type Highlighted = Way | "near" | "paths";

export interface Traced {
  readonly boxes: ReadonlySet<string>;
  readonly lines: ReadonlySet<string>;
}

/** The boxes that a stub stands for: one, or the crowd that its detail lists. */
export function behind({ id, stands_for: one, detail }: Scene["nodes"][number]): readonly string[] {
  if (one) return [one];
  return id.startsWith("stub:*") ? detail.split(", ") : [];
}

/** The boxes of a selection. A frame stands for the boxes in it. */
export function selectedBoxes({ nodes, groups }: Scene, selection: Iterable<string>): Set<string> {
  const wanted = new Set(selection);
  for (const group of groups) if (wanted.has(group.parent)) wanted.add(group.id);
  return new Set(nodes.filter(({ id, group }) => wanted.has(id) || wanted.has(group)).map(({ id }) => id));
}

/** Everything that `from` depends on, or that depends on it, `from` included. A frame stands for the boxes in it. */
export function trace(scene: Scene, from: Iterable<string>, way: Way): Traced {
  const next = new Map<string, { readonly box: string; readonly line: string }[]>();
  const link = (source: string, target: string, line: string): void => {
    const [here, there] = way === "downstream" ? [source, target] : [target, source];
    const known = next.get(here);
    if (known) known.push({ box: there, line });
    else next.set(here, [{ box: there, line }]);
  };
  for (const { id, source, target } of scene.edges) link(source, target, id);
  for (const node of scene.nodes) for (const box of behind(node)) link(box, node.id, "");
  const boxes = selectedBoxes(scene, from);
  const lines = new Set<string>();
  for (const box of boxes) {
    for (const { box: other, line } of next.get(box) ?? []) {
      boxes.add(other);
      lines.add(line);
    }
  }
  return { boxes, lines };
}
