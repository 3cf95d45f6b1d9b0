// Geometry: positions by the scene's ids, read from the layout engine's answer. Pixels, y downwards.
import { holdLabels } from "./frames";
import type { Scene } from "./generated";
import type { Geometry, Point, Rect, Route } from "./places";

export type { Geometry, Point, Rect, Route } from "./places";

/** The attributes of one element in the engine's answer. */
type Attributes = ReadonlyMap<string, string>;

const numbers = (text: string): number[] => text.split(",").map(Number);
const round = (value: number): number => Math.round(value * 10) / 10;

function parsePoint(text: string, top: number): Point {
  const [x = 0, y = 0] = numbers(text);
  return { x: round(x), y: round(top - y) };
}

/** Graphviz writes `s,x,y e,x,y p0 c1 c2 p1 ...`: the start and end points lie outside the spline. */
function parseRoute(edge: Attributes, top: number, backwards: boolean): Route | null {
  const parts = (edge.get("pos") ?? "").split(" ").filter(Boolean);
  const label = edge.get("lp");
  const spline: Point[] = [];
  let tip: Point | null = null;
  for (const part of parts) {
    if (part.startsWith("e,") || part.startsWith("s,")) tip = parsePoint(part.slice(2), top);
    else spline.push(parsePoint(part, top));
  }
  if (backwards) spline.reverse();
  const last = spline[spline.length - 1];
  if (!last) return null;
  // Graphviz sometimes leaves the last curve unfinished; the missing part becomes a straight line to the tip.
  const points = spline.slice(0, 1 + 3 * Math.floor((spline.length - 1) / 3));
  return { points, tip: tip ?? last, label: label ? parsePoint(label, top) : null };
}

/** SVG path data from the source to the base of the arrowhead. */
export function routePath({ points }: Route): string {
  const curves = [`M${points[0]?.x},${points[0]?.y}`];
  for (let i = 1; i + 2 < points.length; i += 3) {
    curves.push(`C${[points[i], points[i + 1], points[i + 2]].map((p) => `${p?.x},${p?.y}`).join(" ")}`);
  }
  return curves.join("");
}

/** The place of a tag on a line: that of its label, or the middle of its middle curve. */
export function routeMiddle(route: Route): Point {
  return route.label ?? curveMiddle(route, Math.floor((route.points.length - 1) / 6));
}

/** The places where a tag on a line can be, the best first. */
export function routePlaces(route: Route): readonly Point[] {
  const curves = Array.from({ length: Math.floor((route.points.length - 1) / 3) }, (_, curve) => curve);
  return [routeMiddle(route), ...curves.map((curve) => curveMiddle(route, curve))];
}

function curveMiddle({ points }: Route, curve: number): Point {
  const [a, b, c, d] = points.slice(3 * curve, 3 * curve + 4);
  if (!a || !b || !c || !d) return a ?? { x: 0, y: 0 };
  return { x: (a.x + 3 * b.x + 3 * c.x + d.x) / 8, y: (a.y + 3 * b.y + 3 * c.y + d.y) / 8 };
}

/** The point from which the arrowhead comes. */
export function routeBase({ points, tip }: Route): Point {
  return points[points.length - 1] ?? tip;
}

function parseRect(bb: string, top: number): Rect {
  const [left = 0, bottom = 0, right = 0, upper = 0] = numbers(bb);
  return { x: round(left), y: round(top - upper), width: round(right - left), height: round(upper - bottom) };
}

/** One statement of DOT: the start of a cluster, attributes of the graph it is in, an edge, or a node. */
const STATEMENT =
  /subgraph cluster_(\d+) |\bgraph\s*\[([^\]]*)\]|\bn\d+ -> n\d+\s*\[([^\]]*)\]|\bn(\d+)\s*\[([^\]]*)\]/g;
const ATTRIBUTE = /(\w+)=(?:"([^"]*)"|([^\s,"]+))/g;

function attributes(text: string): Attributes {
  return new Map([...text.matchAll(ATTRIBUTE)].map(([, name = "", quoted, bare]) => [name, quoted ?? bare ?? ""]));
}

/** Parses the engine's answer to `layoutDot(scene)`: DOT with positions. Throws an Error if it is no layout. */
export function parseGeometry(answer: string, scene: Scene): Geometry {
  const nodes = new Map<string, Rect>();
  const groups = new Map<string, Rect>();
  const edges = new Map<string, Route>();
  let cluster = -1;
  let box: string | undefined;
  let [width, height] = [0, 0];
  // A backslash at the end of a line continues a long value.
  for (const [, opened, frame, line, index, node] of answer.replace(/\\\r?\n/g, "").matchAll(STATEMENT)) {
    if (opened !== undefined) cluster = Number(opened);
    if (frame !== undefined) {
      const bb = attributes(frame).get("bb");
      const group = scene.groups[cluster];
      if (!box && bb) [box, width = 0, height = 0] = [bb, ...numbers(bb).slice(2)];
      else if (group && bb) groups.set(group.id, parseRect(bb, height));
    }
    if (line !== undefined) {
      const found = attributes(line);
      const edge = scene.edges[Number(found.get("id")?.slice(1))];
      const route = edge && parseRoute(found, height, edge.reversed);
      if (edge && route) edges.set(edge.id, route);
    }
    const shown = index === undefined ? undefined : scene.nodes[Number(index)];
    if (shown && node !== undefined) nodes.set(shown.id, parseBox(attributes(node), height));
  }
  if (!box) throw new Error("the layout engine gave no bounding box");
  return holdLabels(scene, { width, height, nodes, groups, edges });
}

function parseBox(found: Attributes, top: number): Rect {
  const { x, y } = parsePoint(found.get("pos") ?? "", top);
  const size = (name: string): number => round(Number(found.get(name)) * 72);
  const [width, height] = [size("width"), size("height")];
  return { x: round(x - width / 2), y: round(y - height / 2), width, height };
}

/** The smallest rectangle around others; null for none. */
export function union(rects: Iterable<Rect>): Rect | null {
  let left = Infinity;
  let top = Infinity;
  let right = -Infinity;
  let bottom = -Infinity;
  for (const rect of rects) {
    left = Math.min(left, rect.x);
    top = Math.min(top, rect.y);
    right = Math.max(right, rect.x + rect.width);
    bottom = Math.max(bottom, rect.y + rect.height);
  }
  return left < right ? { x: left, y: top, width: right - left, height: bottom - top } : null;
}

/** The x at which a picture begins: the middle of its uppermost boxes; null without boxes. */
export function beginning({ nodes }: Geometry): number | null {
  const top = Math.min(...[...nodes.values()].map(({ y, height }) => y + height));
  const row = [...nodes.values()].filter(({ y }) => y < top).map(({ x, width }) => x + width / 2);
  return row.sort((a, b) => a - b)[Math.floor(row.length / 2)] ?? null;
}
