// Likeness: symbols for equal op structure, and differences of ops. Names, shapes and attr values do not count.

import { NO_OP } from "../../scene/generated";
import { addAll, at, Counter, commonTotal, compareTexts, excess, totalOf } from "../order";
import type { Order, Span } from "./decompose";
import type { GraphNode, Op } from "./nodes";
import { isEnd, isPlumbing } from "./serving";

/** Near-alike groups differ in at most this share of their ops. */
export const OTHER = 0.2;
const ROUNDS = 2;

/** Whole numbers for structures: equal structures have equal numbers. */
export class Symbols {
  readonly #numbers = new Map<Op | string, number>();

  /** The number of a structure: an op, or numbers in a text. */
  #of(key: Op | string): number {
    let number = this.#numbers.get(key);
    if (number === undefined) {
      number = this.#numbers.size;
      this.#numbers.set(key, number);
    }
    return number;
  }

  /** The number of a set of nodes: their ops, and those before each within two steps. */
  ofNodes(nodes: readonly GraphNode[]): number {
    if (nodes.length === 1) return this.#of(at(nodes, 0).op);
    const place = new Map(nodes.map((node, i) => [node.name, i]));
    const sources = nodes.map((node) => node.inputs.map((tensor) => place.get(tensor.node.name) ?? -1));
    let marks = nodes.map((node) => this.#of(node.op));
    for (let round = 0; round < ROUNDS; round++) {
      const before = marks;
      marks = nodes.map((_, i) =>
        this.#of([at(before, i), ...at(sources, i).map((each) => before[each] ?? -1)].join()),
      );
    }
    return this.#of(marks.sort((a, b) => a - b).join());
  }

  /** The number of an interval of items with the edges between them. */
  ofSpan(order: Order, marks: readonly number[], { start, stop }: Span): number {
    if (stop - start === 1) return at(marks, start);
    const local: number[] = [];
    for (let position = start; position < stop; position++)
      local.push(
        this.#of(
          [at(marks, position), ...at(order.inputs, position).map((source) => local[source - start] ?? -1)].join(),
        ),
      );
    return this.#of(local.sort((a, b) => a - b).join());
  }
}

/** The ops of nodes by number, without those of parameters, constants and plumbing. */
export const mainOps = (nodes: readonly GraphNode[], serving: ReadonlySet<string>): Counter<Op> =>
  new Counter(
    nodes
      .filter((node) => node.op.name !== NO_OP && !serving.has(node.name) && !isPlumbing(node) && !isEnd(node))
      .map((node) => node.op),
  );

/** The ops of an interval. */
export function totalOps(ops: readonly Counter<Op>[], span: Span): Counter<Op> {
  const total = new Counter<Op>();
  for (let place = span.start; place < span.stop; place++) addAll(total, at(ops, place));
  return total;
}

/** The share of ops of the larger that the smaller has not. */
export function difference(ours: Counter<Op>, theirs: Counter<Op>): number {
  const larger = Math.max(totalOf(ours), totalOf(theirs));
  return larger > 0 ? 1 - commonTotal(ours, theirs) / larger : 0;
}

/** True iff at most a fifth of the ops are other ones. */
export const near = (ours: Counter<Op>, theirs: Counter<Op>): boolean => difference(ours, theirs) <= OTHER + 1e-9;

const namesOf = (ops: Counter<Op>): string[] => [
  ...new Set([...ops.counts.keys()].sort((one, other) => compareTexts(one.name, other.name)).map((op) => op.label)),
];

const keyOf = (ops: Counter<Op>): string =>
  [...ops.counts]
    .map(([op, count]) => `${op.name} ${count}`)
    .sort()
    .join();

/** The ops in which instances differ from most of them, in words: `first also: Conv2D, Relu`. */
export function differences(instances: readonly Counter<Op>[]): string {
  const keys = instances.map(keyOf);
  const [usual] = new Counter(keys).mostCommon(1).map(([key]) => at(instances, keys.indexOf(key)));
  if (usual === undefined) return "";
  const words: string[] = [];
  instances.forEach((ops, number) => {
    const [more, less] = [namesOf(excess(ops, usual)), namesOf(excess(usual, ops))];
    const place = number === 0 ? "first" : number === instances.length - 1 ? "last" : `number ${number + 1}`;
    if (more.length > 0) words.push(`${place} also: ${more.join(", ")}`);
    if (less.length > 0) words.push(`${place} without: ${less.join(", ")}`);
  });
  return words.slice(0, 3).join("; ") + (words.length > 3 ? "; …" : "");
}
