// The outline of each kind of box, as SVG path data in a box of the given size. Shapes tell kinds apart without colour.
import type { SceneNode } from "./generated";

function rounded(x: number, y: number, w: number, h: number, r: number): string {
  const arc = (dx: number, dy: number): string => `a${r},${r} 0 0 1 ${dx},${dy}`;
  return `M${x + r},${y}h${w - 2 * r}${arc(r, r)}v${h - 2 * r}${arc(-r, r)}h${2 * r - w}${arc(-r, -r)}v${2 * r - h}${arc(r, -r)}z`;
}

function cylinder(w: number, h: number): string {
  const lid = 5;
  const half = w / 2;
  return `M0,${lid}a${half},${lid} 0 0 1 ${w},0v${h - 2 * lid}a${half},${lid} 0 0 1 ${-w},0z`;
}

function cutCorner(w: number, h: number): string {
  const cut = 8;
  return `M3,0H${w - cut}L${w},${cut}V${h - 3}a3,3 0 0 1 -3,3H3a3,3 0 0 1 -3,-3V3a3,3 0 0 1 3,-3z`;
}

/** The outline of a box. */
export function outlinePath(kind: SceneNode["kind"], w: number, h: number): string {
  switch (kind) {
    case "variable":
      return cylinder(w, h);
    case "constant":
      return cutCorner(w, h);
    case "placeholder":
      return `M11,0H${w}L${w - 11},${h}H0z`;
    case "return":
      return `M0,0H${w}L${w - 11},${h}H11z`;
    case "control":
      return `M10,0H${w - 10}L${w},${h / 2}L${w - 10},${h}H10L0,${h / 2}z`;
    case "stub":
      return rounded(0, 0, w, h, h / 2);
    case "scope":
      return rounded(0, 3, w, h - 3, 6);
    default:
      return rounded(0, 0, w, h, 6);
  }
}

/** The inner lines of a shape: a cylinder's lid, a folded corner, the card behind a scope, the bars of a function. */
export function detailPath(kind: SceneNode["kind"], w: number, h: number): string {
  switch (kind) {
    case "variable":
      return `M0,5a${w / 2},5 0 0 0 ${w},0`;
    case "constant":
      return `M${w - 8},0V8H${w}`;
    case "scope":
      return `M5,3V1.5a1.5,1.5 0 0 1 1.5,-1.5H${w - 6.5}a1.5,1.5 0 0 1 1.5,1.5V3`;
    case "function":
      return `M6,0V${h}M${w - 6},0V${h}`;
    default:
      return "";
  }
}

/** An arrowhead from its base to its tip. */
export function arrowPath(base: { x: number; y: number }, tip: { x: number; y: number }): string {
  const dx = tip.x - base.x;
  const dy = tip.y - base.y;
  const length = Math.hypot(dx, dy) || 1;
  const [ux, uy] = [dx / length, dy / length];
  const size = 6.5;
  const [bx, by] = [tip.x - ux * size, tip.y - uy * size];
  const point = (x: number, y: number): string => `${Math.round(x * 10) / 10},${Math.round(y * 10) / 10}`;
  const half = 3.2;
  return `M${point(tip.x, tip.y)}L${point(bx - uy * half, by + ux * half)}L${point(bx + uy * half, by - ux * half)}z`;
}
