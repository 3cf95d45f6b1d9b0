// The arrangement of one scope: joined cycles, folded helpers, and groups of the rest.

import { at, range } from "../order";
import { mainOps } from "./alike";
import { evaluationOrder } from "./decompose";
import { tellingLayers } from "./evidence";
import { before, type Items, joined, loops, makeItems } from "./items";
import { kindName } from "./naming";
import { type GraphNode, isForeign } from "./nodes";
import { hosts, isEnd, isParameter, isVariable, servingNodes } from "./serving";
import { type Bunch, bunchOf, PARTS, summarise } from "./summary";

/** So many repeated parts of another framework are shown as one also if nothing is beside them; modules always are. */
const MANY_FOREIGN = 3;
/** So many weights that several parts take are one box. */
const MANY_SHARED = 3;
/** A scope with more parts than this is shown as groups of them. */
export const FEW_PARTS = 40;

/** One part, or the parts of a cycle, with the parts that serve them, such as parameters. Parts are known by position. */
export interface Unit {
  readonly parts: readonly number[];
  readonly helpers: readonly number[];
  /** The name of a cycle, "" for one part. */
  readonly label: string;
}

/** Units in the order of the dataflow, and groups of them. A group of one unit is that unit. */
export interface Arrangement {
  readonly units: readonly Unit[];
  readonly bunches: readonly Bunch[];
}

type Members = readonly (readonly GraphNode[])[];

/**
 * Arranges the parts of a scope.
 *
 * `members` are the nodes of each part, the main one first; `backward` is true for parts of the backward pass.
 */
export function arrange(members: Members, backward: readonly boolean[]): Arrangement {
  const all = makeItems(members, backward);
  const { items: apart, contents } = joined(all, loops(all));
  const serving = servingNodes(apart.members.flat());
  const serves = apart.members.map((nodes) => nodes.every((node) => serving.has(node.name)));
  const order = evaluationOrder(apart);
  const host = hosts(apart, order, serves);
  const isOwn = (item: number): boolean => host[item] === item;
  const linked = new Set<number>();
  for (let item = 0; item < apart.members.length; item++)
    for (const each of before(apart, item)) {
      const [source, target] = [at(host, each), at(host, item)];
      if (source !== target) linked.add(source).add(target);
    }
  const ends = apart.members.map((nodes) => isEnd(at(nodes, 0)));
  const own = range(0, apart.members.length).filter(isOwn);
  const alone = own.filter((item) => !linked.has(item));
  const isMostly = 2 * alone.filter((item) => ends[item]).length > own.length;
  const idle = alone.filter((item) => serves[item] || (ends[item] && isMostly));
  const shared = own.filter((item) => linked.has(item) && isShared(apart, item));
  const helpers: number[][] = host.map(() => []);
  for (const [item, target] of host.entries()) if (target !== item) at(helpers, target).push(item);
  const leftOut = new Set([...(idle.length > 1 ? idle : []), ...(shared.length >= MANY_SHARED ? shared : [])]);
  const kept = own.filter((item) => !leftOut.has(item)).map((item) => [item, ...at(helpers, item)]);
  const folded = joined(
    apart,
    kept.filter((group) => group.length > 1),
    kept.flat(),
  );
  const { items } = folded;
  const partsOf = (items: readonly number[]): number[] => items.flatMap((item) => at(contents, item));
  const units = folded.contents.map((group): Unit => {
    const parts = at(contents, at(group, 0));
    return { parts, helpers: partsOf(group.slice(1)), label: cycleName(members, parts, serving) };
  });
  const few = units.length <= FEW_PARTS;
  const sequence = items === apart ? order : evaluationOrder(items);
  const bunches = withShared(
    summarise(items, sequence, serving, few ? FEW_PARTS : PARTS).flatMap((bunch) => {
      const isWhole = bunch.items.length === units.length;
      const isMany = bunch.isOfModules || bunch.instances.length >= MANY_FOREIGN;
      const isOne = isMany && isForeign(at(at(members, 0), 0));
      if (bunch.instances.length > 0) return isWhole && !isOne ? bunch.instances : [bunch];
      return bunch.items.length === 1 || few || isWhole ? bunch.items.map((item) => bunchOf([item])) : [bunch];
    }),
    items,
    serving,
  );
  const leaveOut = (left: readonly number[], label: string): void => {
    bunches.push(bunchOf(range(units.length, units.length + left.length), { label, isPlain: true }));
    for (const item of left) units.push({ parts: at(contents, item), helpers: partsOf(at(helpers, item)), label: "" });
  };
  if (idle.length > 1) {
    const isInput = (item: number): boolean => at(ends, item);
    const kind = idle.every(isInput) ? "inputs" : idle.some(isInput) ? "inputs and constants" : "constants";
    const isUsed = idle.some((item) => at(apart.members, item).some(({ consumers }) => consumers.length > 0));
    leaveOut(idle, `${idle.length} ${isUsed ? "" : "unused "}${kind}`);
  }
  if (shared.length >= MANY_SHARED) {
    const areConstants = shared.every((item) => at(apart.members, item).every((node) => !isVariable(node)));
    leaveOut(shared, `${shared.length} shared ${areConstants ? "constants" : "weights"}`);
  }
  return { units, bunches };
}

/** True for a weight of another framework that several parts take: exporters keep one of equal weights. */
function isShared(items: Items, item: number): boolean {
  const nodes = at(items.members, item);
  return nodes.every((node) => isForeign(node) && isParameter(node)) && at(items.outputs, item).length > 1;
}

/** The name of the parts of a cycle, "" for one part. */
function cycleName(members: Members, parts: readonly number[], serving: ReadonlySet<string>): string {
  if (parts.length < 2) return "";
  const nodes = parts.flatMap((part) => at(members, part));
  return kindName(mainOps(nodes, serving), tellingLayers(nodes, serving)) || `cycle of ${parts.length}`;
}

/** The bunches, with parameters that serve one repeat alone inside it. */
function withShared(bunches: readonly Bunch[], items: Items, serving: ReadonlySet<string>): Bunch[] {
  const place = new Map<number, Bunch>();
  for (const bunch of bunches) if (bunch.instances.length > 0) for (const item of bunch.items) place.set(item, bunch);
  return bunches.filter((bunch) => {
    const item = at(bunch.items, 0);
    const users = new Set(at(items.outputs, item).map((target) => place.get(target)));
    const [user] = users;
    if (bunch.items.length !== 1 || users.size !== 1 || user === undefined) return true;
    if (!at(items.members, item).every((node) => serving.has(node.name))) return true;
    user.shared.push(item);
    return false;
  });
}
