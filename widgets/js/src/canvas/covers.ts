// Keeping a box clear of the controls that lie over the picture.
import type { Point, Rect, Size } from "../scene/places";

/** The distance in pixels of a box from the controls. */
const GAP = 6;

const meet = (a: Rect, b: Rect): boolean =>
  a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;

/** The shortest move that frees a box of what covers it and keeps it in the window; none if there is no such move. */
export function uncovered(box: Rect, covers: readonly Rect[], window: Size, margin: number): Point {
  const stay = { x: 0, y: 0 };
  const over = covers.filter((cover) => meet(box, cover));
  if (over.length === 0) return stay;
  const moves = over.flatMap((cover) => [
    { x: 0, y: cover.y - GAP - (box.y + box.height) },
    { x: 0, y: cover.y + cover.height + GAP - box.y },
    { x: cover.x - GAP - (box.x + box.width), y: 0 },
    { x: cover.x + cover.width + GAP - box.x, y: 0 },
  ]);
  const both = moves.flatMap((a) => moves.map((b) => ({ x: a.x + b.x, y: a.y + b.y })));
  const fits = ({ x, y }: Point): boolean => {
    const moved = { ...box, x: box.x + x, y: box.y + y };
    const inside =
      moved.x >= margin &&
      moved.y >= margin &&
      moved.x + moved.width <= window.width - margin &&
      moved.y + moved.height <= window.height - margin;
    return inside && !covers.some((cover) => meet(moved, cover));
  };
  const length = ({ x, y }: Point): number => Math.hypot(x, y);
  return [...moves, ...both].filter(fits).sort((a, b) => length(a) - length(b))[0] ?? stay;
}
