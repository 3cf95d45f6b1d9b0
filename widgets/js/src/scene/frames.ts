// Widening of frames for edge labels, which the layout engine ignores for frames.
import { edgeLabelSize } from "./boxes";
import type { Scene } from "./generated";
import type { Geometry, Rect, Route } from "./geometry";
import { frameParents } from "./layout_dot";

/** The pixels between a frame and its labels, and between a frame and elements outside. */
const GAP = 4;
/** The pixels between a frame and a widened frame in it. */
const INNER_GAP = 8;

type Span = readonly [start: number, end: number];
interface Labelled {
  readonly id: string;
  readonly width: number;
}

/** Each frame with the frames around it, innermost first. */
function framePaths(scene: Scene): Map<string, string[]> {
  const parents = frameParents(scene.groups);
  const pathOf = (id: string): string[] => (id && parents.has(id) ? [id, ...pathOf(parents.get(id) ?? "")] : []);
  return new Map([...parents.keys()].map((id) => [id, pathOf(id)]));
}

/** The widths of the labels of lines that have one, in pixels. */
function labelWidths(scene: Scene): Map<string, number> {
  const widths = new Map<string, number>();
  for (const edge of scene.edges) {
    const size = edgeLabelSize(edge);
    if (size) widths.set(edge.id, size.width);
  }
  return widths;
}

/** The lines with labels, by the innermost frame that both of their ends are in. */
function labelledLines(
  scene: Scene,
  home: ReadonlyMap<string, readonly string[]>,
  widths: ReadonlyMap<string, number>,
): Map<string, Labelled[]> {
  const lines = new Map<string, Labelled[]>();
  for (const edge of scene.edges) {
    const width = widths.get(edge.id);
    const around = home.get(edge.target);
    const frame = home.get(edge.source)?.find((id) => around?.includes(id));
    if (width !== undefined && frame) lines.set(frame, [...(lines.get(frame) ?? []), { id: edge.id, width }]);
  }
  return lines;
}

const right = ({ x, width }: Rect): number => x + width;

/** The horizontal extent that a frame needs in the frame around it: with a margin on the sides where it has grown. */
function wider(now: Rect, before: Rect): Span {
  const [left, end] = [now.x < before.x ? INNER_GAP : 0, right(now) > right(before) ? INNER_GAP : 0];
  return [now.x - left, right(now) + end];
}

function stretched(rect: Rect, spans: readonly Span[], others: readonly Rect[], width: number): Rect {
  const beside = others.filter(({ y, height }) => y < rect.y + rect.height && rect.y < y + height);
  const first = Math.max(0, ...beside.filter((other) => right(other) <= rect.x).map((other) => right(other) + GAP));
  const last = Math.min(width, ...beside.filter(({ x }) => x >= right(rect)).map(({ x }) => x - GAP));
  const x = Math.min(rect.x, Math.max(first, Math.min(...spans.map(([start]) => start))));
  const end = Math.max(right(rect), Math.min(last, Math.max(...spans.map(([, stop]) => stop))));
  return { ...rect, x, width: end - x };
}

function movedIn(route: Route, width: number, frame: Rect): Route {
  if (!route.label) return route;
  const slack = Math.max(0, (frame.width - width) / 2 - 1);
  const middle = frame.x + frame.width / 2;
  return { ...route, label: { ...route.label, x: Math.min(Math.max(route.label.x, middle - slack), middle + slack) } };
}

/**
 * Widens frames for the labels of lines that begin and end in them, up to the next element. A label that still does not
 * fit moves into the frame. Heights need no change: a label lies between the rows of its line's ends.
 */
export function holdLabels(
  scene: Scene,
  places: Geometry,
  widths: ReadonlyMap<string, number> = labelWidths(scene),
): Geometry {
  const paths = framePaths(scene);
  const home = new Map(scene.nodes.map(({ id, group }) => [id, paths.get(group) ?? []]));
  const lines = labelledLines(scene, home, widths);
  const [groups, edges] = [new Map(places.groups), new Map(places.edges)];
  const around = (id: string): readonly string[] => paths.get(id) ?? [];
  // A frame comes after those in it.
  for (const id of [...groups.keys()].sort((a, b) => around(b).length - around(a).length)) {
    const rect = groups.get(id);
    const labelled = lines.get(id) ?? [];
    const spans: Span[] = labelled.flatMap((line) => {
      const label = edges.get(line.id)?.label;
      return label ? [[label.x - line.width / 2 - GAP, label.x + line.width / 2 + GAP] as const] : [];
    });
    for (const [inner, now] of groups) {
      const before = places.groups.get(inner);
      if (around(inner)[1] === id && before) spans.push(wider(now, before));
    }
    if (!rect || spans.length === 0) continue;
    const outside = [...places.nodes].filter(([node]) => !home.get(node)?.includes(id)).map(([, other]) => other);
    for (const [other, place] of groups) {
      if (!around(other).includes(id) && !around(id).includes(other)) outside.push(place);
    }
    const frame = stretched(rect, spans, outside, places.width);
    groups.set(id, frame);
    for (const line of labelled) {
      const route = edges.get(line.id);
      if (route) edges.set(line.id, movedIn(route, line.width, frame));
    }
  }
  return { ...places, groups, edges };
}
