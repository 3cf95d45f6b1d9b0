// Repeats in a sequence: the same pattern several times in a row, and near-alike neighbours.
import {
  addAll,
  areEqual,
  at,
  Counter,
  commonTotal,
  compareLists,
  excess,
  getOrMake,
  largest,
  range,
  runningSums,
  sum,
  totalOf,
} from "../order";
import { difference, near, OTHER } from "./alike";
import { type Span, sizeOf, spanOf } from "./decompose";
import type { Dims, Op } from "./nodes";

/** The longest pattern, in elements. */
const LONGEST = 256;
/** Fewer ops than this in all instances together are not worth a box of their own. */
const LEAST = 4;
/** A stretch of at least so many elements is not looked at again for multiples of its period. */
const FEW_LONG = 1000;
/** Instances with at least this share of equal kernels may pass on another width. */
const SAME_KERNELS = 0.8333333333333334;
/** An element of this many ops may be near-alike to its neighbours by itself. */
const SEED = 3;

/** A product or convolution. `isPointwise` and `width`, the size of its last dimension, are null if they are unknown. */
export interface Kernel {
  readonly op: Op;
  readonly isPointwise: boolean | null;
  readonly strides: readonly number[];
  readonly width: number | null;
  readonly isPadded: boolean;
}

/** One element of a sequence. */
export interface Element {
  /** The number of its structure. */
  readonly symbol: number;
  readonly ops: Counter<Op>;
  /** The number of its ops. */
  readonly total: number;
  /** The shape that it passes on. */
  readonly shape: Dims;
  /** Its products and convolutions. */
  readonly kernels: readonly Kernel[];
}

/**
 * Instances in a row, each an interval of the sequence. A single one is much like the instances of a run beside it.
 *
 * The first may as well begin at any place of `spare`, or at its end.
 */
export interface Run {
  readonly instances: readonly Span[];
  readonly spare: Span;
}

type Elements = readonly Element[];

const runOf = (instances: readonly Span[], spare = spanOf(0, 0)): Run => ({ instances, spare });

/** The interval of all instances. */
const spanOfRun = ({ instances }: Run): Span =>
  spanOf(at(instances, 0).start, at(instances, instances.length - 1).stop);

/** The repeats in a sequence, in order, without overlap, and single ones much like those beside them. */
export function findRuns(sequence: Elements): Run[] {
  const taken = new Uint8Array(sequence.length);
  const { clear, weak } = candidates(sequence);
  const exact = chosen(sequence, clear, taken);
  const beside = (run: Run): Span[] => exact.filter((other) => other !== run).map(spanOfRun);
  for (const [place, run] of exact.entries()) exact[place] = bestShift(sequence, run, beside(run));
  // The most alike first.
  for (const most of [OTHER / 4, OTHER])
    for (const [place, run] of exact.entries()) exact[place] = extended(sequence, run, beside(run), most);
  let found = [...exact];
  for (const run of exact) take(taken, run);
  for (const run of seeds(sequence, taken)) {
    const others = found.map(spanOfRun);
    if (overlapsAny(spanOfRun(run), others)) continue;
    const longer = extended(sequence, run, others, OTHER);
    if (longer.instances.length > 1) found.push(longer);
  }
  found = worthwhile(sequence, found);
  for (const run of [...found]) {
    const model = at(run.instances, run.instances.length - 1);
    const { start, stop } = spanOfRun(run);
    for (const step of [-1, 1]) {
      let edge = step > 0 ? stop : start;
      for (;;) {
        const one = single(sequence, model, edge, found.map(spanOfRun), step);
        if (one === null) break;
        found.push(runOf([one]));
        edge = step > 0 ? one.stop : one.start;
      }
    }
  }
  for (const run of found) take(taken, run);
  return [...found, ...worthwhile(sequence, chosen(sequence, weak, taken))].sort((one, other) => {
    const [ours, theirs] = [spanOfRun(one), spanOfRun(other)];
    return ours.start - theirs.start || ours.stop - theirs.stop;
  });
}

function take(taken: Uint8Array, run: Run): void {
  const { start, stop } = spanOfRun(run);
  taken.fill(1, start, stop);
}

