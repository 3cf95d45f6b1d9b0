// Parts that open: nodes with their helpers, and groups that dataflow joins.
import {
  arrange,
  type Bunch,
  before,
  bunchOf,
  CONE,
  callsFunctions,
  cycles,
  FEW_PARTS,
  type GraphNode,
  isEnd,
  isForeign,
  isParameter,
  isVariable,
  makeItems,
  type Tensor,
  type Unit,
} from "../structure";
import { lastPart } from "./chains";
import type { Scope } from "./scopes";

/** In a smaller graph of another framework, where each weight is a node, only modules of a list are joined. */
const FEW_FOREIGN = 24;
/** Parts with more nodes than this together cannot all be open, so repeats among them are shown once. */
export const FEW_NODES = 150;

/** A part of a picture. */
export type Part = GraphNode | Fold;

/** A part that opens. `helpers` are parts from around it that serve only its nodes, such as their parameters. */
export abstract class Fold {
  readonly helpers: Part[];

  constructor(helpers: readonly Part[] = []) {
    this.helpers = [...helpers];
  }

  /** The name by which it is opened, unique in its graph. */
  abstract get key(): string;

  /** The number of nodes inside, at any depth, helpers included. */
  abstract get total(): number;

  /** The parts shown when it is open. */
  abstract parts(): readonly Part[];

  /** Every node inside, at any depth, helpers included. */
  abstract allNodes(): GraphNode[];

  /** True iff it is or contains the node of its graph with this name. */
  abstract leadsTo(name: string): boolean;

  /** The parts in its place if it cannot be kept whole; itself by default. */
  apart(): readonly Part[] {
    return [this];
  }

  /** Adds parts from around it that serve its nodes. */
  takeIn(helpers: readonly Part[]): void {
    for (const part of helpers) this.helpers.push(part);
  }
}

/**
 * A node with what serves it: a box that opens.
 *
 * That is the small scope of its own name (`W` with `W/read`, `W/Assign`), and parameters.
 */
export class Thing extends Fold {
  readonly node: GraphNode;
  readonly scope: Scope | null;

  constructor(node: GraphNode, scope: Scope | null, helpers: readonly Part[] = []) {
    super(helpers);
    this.node = node;
    this.scope = scope;
  }

  /** The name of the node, which is also the path of the scope. */
  get key(): string {
    return this.node.name;
  }

  /** The number of nodes, the main one included. */
  get total(): number {
    return 1 + (this.scope?.total ?? 0) + totalOf(this.helpers);
  }

  /** The parts shown when it is open. Things inside are open, too: a weight has no frame of its own. */
  parts(): readonly Part[] {
    const inside = [...(this.scope?.parts() ?? []), ...this.helpers];
    return [this.node, ...inside.flatMap((part) => (part instanceof Thing ? part.parts() : [part]))];
  }

  /** The main node and its helpers. */
  allNodes(): GraphNode[] {
    return [this.node, ...(this.scope?.allNodes() ?? []), ...nodesOf(this.helpers)];
  }

  leadsTo(name: string): boolean {
    return name === this.key || name.startsWith(`${this.key}/`) || anyLeadsTo(this.helpers, name);
  }
}

/** Parts of a scope that dataflow joins; a repeat if it has `instances`. */
export class Group extends Fold {
  readonly path: string;
  readonly depth: number;
  /** The parts inside, in the order of the dataflow. */
  readonly items: readonly Part[];
  readonly label: string;
  /** The ops in which the instances differ, in words; "" if they are exactly alike. */
  readonly differences: string;
  readonly instances: readonly Part[];
  /** The tensor that each instance passes on. */
  readonly outputs: readonly (Tensor | null)[];
  /** The scope's path, the depth, and the name of its first part, so that it survives changes elsewhere. */
  readonly key: string;
  #total: number;
  #contents: readonly Part[] | null;

  /** `contents` are the parts that it opens into, by default found by dataflow, or its items if it is plain. */
  constructor(
    path: string,
    depth: number,
    bunch: Bunch,
    units: readonly Part[],
    contents: readonly Part[] | null = null,
  ) {
    super(bunch.shared.map((unit) => units[unit] as Part));
    this.path = path;
    this.depth = depth;
    this.items = bunch.items.map((unit) => units[unit] as Part);
    this.key = `${path}/#${depth}.${this.items[0] ? nameOf(this.items[0]) : ""}`;
    this.label = bunch.label;
    this.differences = bunch.differences;
    this.instances = bunch.instances.map((inner) => groupOrPart(path, depth + 1, inner, units));
    this.outputs = bunch.instances.map((inner) => inner.output);
    this.#total = totalOf(this.items) + totalOf(this.helpers);
    this.#contents = contents ?? (bunch.isPlain ? this.items : null);
  }

  /** A group that opens into these parts, by default its items; without further grouping if it is plain. */
  static of(
    path: string,
    depth: number,
    label: string,
    items: readonly Part[],
    { contents = null, plain = true }: { contents?: readonly Part[] | null; plain?: boolean } = {},
  ): Group {
    return new Group(path, depth, bunchOf([...items.keys()], { label, isPlain: plain }), items, contents);
  }

