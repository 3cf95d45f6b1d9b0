// Keyboard navigation: the box that an arrow key leads to, along edges or within a row.
import type { Scene } from "./generated";
import type { Geometry, Rect } from "./geometry";

export type Direction = "up" | "down" | "left" | "right";

const PAN_STEP = 60;
/** The direction of each arrow key. */
export const ARROWS: Readonly<Record<string, Direction>> = {
  ArrowUp: "up",
  ArrowDown: "down",
  ArrowLeft: "left",
  ArrowRight: "right",
};
/** The movement of the picture for each direction, when an arrow key pans. */
export const PANS: Readonly<Record<Direction, readonly [number, number]>> = {
  up: [0, PAN_STEP],
  down: [0, -PAN_STEP],
  left: [PAN_STEP, 0],
  right: [-PAN_STEP, 0],
};

const middle = (rect: Rect): { x: number; y: number } => ({ x: rect.x + rect.width / 2, y: rect.y + rect.height / 2 });

function nearest(ids: Iterable<string>, cost: (id: string) => number): string | null {
  let best: string | null = null;
  let lowest = Infinity;
  for (const id of ids) {
    const value = cost(id);
    if (value >= lowest) continue;
    best = id;
    lowest = value;
  }
  return best;
}

/** The first box of a picture: the leftmost of the uppermost ones. */
export function firstBox(geometry: Geometry): string | null {
  return nearest(geometry.nodes.keys(), (id) => {
    const rect = geometry.nodes.get(id);
    return rect ? rect.y * 1e4 + rect.x : Infinity;
  });
}

/** The last box of a picture: the lowest, then the rightmost. */
export function lastBox(geometry: Geometry): string | null {
  return nearest(geometry.nodes.keys(), (id) => {
    const rect = geometry.nodes.get(id);
    return rect ? -(rect.y + rect.height) * 1e4 - rect.x : Infinity;
  });
}

/** The box that an arrow key leads to from `from`, or null when there is none that way. */
export function walk(direction: Direction, from: string, scene: Scene, geometry: Geometry): string | null {
  const start = geometry.nodes.get(from);
  if (!start) return firstBox(geometry);
  const here = middle(start);
  const at = (id: string): { x: number; y: number } => {
    const rect = geometry.nodes.get(id);
    return rect ? middle(rect) : { x: Infinity, y: Infinity };
  };
  if (direction === "left" || direction === "right") {
    const sign = direction === "left" ? -1 : 1;
    return nearest(geometry.nodes.keys(), (id) => {
      const { x, y } = at(id);
      const ahead = (x - here.x) * sign;
      const inRow = Math.abs(y - here.y) <= start.height;
      return id !== from && ahead > 0 && inRow ? ahead + 3 * Math.abs(y - here.y) : Infinity;
    });
  }
  const neighbours = new Set<string>();
  for (const { source, target } of scene.edges) {
    if (source === from) neighbours.add(target);
    if (target === from) neighbours.add(source);
  }
  const sign = direction === "up" ? -1 : 1;
  return nearest(neighbours, (id) => {
    const { x, y } = at(id);
    const ahead = (y - here.y) * sign;
    return id !== from && ahead > 0 ? Math.abs(x - here.x) + ahead / 4 : Infinity;
  });
}

/** The box to inspect when a line is chosen: its end, or for a line on the path of a clash the box with the clash. */
export function endOfLine(id: string, scene: Scene): string | null {
  const line = scene.edges.find((edge) => edge.id === id);
  if (!line) return null;
  const wrong = new Set(scene.nodes.filter(({ state }) => state === "error").map((node) => node.id));
  const seen = new Set([line.target]);
  if (line.clash === 0) return line.target;
  for (const box of seen) {
    if (wrong.has(box)) return box;
    for (const { source, target, clash } of scene.edges) if (source === box && clash > 0) seen.add(target);
  }
  return line.target;
}
