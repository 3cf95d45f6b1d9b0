// Mirrored pictures: Graphviz chooses the side of each half.
// It also counts invisible lines into the size of the picture.

/** A row of a mirrored picture in DOT: a box, and then its gradient. */
const ROW = /\{rank=same;(n\d+)->(n\d+)\[/g;
/** The places in the engine's answer, in JSON and in DOT. */
const PLACES = /("?)\b(pos|lp|bb)\1(=|: )"([^"]*)"/g;
/** A point; the end of a line has a letter before it. */
const POINT = /(-?\d[\d.]*(?:e[+-]?\d+)?),(-?\d[\d.]*(?:e[+-]?\d+)?)/g;
/** The space that is kept around the middle of a label. */
const LABEL: Point = [48, 8];

type Point = readonly [x: number, y: number];

/** The places in an answer: middles of boxes, and corners of frames and points of lines that are seen. */
interface Places {
  readonly boxes: ReadonlyMap<string, Point>;
  readonly frames: readonly string[];
  readonly lines: readonly string[];
  readonly labels: readonly string[];
}

/** The engine's answer with each gradient after what it differentiates: on its right, or below if data flows across. */
export function inOrder(dot: string, answer: string): string {
  const rows = [...dot.matchAll(ROW)];
  if (rows.length === 0) return answer;
  const text = answer.replace(/\\\r?\n/g, ""); // a backslash at the end of a line continues a long value
  const across = dot.includes("rankdir=LR");
  const places = text.trimStart().startsWith("{") ? fromJson(text) : fromDot(text);
  let [right, above] = [0, 0];
  for (const [, origin = "", gradient = ""] of rows) {
    const [from, to] = [places.boxes.get(origin), places.boxes.get(gradient)];
    if (!from || !to) continue;
    right += Math.sign(to[0] - from[0]);
    above += Math.sign(to[1] - from[1]);
  }
  const turn: Point = [!across && right < 0 ? -1 : 1, across && above > 0 ? -1 : 1];
  return moved(text, turn, extent(places, sizes(dot)));
}

const points = (text: string): Point[] => [...text.matchAll(POINT)].map(([, x, y]) => [Number(x), Number(y)]);

/** Half of width and height of each box, in the units of places. */
function sizes(dot: string): Map<string, Point> {
  const found = dot.matchAll(/\b(n\d+)\[width=([\d.]+),height=([\d.]+)/g);
  return new Map([...found].map(([, name = "", width, height]) => [name, [36 * Number(width), 36 * Number(height)]]));
}

interface Item {
  readonly name?: string;
  readonly id?: string;
  readonly pos?: string;
  readonly lp?: string;
  readonly bb?: string;
}

function fromJson(text: string): Places {
  const { objects = [], edges = [] } = JSON.parse(text) as { objects?: Item[]; edges?: Item[] };
  const shown = edges.filter(({ id }) => id);
  return {
    boxes: new Map(objects.flatMap(({ name = "", pos }) => (pos ? [[name, points(pos)[0] as Point] as const] : []))),
    frames: objects.flatMap(({ name, bb }) => (/^cluster_\d/.test(name ?? "") && bb ? [bb] : [])),
    lines: shown.flatMap(({ pos }) => (pos ? [pos] : [])),
    labels: shown.flatMap(({ lp }) => (lp ? [lp] : [])),
  };
}

function fromDot(text: string): Places {
  const value = (attributes: string, name: string): string[] =>
    [...attributes.matchAll(new RegExp(`\\b${name}="([^"]*)"`, "g"))].map(([, found = ""]) => found);
  const boxes = [...text.matchAll(/(?<!-> )\b(n\d+)\s*\[([^\]]*)\]/g)];
  const frames = [...text.matchAll(/subgraph cluster_\d+ \{\s*graph \[([^\]]*)\]/g)];
  const edges = [...text.matchAll(/-> n\d+\s*\[([^\]]*)\]/g)].map(([, found = ""]) => found);
  const shown = edges.filter((attributes) => /\bid=/.test(attributes));
  return {
    boxes: new Map(
      boxes.flatMap(([, name = "", attributes = ""]) =>
        value(attributes, "pos").map((pos) => [name, points(pos)[0] as Point] as const),
      ),
    ),
    frames: frames.flatMap(([, attributes = ""]) => value(attributes, "bb")),
    lines: shown.flatMap((attributes) => value(attributes, "pos")),
    labels: shown.flatMap((attributes) => value(attributes, "lp")),
  };
}

/** The lower left and the upper right corner of all that is seen. */
function extent({ boxes, frames, lines, labels }: Places, halves: ReadonlyMap<string, Point>): [Point, Point] {
  const around = ([x, y]: Point, [dx, dy]: Point): Point[] => [
    [x - dx, y - dy],
    [x + dx, y + dy],
  ];
  const all = [
    ...[...boxes].flatMap(([name, middle]) => around(middle, halves.get(name) ?? [0, 0])),
    ...frames.flatMap(points),
    ...lines.flatMap(alongLine),
    ...labels.flatMap((label) => points(label).flatMap((middle) => around(middle, LABEL))),
  ];
  const [xs, ys] = [all.map(([x]) => x), all.map(([, y]) => y)];
  const least = (values: readonly number[]): number => values.reduce((a, b) => Math.min(a, b), Infinity);
  const most = (values: readonly number[]): number => values.reduce((a, b) => Math.max(a, b), -Infinity);
  return [
    [least(xs), least(ys)],
    [most(xs), most(ys)],
  ];
}

/** Points of a line: Graphviz writes its ends, which may lie outside, then the points of its curves. */
function alongLine(line: string): Point[] {
  const parts = line.split(" ");
  const tips = parts.filter((part) => /^[es]/.test(part)).flatMap(points);
  const [first, ...rest] = parts.filter((part) => !/^[es]/.test(part)).flatMap(points);
  if (!first) return tips;
  const found = [...tips, first];
  for (let i = 0, start = first; i + 2 < rest.length; i += 3) {
    const [a, b, end] = rest.slice(i, i + 3) as [Point, Point, Point];
    for (const t of [0.25, 0.5, 0.75, 1]) {
      const s = 1 - t;
      const at = (axis: 0 | 1): number =>
        s ** 3 * start[axis] + 3 * s * s * t * a[axis] + 3 * s * t * t * b[axis] + t ** 3 * end[axis];
      found.push([at(0), at(1)]);
    }
    start = end;
  }
  return found;
}

/** The answer with its lower left corner at the origin; -1 turns a direction over. */
function moved(text: string, [turnX, turnY]: Point, [low, high]: [Point, Point]): string {
  const short = (value: number): string => String(Math.round(value * 1000) / 1000);
  const place = (value: number, turn: number, from: number, to: number): number =>
    turn < 0 ? to - value : value - from;
  const move = ([x, y]: Point): Point => [place(x, turnX, low[0], high[0]), place(y, turnY, low[1], high[1])];
  const corners = (box: string): string => {
    const [a, b] = points(box).map(move) as [Point, Point];
    const values = [Math.min(a[0], b[0]), Math.min(a[1], b[1]), Math.max(a[0], b[0]), Math.max(a[1], b[1])];
    return values.map(short).join(",");
  };
  let isWhole = true; // the first frame is the picture itself
  return text.replace(PLACES, (_, quote: string, name: string, equals: string, value: string) => {
    let found = value.replace(POINT, (_all, x: string, y: string) =>
      move([Number(x), Number(y)])
        .map(short)
        .join(","),
    );
    if (name === "bb") {
      found = isWhole ? `0,0,${short(high[0] - low[0])},${short(high[1] - low[1])}` : corners(value);
      isWhole = false;
    }
    return `${quote}${name}${quote}${equals}"${found}"`;
  });
}
