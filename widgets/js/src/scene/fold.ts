// Folding of long pictures: a tall one is cut between rows into columns, as text is.
import { type Curve, crossing, mix, split } from "./curves";
import type { Geometry, Point, Rect, Route, Size } from "./places";

/** The most columns of a picture. */
const MOST = 12;
/** The least gap between two rows at which a picture can be cut, in pixels. */
const LEAST_GAP = 3;
/** The distance of a column from the lines beside it, in pixels. */
const CLEAR = 12;
/** The distance of lines that lead from one column to the next, and the most space for all of them, in pixels. */
const LANE = 7;
const LANES = 56;
/** The most lines through a cut: more are a tangle. */
const MOST_LINES = 6;
/** The radius of the corners of these lines, in pixels. */
const CORNER = 6;
/** A picture of this scale or more is not folded: it is large enough. */
const ENOUGH = 0.95;
/** The number of times by which folding must enlarge a picture. */
const GAIN = 1.1;

/** A part of the picture between two cuts, with its extent. */
interface Band {
  readonly top: number;
  readonly bottom: number;
  readonly left: number;
  readonly right: number;
  /** The cut below it, and the number of lines through that cut. */
  readonly cut: number;
  readonly lines: number;
}

/** A cut and the number of lines through it. */
interface Cut {
  readonly y: number;
  readonly lines: number;
}

interface Shift {
  readonly dx: number;
  readonly dy: number;
}

/** The largest scale, at most 1, at which a picture fits into a panel. */
export function fittingScale({ width, height }: Size, panel: Size): number {
  return Math.min(1, panel.width / width, panel.height / height);
}

const right = ({ x, width }: Rect): number => x + width;
const bottom = ({ y, height }: Rect): number => y + height;
/** The rectangle of a label around its middle. */
const around = ({ x, y }: Point, { width, height }: Size = NO_SIZE): Rect => ({
  x: x - width / 2,
  y: y - height / 2,
  width,
  height,
});
const swap = ({ x, y }: Point): Point => ({ x: y, y: x });

/** The most boxes of a picture that is never folded: it would be torn apart. */
const FEW = 8;

/** The sizes of the labels of lines. */
type LabelSizes = ReadonlyMap<string, Size>;

const NO_SIZE: Size = { width: 0, height: 0 };

function turned({ width, height, nodes, groups, edges }: Geometry): Geometry {
  const rects = (all: ReadonlyMap<string, Rect>): Map<string, Rect> =>
    new Map([...all].map(([id, { x, y, width: w, height: h }]) => [id, { x: y, y: x, width: h, height: w }]));
  const turn = ({ points, tip, label }: Route): Route => {
    return { points: points.map(swap), tip: swap(tip), label: label && swap(label) };
  };
  const splines = new Map([...edges].map(([id, edge]) => [id, turn(edge)]));
  return { width: height, height: width, nodes: rects(nodes), groups: rects(groups), edges: splines };
}

/** Folds a picture whose lines point right into rows below one another, or one whose lines point down into columns. */
export function fold(
  places: Geometry,
  panel: Size,
  across = false,
  labels: LabelSizes = new Map(),
  circles: readonly string[] = [],
): Geometry {
  if (!across) return foldColumns(places, panel, labels, circles);
  const turn = ({ width, height }: Size): Size => ({ width: height, height: width });
  const sizes = new Map([...labels].map(([id, size]) => [id, turn(size)]));
  return turned(foldColumns(turned(places), turn(panel), sizes, circles));
}

function foldColumns(places: Geometry, panel: Size, labels: LabelSizes, circles: readonly string[]): Geometry {
  const plain = fittingScale(places, panel);
  if (plain >= ENOUGH || places.nodes.size <= FEW) return places;
  const folding = new Folding(places, labels, circles);
  const cuts = folding.cuts();
  let best = { scale: plain * GAIN, bands: [] as readonly Band[] };
  for (let count = 2; count <= Math.min(MOST, cuts.length + 1); count++) {
    const bands = folding.bands(cuts, count);
    const scale = fittingScale(folding.size(bands), panel);
    if (scale > best.scale + 0.005) best = { scale, bands };
  }
  return best.bands.length > 1 ? folding.apply(best.bands) : places;
}

class Folding {
  readonly #places: Geometry;
  readonly #labels: LabelSizes;
  /** The frames that may be cut: each has nothing beside it, and the next lies in it. Outermost first. */
  readonly #cuttable: readonly string[];
  readonly #top: number;
  readonly #bottom: number;
  readonly #spans: readonly (readonly [top: number, bottom: number])[];
  readonly #circles: readonly (readonly [top: number, bottom: number])[];

