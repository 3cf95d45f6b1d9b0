// The boxes near others, and those between two.
import type { Scene } from "./generated";
import { behind, selectedBoxes, type Traced, trace } from "./trace";

/** The boxes, and the lines between them. */
export function among({ edges }: Scene, boxes: ReadonlySet<string>): Traced {
  const inside = edges.filter(({ source, target }) => boxes.has(source) && boxes.has(target));
  return { boxes, lines: new Set(inside.map(({ id }) => id)) };
}

/** The boxes at most so many lines away from `from`, in either direction. A stub is the box it stands for. */
export function nearby(scene: Scene, from: Iterable<string>, steps: number): Traced {
  const boxes = selectedBoxes(scene, from);
  const meetStubs = (): void => {
    for (const node of scene.nodes) {
      const real = behind(node);
      if (real.some((id) => boxes.has(id))) boxes.add(node.id);
      if (boxes.has(node.id)) for (const id of real) boxes.add(id);
    }
  };
  meetStubs();
  for (let step = 0; step < steps; step++) {
    const reached = scene.edges.filter(({ source, target }) => boxes.has(source) || boxes.has(target));
    for (const { source, target } of reached) boxes.add(source).add(target);
    meetStubs();
  }
  return among(scene, boxes);
}

/** All ways from one box to another, or back; no box if there is none. */
export function between(scene: Scene, first: string, second: string): Traced {
  for (const [start, end] of [
    [first, second],
    [second, first],
  ] as const) {
    const after = trace(scene, [start], "downstream").boxes;
    const before = trace(scene, [end], "upstream").boxes;
    const both = new Set([...after].filter((id) => before.has(id)));
    if (both.has(end)) return among(scene, both);
  }
  return among(scene, new Set());
}