const within = (sequence: Elements, { start, stop }: Span): Elements => sequence.slice(start, stop);

const worthwhile = (sequence: Elements, runs: readonly Run[]): Run[] =>
  runs.filter((run) => sum(within(sequence, spanOfRun(run)).map((element) => element.total)) >= LEAST);

/** The same pattern from the element on with which it has most instances, near-alike ones included. */
function bestShift(sequence: Elements, run: Run, others: readonly Span[]): Run {
  const choices = shifted(run).filter((each) => each === run || !overlapsAny(spanOfRun(each), others));
  if (choices.length < 2) return run;
  const ranked = choices.map((each) => ({ each, rank: quality(sequence, extended(sequence, each, others, OTHER)) }));
  return largest(ranked, (one, other) => compareLists(one.rank, other.rank))?.each ?? run;
}

/** A rank: instances, 1 for separable convolutions, likeness, 1 for a telling first element. */
function quality(sequence: Elements, run: Run): number[] {
  const { instances } = run;
  const layers = kernelsOf(sequence, at(instances, 0)).map((kernel) => kernel.op.layer);
  const first = at(sequence, at(instances, 0).start);
  const model = opsOf(sequence, at(instances, Math.floor(instances.length / 2)));
  const likeness = -sum(instances.map((each) => difference(model, opsOf(sequence, each))));
  const begins = first.kernels.length > 0 || first.total >= SEED;
  const isSeparable = areEqual(layers, ["depthwise convolution", "convolution"]);
  return [instances.length, Number(isSeparable), thousandths(likeness), Number(begins)];
}

/** A number in thousandths, rounded; halves to the even one. */
function thousandths(value: number): number {
  const isHalf = Number.isInteger(16 * value) && !Number.isInteger(8 * value);
  const below = Math.floor(1000 * value);
  return isHalf ? below + Math.abs(below % 2) : Math.round(1000 * Number(value.toFixed(3)));
}

/** The run, and the same pattern from other elements of its stretch on; the first is preferred. */
function shifted(run: Run): Run[] {
  const size = sizeOf(run.spare);
  if (sizeOf(at(run.instances, 0)) < 2 || size === 0 || size >= LONGEST) return [run];
  const first = run.spare.start - spanOfRun(run).start;
  const shifts = range(first, first + size + 1).filter((shift) => shift !== 0);
  const moved = (shift: number): Span[] => run.instances.map(({ start, stop }) => spanOf(start + shift, stop + shift));
  return [run, ...shifts.map((shift) => runOf(moved(shift), run.spare))];
}

/** The shape that an interval passes on. */
const passedOn = (sequence: Elements, span: Span): Dims => at(sequence, span.stop - 1).shape;

/** The ops of an interval. */
function opsOf(sequence: Elements, span: Span): Counter<Op> {
  const total = new Counter<Op>();
  for (const element of within(sequence, span)) addAll(total, element.ops);
  return total;
}

/** A stretch of equal patterns. */
interface Candidate {
  /** Shapes differ, period or coverage, period, start, length: the least first. */
  readonly rank: readonly number[];
  readonly period: number;
  readonly start: number;
  readonly length: number;
}

/**
 * Stretches of equal patterns, the best first: clear ones, and short chains that occur just twice.
 *
 * Patterns that pass on the same shapes go first, by the elements that they cover; then others, the shortest pattern first.
 */
