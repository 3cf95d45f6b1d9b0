// The summary of one scope: at most so many groups and items, in the order of the dataflow.
import { at, Counter, compareLists, getOrMake, range, sum, totalOf } from "../order";
import { differences, mainOps, Symbols, totalOps } from "./alike";
import { elements, elementsWithin, Order, type Part, partOf, type Span, sizeOf, spanOf } from "./decompose";
import { tellingLayers } from "./evidence";
import type { Items } from "./items";
import { Modules } from "./modules";
import {
  beginsLayer,
  commonName,
  isLayerNorm,
  isScaled,
  isTelling,
  kindName,
  opsName,
  shapeWords,
  sharedWords,
} from "./naming";
import { type GraphNode, isForeign, type Op, type Tensor } from "./nodes";
import { type Element, findRuns, type Kernel } from "./repeats";
import { isEnd, isHeavy } from "./serving";
import { Widths } from "./widths";

/** The most parts of a summary. */
export const PARTS = 30;
/** Elements and repeats beyond this number are not a description: another way to cut the order is tried. */
const MANY = 100;
/** With more parts than this, operations are joined to layers: a convolution with its normalisation and activation. */
const LAYERS_ABOVE = 16;
/** An interval of at least so many items may have repeats in itself. */
const TALL = 12;
/** So many inputs and outputs stay by themselves. */
const MANY_ENDS = 8;
/** So many operations may belong to the layer before them: a normalisation with known statistics. */
const SMALL = 3;

/** Items that are shown together; a repeat has `instances`, a single item is its own bunch. */
export interface Bunch {
  /** All items inside, in order. */
  readonly items: readonly number[];
  /** A short name, "" for a single item. */
  label: string;
  /** The tensor that it passes on. */
  readonly output: Tensor | null;
  /** The bunches of a repeat. */
  readonly instances: readonly Bunch[];
  /** The ops in which the instances differ, in words. */
  readonly differences: string;
  /** True if the instances are modules of one list of another framework. */
  readonly isOfModules: boolean;
  /** Parameters of all instances. */
  readonly shared: number[];
  /** True if the items have no structure to find. */
  readonly isPlain: boolean;
}

/** A bunch of these items; by default without all else. */
export const bunchOf = (items: readonly number[], rest: Partial<Bunch> = {}): Bunch => ({
  items,
  label: "",
  output: null,
  instances: [],
  differences: "",
  isOfModules: false,
  shared: [],
  isPlain: false,
  ...rest,
});

type ElementOf = (span: Span) => Element;

/**
 * Groups acyclic items into at most `most` bunches. The arrows between bunches form no cycle.
 *
 * `sequence` are the items in the order of evaluation, `serving` the names of nodes that are parameters, constants or plumbing.
 */
export function summarise(
  items: Items,
  sequence: readonly number[],
  serving: ReadonlySet<string>,
  most = PARTS,
): Bunch[] {
  const weak = items.members.map((nodes) => nodes.every((node) => serving.has(node.name)));
  const order = new Order(items, sequence, serving);
  const symbols = new Symbols();
  const ops = sequence.map((item) => mainOps(at(items.members, item), serving));
  const marks = sequence.map((item) => {
    const nodes = at(items.members, item);
    const own = nodes.filter((node) => !serving.has(node.name));
    return symbols.ofNodes(own.length > 0 ? own : nodes.slice(0, 1));
  });
  const widths = new Widths(items, serving);
  const kernels = sequence.map((item) =>
    at(items.members, item)
      .filter(isHeavy)
      .map((node) => kernelOf(node, widths)),
  );
  const modules = new Modules(order, ops, weak, serving);
  const summary = new Summary(order, ops, weak, serving, modules);

  const element = (span: Span): Element => {
    const inside = totalOps(ops, span);
    return {
      symbol: symbols.ofSpan(order, marks, span),
      ops: inside,
      total: totalOf(inside),
      shape: widths.known(summary.output(span)),
      kernels: kernels.slice(span.start, span.stop).flat(),
    };
  };

  let found = bestFound(order, element);
  // Nothing comes apart.
  if (found.length === 1 && at(found, 0).instances.length === 0)
    found = range(0, items.members.length).map((position) => partOf(spanOf(position, position + 1)));
  return summary.bunches(
    shortened(
      modules.joined(found, (span) => element(span).shape),
      order,
      ops,
      most,
    ),
  );
}

