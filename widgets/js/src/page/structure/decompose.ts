// Decomposition: an order in which every region is an interval, and the cuts between regions.

import { at, range } from "../order";
import { allBefore, type Items, makeItems } from "./items";

/** A region of at most this many items is left whole. */
const FEW = 40;
/** An item with more consumers than this, some of them far, is left out if a region does not come apart otherwise. */
const BROADCAST = 4;

/** The items at positions `start` to `stop` - 1 of the order. */
export interface Span {
  readonly start: number;
  readonly stop: number;
}

export const spanOf = (start: number, stop: number): Span => ({ start, stop });
export const sizeOf = (span: Span): number => span.stop - span.start;

/** An interval with its instances; none if it is not a repeat. */
export interface Part {
  readonly span: Span;
  readonly instances: readonly Span[];
}

export const partOf = (span: Span, instances: readonly Span[] = []): Part => ({ span, instances });

/**
 * A topological order in which each item follows its inputs as closely as possible. The items must be acyclic.
 *
 * The longest branch comes first, then the order of the slots counts: an encoder precedes the decoder that uses it in every layer.
 * The backward pass and what depends on it come after all else.
 */
export function evaluationOrder(items: Items): number[] {
  const stages = stagesOf(items);
  const before = longestFirst(items);
  const walk = new Walk(before);
  for (const stage of [...new Set(stages)].sort((a, b) => a - b)) {
    const inside = range(0, items.members.length).filter((item) => stages[item] === stage);
    const ends = inside.filter((item) => at(items.outputs, item).every((target) => at(stages, target) > stage));
    const waits = (item: number): boolean => at(items.inputs, item).length === 0;
    // Items that only wait come last.
    for (const end of [...ends.filter((end) => !waits(end)), ...ends.filter(waits)]) walk.from(end);
    for (const item of inside) walk.from(item);
  }
  return walk.order;
}

/** The predecessors of each item, those at the end of the longest way first. */
function longestFirst(items: Items): (readonly number[])[] {
  const before = allBefore(items);
  const walk = new Walk(before);
  for (let item = 0; item < items.members.length; item++) walk.from(item);
  const depths = new Int32Array(items.members.length);
  for (const item of walk.order) {
    let depth = 0;
    for (const source of at(before, item)) depth = Math.max(depth, at(depths, source));
    depths[item] = 1 + depth;
  }
  return before.map((sources) =>
    sources.length < 2 ? sources : [...sources].sort((a, b) => at(depths, b) - at(depths, a)),
  );
}

/** Even for the forward pass, odd for the backward pass; never less than what comes before. */
function stagesOf(items: Items): number[] {
  const stages = new Array<number>(items.members.length).fill(0);
  if (!items.backward.includes(true)) return stages;
  const before = allBefore(items);
  const walk = new Walk(before);
  for (let item = 0; item < items.members.length; item++) walk.from(item);
  for (const item of walk.order) {
    let stage = 0;
    for (const source of at(before, item)) stage = Math.max(stage, at(stages, source));
    stages[item] = at(items.backward, item) ? stage + (stage % 2 === 0 ? 1 : 0) : stage + (stage % 2);
  }
  return stages;
}

/** Walks depth first: each item after everything before it. */
class Walk {
  readonly order: number[] = [];
  readonly #before: readonly (readonly number[])[];
  readonly #seen: Uint8Array;

  constructor(before: readonly (readonly number[])[]) {
    this.#before = before;
    this.#seen = new Uint8Array(before.length);
  }

  /** Appends an item and everything before it to the order. */
  from(start: number): void {
    const seen = this.#seen;
    if (seen[start] === 1) return;
    seen[start] = 1;
    const [way, next] = [[start], [0]];
    while (way.length > 0) {
      const last = way.length - 1;
      const sources = at(this.#before, at(way, last));
      let place = at(next, last);
      while (place < sources.length && seen[at(sources, place)] === 1) place++;
      if (place < sources.length) {
        const source = at(sources, place);
        next[last] = place + 1;
        seen[source] = 1;
        way.push(source);
        next.push(0);
      } else {
        this.order.push(at(way, last));
        way.pop();
        next.pop();
      }
    }
  }
}

/**
 * Items in their order, with the positions of inputs and consumers.
 *
 * Tensors of serving nodes do not count: a constant of many items lies in the first, which is no way from this to the others.
 */
export class Order {
  readonly items: Items;
  readonly order: readonly number[];
  readonly inputs: readonly (readonly number[])[];
  readonly outputs: readonly (readonly number[])[];