  get total(): number {
    return this.#total;
  }

  override takeIn(helpers: readonly Part[]): void {
    super.takeIn(helpers);
    this.#total += totalOf(helpers);
  }

  parts(): readonly Part[] {
    this.#contents ??=
      this.instances.length > 0 ? inRows(this.path, this.instances) : structured(this.path, this.items, this.depth + 1);
    return [...this.#contents, ...this.helpers];
  }

  allNodes(): GraphNode[] {
    return nodesOf([...this.items, ...this.helpers]);
  }

  leadsTo(name: string): boolean {
    return anyLeadsTo(this.items, name) || anyLeadsTo(this.helpers, name);
  }
}

/**
 * The parts of a scope or group as they are shown: grouped and in order if they are many.
 *
 * `path` is the path of the scope, `depth` the number of groups around.
 */
export function structured(path: string, parts: readonly Part[], depth: number): readonly Part[] {
  if (parts.length < 2) return parts;
  const total = totalOf(parts);
  const few = parts.length <= FEW_PARTS && total <= FEW_NODES;
  if (few && !nodesOf(parts.slice(0, 1)).slice(0, 1).some(isForeign)) return withInitialValues(parts);
  const [whole, members] = withoutCyclesOfNames(parts);
  const arranged = arrange(members, members.map(isBackward));
  const units = arranged.units.map((unit) => unitOf(unit, path, depth, whole));
  const isSmall = few && total <= FEW_FOREIGN;
  if (isSmall && !arranged.bunches.some(({ isOfModules }) => isOfModules)) return units;
  return arranged.bunches.flatMap((bunch) =>
    isSmall && !bunch.isOfModules
      ? bunch.items.map((item) => units[item] as Part)
      : [groupOrPart(path, depth, bunch, units)],
  );
}

/**
 * The parts, with scopes taken apart that form a cycle although their nodes form none.
 *
 * Scopes in a cycle stay whole if all of them share one loop of nodes. The nodes of each part come with them.
 */
function withoutCyclesOfNames(
  parts: readonly Part[],
): readonly [parts: readonly Part[], members: readonly (readonly GraphNode[])[]] {
  let loopOf: Map<string, number> | null = null;
  let found = parts;
  for (;;) {
    const members = found.map((part) => nodesOf([part]));
    const clumps = cycles(makeItems(members, alwaysFalse(members)));
    const inCycles = clumps.flat().map((place) => [place, found[place] as Part] as const);
    const scopes = new Map(inCycles.flatMap(([place, part]) => partsApart(place, part)));
    if (scopes.size === 0) return [found, members];
    loopOf ??= loopsOf(members.flat());
    const cut = new Set<number>();
    for (const clump of clumps) {
      const loops = new Map(
        clump.map((place) => [place, loopsAt(members[place] as GraphNode[], loopOf as Map<string, number>)]),
      );
      const all = [...loops.values()];
      if (new Set(all.flatMap((each) => [...each])).size === 1 && all.every(({ size }) => size > 0)) continue;
      const inner = clump.filter((place) => scopes.has(place));
      const several = inner.filter((place) => loops.get(place)?.size !== 1);
      const chosen = several.length > 0 ? several : inner;
      const loose = chosen.filter((place) => isLoose(members[place] as GraphNode[]));
      for (const place of loose.length > 0 ? loose : chosen) cut.add(place);
    }
    if (cut.size === 0) return [found, members];
    found = found.flatMap((part, place) => (cut.has(place) ? (scopes.get(place) as readonly Part[]) : [part]));
  }
}

/** True for a module of another framework that several places call and whose nodes have no edges among them: a pooling, an activation. */
function isLoose(nodes: readonly GraphNode[]): boolean {
  const inside = new Set(nodes.filter((node) => !isParameter(node)));
  return [...inside].every((node) => isForeign(node) && node.inputs.every((tensor) => !inside.has(tensor.node)));
}

/** The parts in the place of a part, with this place; none for a part that stays whole. */
function partsApart(place: number, part: Part): [number, readonly Part[]][] {
  const apart = part instanceof Fold ? part.apart() : [part];
  return apart.length === 1 && apart[0] === part ? [] : [[place, apart]];
}

/** The number of the loop of each node that is in one. */
function loopsOf(nodes: readonly GraphNode[]): Map<string, number> {
  const each = nodes.map((node) => [node]);
  const found = cycles(makeItems(each, alwaysFalse(each)));
  return new Map(
    found.flatMap((loop, number) => loop.map((place): [string, number] => [(nodes[place] as GraphNode).name, number])),
  );
}

function loopsAt(nodes: readonly GraphNode[], loopOf: ReadonlyMap<string, number>): Set<number> {
  return new Set(nodes.flatMap(({ name }) => loopOf.get(name) ?? []));
}

/** The parts in their order, with what only an initial value needs inside its variable. */
function withInitialValues(parts: readonly Part[]): readonly Part[] {
  const variables = new Map<number, Thing>();
  for (const [place, part] of parts.entries())
    if (part instanceof Thing && isVariable(part.node)) variables.set(place, part);
  if (variables.size === 0) return parts;
  const members = parts.map((part) => nodesOf([part]));
  const items = makeItems(members, alwaysFalse(members));
  const names = new Set(members.flat().map(({ name }) => name));
  const constant = new Set<number>();
  for (const [place, nodes] of members.entries())
    if (nodes.length <= CONE && before(items, place).every((each) => constant.has(each)) && !nodes.some(varies))
      constant.add(place);
  const folded = new Map<number, number>();
  for (const place of [...constant].reverse()) {
    const targets = items.outputs[place] as readonly number[];
    const served = new Set(targets.map((target) => folded.get(target) ?? target));
    const [variable] = served;
    const ours = (members[place] as GraphNode[]).every(
      ({ consumers, controlOutputs }) =>
        controlOutputs.length === 0 && consumers.every((consumer) => names.has(consumer.name)),
    );
    if (served.size === 1 && variable !== undefined && variables.has(variable) && ours) folded.set(place, variable);
  }
  for (const [place, variable] of [...folded].reverse()) variables.get(variable)?.takeIn([parts[place] as Part]);
  return parts.filter((_, place) => !folded.has(place));
}

/** A group of these units, or the only one. */
function groupOrPart(path: string, depth: number, bunch: Bunch, units: readonly Part[]): Part {
  return bunch.items.length > 1 ? new Group(path, depth, bunch, units) : (units[bunch.items[0] as number] as Part);
}

/** The instances of a repeat, joined in rows of neighbours if they are many. */
function inRows(path: string, instances: readonly Part[], level = 0, number = 1): readonly Part[] {
  if (instances.length <= FEW_PARTS) return instances;
  let size = FEW_PARTS;
  while (size * FEW_PARTS < instances.length) size *= FEW_PARTS;
  const rows: Part[] = [];
  for (let start = 0; start < instances.length; start += size) {
    const row = instances.slice(start, start + size);
    const label = `${number + start} to ${number + start + row.length - 1}`;
    rows.push(Group.of(path, -1 - level, label, row, { contents: inRows(path, row, level + 1, number + start) }));
  }
  return rows;
}

/** Every node in some parts. */
export function nodesOf(parts: Iterable<Part>): GraphNode[] {
  const nodes: GraphNode[] = [];
  for (const part of parts)
    if (part instanceof Fold) for (const node of part.allNodes()) nodes.push(node);
    else nodes.push(part);
  return nodes;
}

/** The number of nodes in a part. */
const sizeOf = (part: Part): number => (part instanceof Fold ? part.total : 1);

/** The number of nodes in some parts. */
export const totalOf = (parts: readonly Part[]): number => parts.reduce((sum, part) => sum + sizeOf(part), 0);

/** The key of a part that opens, the name of a node. */
export const nameOf = (part: Part): string => (part instanceof Fold ? part.key : part.name);

/** True iff a part is or contains the node of its graph with this name. */
export const leadsTo = (part: Part, name: string): boolean =>
  part instanceof Fold ? part.leadsTo(name) : part.name === name;

/** True iff one of some parts leads to the node of this name. */
export const anyLeadsTo = (parts: readonly Part[], name: string): boolean => parts.some((part) => leadsTo(part, name));

/** False for each item. */
export const alwaysFalse = (members: readonly unknown[]): boolean[] => members.map(() => false);

/** One part, or a group of the parts of a cycle, together with what serves it. */
function unitOf(unit: Unit, path: string, depth: number, parts: readonly Part[]): Part {
  const inside = unit.parts.map((part) => parts[part] as Part);
  const helpers = unit.helpers.map((part) => parts[part] as Part);
  // A cycle has no order to find.
  const main =
    inside.length === 1 ? (inside[0] as Part) : Group.of(path, depth, scopeOfMost(inside) || unit.label, inside);
  if (helpers.length === 0) return main;
  if (!(main instanceof Fold)) return new Thing(main, null, helpers);
  main.takeIn(helpers);
  return main;
}

/** The last word of the path of the scope with most of the nodes, "" if there is none. */
function scopeOfMost(parts: readonly Part[]): string {
  const largest = parts.reduce((best, part) => (sizeOf(part) > sizeOf(best) ? part : best));
  if (!(largest instanceof Fold) || 2 * largest.total <= totalOf(parts)) return "";
  return largest instanceof Group ? largest.label : lastPart(largest.key);
}

const varies = (node: GraphNode): boolean => isVariable(node) || isEnd(node) || callsFunctions(node);

const isBackward = (nodes: readonly GraphNode[]): boolean =>
  2 * nodes.reduce((sum, node) => sum + (node.isGradient ? 1 : 0), 0) > nodes.length;