function candidates(sequence: Elements): Record<"clear" | "weak", Candidate[]> {
  const size = sequence.length;
  const symbols = Int32Array.from(sequence, (element) => element.symbol);
  const shapes = new Map<string, number>();
  const numbered = Int32Array.from(sequence, ({ shape }) =>
    getOrMake(shapes, shape === null ? "unknown" : shape.map(String).join(), () => shapes.size),
  );
  const known = runningSums(sequence.map((element) => Number(element.shape !== null)));
  const weights = runningSums(sequence.map((element) => element.total));
  const large = runningSums(sequence.map((element) => Number(element.total >= SEED)));
  const clear: Candidate[] = [];
  const weak: Candidate[] = [];
  const long: { start: number; stop: number; period: number }[] = [];
  for (let period = 1; period <= Math.min(LONGEST, Math.floor(size / 2)); period++) {
    const found = stretches(symbols, period);
    if (found.length === 0) continue;
    const others: number[] = [];
    for (let place = 0; place + period < size; place++)
      if (numbered[place] !== numbered[place + period]) others.push(place);
    for (const stretch of found) {
      const { start, stop } = stretch;
      // The same pattern several times over.
      if (long.some((each) => period % each.period === 0 && each.start <= start && stop + period <= each.stop))
        continue;
      if (stop - start >= FEW_LONG) long.push({ start, stop: stop + period, period });
      for (const most of [0, 1])
        for (const part of sameShapes(sequence, others, known, stretch, period, most)) {
          const first = part.start;
          const many = sizeOf(part);
          const count = Math.floor(many / period) + 1;
          if (many < period || (count === 2 && at(weights, first + period) - at(weights, first) < 2)) continue;
          const rank = [most, most > 0 ? period : -count * period, period, first, many + period];
          const candidate = { rank, period, start: first, length: many + period };
          if (count > 2 || at(large, first + period) > at(large, first)) clear.push(candidate);
          else if (most === 0 || isPair(sequence, first, period)) weak.push(candidate);
        }
    }
  }
  const bestFirst = (one: Candidate, other: Candidate): number => compareLists(one.rank, other.rank);
  return { clear: clear.sort(bestFirst), weak: weak.sort(bestFirst) };
}

/** The runs of the best candidates that do not overlap others; marks them in `taken`. */
function chosen(sequence: Elements, best: readonly Candidate[], taken: Uint8Array): Run[] {
  const runs: Run[] = [];
  for (const { period, start, length } of best) {
    if (taken.subarray(start, start + length).includes(1)) continue;
    const spare = length % period;
    const first = phase(sequence, start, period, spare);
    const count = Math.floor(length / period);
    const instances = range(0, count).map((i) => spanOf(first + i * period, first + (i + 1) * period));
    const run = runOf(instances, spanOf(start, start + spare));
    take(taken, run);
    runs.push(run);
  }
  return runs;
}

/** The stretches of at least a period where each symbol is that of a period later. */
function stretches(symbols: Int32Array, period: number): Span[] {
  const found: Span[] = [];
  const end = symbols.length - period;
  let start = 0;
  for (let place = 0; place <= end; place++) {
    if (place < end && symbols[place] === symbols[place + period]) continue;
    if (place - start >= period) found.push(spanOf(start, place));
    start = place + 1;
  }
  return found;
}

/**
 * The parts of a stretch where shapes are similar to those a period later, in at most `most` differing dimensions.
 *
 * Unknown shapes do not count as long as each period has an equal shape beside them. `others` are the places with another shape than a period
 * later, in order; `known` the number of elements before each place whose shape has a known rank.
 */
function sameShapes(
  sequence: Elements,
  others: readonly number[],
  known: readonly number[],
  stretch: Span,
  period: number,
  most: number,
): Span[] {
  const parts: Span[] = [];
  let first = stretch.start;
  let since = first;
  let before = first - 1;
  for (let i = placeOf(others, stretch.start); i < others.length && at(others, i) < stretch.stop; i++) {
    const place = at(others, i);
    // There are equal shapes before this place.
    if (at(known, place) > at(known, before + 1)) since = place;
    before = place;
    const [ours, theirs] = [at(sequence, place).shape, at(sequence, place + period).shape];
    const counts = place - since + 1 >= period || !(isUnknown(ours) && isUnknown(theirs));
    if (counts && !areSimilar(ours, theirs, most)) {
      parts.push(spanOf(first, place));
      first = since = place + 1;
    }
  }
  parts.push(spanOf(first, stretch.stop));
  return parts.filter((part) => sizeOf(part) > 0);
}