  constructor(places: Geometry, labels: LabelSizes, circles: readonly string[]) {
    this.#places = places;
    this.#labels = labels;
    this.#cuttable = cuttableFrames(places);
    const inner = places.groups.get(this.#cuttable.at(-1) ?? "");
    this.#top = inner ? inner.y : 0;
    this.#bottom = inner ? bottom(inner) : places.height;
    const span = ({ points, tip }: Route): readonly [number, number] => {
      const ys = [points[0]?.y ?? tip.y, tip.y];
      return [Math.min(...ys), Math.max(...ys)];
    };
    this.#spans = [...places.edges.values()].map(span);
    this.#circles = circles.flatMap((id) => places.edges.get(id) ?? []).map(span);
  }

  #isCuttable(id: string): boolean {
    return this.#cuttable.includes(id);
  }

  /** The places between rows, from top to bottom. */
  cuts(): readonly Cut[] {
    const { nodes, groups, edges } = this.#places;
    const rows: [number, number][] = [...nodes.values()].map((rect) => [rect.y, bottom(rect)]);
    for (const [id, rect] of groups) if (!this.#isCuttable(id)) rows.push([rect.y, bottom(rect)]);
    for (const [id, { label }] of edges) {
      if (!label) continue;
      const rect = around(label, this.#labels.get(id));
      rows.push([rect.y, bottom(rect)]);
    }
    rows.sort(([a], [b]) => a - b);
    const cuts: Cut[] = [];
    let end = Infinity;
    for (const [top, low] of rows) {
      if (top > this.#bottom) break;
      if (top - end >= LEAST_GAP && end > this.#top) {
        const y = (end + top) / 2;
        const lines = this.#spans.filter(([from, to]) => from < y && y < to).length;
        const isInCircle = this.#circles.some(([from, to]) => from < y && y < to);
        if (lines <= MOST_LINES && !isInCircle) cuts.push({ y, lines });
      }
      end = end === Infinity ? low : Math.max(end, low);
    }
    return cuts;
  }

  /** The picture in about `count` bands of equal heights, cut where few lines pass. */
  bands(cuts: readonly Cut[], count: number): readonly Band[] {
    const height = (this.#bottom - this.#top) / count;
    const chosen: Cut[] = [];
    let start = this.#top;
    while (this.#bottom - start > 1.25 * height) {
      const goal = start + height;
      const near = cuts.filter(({ y }) => y > start + 0.5 * height && y < start + 1.15 * height);
      const cost = ({ y, lines }: Cut): number => Math.abs(y - goal) + 12 * lines;
      const next = near.sort((a, b) => cost(a) - cost(b))[0] ?? cuts.find(({ y }) => y > goal);
      if (!next) break;
      chosen.push(next);
      start = next.y;
    }
    const ends = [...chosen, { y: this.#places.height + 1, lines: 0 }];
    return ends.map((cut, number) => this.#band(chosen[number - 1]?.y ?? -1, cut));
  }

  #band(from: number, { y, lines }: Cut): Band {
    const { nodes, groups, edges, width } = this.#places;
    let [left, end, top, low] = [width, 0, y, from];
    const add = (x0: number, y0: number, x1: number, y1: number): void => {
      left = Math.min(left, x0);
      end = Math.max(end, x1);
      top = Math.min(top, y0);
      low = Math.max(low, y1);
    };
    for (const rect of nodes.values()) if (rect.y > from && rect.y < y) add(rect.x, rect.y, right(rect), bottom(rect));
    for (const [id, rect] of groups) {
      if (!this.#isCuttable(id) && rect.y > from && rect.y < y) add(rect.x, rect.y, right(rect), bottom(rect));
    }
    for (const [id, { points, label }] of edges) {
      if (label && label.y > from && label.y < y) {
        const { x, y: upper, width: across, height } = around(label, this.#labels.get(id));
        add(x, upper, x + across, upper + height);
      }
      for (const point of points) if (point.y > from && point.y < y) add(point.x, point.y, point.x, point.y);
    }
    return { top, bottom: low, left: Math.min(left, end), right: end, cut: y, lines };
  }

  /** The shift of each band, the first staying in place, and the lowest end of all but the rest of the last. */
  #shifts(bands: readonly Band[]): { shifts: Shift[]; end: number } {
    const shifts: Shift[] = [];
    const level = Math.max(this.#top + this.#header(), bands[0]?.top ?? 0);
    let x = bands[0]?.left ?? 0;
    let end = 0;
    bands.forEach((band, number) => {
      const before = bands[number - 1];
      const shift = before
        ? { dx: x - band.left, dy: level + CLEAR + laneSpace(before.lines) - band.top }
        : { dx: 0, dy: 0 };
      shifts.push(shift);
      x += band.right - band.left + 2 * CLEAR + laneSpace(band.lines);
      const low = number === bands.length - 1 ? Math.min(band.bottom, this.#bottom - this.#footer()) : band.bottom;
      end = Math.max(end, low + shift.dy + (band.lines ? CLEAR + laneSpace(band.lines) : 0));
    });
    return { shifts, end };
  }

  /** The space of the innermost cut frame above and below the boxes in it. */
  #header(): number {
    return this.#cuttable.length > 0 ? 26 : 0;
  }

  #footer(): number {
    return this.#cuttable.length > 0 ? 10 : 0;
  }

  size(bands: readonly Band[]): Size {
    const { shifts, end } = this.#shifts(bands);
    const last = bands.at(-1);
    const across = Math.max(...bands.map((band, number) => band.right + (shifts[number]?.dx ?? 0)));
    const first = Math.min(...bands.map((band, number) => band.left + (shifts[number]?.dx ?? 0)));
    const frames = this.#cuttable.length;
    // The part below the innermost cut frame follows the lowest column.
    return {
      width: across - first + 24 * frames,
      height: end + Math.max(0, (last?.bottom ?? 0) - this.#bottom) + 12 * frames,
    };
  }

  apply(bands: readonly Band[]): Geometry {
    const { nodes, groups, edges } = this.#places;
    const { shifts, end } = this.#shifts(bands);
    const last = shifts[bands.length - 1] ?? { dx: 0, dy: 0 };
    // Below the cut frame, the end of the picture lies under the last column.
    const lower = this.#cuttable.length > 0 ? this.#bottom - this.#footer() : Infinity;
    const tail = { dx: last.dx, dy: end - lower };
    const edgesOf = [...bands.map(({ cut }) => cut).slice(0, -1), ...(lower < Infinity ? [lower] : [])];
    const all = lower < Infinity ? [...shifts, tail] : shifts;
    const place = (y: number): number => edgesOf.filter((cut) => cut <= y).length;
    const moved = (rect: Rect): Rect => {
      const { dx, dy } = all[place(rect.y)] ?? last;
      return { ...rect, x: rect.x + dx, y: rect.y + dy };
    };
    const folded = {
      nodes: new Map([...nodes].map(([id, rect]) => [id, moved(rect)])),
      groups: new Map([...groups].filter(([id]) => !this.#isCuttable(id)).map(([id, rect]) => [id, moved(rect)])),
    };
    const lanes = new Lanes(bands, all);
    const routes = new Map([...edges].map(([id, edge]) => [id, pieces(edge, edgesOf)] as const));
    for (const [id, parts] of routes) lanes.add(id, parts);
    const splines = new Map(
      [...edges].map(([id, edge]) => [id, lanes.route(id, edge, routes.get(id) ?? [], place)] as const),
    );
    const boxes = bands.map((band, number) => {
      const { dx, dy } = shifts[number] ?? last;
      const low = Math.min(band.bottom, this.#bottom - this.#footer()) + dy;
      return { x: band.left + dx, y: Math.max(band.top, this.#top + this.#header()) + dy, end: band.right + dx, low };
    });
    const frames = this.#frames(folded, boxes, end);
    return normal(
      { nodes: folded.nodes, groups: new Map([...folded.groups, ...frames]), edges: splines },
      this.#labels,
    );
  }

  /** The cut frames around what they contain now, with their former margins. */
  #frames(
    folded: { nodes: Map<string, Rect>; groups: Map<string, Rect> },
    boxes: readonly { x: number; end: number }[],
    end: number,
  ): Map<string, Rect> {
    const { nodes, groups } = this.#places;
    const frames = new Map<string, Rect>();
    const inner = this.#cuttable.at(-1);
    for (const id of [...this.#cuttable].reverse()) {
      const before = groups.get(id);
      if (!before) continue;
      const inside = [...nodes, ...[...groups].filter(([other]) => other !== id)].filter(
        ([, rect]) => contains(before, rect) && rect !== before,
      );
      const now = inside.flatMap(
        ([other]) => folded.nodes.get(other) ?? folded.groups.get(other) ?? frames.get(other) ?? [],
      );
      const margin = { left: 12, right: 12, top: Math.min(...inside.map(([, rect]) => rect.y)) - before.y, bottom: 10 };
      const xs = id === inner ? boxes.map(({ x }) => x) : [];
      const ends = id === inner ? boxes.map((box) => box.end) : [];
      const x = Math.min(...now.map((rect) => rect.x), ...xs) - margin.left;
      const y = Math.min(...now.map((rect) => rect.y)) - margin.top;
      const low = Math.max(...now.map(bottom), id === inner ? end : 0) + margin.bottom;
      frames.set(id, { x, y, width: Math.max(...now.map(right), ...ends) + margin.right - x, height: low - y });
    }
    return frames;
  }
}

const laneSpace = (lines: number): number => Math.min(LANES, lines * LANE);
const contains = (outer: Rect, { x, y, width, height }: Rect): boolean =>
  x >= outer.x && y >= outer.y && x + width <= right(outer) && y + height <= bottom(outer);

/** The frames around most of the picture's height that have nothing beside them, outermost first. */
function cuttableFrames({ nodes, groups, height }: Geometry): readonly string[] {
  const found: [string, Rect][] = [];
  for (const [id, rect] of groups) {
    const beside = [...nodes.values(), ...groups.values()].some(
      (other) =>
        other !== rect &&
        other.y < bottom(rect) &&
        rect.y < bottom(other) &&
        !contains(rect, other) &&
        !contains(other, rect),
    );
    if (!beside && rect.height > 0.5 * height) found.push([id, rect]);
  }
  return found.sort(([, a], [, b]) => b.height * b.width - a.height * a.width).map(([id]) => id);
}

/** A line, cut where it passes from one band into another: each piece with its band. */
interface Piece {
  readonly band: number;
  readonly points: readonly Point[];
}

function pieces({ points: curves, tip }: Route, cuts: readonly number[]): readonly Piece[] {
  const base = curves.at(-1) ?? tip;
  // The arrowhead too: a cut may pass through it.
  const points = [...curves, mix(base, tip, 1 / 3), mix(base, tip, 2 / 3), tip];
  const first = points[0] ?? tip;
  const bandOf = (y: number): number => cuts.filter((cut) => cut <= y).length;
  const found: { band: number; points: Point[] }[] = [{ band: bandOf(first.y), points: [first] }];
  const add = (curve: Curve): void => {
    const [a, b] = [curve[0].y, curve[3].y];
    const middle = (a + b) / 2;
    const between = cuts.filter((cut) => Math.min(a, b) + 0.01 < cut && cut < Math.max(a, b) - 0.01);
    const cut = a < b ? between[0] : between.at(-1);
    if (cut !== undefined) {
      const [before, after] = split(curve, crossing(curve, cut));
      add(before);
      // The rounding of numbers must not find the same cut again.
      add([{ x: after[0].x, y: cut }, after[1], after[2], after[3]]);
      return;
    }
    const band = bandOf(middle);
    const last = found.at(-1);
    if (last?.band === band) last.points.push(curve[1], curve[2], curve[3]);
    else found.push({ band, points: [...curve] });
  };
  for (let i = 0; i + 3 < points.length; i += 3) {
    const [a, b, c, d] = points.slice(i, i + 4);
    if (a && b && c && d) add([a, b, c, d]);
  }
  return found.filter((piece, number) => piece.points.length > 1 || number > 0 || found.length === 1);
}

/** The lines from column to column: nested, so that none crosses another. */
class Lanes {
  readonly #bands: readonly Band[];
  readonly #shifts: readonly Shift[];
  /** For each cut the lines through it, with their x. */
  readonly #through: [id: string, x: number][][];

  constructor(bands: readonly Band[], shifts: readonly Shift[]) {
    this.#bands = bands;
    this.#shifts = shifts;
    this.#through = bands.map(() => []);
  }

  add(id: string, parts: readonly Piece[]): void {
    parts.slice(1).forEach((part, number) => {
      const before = parts[number];
      const cut = Math.min(part.band, before?.band ?? 0);
      this.#through[cut]?.push([id, part.points[0]?.x ?? 0]);
    });
    for (const lines of this.#through) lines.sort(([, a], [, b]) => b - a);
  }

  route(id: string, { tip, label }: Route, parts: readonly Piece[], bandOf: (y: number) => number): Route {
    const at = ({ x, y }: Point, band: number): Point => {
      const { dx, dy } = this.#shifts[band] ?? { dx: 0, dy: 0 };
      return { x: x + dx, y: y + dy };
    };
    const points: Point[] = [];
    parts.forEach((part, number) => {
      const shifted = part.points.map((point) => at(point, part.band));
      const [start] = shifted;
      const [end, before] = [points.at(-1), parts[number - 1]];
      if (!start || !end || !before) points.push(...shifted);
      else points.push(...this.#connect(id, end, before.band, start, part.band), ...shifted.slice(1));
    });
    const last = parts.at(-1)?.band ?? 0;
    return { points: points.slice(0, -3), tip: at(tip, last), label: label && at(label, bandOf(label.y)) };
  }

  /** The way from a point at the edge of one band to a point at the edge of its neighbour. */
  #connect(id: string, from: Point, band: number, to: Point, next: number): Point[] {
    const upper = Math.min(band, next);
    const [start, end] = band < next ? [from, to] : [to, from];
    const straight = this.#shifts[upper]?.dx === this.#shifts[upper + 1]?.dx;
    const way = straight ? [start, end] : this.#around(id, upper, start, end);
    return curved(band < next ? way : way.reverse()).slice(1);
  }

  #around(id: string, band: number, start: Point, end: Point): Point[] {
    const lines = this.#through[band] ?? [];
    const lane = (lines.findIndex(([other]) => other === id) * laneSpace(lines.length)) / Math.max(1, lines.length);
    const here = this.#bands[band];
    const { dx = 0, dy = 0 } = this.#shifts[band] ?? {};
    const low = (here?.bottom ?? 0) + dy + CLEAR / 2 + lane;
    const x = (here?.right ?? 0) + dx + CLEAR + lane;
    const next = this.#bands[band + 1];
    const top = (next?.top ?? 0) + (this.#shifts[band + 1]?.dy ?? 0);
    const high = top - CLEAR / 2 - laneSpace(lines.length) + lane;
    return [start, { x: start.x, y: low }, { x, y: low }, { x, y: high }, { x: end.x, y: high }, end];
  }
}

/** A polyline with round corners as Bezier points. */
function curved(line: readonly Point[]): Point[] {
  const [first] = line;
  const points: Point[] = first ? [first] : [];
  const straight = (to: Point): void => {
    const from = points.at(-1) ?? to;
    points.push(mix(from, to, 1 / 3), mix(from, to, 2 / 3), to);
  };
  line.slice(1).forEach((corner, number) => {
    const [before, after] = [line[number], line[number + 2]];
    if (!before || !after) {
      straight(corner);
      return;
    }
    const near = (other: Point): Point => {
      const length = Math.hypot(other.x - corner.x, other.y - corner.y);
      return length > 0 ? mix(corner, other, Math.min(CORNER / length, 0.5)) : corner;
    };
    straight(near(before));
    points.push(corner, corner, near(after));
  });
  return points;
}

/** Moves the picture's upper left corner to the origin. */
function normal({ nodes, groups, edges }: Omit<Geometry, "width" | "height">, labels: LabelSizes): Geometry {
  const held = [...edges].flatMap(([id, { label }]) => (label ? [around(label, labels.get(id))] : []));
  const rects = [...nodes.values(), ...groups.values(), ...held];
  const points = [...edges.values()].flatMap(({ points: all, tip }) => [...all, tip]);
  const least = (values: readonly number[]): number => values.reduce((a, b) => Math.min(a, b), Infinity);
  const most = (values: readonly number[]): number => values.reduce((a, b) => Math.max(a, b), -Infinity);
  const x0 = least([...rects, ...points].map(({ x }) => x));
  const y0 = least([...rects, ...points].map(({ y }) => y));
  const round = (value: number): number => Math.round(value * 10) / 10;
  const at = ({ x, y }: Point): Point => ({ x: round(x - x0), y: round(y - y0) });
  const movedRects = (all: ReadonlyMap<string, Rect>): Map<string, Rect> =>
    new Map([...all].map(([id, rect]) => [id, { ...rect, ...at(rect) }]));
  const splines = new Map(
    [...edges].map(([id, { points: all, tip, label }]) => [
      id,
      { points: all.map(at), tip: at(tip), label: label && at(label) },
    ]),
  );
  return {
    width: round(most([...rects.map(right), ...points.map(({ x }) => x)]) - x0),
    height: round(most([...rects.map(bottom), ...points.map(({ y }) => y)]) - y0),
    nodes: movedRects(nodes),
    groups: movedRects(groups),
    edges: splines,
  };
}
