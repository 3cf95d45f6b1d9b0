// The small sign on a box that the last cell made, changed, or failed at.
import { s } from "../dom";

const SIGNS: Readonly<Record<string, string>> = { new: "+", removed: "−", changed: "~", error: "!", stale: "…" };

/** The badge of a state about a point; null for a state that has none. */
export function badge(state: string, x: number, y = 0): SVGGElement | null {
  const sign = SIGNS[state];
  if (!sign) return null;
  return s(
    "g",
    { class: "gl-badge", transform: `translate(${x},${y})` },
    s("circle", { r: 7 }),
    s("text", { y: state === "stale" ? 1 : 3.6 }, sign),
  );
}