/** The elements and repeats of an order, from the way to cut it that describes it best. */
function bestFound(order: Order, element: ElementOf): Part[] {
  const size = order.order.length;
  let best: Part[] | null = null;
  const cuts = new Set<string>();
  for (const [fine, most] of [
    [false, 1],
    [true, 1],
    [false, 2],
  ] as const) {
    if (most > 1 && best !== null && at(rankOf(best, size), 0) > 0) break;
    const spans = stretches(order).flatMap((stretch) => elements(order, stretch, fine, most));
    const key = spans.map((span) => span.start).join();
    if (cuts.has(key)) continue;
    cuts.add(key);
    const inner = spans.flatMap((span) => repeatsWithin(order, span, element));
    const found = foundIn(inner, element);
    if (best === null || compareLists(rankOf(found, size), rankOf(best, size)) > 0) best = found;
  }
  return best ?? [];
}

/** An interval of elements as one of items. */
const joinedSpan = (spans: readonly Span[], { start, stop }: Span): Span =>
  spanOf(at(spans, start).start, at(spans, stop - 1).stop);

/** The elements in their order, with repeats joined. */
function foundIn(spans: readonly Span[], element: ElementOf): Part[] {
  const found: Part[] = [];
  let place = 0;
  for (const { instances } of findRuns(spans.map(element))) {
    const [start, stop] = [at(instances, 0).start, at(instances, instances.length - 1).stop];
    for (const span of spans.slice(place, start)) found.push(partOf(span));
    found.push(
      partOf(
        joinedSpan(spans, spanOf(start, stop)),
        instances.map((each) => joinedSpan(spans, each)),
      ),
    );
    place = stop;
  }
  for (const span of spans.slice(place)) found.push(partOf(span));
  return found;
}

/** Order of preference: 1 if few repeats are most of it; few items, each repeat counted once; few parts. */
function rankOf(found: readonly Part[], size: number): number[] {
  const repeats = found.filter(({ instances }) => instances.length > 1).map(({ span }) => sizeOf(span));
  const described = sum(found.map(({ span, instances }) => sizeOf(instances[0] ?? span)));
  const isMost = 2 * sum(repeats) > size && 2 * repeats.length <= PARTS && found.length <= MANY;
  return [Number(isMost), -described, -found.length];
}

/**
 * The interval in parts if most of it is a repeat whose instances all use something from before.
 *
 * Such as the layers of a decoder, which use what the encoder makes.
 */
function repeatsWithin(order: Order, span: Span, element: ElementOf): Span[] {
  const size = sizeOf(span);
  const parts = size >= TALL ? elementsWithin(order, span) : [span];
  if (parts.length < 4 || parts.some((part) => 2 * sizeOf(part) > size)) return [span];
  for (const run of findRuns(parts.map(element))) {
    const instances = run.instances.map((each) => joinedSpan(parts, each));
    const covered = at(instances, instances.length - 1).stop - at(instances, 0).start;
    if (instances.length > 1 && 2 * covered > size && instances.every((each) => usesBefore(order, each, span.start)))
      return parts;
  }
  return [span];
}

/** True iff an interval uses tensors from before `start`. */
const usesBefore = (order: Order, span: Span, start: number): boolean =>
  order.inputs.slice(span.start, span.stop).some((sources) => sources.some((source) => source < start));

/** Makes bunches of intervals, with names and shapes. */
class Summary {
  readonly #serving: ReadonlySet<string>;
  readonly #order: Order;
  readonly #ops: readonly Counter<Op>[];
  readonly #weak: readonly boolean[];
  readonly #names: readonly string[];
  readonly #within: readonly string[];
  readonly #modules: Modules;
  readonly #outputs = new Map<number, Tensor | null>();
  /** Inputs and outputs, none if they are many. */
  readonly #ends: ReadonlySet<number>;

  constructor(
    order: Order,
    ops: readonly Counter<Op>[],
    weak: readonly boolean[],
    serving: ReadonlySet<string>,
    modules: Modules,
  ) {
    this.#serving = serving;
    this.#order = order;
    this.#ops = ops;
    this.#weak = weak;
    this.#names = order.items.members.map((nodes) => at(nodes, 0).name);
    const main = order.order.filter((_, position) => at(ops, position).counts.size > 0);
    this.#modules = modules;
    const ends = order.order.filter((item) => !weak[item] && isEnd(at(at(order.items.members, item), 0)));
    this.#ends = new Set(ends.length < MANY_ENDS ? ends : []);
    this.#within = sharedWords(main.map((item) => at(this.#names, item)));
  }

