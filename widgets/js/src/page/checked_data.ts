// Checks of a page's data, which may come from strangers.
// Whatever counts or points in its columns does so within them.
import { type Check, isObject, nodeKind } from "../scene/checks";
import type { SpaceColumns, SpaceHead } from "../scene/generated";
import { headFields, sourceRows, spaceFields } from "./checked_head";
import { COLUMNS_OF_TEXTS } from "./columns";
import type { PageData } from "./data";

/** The data of a page is damaged. */
export class DataError extends Error {
  constructor(what: string) {
    super(`The data of this page is damaged: ${what}`);
  }
}

/** The data of a page or picture has the format of another version. */
export class FormatError extends Error {
  constructor() {
    super("This picture was saved by another version of Graphloupe: run the notebook again");
  }
}

/** Flags are bits. */
const MOST_FLAGS = 2 ** 8;

function require(holds: boolean, what: string): asserts holds {
  if (!holds) throw new DataError(what);
}

const isWithin = (value: unknown, from: number, to: number): value is number =>
  Number.isInteger(value) && (value as number) >= from && (value as number) < to;

function list(value: unknown, what: string): readonly unknown[] {
  require(Array.isArray(value), `${what} is no list`);
  return value;
}

/** A list of whole numbers from `from` to below `to`. */
function numbers(value: unknown, from: number, to: number, what: string): readonly number[] {
  const found = list(value, what);
  require(found.every((each) =>
    isWithin(each, from, to),
  ), `${what} is no list of whole numbers from ${from} to ${to - 1}`);
  return found as readonly number[];
}

function texts(value: unknown, what: string): readonly string[] {
  const found = list(value, what);
  require(found.every((each) => typeof each === "string"), `${what} is no list of texts`);
  return found as readonly string[];
}

/** A column of one number for each of `size` entries, or of one that stands for all. */
function column(value: unknown, size: number, from: number, to: number, what: string): readonly number[] {
  const found = numbers(value, from, to, what);
  require(found.length === size || found.length === 1, `${what} has ${found.length} entries, not ${size} or 1`);
  return found;
}

/** The entry at a place of a column. */
const of = (found: readonly number[], size: number, place: number): number =>
  (found.length === size ? found[place] : found[0]) as number;

const total = (found: readonly number[], size: number): number =>
  found.length === size ? found.reduce((sum, each) => sum + each, 0) : (found[0] as number) * size;

/**
 * Checks what `unpackData` has read.
 *
 * Throws a DataError if a column has another length or type than its space has, if a number points beyond a table, or if two nodes
 * have one name.
 */
export function checkPage(data: PageData): void {
  const { head } = data;
  require(isObject(head), "it has no head");
  texts(data.texts, "the list of texts");
  require(sourceRows(data.sources), "it has no source lines");
  checkFields(head, headFields(list(head.infos, "infos").length));
  const graphs = list(head.spaces, "the list of graphs").length;
  require(graphs > 0 && graphs === data.spaces.length, "it has columns of other graphs");
  for (const [place, space] of data.spaces.entries()) checkSpace(data, head.spaces[place] as SpaceHead, space);
}

