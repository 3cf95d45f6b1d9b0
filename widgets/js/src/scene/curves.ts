// Cubic curves.
import type { Point } from "./places";

/** A cubic curve by its four points. */
export type Curve = readonly [Point, Point, Point, Point];

/** The point at a share of the way from one point to another. */
export const mix = (a: Point, b: Point, t: number): Point => ({ x: a.x + (b.x - a.x) * t, y: a.y + (b.y - a.y) * t });

/** De Casteljau's division of a cubic curve. */
export function split([a, b, c, d]: Curve, t: number): [Curve, Curve] {
  const [ab, bc, cd] = [mix(a, b, t), mix(b, c, t), mix(c, d, t)];
  const [abc, bcd] = [mix(ab, bc, t), mix(bc, cd, t)];
  const middle = mix(abc, bcd, t);
  return [
    [a, ab, abc, middle],
    [middle, bcd, cd, d],
  ];
}

/** The parameter at which a curve passes a height between those of its ends. */
export function crossing(curve: Curve, y: number): number {
  const down = curve[0].y < curve[3].y;
  let [low, high] = [0, 1];
  for (let step = 0; step < 24; step++) {
    const t = (low + high) / 2;
    if (split(curve, t)[0][3].y < y === down) low = t;
    else high = t;
  }
  return (low + high) / 2;
}