  /** The first output of the last item that is not serving. */
  output(span: Span): Tensor | null {
    for (let position = span.stop - 1; position >= span.start; position--) {
      const item = at(this.#order.order, position);
      if (!this.#weak[item] && !this.#ends.has(item)) return getOrMake(this.#outputs, item, () => this.#outputOf(item));
    }
    return null;
  }

  #outputOf(item: number): Tensor | null {
    const nodes = at(this.#order.items.members, item);
    const main = nodes.length === 1 ? at(nodes, 0) : lastOf(nodes.filter((node) => !this.#serving.has(node.name)));
    return main.outputs.length > 0 ? { node: main, index: 0 } : null;
  }

  /** A bunch for each interval, with different labels. */
  bunches(found: readonly Part[]): Bunch[] {
    const made = found.flatMap((part) => this.#apart(part));
    tellApart(made.filter((bunch) => bunch.items.length > 1));
    return made;
  }

  /** The bunch of an interval, with inputs and outputs beside it that lie among its items. */
  #apart(part: Part): Bunch[] {
    const ends = this.#itemsOf(part.span).filter((item) => this.#ends.has(item));
    const spans = part.instances.length > 0 ? part.instances : [part.span];
    const isEmptied = (span: Span): boolean => this.#itemsOf(span).every((item) => this.#ends.has(item));
    if (ends.length === 0 || spans.some(isEmptied)) return [this.#bunch(part)];
    const isInput = (item: number): boolean => at(this.#order.items.inputs, item).length === 0;
    const alone = (items: readonly number[]): Bunch[] => items.map((item) => bunchOf([item]));
    return [
      ...alone(ends.filter(isInput)),
      this.#bunch(part, new Set(ends)),
      ...alone(ends.filter((item) => !isInput(item))),
    ];
  }

  #itemsOf = ({ start, stop }: Span): readonly number[] => this.#order.order.slice(start, stop);

  #bunch({ span, instances }: Part, apart: ReadonlySet<number> = new Set()): Bunch {
    const items = this.#itemsOf(span).filter((item) => !apart.has(item));
    const inner = instances.length > 1 ? instances.map((each) => this.#bunch(partOf(each), apart)) : [];
    for (const [number, bunch] of inner.entries()) bunch.label ||= `${number + 1} of ${inner.length}`;
    tellApart(inner);
    return bunchOf(items, {
      label: items.length > 1 ? this.#label(items, instances.at(-1) ?? span, instances) : "",
      output: this.output(span),
      instances: inner,
      isOfModules: inner.length > 0 && this.#modules.areAll(instances),
      differences: inner.length > 0 ? differences(instances.map((each) => totalOps(this.#ops, each))) : "",
    });
  }

  #label(items: readonly number[], usual: Span, instances: readonly Span[]): string {
    const named = items.filter((item) => !this.#weak[item]).map((item) => at(this.#names, item));
    const module = this.#modules.of(instances.length > 0 ? instances : [usual]);
    if (module && this.#modules.haveClasses) return module;
    const several = instances.length > 0 ? this.#modules.in(usual, instances) : "";
    if (several) return several;
    const name = commonName(named, this.#within);
    if (isTelling(name) && !module) return name;
    const nodes = this.#nodes(usual);
    const all = new Counter(nodes.map((node) => node.op));
    const main = totalOps(this.#ops, usual);
    const ops = main.counts.size > 0 ? main : all;
    const isNormalised = isScaled(main) && !isLayerNorm(main) && isLayerNorm(all);
    const kind = kindName(ops, tellingLayers(nodes, this.#serving));
    return module ? `${module} ${kind}`.trimEnd() : kind || name || opsName(ops, isNormalised);
  }

  #nodes(span: Span): GraphNode[] {
    return this.#order.order.slice(span.start, span.stop).flatMap((item) => at(this.#order.items.members, item));
  }
}

function kernelOf(node: GraphNode, widths: Widths): Kernel {
  const { op, strides, isPadded } = node;
  const width = widths.known({ node, index: 0 })?.at(-1) ?? null;
  const filter = node.inputs[1];
  if (op.layer === "product" || op.layer === "attention" || filter === undefined)
    return { op, isPointwise: null, strides: [], width, isPadded: true };
  const dims = at(filter.node.outputs, filter.index).dims;
  const sizes = isForeign(node) ? dims?.slice(2) : dims?.slice(0, -2);
  const isPointwise = sizes === undefined || sizes.includes(null) ? null : sizes.every((size) => size === 1);
  return { op, isPointwise, strides, width, isPadded };
}

/** The forward pass and the backward pass, each by itself. */
function stretches(order: Order): Span[] {
  const isBackward = (place: number): boolean | undefined => order.items.backward[at(order.order, place)];
  const size = order.order.length;
  const stops = range(1, size).filter((place) => isBackward(place) !== isBackward(place - 1));
  return [...stops, size].map((stop, i) => spanOf(stops[i - 1] ?? 0, stop)).filter((span) => sizeOf(span) > 0);
}

/** Joins neighbours until there are few enough: to layers, then all between two repeats, then any. */
function shortened(parts: readonly Part[], order: Order, ops: readonly Counter<Op>[], most: number): readonly Part[] {
  let found = parts;
  if (found.length > Math.min(most, LAYERS_ABOVE))
    found = joinedParts(found, (_, span) => !beginsLayers(span, ops), order, ops);
  if (found.length > most) {
    const singles = found.filter(({ instances }) => instances.length === 0).length;
    const rest = most - (found.length - singles);
    const size = Math.max(2, Math.ceil(singles / Math.max(1, Math.floor(rest / 2))));
    found = joinedParts(found, (count) => count < size, order, ops);
  }
  while (found.length > most) {
    const spans = found.map(({ span }) => span);
    const size = Math.ceil(spans.length / most);
    const count = Math.ceil(spans.length / size);
    found = range(0, count).map((i) =>
      partOf(joinedSpan(spans, spanOf(i * size, Math.min((i + 1) * size, spans.length)))),
    );
  }
  return found;
}

/**
 * Joins neighbours without instances as long as `mayJoin(number so far, next span)`.
 *
 * Inputs and outputs stay by themselves.
 */
function joinedParts(
  found: readonly Part[],
  mayJoin: (count: number, span: Span) => boolean,
  order: Order,
  ops: readonly Counter<Op>[],
): Part[] {
  const result: Part[] = [];
  const isBackward = (place: number): boolean | undefined => order.items.backward[at(order.order, place)];
  let count = 0;
  for (const part of found) {
    const { span, instances } = part;
    const isSilent = ops.slice(span.start, span.stop).every((each) => each.counts.size === 0);
    if (count > 0 && !isSilent && instances.length === 0 && mayJoin(count, span)) {
      const before = at(result, result.length - 1).span;
      if (isBackward(before.start) === isBackward(span.start)) {
        result[result.length - 1] = partOf(spanOf(before.start, span.stop));
        count++;
        continue;
      }
    }
    result.push(part);
    count = instances.length > 0 || isSilent ? 0 : 1;
  }
  return result;
}

function beginsLayers(span: Span, ops: readonly Counter<Op>[]): boolean {
  const inside = totalOps(ops, span);
  return totalOf(inside) > SMALL || [...inside.counts.keys()].some((op) => beginsLayer(op) || !/^\p{L}/u.test(op.name));
}

/** The node of a part whose output leaves it: the last that only others use, if there is one. */
function lastOf(nodes: readonly GraphNode[]): GraphNode {
  const inside = new Set(nodes);
  const ends = nodes.filter(
    ({ outputs, consumers }) => outputs.length > 0 && consumers.every((consumer) => !inside.has(consumer)),
  );
  const results = ends.filter(({ consumers }) => consumers.length > 0);
  return results.at(-1) ?? ends.at(-1) ?? at(nodes, 0);
}

/** Gives bunches of the same label different ones: by shape, then by number. */
function tellApart(bunches: readonly Bunch[]): void {
  const byShape = ({ output }: Bunch): string =>
    output === null ? "" : shapeWords(at(output.node.outputs, output.index).dims);
  for (const words of [byShape, (_: Bunch, number: number) => String(number)]) {
    const labels = new Counter(bunches.map((bunch) => bunch.label));
    const numbers = new Counter();
    for (const bunch of bunches) {
      const { label } = bunch;
      if ((labels.counts.get(label) ?? 0) < 2) continue;
      numbers.add(label);
      bunch.label = `${label} ${words(bunch, numbers.counts.get(label) ?? 0)}`.trimEnd();
    }
  }
}