/** The first place of a value, or of a larger one, in ordered numbers. */
function placeOf(ordered: readonly number[], value: number): number {
  let [low, high] = [0, ordered.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (at(ordered, middle) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

function areSimilar(ours: Dims, theirs: Dims, most: number): boolean {
  if (ours === null || theirs === null || isUnknown(ours) !== isUnknown(theirs)) return true;
  if (ours.length !== theirs.length) return false;
  const differing = range(0, ours.length).filter(
    (i) => ours[i] !== null && theirs[i] !== null && ours[i] !== theirs[i],
  );
  const isArea = isUnknown(ours) && differing[0] === 0; // the height and the width
  return differing.length + Number(isArea) <= most;
}

/** True iff shapes are unknown, and the convolutions of two periods have the same strides and padding. */
function isPair(sequence: Elements, first: number, period: number): boolean {
  const ours = kernelsOf(sequence, spanOf(first, first + period));
  const theirs = kernelsOf(sequence, spanOf(first + period, first + 2 * period));
  return (
    ours.length === theirs.length &&
    ours.every(({ strides, isPadded }, i) => {
      const other = at(theirs, i);
      return areEqual(strides, other.strides) && isPadded === other.isPadded;
    }) &&
    sequence.slice(first, first + period).some((element) => isUnknown(element.shape))
  );
}

const isUnknown = (shape: Dims): boolean => shape?.some((size) => size !== null && size < 0) ?? false;

/** The start of the first instance: the place with the largest element, or else with a kernel. */
function phase(sequence: Elements, start: number, period: number, spare: number): number {
  if (period < 2) return start;
  const rank = (place: number): number[] => [at(sequence, place).total, at(sequence, place).kernels.length];
  return largest(range(start, start + spare + 1), (one, other) => compareLists(rank(one), rank(other))) ?? start;
}

/** Large elements that are in no run, with the small ones after them. */
function seeds(sequence: Elements, taken: Uint8Array): Run[] {
  const found: Run[] = [];
  for (const [place, element] of sequence.entries()) {
    if (taken[place] === 1 || element.total < SEED) continue;
    let stop = place + 1;
    while (stop < sequence.length && stop < place + 3 && taken[stop] === 0 && at(sequence, stop).total < SEED) stop++;
    for (let end = place + 1; end <= stop; end++) found.push(runOf([spanOf(place, end)]));
  }
  return found;
}

/** Ops and kernels of an instance to compare others with, and the shapes that all instances pass on. */
interface Model {
  readonly ops: Counter<Op>;
  readonly kernels: readonly Kernel[];
  readonly shapes: readonly Dims[];
}

/**
 * The run with near-alike neighbours before and after it, as long as they pass on such a shape.
 *
 * `most` is the greatest share of other ops.
 */
function extended(sequence: Elements, run: Run, others: readonly Span[], most: number): Run {
  const instances = [...run.instances];
  const span = spanOfRun(run);
  const first = at(instances, 0);
  const shapes = instances.map((each) => passedOn(sequence, each));
  const model = { ops: opsOf(sequence, first), kernels: kernelsOf(sequence, first), shapes };
  let [lower, upper] = [0, sequence.length];
  for (const other of others) {
    if (other.stop <= first.start) lower = Math.max(lower, other.stop);
    if (other.start >= span.stop) upper = Math.min(upper, other.start);
  }
  for (;;) {
    const window = best(sequence, model, at(instances, 0).start, lower, -1, most);
    if (window === null) break;
    instances.unshift(window);
  }
  for (;;) {
    const window = best(sequence, model, at(instances, instances.length - 1).stop, upper, 1, most);
    if (window === null) break;
    instances.push(window);
  }
  return runOf(instances, run.spare);
}

/**
 * The window beside `edge` that is a stage of one block like the model; null if there is none.
 *
 * It is near-alike, but passes on another shape, or has only the later kernels of the model.
 */
function single(sequence: Elements, model: Span, edge: number, others: readonly Span[], step: number): Span | null {
  const [kernels, ops] = [kernelsOf(sequence, model), opsOf(sequence, model)];
  const most = 1.25 * totalOf(ops);
  const total = new Counter<Op>();
  let found: { rank: readonly number[]; span: Span } | null = null;
  for (let place = step < 0 ? edge - 1 : edge; place >= 0 && place < sequence.length; place += step) {
    if (totalOf(total) > most) break;
    const span = step < 0 ? spanOf(place, edge) : spanOf(edge, place + 1);
    if (overlapsAny(span, others)) break;
    addAll(total, at(sequence, place).ops);
    const ours = kernelsOf(sequence, span);
    const rank = [-ours.length, difference(ops, total)];
    const first = at(sequence, span.start);
    const begins = first.kernels.length > 0 || first.total > 1;
    if (begins && continues(kernels, ops, ours, total) && (found === null || compareLists(rank, found.rank) < 0))
      found = { rank, span };
  }
  return found === null ? null : found.span;
}

/** True iff these are all kernels with near-alike ops, or at least the later half with few others. */
function continues(kernels: readonly Kernel[], ops: Counter<Op>, ours: readonly Kernel[], total: Counter<Op>): boolean {
  if (ours.length < Math.max(2, kernels.length / 2) || ours.length > kernels.length) return false;
  const theirs = kernels.slice(kernels.length - ours.length);
  const isLike = (kernel: Kernel, i: number): boolean =>
    kernel.op === theirs[i]?.op && kernel.isPointwise === theirs[i]?.isPointwise;
  if (!ours.every(isLike)) return false;
  if (ours.length === kernels.length) return areEqual(at(ours, 0).strides, at(theirs, 0).strides) && near(ops, total);
  return totalOf(excess(total, ops)) <= OTHER * totalOf(total);
}

const kernelsOf = (sequence: Elements, span: Span): Kernel[] =>
  within(sequence, span).flatMap((element) => element.kernels);

/** The window beside `edge` that is most like the model; null if none is near-alike. */
function best(sequence: Elements, model: Model, edge: number, limit: number, step: number, most: number): Span | null {
  const enough = 1.25 * totalOf(model.ops);
  const total = new Counter<Op>();
  let found: { share: number; span: Span } | null = null;
  for (let place = step < 0 ? edge - 1 : edge; step < 0 ? place >= limit : place < limit; place += step) {
    if (totalOf(total) > enough) break;
    addAll(total, at(sequence, place).ops);
    const span = step < 0 ? spanOf(place, edge) : spanOf(edge, place + 1);
    const share = difference(model.ops, total);
    if (share <= most + 1e-9 && (found === null || share < found.share) && joins(sequence, model, span))
      found = { share, span };
  }
  return found === null ? null : found.span;
}

/**
 * True iff an interval has all kernels of the model, and passes on such a shape.
 *
 * With nearly the same kernels it may pass on another width.
 */
function joins(sequence: Elements, model: Model, span: Span): boolean {
  const kernels = kernelsOf(sequence, span);
  const opsIn = (list: readonly Kernel[]): Counter<Op> => new Counter(list.map((kernel) => kernel.op));
  if (excess(opsIn(model.kernels), opsIn(kernels)).counts.size > 0) return false;
  const shape = passedOn(sequence, span);
  const first = at(model.shapes, 0);
  if (shape === null || first === null || model.shapes.some((each) => each?.length !== shape.length))
    return areEqual(shape, first);
  const last = shape.length - 1;
  const fixed = range(0, shape.length).filter((i) => model.shapes.every((each) => each?.[i] === first[i]));
  const differing = fixed.filter((i) => shape[i] !== first[i]);
  if (differing.length === 0) return fixed.includes(last) || sameKernels(kernels, model.kernels);
  return (
    areEqual(differing, [last]) && kernels.every((each) => (each.width ?? 0) > 0) && sameKernels(kernels, model.kernels)
  );
}

/** True iff nearly all kernels have the same strides, and the same width if it is known. */
function sameKernels(ours: readonly Kernel[], theirs: readonly Kernel[]): boolean {
  const common = commonTotal(new Counter(ours.map(keyOf)), new Counter(theirs.map(keyOf)));
  return common >= SAME_KERNELS * Math.max(ours.length, theirs.length);
}

const keyOf = ({ op, strides, width }: Kernel): string =>
  `${op.name} ${strides.join()} ${width !== null && width > 0 ? width : ""}`;

const overlaps = (ours: Span, theirs: Span): boolean => ours.start < theirs.stop && theirs.start < ours.stop;

const overlapsAny = (span: Span, others: readonly Span[]): boolean => others.some((other) => overlaps(span, other));