function checkSpace(data: PageData, head: SpaceHead, columns: SpaceColumns): void {
  const { texts: words, sources } = data;
  require(isObject(head), "a graph has no head");
  const paths = texts(head.paths, "the list of scopes").length;
  const size = texts(columns.names, "the list of names").length;
  checkFields(head, spaceFields(size, data.spaces.length, words.length, data.head.gradients.length));
  for (const { classes } of head.own_classes)
    require([0, 1, size].includes(classes.length), "a lens has classes of other nodes");
  const fill = (name: keyof SpaceColumns, from: number, to: number, count = size): readonly number[] =>
    column(columns[name], count, from, to, `column ${name}`);
  require(numbers(columns.scopes, 0, paths, "column scopes").length === size, "column scopes has another length");
  for (const name of COLUMNS_OF_TEXTS) fill(name, 0, words.length);
  require(columns.kinds.every((kind) => nodeKind(words[kind])), "column kinds has an unknown kind");
  fill("slot_names", 0, data.head.slots.length);
  fill("registered", -1, data.head.gradients.length);
  fill("sources", -1, sources.length);
  fill("flags", 0, MOST_FLAGS);
  const signatures = fill("signatures", 0, data.head.signatures.length);

  const inputs = list(columns.producers, "column producers").length;
  const arities = fill("arities", 0, inputs + 1);
  require(total(arities, size) === inputs, "column arities counts other inputs");
  const slots = fill("slots", 0, 2 ** 31, inputs);
  const waits = list(columns.awaited, "column awaited").length;
  const awaiting = fill("waits", 0, waits + 1);
  require(total(awaiting, size) === waits, "column waits counts other control inputs");
  const outputs = data.head.signatures.map(({ length }) => length);
  const foreign = checkSteps(columns.producers, arities, size, (producer, input) => {
    const made = outputs[of(signatures, size, producer)] as number;
    require(of(slots, inputs, input) < made, "column slots has an output that is not there");
  });
  checkSteps(columns.awaited, awaiting, size, () => undefined);
  checkNames(head, columns);
  checkDims(columns.dims, signatures, size, data);

  require(head.foreign.length === foreign, "the list of inputs from elsewhere has another length");
  checkOrigins(head.origins);
}

/** Checks the fields of a record. */
function checkFields(record: object, fields: Readonly<Record<string, Check>>): void {
  for (const [name, check] of Object.entries(fields))
    require(check((record as Readonly<Record<string, unknown>>)[name]), `${name} is not what it should be`);
}

/** Checks distances to other nodes, and each of these with the place of its distance. Returns the number of zeros, which are none. */
function checkSteps(
  steps: readonly number[],
  counts: readonly number[],
  size: number,
  check: (other: number, place: number) => void,
): number {
  let [place, zeros] = [0, 0];
  for (let node = 0; node < size; node++) {
    const end = place + of(counts, size, node);
    for (; place < end; place++) {
      const step = steps[place];
      require(isWithin(step, node - size + 1, node + 1), "a node takes an input from beyond the graph");
      if (step === 0) zeros += 1;
      else check(node - step, place);
    }
  }
  return zeros;
}

/** Checks that no two nodes have one name, and no two records of calls one node. */
function checkNames({ paths, calls }: SpaceHead, { scopes, names }: SpaceColumns): void {
  const whole = new Set(names.map((name, node) => `${paths[scopes[node] as number]}/${name}`));
  require(whole.size === names.length, "column names has a node twice");
  require(new Set(calls.map(({ node }) => node)).size === calls.length, "a node has two records of a call");
}

function checkDims(dims: readonly number[], signatures: readonly number[], size: number, { head }: PageData): void {
  const ranks = head.signatures.map((signature) =>
    signature.reduce((sum, info) => sum + (head.infos[info]?.sizes?.length ?? 0), 0),
  );
  let count = 0;
  for (let node = 0; node < size; node++) count += ranks[of(signatures, size, node)] as number;
  const steps = list(dims, "column dims");
  require(steps.length === count || steps.length === 1, "column dims has another length");
  let newest = 0;
  for (const step of steps) {
    require(isWithin(step, 0, newest + 1), "column dims points to no dimension before");
    if (step === 0) newest += 1;
  }
}

/** Checks that no node differentiates itself, be it through others. */
function checkOrigins(pairs: readonly number[]): void {
  require(pairs.length % 2 === 0, "the list of differentiated nodes ends within a pair");
  const origin = new Map<number, number>();
  for (let i = 0; i < pairs.length; i += 2) origin.set(pairs[i] as number, pairs[i + 1] as number);
  const ended = new Set<number>();
  for (const begin of origin.keys()) {
    const way = new Set<number>();
    for (let at: number | undefined = begin; at !== undefined && !ended.has(at); at = origin.get(at)) {
      require(!way.has(at), "a node differentiates itself");
      way.add(at);
    }
    for (const each of way) ended.add(each);
  }
}
