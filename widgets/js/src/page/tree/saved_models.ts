// SavedModels in pictures: groups of signatures, of variables, and of what saves and restores.
import { ARG, NO_OP, RETVAL } from "../../scene/generated";
import { counted } from "../order";
import {
  before,
  callsFunctions,
  type GraphNode,
  type Items,
  isParameter,
  isPlumbing,
  isVariable,
  makeItems,
} from "../structure";
import type { GraphData } from "./calls";
import { alwaysFalse, Fold, Group, nodesOf, type Part, structured, Thing } from "./folds";

const SAVING = "saving and restoring";
/** The depth of these groups: deeper than that of groups by dataflow, so that their keys differ. */
const DEPTH = 50;
const DEFAULT = "serving_default";

type Places = ReadonlySet<number>;

/** The label of the group of a signature. */
const signatureLabel = (name: string): string => `signature ${name}`;

const itemsOf = (parts: readonly Part[]): Items => {
  const members = parts.map((part) => nodesOf([part]));
  return makeItems(members, alwaysFalse(members));
};

const isReturn = ({ op }: GraphNode): boolean => RETVAL.has(op.name);

/** The nodes of an item. */
const membersOf = (items: Items, item: number): readonly GraphNode[] => items.members[item] as readonly GraphNode[];

/** The first node of an item. */
const mainOf = (items: Items, item: number): GraphNode => membersOf(items, item)[0] as GraphNode;

/**
 * The parts of a SavedModel's graph, with signatures, variables and the saver in groups.
 *
 * A signature is a call of a function and its inputs. In files of TensorFlow 1 it is the graph itself, and has no group.
 */
export function withSignatures(parts: readonly Part[], graph: GraphData): readonly Part[] {
  const items = itemsOf(parts);
  const owner = new Map<string, number>();
  for (const [place, nodes] of items.members.entries()) for (const { name } of nodes) owner.set(name, place);
  const after = afterEach(items);
  const saving = savingItems(items, after, owner, graph);
  if (saving.size === parts.length) return parts;
  const signatures = signatureItems(items, owner, graph);
  const taken = new Set([...saving, ...[...signatures.values()].flat()]);
  const variables = signatures.size > 0 ? variableItems(items, after, taken) : [];
  for (const item of variables) taken.add(item);
  const at = (places: readonly number[]): Part[] => places.map((place) => parts[place] as Part);
  const rest = parts.filter((_, place) => !taken.has(place));
  const groups = [...signatures].map(([name, places]) => groupOf(signatureLabel(name), at(places)));
  if (variables.length > 0) groups.unshift(groupOf(variablesLabel(nodesOf(at(variables))), at(variables)));
  if (saving.size > 0) groups.push(groupOf(SAVING, at([...saving].sort((a, b) => a - b))));
  return signatures.size > 0 ? [...structured("", rest, 0), ...groups] : structured("", [...rest, ...groups], 0);
}

/**
 * The parts of a function's body or a scope in one, with what only passes values on at its edges.
 *
 * The handles of variables that only calls take are one group; a handle that one part takes belongs to that part. Results that wait for
 * the side effects of the body, as TensorFlow 2 makes them, belong to their return.
 */
export function withinFunction(path: string, parts: readonly Part[]): readonly Part[] {
  const placesOf = (chosen: (node: GraphNode) => boolean): number[] =>
    parts.flatMap((part, place) => (!(part instanceof Fold) && chosen(part) ? [place] : []));
  const handles = placesOf(isHandle);
  const waits = placesOf(({ op }) => op.name === NO_OP);
  if (handles.length === 0 && waits.length === 0) return parts;
  const items = itemsOf(parts);
  const after = afterEach(items);
  const kept = new Map(parts.entries());
  const take = (place: number): Part => {
    const part = kept.get(place) as Part;
    kept.delete(place);
    return part;
  };
  const targetsOf = (place: number): number[] => [...(after[place] as Places)];
  const isPassed = (place: number): boolean => {
    const targets = targetsOf(place);
    return targets.length > 0 && targets.every((to) => callsFunctions(mainOf(items, to)));
  };
  const passed = handles.filter(isPassed);
  if (passed.length > 1) {
    const inside = passed.map(take);
    kept.set(passed[0] as number, Group.of(path, DEPTH, variablesLabel(nodesOf(inside)), inside));
  }
  for (const place of handles) {
    const [host, ...others] = targetsOf(place);
    if (!passed.includes(place) && host !== undefined && others.length === 0)
      kept.set(host, withHelpers(kept.get(host) as Part, [take(place)]));
  }
  for (const place of waits) {
    const ends = resultsBehind(items, after, place);
    if (ends.length === 0 || !ends.every((end) => kept.has(end))) continue; // the results may wait for others too, and be theirs
    const returns = ends.filter((end) => isReturn(mainOf(items, end)));
    const inside = ends.map(take);
    const last = returns.at(-1) as number;
    if (returns.length > 1) kept.set(last, Group.of(path, DEPTH, `${returns.length} results`, inside));
    else kept.set(last, withHelpers(inside.at(-1) as Part, inside.slice(0, -1)));
  }
  return [...kept].sort(([a], [b]) => a - b).map(([, part]) => part);
}

