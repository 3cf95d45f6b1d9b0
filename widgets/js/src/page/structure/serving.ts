// Serving: parameters, constants and plumbing belong to the one item that they serve.

import { NO_OP } from "../../scene/generated";
import { at, largest, range } from "../order";
import { before, type Items } from "./items";
import { type GraphNode, isForeign } from "./nodes";

/** A value computed from constants and variables is a parameter up to this many nodes; beyond, it is computation. */
export const CONE = 24;
/** Layers that have parameters. */
export const PARAMETRIC: ReadonlySet<string> = new Set([
  "attention",
  "convolution",
  "depthwise convolution",
  "product",
  "transposed convolution",
]);
/** A parameter of several items is kept with the first if they are at most so many items apart. */
const NEAR = 24;
/** The scopes that gradients have in files, which say nothing else of them. */
const GRADIENTS = /^(.*\/)?gradients(_\p{Nd}+)?(\/|$)/u;

/** True for a product or a convolution, which may have parameters but is none. */
export const isHeavy = (node: GraphNode): boolean => PARAMETRIC.has(node.op.layer);

/** True for an input or a result of a graph or function. */
export const isEnd = (node: GraphNode): boolean => node.op.role === "placeholder" || node.op.role === "return";

/** True for a variable or a handle of one. */
export const isVariable = (node: GraphNode): boolean => node.op.role === "variable";

/** True for a node that passes its inputs on as they are. */
export const isPlumbing = (node: GraphNode): boolean => node.op.memory === "alias" && node.op.role === "op";

/** True for a source of values that do not depend on what is fed. */
export const isParameter = (node: GraphNode): boolean =>
  node.op.role === "constant" || isVariable(node) || (isEnd(node) && node.outputs[0]?.isResource === true);

/** The names of constants, variables, shapes, and of everything computed from few of these alone. */
export function servingNodes(nodes: readonly GraphNode[]): Set<string> {
  const cones = new Map<string, number>();
  for (const node of [...nodes].sort((a, b) => a.id - b.id)) {
    if (isParameter(node) || node.op.needsOnlyShapes) cones.set(node.name, 1);
    else if (node.inputs.length > 0 && !isHeavy(node) && !isEnd(node)) {
      let size = 1;
      for (const tensor of node.inputs) {
        size += cones.get(tensor.node.name) ?? (isParameter(tensor.node) ? 1 : CONE);
        if (size > CONE) break;
      }
      if (size <= CONE) cones.set(node.name, size);
    }
  }
  return new Set(cones.keys());
}

/**
 * The item that each item belongs to: itself, or the one that it serves.
 *
 * An item joins only one before all others that follow it, so joining makes no cycle. A variable that several scopes of the forward pass use,
 * such as towers, belongs to none of them. `order` are the items in topological order; `serving` is true for items of serving nodes alone.
 */
export function hosts(items: Items, order: readonly number[], serving: readonly boolean[]): number[] {
  const host = range(0, items.members.length);
  const place = new Int32Array(items.members.length);
  order.forEach((item, position) => {
    place[item] = position;
  });
  const waiting: number[][] = host.map(() => []);
  items.awaited.forEach((sources, item) => {
    for (const source of sources) at(waiting, source).push(item);
  });
  const variable = ofVariables(items, order, serving);
  for (const item of [...order].reverse()) {
    const targets = at(items.outputs, item);
    if (variable[item]) {
      const scopes = targets.filter((target) => isForwardScope(items, target)).map((target) => at(host, target));
      if (new Set(scopes).size > 1) continue;
    }
    const nodes = at(items.members, item);
    const main = at(nodes, 0);
    const ends = nodes.length === 1 && main.op.name === NO_OP;
    const served = new Set((ends ? at(waiting, item) : targets).map((target) => at(host, target)));
    // A scale and a zero point beside it are no values that pass.
    const passed = at(items.inputs, item).filter((source) => !(isForeign(main) && serving[source]));
    const plumbing = ends || (nodes.length === 1 && isPlumbing(main) && passed.length === 1);
    if (served.size === 0 || !(serving[item] || (plumbing && served.size === 1))) continue;
    const first = largest(served, (one, other) => at(place, other) - at(place, one)) as number;
    // A module of another framework does not begin with the nodes before it.
    if (!serving[item] && at(items.members, first).length > 1 && isForeign(main)) {
      const source = at(passed, 0);
      const [only, ...others] = at(items.members, source);
      if (only && others.length === 0 && !isEnd(only)) host[item] = source;
      continue;
    }
    const from = at(place, first);
    const isNear = served.size === 1 || [...served].every((target) => at(place, target) - from <= NEAR);
    const isFirst = at(waiting, item).every((target) => {
      const waits = at(host, target);
      return waits === first || at(place, waits) > from;
    });
    if (isNear && items.backward[item] === items.backward[first] && isFirst) host[item] = first;
  }
  foldEnds(items, order, serving, host, place);
  return host.map((_, item) => lastHost(host, item));
}

/** True for each serving item that has a variable, or takes its value from such an item. */
function ofVariables(items: Items, order: readonly number[], serving: readonly boolean[]): boolean[] {
  const found = new Array<boolean>(items.members.length).fill(false);
  for (const item of order)
    found[item] =
      at(serving, item) &&
      (at(items.members, item).some(isVariable) || at(items.inputs, item).some((source) => at(found, source)));
  return found;
}

/**
 * True for a scope of the forward pass that others take values from.
 *
 * Initializers, savers and training steps end in themselves.
 */
function isForwardScope(items: Items, item: number): boolean {
  const nodes = at(items.members, item);
  if (nodes.length < 2 || at(items.outputs, item).length === 0 || items.backward[item]) return false;
  const { name } = at(nodes, 0);
  const scope = name.slice(0, Math.max(0, name.lastIndexOf("/")));
  return !GRADIENTS.test(scope || name) && !nodes.some(isVariable);
}

/**
 * Lets items without consumers belong to their input.
 *
 * These are initialisers and unused shapes with a single input, and plumbing that waits for nothing later than its input.
 */
function foldEnds(
  items: Items,
  order: readonly number[],
  serving: readonly boolean[],
  host: number[],
  place: Int32Array,
): void {
  const served: number[][] = host.map(() => []);
  host.forEach((target, item) => {
    at(served, target).push(item);
  });
  const awaited = new Set(items.awaited.flat());
  for (const item of order) {
    if (host[item] !== item || at(items.outputs, item).length > 0) continue;
    const sources = new Set(
      inside(served, item).flatMap((each) => before(items, each).map((source) => lastHost(host, source))),
    );
    sources.delete(item);
    const [only] = sources;
    if (only === undefined) continue;
    if (serving[item]) {
      if (sources.size === 1) host[item] = only;
    } else if (at(items.members, item).every(isPlumbing) && at(items.inputs, item).length === 1 && !awaited.has(item)) {
      const source = lastHost(host, at(at(items.inputs, item), 0));
      const latest = largest(sources, (one, other) => at(place, one) - at(place, other));
      if (source === latest && items.backward[source] === items.backward[item]) host[item] = source;
    }
  }
}

/** An item and everything that belongs to it, at any depth. */
function inside(served: readonly (readonly number[])[], item: number): number[] {
  const found = [item];
  for (const each of found) found.push(...at(served, each).filter((other) => other !== each));
  return found;
}

function lastHost(host: readonly number[], start: number): number {
  let item = start;
  while (host[item] !== item) item = at(host, item);
  return item;
}
