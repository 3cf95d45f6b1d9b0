// Hulls around the boxes of colocation groups: rings around the boxes, joined behind everything else.
import type { Colocation } from "./generated";
import { ellipsize, textWidth } from "./measure";
import type { Point, Rect } from "./places";

/** The lens with hulls of colocation groups, and tags on lines: the bytes that are copied between devices. */
export const DEVICES_LENS = "devices";

/** The pixels between a box and the ring around it. */
const GAP = 7;
const LEAST_NAME = 60;

/** A hull: paths of boxes and of lines between them, each with the width of its stroke, and its name with the rectangle for it. */
export interface Hull {
  readonly strokes: readonly (readonly [path: string, width: number])[];
  readonly text: string;
  readonly name: Rect;
}

const middle = ({ x, y, width, height }: Rect): Point => ({ x: x + width / 2, y: y + height / 2 });

/** The shortest tree of lines between the middles of boxes. */
function lines(rects: readonly Rect[]): [Point, Point][] {
  const [first, ...rest] = rects.map(middle);
  const found: [Point, Point][] = [];
  const waiting = rest.map((point) => ({ point, nearest: first as Point }));
  const far = (a: Point, b: Point): number => (a.x - b.x) ** 2 + (a.y - b.y) ** 2;
  while (waiting.length > 0) {
    let best = 0;
    for (const [i, { point, nearest }] of waiting.entries()) {
      const leader = waiting[best] as (typeof waiting)[number];
      if (far(point, nearest) < far(leader.point, leader.nearest)) best = i;
    }
    const [{ point, nearest }] = waiting.splice(best, 1) as [(typeof waiting)[number]];
    found.push([nearest, point]);
    for (const other of waiting) if (far(other.point, point) < far(other.point, other.nearest)) other.nearest = point;
  }
  return found;
}

/** The hull of a group; null unless two of its boxes are in the picture. Its name is at the lowest box, where few lines leave. */
export function hullOf(
  { nodes, text: words }: Colocation,
  places: (id: string) => Rect | null | undefined,
): Hull | null {
  const rects = nodes.flatMap((id) => places(id) ?? []);
  if (rects.length < 2) return null;
  const rings = rects.map(({ x, y, width, height }) => `M${x},${y}h${width}v${height}h${-width}z`);
  const joints = lines(rects).map(([a, b]) => `M${a.x},${a.y}L${b.x},${b.y}`);
  const lowest = rects.reduce((a, b) => (b.y + b.height > a.y + a.height ? b : a));
  const text = ellipsize(words, "label", Math.max(LEAST_NAME, lowest.width + 2 * GAP - 10));
  const width = textWidth(text, "label") + 10;
  const name = { x: lowest.x - GAP, y: lowest.y + lowest.height + 1, width, height: 14 };
  return {
    strokes: [
      [joints.join(""), GAP],
      [rings.join(""), 2 * GAP],
    ],
    text,
    name,
  };
}
