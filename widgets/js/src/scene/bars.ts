// The bars of a timeline: rows of overlapping spans, and what is drawn of them at a scale.
import type { StepTimeline } from "./generated";

/** The most rows of a lane; what overlaps more is drawn in the last one. */
const MOST_ROWS = 5;
/** The width in pixels below which neighbouring spans are drawn as one bar. */
const SMALLEST = 2;

/** Part of a timeline, in nanoseconds. */
export interface Window {
  readonly from: number;
  readonly to: number;
}

/** A bar to draw: one span, or `count` short ones that lie together from `first` to `last`. Places are in pixels. */
export interface Bar {
  readonly lane: number;
  readonly row: number;
  readonly first: number;
  readonly last: number;
  readonly count: number;
  readonly x: number;
  readonly width: number;
  readonly lit: boolean;
}

/** The row of each span within its lane, and the number of rows of each lane. */
export interface Rows {
  readonly of: Uint8Array;
  readonly counts: readonly number[];
}

/** Gives overlapping spans of a lane rows of their own; nodes of a called function lie below their call. */
export function rowsOf({ lanes, spans }: StepTimeline): Rows {
  const { starts, lasting } = spans;
  const of = new Uint8Array(starts.length);
  const ends: number[][] = lanes.map(() => []);
  const order = Array.from(starts, (_, i) => i).sort(
    (a, b) => at(starts, a) - at(starts, b) || at(lasting, b) - at(lasting, a),
  );
  for (const i of order) {
    const taken = ends[at(spans.lanes, i)] as number[];
    const start = at(starts, i);
    const free = taken.findIndex((end) => end <= start);
    const row = Math.min(free < 0 ? taken.length : free, MOST_ROWS - 1);
    taken[row] = Math.max(taken[row] ?? 0, start + at(lasting, i));
    of[i] = row;
  }
  return { of, counts: ends.map(({ length }) => Math.max(1, length)) };
}

/** The bars of a window of time, drawn `width` pixels wide: at most one for every two pixels of a row. */
export function barsOf(
  { spans }: StepTimeline,
  rows: Rows,
  { from, to }: Window,
  width: number,
  lit: (label: number) => boolean,
): Bar[] {
  const scale = width / Math.max(1, to - from);
  const bars: Bar[] = [];
  const open = new Map<number, { -readonly [K in keyof Bar]: Bar[K] }>();
  for (let i = 0; i < spans.starts.length; i++) {
    const start = at(spans.starts, i);
    const end = start + at(spans.lasting, i);
    if (end < from || start > to) continue;
    const lane = at(spans.lanes, i);
    const row = rows.of[i] as number;
    const left = Math.max(-1, (start - from) * scale);
    const right = Math.min(width + 1, (end - from) * scale);
    const isLit = lit(at(spans.labels, i));
    const key = (lane * MOST_ROWS + row) * 2 + Number(isLit);
    const before = open.get(key);
    if (before && right - left < SMALLEST && left < before.x + Math.max(before.width, SMALLEST)) {
      before.width = Math.max(before.width, right - before.x);
      before.count += 1;
      before.last = i;
      continue;
    }
    const bar = { lane, row, first: i, last: i, count: 1, x: left, width: Math.max(right - left, 1), lit: isLit };
    bars.push(bar);
    // A wide bar is not drawn together with short ones after it.
    if (right - left < SMALLEST) open.set(key, bar);
    else open.delete(key);
  }
  return bars;
}

/** The window of half, double or another share of the time around a point, within the whole. */
export function zoomed({ from, to }: Window, factor: number, around: number, length: number): Window {
  const span = Math.min(Math.max((to - from) / factor, 10), length);
  const share = (around - from) / Math.max(1, to - from);
  return moved({ from: around - share * span, to: around - share * span + span }, 0, length);
}

/** The window moved by some time, within the whole. */
export function moved({ from, to }: Window, by: number, length: number): Window {
  const span = to - from;
  const start = Math.max(0, Math.min(from + by, length - span));
  return { from: start, to: start + span };
}

/** Round times at equal distances of at least `distance` pixels. */
export function ticks({ from, to }: Window, width: number, distance = 90): number[] {
  const rough = ((to - from) * distance) / Math.max(1, width);
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  const step = ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power;
  const found: number[] = [];
  for (let time = Math.ceil(from / step) * step; time <= to; time += step) found.push(time);
  return found;
}

const UNITS = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
] as const;

/** A duration in words: `1.25 ms`. */
export function duration(ns: number): string {
  const [size, unit] = UNITS.find(([size]) => ns >= size) ?? [1, "ns"];
  return `${Number((ns / size).toPrecision(4))} ${unit}`;
}

/** A size in words: `1.2 MB`. */
export function bytes(count: number): string {
  const [size, unit] = [[1e9, "GB"] as const, [1e6, "MB"] as const, [1e3, "kB"] as const].find(
    ([size]) => count >= size,
  ) ?? [1, "bytes"];
  return `${Number((count / size).toPrecision(3))} ${unit}`;
}

/** The spans of one label on one lane together. */
export interface Total {
  readonly label: number;
  readonly lane: number;
  runs: number;
  ns: number;
  bytes: number;
}

/** The totals by label and lane, the longest first. */
export function totals({ spans }: StepTimeline): Total[] {
  const found = new Map<string, Total>();
  for (let i = 0; i < spans.starts.length; i++) {
    const [label, lane] = [at(spans.labels, i), at(spans.lanes, i)];
    const key = `${label} ${lane}`;
    const total = found.get(key) ?? { label, lane, runs: 0, ns: 0, bytes: 0 };
    total.runs += 1;
    total.ns += at(spans.lasting, i);
    total.bytes += at(spans.sizes, i);
    found.set(key, total);
  }
  return [...found.values()].sort((a, b) => b.ns - a.ns);
}

function at(column: readonly number[], i: number): number {
  return column[i] ?? 0;
}