/**
 * A node that waits for side effects, the identities that wait for it, and their returns.
 *
 * Empty for any other node.
 */
function resultsBehind(items: Items, after: readonly Places[], wait: number): number[] {
  const sorted = (places: Iterable<number>): number[] => [...new Set(places)].sort((a, b) => a - b);
  const identities = sorted(after[wait] as Places);
  const returns = sorted(identities.flatMap((identity) => [...(after[identity] as Places)]));
  const isEnd = identities.every((each) => membersOf(items, each).length === 1 && isPlumbing(mainOf(items, each)));
  return returns.length > 0 && isEnd && returns.every((each) => isReturn(mainOf(items, each)))
    ? [wait, ...identities, ...returns]
    : [];
}

function withHelpers(main: Part, helpers: readonly Part[]): Part {
  if (!(main instanceof Fold)) return new Thing(main, null, helpers);
  main.takeIn(helpers);
  return main;
}

/**
 * The group of the signature that is open first: `serving_default`, else the first by name.
 *
 * Null if no signature has a group.
 */
export function served({ signatures }: GraphData, parts: readonly Part[]): Group | null {
  const groups = new Map(
    parts.flatMap((part): [string, Group][] => (part instanceof Group ? [[part.label, part]] : [])),
  );
  for (const name of [DEFAULT, ...signatures.keys()]) {
    const found = groups.get(signatureLabel(name));
    if (found) return found;
  }
  return null;
}

/** True for arguments, returns, and what passes a value on. */
export function passesOn(part: Part): boolean {
  return nodesOf([part]).every(
    (node) => ARG.has(node.op.name) || isReturn(node) || node.op.name === NO_OP || isPlumbing(node),
  );
}

/** The items that take tensors of each item or wait for it. */
function afterEach(items: Items): Places[] {
  const after = items.outputs.map((targets) => new Set(targets));
  for (const [item, sources] of items.awaited.entries()) for (const source of sources) after[source]?.add(item);
  return after;
}

/** The items that only save and restore: the saver's nodes, and what serves nothing else. */
function savingItems(
  items: Items,
  after: readonly Places[],
  owner: ReadonlyMap<string, number>,
  { saverNodes, signatures }: GraphData,
): Set<number> {
  const ownersOf = (names: Iterable<string>): number[] => [...names].flatMap((name) => owner.get(name) ?? []);
  const kept = new Set([...signatures.values()].flatMap(ownersOf));
  const found = new Set(ownersOf(saverNodes).filter((item) => !kept.has(item)));
  const isWithin = (item: number): boolean => [...(after[item] as Places)].every((target) => found.has(target));
  const pending = [...found].flatMap((item) => before(items, item));
  for (let item = pending.pop(); item !== undefined; item = pending.pop())
    if (!found.has(item) && !kept.has(item) && isWithin(item)) {
      found.add(item);
      pending.push(...before(items, item));
    }
  return new Set([...found].filter(isWithin));
}

/** The items of each signature whose results are those of calls: its inputs and these calls. */
function signatureItems(
  items: Items,
  owner: ReadonlyMap<string, number>,
  { signatures }: GraphData,
): Map<string, number[]> {
  const found = new Map<string, number[]>();
  const taken = new Set<number>();
  for (const [name, ends] of signatures) {
    const places = [...new Set([...ends].flatMap((end) => owner.get(end) ?? []))].sort((a, b) => a - b);
    const calls = new Set(places.filter((place) => callsFunctions(mainOf(items, place))));
    const isAlone = places.every(
      (place) => (calls.has(place) || before(items, place).length === 0) && !taken.has(place),
    );
    if (calls.size === 0 || !isAlone) continue;
    found.set(name, places);
    for (const place of places) taken.add(place);
  }
  return found;
}

/** The items of variables and constants that only signatures and the saver take. */
function variableItems(items: Items, after: readonly Places[], taken: Places): number[] {
  const found: number[] = [];
  let count = 0;
  for (const [item, nodes] of items.members.entries()) {
    const sources = nodes.filter(({ inputs }) => inputs.length === 0);
    const targets = [...(after[item] as Places)];
    if (taken.has(item) || targets.length === 0 || !targets.every((target) => taken.has(target))) continue;
    if (sources.length === 0 || !sources.every(isParameter)) continue;
    found.push(item);
    count += sources.length;
  }
  return count > 1 ? found : [];
}

const groupOf = (label: string, items: readonly Part[]): Group => Group.of("", DEPTH, label, items, { plain: false });

/** The label of a group of variables or handles of them, and constants. */
function variablesLabel(nodes: readonly GraphNode[]): string {
  const sources = nodes.filter((node) => node.inputs.length === 0 && (isVariable(node) || isHandle(node)));
  return sources.length > 0 ? counted(sources.length, "variable") : "constants";
}

/** True for an argument that is the handle of a resource. */
const isHandle = ({ op, outputs }: GraphNode): boolean => ARG.has(op.name) && outputs[0]?.isResource === true;
