// From the layout engine's JSON to places on the page: pixels, y downwards, by the scene's ids.
import type { Scene } from "./generated";

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** A rectangle by its upper left corner. */
export interface Rect extends Point {
  readonly width: number;
  readonly height: number;
}

export interface Route {
  /** SVG path data from the source to the base of the arrowhead. */
  readonly path: string;
  /** The arrowhead: its tip, and the point it comes from. */
  readonly tip: Point;
  readonly base: Point;
  /** Middle of the label, or null when it has none. */
  readonly label: Point | null;
}

export interface Geometry {
  readonly width: number;
  readonly height: number;
  readonly nodes: ReadonlyMap<string, Rect>;
  readonly groups: ReadonlyMap<string, Rect>;
  readonly edges: ReadonlyMap<string, Route>;
}

interface EngineObject {
  readonly name?: string;
  readonly id?: string;
  readonly pos?: string;
  readonly bb?: string;
  readonly lp?: string;
  readonly width?: string;
  readonly height?: string;
}

interface EngineGraph extends EngineObject {
  readonly objects?: readonly EngineObject[];
  readonly edges?: readonly EngineObject[];
}

const numbers = (text: string): number[] => text.split(",").map(Number);
const round = (value: number): number => Math.round(value * 10) / 10;

function parsePoint(text: string, top: number): Point {
  const [x = 0, y = 0] = numbers(text);
  return { x: round(x), y: round(top - y) };
}

/** Graphviz writes `s,x,y e,x,y p0 c1 c2 p1 ...`: the start and end points lie outside the spline. */
function parseRoute(edge: EngineObject, top: number, backwards: boolean): Route | null {
  const parts = (edge.pos ?? "").split(" ").filter(Boolean);
  const spline: Point[] = [];
  let tip: Point | null = null;
  for (const part of parts) {
    if (part.startsWith("e,") || part.startsWith("s,")) tip = parsePoint(part.slice(2), top);
    else spline.push(parsePoint(part, top));
  }
  if (backwards) spline.reverse();
  const first = spline[0];
  const last = spline[spline.length - 1];
  if (!first || !last) return null;
  const curves: string[] = [`M${first.x},${first.y}`];
  for (let i = 1; i + 2 < spline.length; i += 3) {
    curves.push(`C${[spline[i], spline[i + 1], spline[i + 2]].map((p) => `${p?.x},${p?.y}`).join(" ")}`);
  }
  return { path: curves.join(""), tip: tip ?? last, base: last, label: edge.lp ? parsePoint(edge.lp, top) : null };
}

function parseRect(bb: string, top: number): Rect {
  const [left = 0, bottom = 0, right = 0, upper = 0] = numbers(bb);
  return { x: round(left), y: round(top - upper), width: round(right - left), height: round(upper - bottom) };
}

/** Reads the engine's answer to `layoutDot(scene)`. Throws an Error when it is not a layout. */
export function parseGeometry(json: string, scene: Scene): Geometry {
  const graph = JSON.parse(json) as EngineGraph;
  if (!graph.bb) throw new Error("the layout engine gave no bounding box");
  const [, , width = 0, height = 0] = numbers(graph.bb);
  const nodes = new Map<string, Rect>();
  const groups = new Map<string, Rect>();
  const edges = new Map<string, Route>();
  for (const object of graph.objects ?? []) {
    const name = object.name ?? "";
    const group = scene.groups[Number(name.slice("cluster_".length))];
    if (name.startsWith("cluster_") && group && object.bb) groups.set(group.id, parseRect(object.bb, height));
    const node = name.startsWith("n") ? scene.nodes[Number(name.slice(1))] : undefined;
    if (!node || !object.pos) continue;
    const { x, y } = parsePoint(object.pos, height);
    const size = { width: round(Number(object.width) * 72), height: round(Number(object.height) * 72) };
    nodes.set(node.id, { x: round(x - size.width / 2), y: round(y - size.height / 2), ...size });
  }
  for (const object of graph.edges ?? []) {
    const edge = scene.edges[Number((object.id ?? "").slice(1))];
    const route = edge && parseRoute(object, height, edge.reversed);
    if (edge && route) edges.set(edge.id, route);
  }
  return { width, height, nodes, groups, edges };
}

/** The smallest rectangle around some rectangles, or null around none. */
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
