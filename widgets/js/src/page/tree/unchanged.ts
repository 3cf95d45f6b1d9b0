// Differences in pictures: the parts of a scope that have not changed are shown together.
import { getOrMake } from "../order";
import type { Marks } from "./calls";
import { countSlashes } from "./chains";
import { Group, nodesOf, type Part } from "./folds";

/** Fewer unchanged parts than this are shown as they are. */
const FEWEST = 3;
/** The unchanged parts beside changed ones that are shown: those with most edges to them. */
const MOST_NEAR = 16;
/** The depths of these groups: deeper than those of groups by dataflow, so that their keys differ. */
const DEPTH = 60;
const LABEL = "unchanged";

/** The number of edges to each part. */
type Counts = Map<number, number>;
type Edges = ReadonlyMap<number, ReadonlyMap<number, number>>;

/**
 * The parts, with those that are not different and far from differences in groups.
 *
 * Parts before, between, behind and beside the differences are in groups of their own, so that no group is in a cycle.
 */
export function unchangedTogether(path: string, parts: readonly Part[], marks: Marks): readonly Part[] {
  const touched = new Set(
    [...parts.keys()].filter((place) => nodesOf([parts[place] as Part]).some(({ name }) => marks.touched.has(name))),
  );
  if (touched.size === 0 || parts.length - touched.size < FEWEST) return parts;
  const [after, before] = edges(parts, marks);
  const near = nearTo(touched, after, before);
  const [reached, reaching] = [reach(touched, after), reach(touched, before)];
  const kinds = new Map<string, number[]>();
  for (const place of parts.keys())
    if (!touched.has(place) && !near.has(place))
      getOrMake(kinds, `${reached.has(place)} ${reaching.has(place)}`, () => []).push(place);
  const groupOf = new Map<number, Part>();
  for (const [number, places] of [...kinds.values()].entries())
    if (places.length >= FEWEST) {
      const inside = places.map((place) => parts[place] as Part);
      const group = Group.of(path, DEPTH + 4 * countSlashes(path) + number, LABEL, inside, { plain: false });
      for (const place of places) groupOf.set(place, group);
    }
  return [...new Set(parts.map((part, place) => groupOf.get(place) ?? part))];
}

/** The edges between parts, from and to each, old ones included. */
function edges(parts: readonly Part[], marks: Marks): [after: Map<number, Counts>, before: Map<number, Counts>] {
  const members = parts.map((part) => nodesOf([part]));
  const placeOf = new Map<string, number>();
  for (const [place, nodes] of members.entries()) for (const { name } of nodes) placeOf.set(name, place);
  const after = new Map<number, Counts>();
  const before = new Map<number, Counts>();
  const add = (edges: Map<number, Counts>, from: number, to: number): void => {
    const counts = getOrMake(edges, from, () => new Map());
    counts.set(to, (counts.get(to) ?? 0) + 1);
  };
  const join = (producer: string, consumer: string): void => {
    const [source, target] = [placeOf.get(producer), placeOf.get(consumer)];
    if (source === undefined || target === undefined || source === target) return;
    add(after, source, target);
    add(before, target, source);
  };
  for (const { name, inputs, controlInputs } of members.flat()) {
    for (const { node } of inputs) join(node.name, name);
    for (const producer of controlInputs) join(producer.name, name);
  }
  for (const [producer, consumer] of marks.oldEdges) join(producer, consumer);
  return [after, before];
}

/** The parts with most edges to the touched ones; of equals those that a touched part comes before, in its order. */
function nearTo(touched: ReadonlySet<number>, after: Edges, before: Edges): Set<number> {
  const links: Counts = new Map();
  for (const place of touched)
    for (const counts of [after.get(place), before.get(place)])
      for (const [other, count] of counts ?? []) links.set(other, (links.get(other) ?? 0) + count);
  const others = [...links].filter(([place]) => !touched.has(place));
  return new Set(
    others
      .sort((a, b) => b[1] - a[1])
      .slice(0, MOST_NEAR)
      .map(([place]) => place),
  );
}

function reach(start: ReadonlySet<number>, steps: Edges): Set<number> {
  const seen = new Set(start);
  const stack = [...start];
  for (let at = stack.pop(); at !== undefined; at = stack.pop())
    for (const place of steps.get(at)?.keys() ?? [])
      if (!seen.has(place)) {
        seen.add(place);
        stack.push(place);
      }
  return seen;
}
