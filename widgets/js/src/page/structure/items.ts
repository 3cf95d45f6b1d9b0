// Items: the parts of one scope as a graph of whole numbers.
import { ENTER, EXIT } from "../../scene/generated";
import { at, compareLists, range } from "../order";
import type { GraphNode } from "./nodes";

/** A graph of items. The lists are parallel; items are known by position. */
export interface Items {
  /** The nodes of each item, the main one first. */
  readonly members: readonly (readonly GraphNode[])[];
  /** True for items of the backward pass. */
  readonly backward: readonly boolean[];
  /** The items whose tensors an item takes, in the order of the slots, without itself. */
  readonly inputs: readonly (readonly number[])[];
  /** The items that an item waits for by control edges. */
  readonly awaited: readonly (readonly number[])[];
  /** The items that take tensors of an item. */
  readonly outputs: readonly (readonly number[])[];
}

const NONE: ReadonlySet<string> = new Set();

/** Items of these nodes, with the edges between them; edges from elsewhere and from the nodes of `apart` are left out. */
export function makeItems(members: Items["members"], backward: Items["backward"], apart = NONE): Items {
  const owner = new Map<string, number>();
  for (const [item, nodes] of members.entries())
    for (const { name } of nodes) if (!apart.has(name)) owner.set(name, item);
  const [inputs, awaited]: [number[][], number[][]] = [[], []];
  const outputs: number[][] = members.map(() => []);
  for (const [item, nodes] of members.entries()) {
    const data = new Set<number>();
    const control = new Set<number>();
    for (const node of nodes) {
      for (const tensor of node.inputs) {
        const source = owner.get(tensor.node.name);
        if (source !== undefined && source !== item) data.add(source);
      }
      for (const producer of node.controlInputs) {
        const source = owner.get(producer.name);
        if (source !== undefined && source !== item) control.add(source);
      }
    }
    for (const source of data) at(outputs, source).push(item);
    inputs.push([...data]);
    awaited.push([...control].filter((source) => !data.has(source)));
  }
  return { members, backward, inputs, awaited, outputs };
}

/** Everything that comes before an item: by data or by control. */
export function before(items: Items, item: number): readonly number[] {
  const awaited = at(items.awaited, item);
  return awaited.length > 0 ? [...at(items.inputs, item), ...awaited] : at(items.inputs, item);
}

/** The same of all items. */
export const allBefore = (items: Items): (readonly number[])[] => items.members.map((_, item) => before(items, item));

/** The strongly connected clumps of more than one item, each in the order of its items. */
export function cycles(items: Items): number[][] {
  return isAcyclic(items) ? [] : sorted(clumps(items));
}

/** The cycles, each with the single nodes that lead values into it or out of it and do nothing else. */
export function loops(items: Items): number[][] {
  const found = cycles(items);
  if (found.length === 0) return [];
  const clumpOf = new Map(found.flatMap((clump) => clump.map((item) => [item, clump] as const)));
  const ends: [number[], number][] = [];
  items.members.forEach((nodes, item) => {
    const op = nodes.length === 1 ? at(nodes, 0).op.name : "";
    const beside = ENTER.has(op) ? at(items.outputs, item) : EXIT.has(op) ? before(items, item) : [];
    const clump = beside.length > 0 ? clumpOf.get(at(beside, 0)) : undefined;
    if (clump && beside.every((each) => clumpOf.get(each) === clump)) ends.push([clump, item]);
  });
  for (const [clump, item] of ends) clump.push(item);
  return sorted(found);
}

/**
 * The items with each group as one item at the place of its first; and the old items in each new one.
 *
 * `keep` are the items that stay; all by default.
 */
export function joined(
  items: Items,
  groups: readonly (readonly number[])[],
  keep: readonly number[] | null = null,
): { items: Items; contents: (readonly number[])[] } {
  if (groups.length === 0 && (keep === null || keep.length === items.members.length))
    return { items, contents: range(0, items.members.length).map((item) => [item]) };
  const groupOf = new Map(groups.flatMap((group) => group.map((item) => [item, group] as const)));
  const left = keep === null ? range(0, items.members.length) : [...keep].sort((a, b) => a - b);
  const contents = left.flatMap((item) => {
    const group = groupOf.get(item);
    return group === undefined ? [[item]] : group[0] === item ? [group] : [];
  });
  const members = contents.map((content) => content.flatMap((item) => at(items.members, item)));
  const backward = contents.map((content) => content.every((item) => at(items.backward, item)));
  return { items: makeItems(members, backward), contents };
}

const sorted = (found: readonly number[][]): number[][] =>
  found.map((clump) => [...clump].sort((a, b) => a - b)).sort(compareLists);

/** True iff the items have a topological order. */
function isAcyclic(items: Items): boolean {
  const waiting: number[] = [];
  const after: number[][] = items.members.map(() => []);
  for (let item = 0; item < items.members.length; item++) {
    const sources = before(items, item);
    waiting.push(sources.length);
    for (const source of sources) at(after, source).push(item);
  }
  const ready = range(0, items.members.length).filter((item) => waiting[item] === 0);
  let done = 0;
  for (let item = ready.pop(); item !== undefined; item = ready.pop()) {
    done++;
    for (const target of at(after, item)) {
      waiting[target] = at(waiting, target) - 1;
      if (waiting[target] === 0) ready.push(target);
    }
  }
  return done === items.members.length;
}

/** The strongly connected clumps of more than one item, by Tarjan's algorithm. */
function clumps(items: Items): number[][] {
  const found: number[][] = [];
  const [number, low] = [new Int32Array(items.members.length), new Int32Array(items.members.length)];
  const onStack = new Uint8Array(items.members.length);
  const stack: number[] = [];
  let count = 0;
  const enter = (item: number): { item: number; sources: readonly number[]; next: number } => {
    number[item] = low[item] = ++count;
    onStack[item] = 1;
    stack.push(item);
    return { item, sources: before(items, item), next: 0 };
  };
  for (let start = 0; start < items.members.length; start++) {
    if (number[start] !== 0) continue;
    const way = [enter(start)];
    for (let last = way.at(-1); last !== undefined; last = way.at(-1)) {
      const { item } = last;
      if (last.next < last.sources.length) {
        const source = at(last.sources, last.next++);
        if (number[source] === 0) way.push(enter(source));
        else if (onStack[source] === 1) low[item] = Math.min(at(low, item), at(number, source));
        continue;
      }
      way.pop();
      const around = way.at(-1);
      if (around) low[around.item] = Math.min(at(low, around.item), at(low, item));
      if (low[item] !== number[item]) continue;
      const clump = stack.splice(stack.lastIndexOf(item));
      for (const each of clump) onStack[each] = 0;
      if (clump.length > 1) found.push(clump);
    }
  }
  return found;
}
