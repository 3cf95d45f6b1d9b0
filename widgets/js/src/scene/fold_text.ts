// Folding for Python, which draws pictures without a page. JSON in and out; points and rectangles are lists.
import { fold } from "./fold";
import type { Geometry, Point, Rect, Route, Size } from "./places";

type Numbers = readonly number[];

/** A picture to fold into a panel, or the folded picture. */
interface FoldedText {
  readonly width: number;
  readonly height: number;
  readonly nodes: Readonly<Record<string, Numbers>>;
  readonly groups: Readonly<Record<string, Numbers>>;
  readonly edges: Readonly<Record<string, readonly [points: readonly Numbers[], tip: Numbers, label: Numbers | null]>>;
}

interface Request {
  readonly places: FoldedText;
  readonly panel: Size;
  readonly across: boolean;
  /** The ids of the lines that lead back in loops. */
  readonly circles: readonly string[];
}

const point = ([x = 0, y = 0]: Numbers): Point => ({ x, y });
const rect = ([x = 0, y = 0, width = 0, height = 0]: Numbers): Rect => ({ x, y, width, height });
const mapped = <From, To>(all: Readonly<Record<string, From>>, change: (value: From) => To): Map<string, To> =>
  new Map(Object.entries(all).map(([id, value]) => [id, change(value)]));

/** Folds a picture that Python has laid out. */
export function foldText(text: string): string {
  const { places, panel, across, circles } = JSON.parse(text) as Request;
  const geometry: Geometry = {
    ...places,
    nodes: mapped(places.nodes, rect),
    groups: mapped(places.groups, rect),
    edges: mapped(places.edges, ([points, tip, label]): Route => {
      return { points: points.map(point), tip: point(tip), label: label && point(label) };
    }),
  };
  const { width, height, nodes, groups, edges } = fold(geometry, panel, across, new Map(), circles);
  const pair = ({ x, y }: Point): Numbers => [x, y];
  const four = (all: ReadonlyMap<string, Rect>): Record<string, Numbers> =>
    Object.fromEntries([...all].map(([id, r]) => [id, [r.x, r.y, r.width, r.height]]));
  const lines = [...edges].map(([id, { points, tip, label }]) => {
    return [id, [points.map(pair), pair(tip), label && pair(label)]] as const;
  });
  const folded: FoldedText = {
    width,
    height,
    nodes: four(nodes),
    groups: four(groups),
    edges: Object.fromEntries(lines),
  };
  return JSON.stringify(folded);
}