  constructor(items: Items, order: readonly number[], serving: ReadonlySet<string>) {
    const place = new Int32Array(order.length);
    order.forEach((item, position) => {
      place[item] = position;
    });
    this.items = items;
    this.order = order;
    const { inputs } = makeItems(items.members, items.backward, serving);
    this.inputs = order.map((item) => at(inputs, item).map((source) => at(place, source)));
    const outputs: number[][] = order.map(() => []);
    this.inputs.forEach((sources, position) => {
      for (const source of sources) at(outputs, source).push(position);
    });
    this.outputs = outputs;
  }
}

/**
 * The elements of an interval in series: single items, and regions with one entry and one exit.
 *
 * An interval that does not come apart is analysed again without its longest edges, then cut where the fewest tensors cross.
 * If `fine`, the parts that come apart without long edges are cut again, each by itself. `most` are the most items whose tensors cross a
 * cut: 2 for cells that use the results of the two cells before them.
 */
export function elements(order: Order, span: Span, fine = false, most = 1): Span[] {
  const size = sizeOf(span);
  const found = cut(order, span, size, most);
  if (longest(found) <= Math.max(FEW, Math.floor(size / 2)) || size <= FEW)
    return apart(order, found, size, fine, most);
  let reach = size;
  let best: Span[] | null = null;
  while (reach > Math.floor(FEW / 5)) {
    reach = Math.floor(reach / 2);
    const shorter = cut(order, span, reach);
    const most = longest(shorter);
    if (most <= Math.floor(FEW / 3)) return fine ? shorter.flatMap((part) => elementsWithin(order, part)) : shorter;
    if (best === null && most <= Math.max(FEW, Math.floor(size / 4))) best = shorter;
  }
  return best === null ? narrowest(order, span) : apart(order, best, size, fine, most);
}

/** The elements of an interval by itself, without what comes into it from before. */
export const elementsWithin = (order: Order, span: Span): Span[] => cut(order, span, sizeOf(span));

const longest = (parts: readonly Span[]): number => parts.reduce((most, part) => Math.max(most, sizeOf(part)), 0);

/** The parts, those of more than a few items taken apart again if they are much of the whole. */
const apart = (order: Order, parts: readonly Span[], whole: number, fine: boolean, most: number): Span[] =>
  parts.flatMap((part) => {
    const size = sizeOf(part);
    return size > FEW && size < whole && 5 * size > whole ? elements(order, part, fine, most) : [part];
  });

/** Cuts after each position where the tensors of at most `most` items cross. Edges longer than `reach` do not count. */
const cut = (order: Order, span: Span, reach: number, most = 1): Span[] =>
  cutBelow(span, widthsOf(order, span, reach), most);

/** Cuts where the fewest items' tensors cross, but nowhere if that is everywhere. */
function narrowest(order: Order, span: Span): Span[] {
  const size = sizeOf(span);
  const widths = widthsOf(order, span, Math.floor(size / 2));
  const inner = widths.slice(0, -1).sort((a, b) => a - b);
  if (inner.length === 0) return [span];
  for (const share of [0, Math.floor(inner.length / 16), Math.floor(inner.length / 8)]) {
    const found = cutBelow(span, widths, at(inner, share));
    if (longest(found) <= Math.max(FEW, Math.floor(size / 4))) return found;
  }
  return [span];
}

/** The number of items whose tensors cross the gap after each position. */
function widthsOf(order: Order, span: Span, reach: number): number[] {
  const { start, stop } = span;
  const size = sizeOf(span);
  const change = new Array<number>(size + 1).fill(0);
  for (let position = start; position < stop; position++) {
    const targets = at(order.outputs, position);
    let last = position;
    const end = at(targets, targets.length - 1);
    const isBroadcast = targets.length > BROADCAST && reach < size && Math.min(end, stop) - position > reach;
    for (const target of isBroadcast ? [] : targets)
      if (last < target && target < stop && target - position <= reach) last = target;
    change[position - start] = at(change, position - start) + 1;
    change[last - start] = at(change, last - start) - 1;
  }
  let width = 0;
  return change.slice(0, -1).map((step) => {
    width += step;
    return width;
  });
}

function cutBelow(span: Span, widths: readonly number[], limit: number): Span[] {
  const found: Span[] = [];
  let { start } = span;
  for (let i = 0; i < widths.length - 1; i++) {
    if (at(widths, i) > limit) continue;
    found.push(spanOf(start, span.start + i + 1));
    start = span.start + i + 1;
  }
  found.push(spanOf(start, span.stop));
  return found;
}
