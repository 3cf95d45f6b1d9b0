// The data of a graph that a page keeps: rows of nodes, changed by what the kernel sends.
import type {
  CallRecord,
  GradientRow,
  GraphChange,
  PageHead,
  SourceRow,
  SpaceColumns,
  SpaceHead,
} from "../scene/generated";
import { COLUMNS_OF_NUMBERS, COLUMNS_OF_TEXTS } from "./columns";
import type { PageData } from "./data";
import { at, getOrMake } from "./order";
import { ALTERED, FRESH, full, starts } from "./space";

/** The ids of new and of changed nodes. */
export interface News {
  readonly fresh: readonly number[];
  readonly altered: readonly number[];
}

const NO_NEWS: News = { fresh: [], altered: [] };

/** The columns of one number for each node. */
const NUMBERS = [...COLUMNS_OF_TEXTS, ...COLUMNS_OF_NUMBERS, "signatures"] as const;
type Numbers = Record<(typeof NUMBERS)[number], number>;

/** A node. Other nodes are ids, dimensions are keys. */
interface Row {
  readonly id: number;
  readonly path: string;
  readonly name: string;
  readonly numbers: Numbers;
  readonly inputs: readonly Input[];
  readonly awaited: readonly number[];
  readonly dims: readonly number[];
  readonly gradient: GradientRow | null;
  readonly origin: number | null;
}

/** An input: the id of its producer, or the tensor of one that is gone. */
interface Input {
  readonly producer: number;
  readonly slot: number;
  readonly lost: SpaceHead["foreign"][number] | null;
}

/** A table of values that only grows. */
class Table<T> {
  readonly values: T[] = [];
  readonly #numbers = new Map<string, number>();

  /** The numbers of some values. */
  numbersOf(values: readonly T[]): number[] {
    return values.map((value) => {
      const key = typeof value === "string" ? value : JSON.stringify(value);
      return getOrMake(this.#numbers, key, () => this.values.push(value) - 1);
    });
  }
}

/** The numbers of the values of a change in the tables of the page. */
interface Renumbered {
  readonly texts: readonly number[];
  readonly sources: readonly number[];
  readonly signatures: readonly number[];
  readonly gradients: readonly number[];
  readonly slots: readonly number[];
}

/** The tables for columns of one number for each node; flags are no numbers of values. */
const TABLES: Readonly<Record<(typeof NUMBERS)[number], keyof Renumbered | null>> = {
  ops: "texts",
  kinds: "texts",
  details: "texts",
  cells: "texts",
  devices: "texts",
  requests: "texts",
  functions: "texts",
  definitions: "texts",
  slot_names: "slots",
  registered: "gradients",
  sources: "sources",
  flags: null,
  signatures: "signatures",
};

export class KeptData {
  #number = -1;
  #rows = new Map<number, Row>();
  #texts = new Table<string>();
  #sources = new Table<SourceRow>();
  #infos = new Table<PageHead["infos"][number]>();
  #signatures = new Table<readonly number[]>();
  #gradients = new Table<PageHead["gradients"][number]>();
  #slots = new Table<PageHead["slots"][number]>();
  #ops: Record<string, PageHead["ops"][string]> = {};
  #calls: readonly CallRecord[] = [];
  #bodies: readonly { readonly head: SpaceHead; readonly columns: SpaceColumns }[] = [];
  #places: ReadonlyMap<number, number> = new Map();
  #plain: PageData | null = null;

  /** The number of nodes. */
  get nodes(): number {
    return this.#rows.size;
  }

  /** The data after the changes so far, with marks of new and changed nodes; null before the first change. */
  marked({ fresh, altered }: News): PageData | null {
    const plain = this.#plain;
    if (!plain || fresh.length + altered.length === 0) return plain;
    const [columns, ...bodies] = plain.spaces as [SpaceColumns, ...SpaceColumns[]];
    const flags = columns.flags.slice();
    for (const id of fresh) mark(flags, this.#places.get(id), FRESH);
    for (const id of altered) mark(flags, this.#places.get(id), ALTERED);
    return { ...plain, spaces: [{ ...columns, flags }, ...bodies] };
  }

  /** Applies a change, and gives the data. Null if another one should have come before: then the page needs the whole. */
  apply(change: GraphChange, news: News = NO_NEWS): PageData | null {
    if (!change.whole && change.number !== this.#number + 1) return null;
    if (change.whole) this.#startOver();
    this.#number = change.number;
    if (change.head.spaces.length === 0 && this.#plain) {
      // All that was made of the data stays: it reads the overlays where they are.
      Object.assign(this.#plain.head, { overlays: change.head.overlays });
      return this.marked(news);
    }
    const numbers = this.#renumber(change);
    Object.assign(this.#ops, change.head.ops);
    for (const id of change.removed) this.#rows.delete(id);
    for (const row of rowsOf(change, numbers)) this.#rows.set(row.id, row);
    const [head, ...bodies] = change.head.spaces.map((each) => renumberedHead(each, numbers));
    if (change.with_bodies) {
      this.#calls = (head as SpaceHead).calls;
      this.#bodies = bodies.map((each, i) => ({
        head: each,
        columns: renumberedColumns(change.spaces[i + 1] as SpaceColumns, numbers),
      }));
    }
    this.#plain = this.#data(change, head as SpaceHead);
    return this.marked(news);
  }

  #startOver(): void {
    this.#rows = new Map();
    this.#texts = new Table();
    this.#sources = new Table();
    this.#infos = new Table();
    this.#signatures = new Table();
    this.#gradients = new Table();
    this.#slots = new Table();
    this.#ops = {};
  }

  #renumber({ head, texts, sources }: GraphChange): Renumbered {
    const infos = this.#infos.numbersOf(head.infos);
    return {
      texts: this.#texts.numbersOf(texts),
      sources: this.#sources.numbersOf(sources),
      signatures: this.#signatures.numbersOf(head.signatures.map((each) => each.map((info) => at(infos, info)))),
      gradients: this.#gradients.numbersOf(head.gradients),
      slots: this.#slots.numbersOf(head.slots),
    };
  }

  #data({ head: page, merges, ...change }: GraphChange, head: SpaceHead): PageData {
    const rows = [...this.#rows.values()].sort((a, b) => a.id - b.id);
    const places = new Map(rows.map(({ id }, place) => [id, place]));
    this.#places = places;
    const placeOf = (id: number): number => places.get(id) as number;
    const paths = new Map([["", 0]]);
    const dimensions = new Map<number, number>();
    const columns = {
      scopes: rows.map(({ path }) => getOrMake(paths, path, () => paths.size)),
      names: rows.map(({ name }) => name),
      arities: rows.map(({ inputs }) => inputs.length),
      producers: rows.flatMap(({ inputs }, place) =>
        inputs.map(({ producer, lost }) => (lost ? 0 : place - placeOf(producer))),
      ),
      slots: rows.flatMap(({ inputs }) => inputs.map(({ slot }) => slot)),
      waits: rows.map(({ awaited }) => awaited.length),
      awaited: rows.flatMap(({ awaited }, place) => awaited.map((id) => place - placeOf(id))),
      dims: rows.flatMap(({ dims }) =>
        dims.map((key) => {
          const newest = dimensions.size;
          return newest - getOrMake(dimensions, key, () => newest);
        }),
      ),
    };
    const numbers = Object.fromEntries(NUMBERS.map((name) => [name, rows.map((row) => row.numbers[name])])) as Record<
      keyof Numbers,
      number[]
    >;
    const lost = rows.flatMap(({ inputs }) => inputs.flatMap((input) => input.lost ?? []));
    const known = (key: number): number => (merges ? undefined : dimensions.get(key)) ?? -1 - key;
    const space: SpaceHead = {
      ...head,
      paths: [...paths.keys()],
      calls: this.#calls.map((call) => ({ ...call, node: placeOf(call.node) })),
      foreign: lost.map((each) => ({ ...each, dims: each.dims?.map(known) ?? null })),
      gradients: rows.flatMap(({ gradient }, node) => (gradient ? { ...gradient, node } : [])),
      origins: rows.flatMap(({ origin }, place) => (origin === null ? [] : [place, placeOf(origin)])),
    };
    return {
      head: {
        ...page,
        spaces: [space, ...this.#bodies.map((body) => body.head)],
        infos: this.#infos.values,
        signatures: this.#signatures.values,
        gradients: this.#gradients.values,
        ops: this.#ops,
        slots: this.#slots.values,
      },
      texts: this.#texts.values,
      sources: this.#sources.values,
      spaces: [{ ...columns, ...numbers }, ...this.#bodies.map((body) => body.columns)],
      notes: { times: change.times_note, values: change.values_note },
    };
  }
}

function mark(flags: number[], place: number | undefined, flag: number): void {
  if (place !== undefined) flags[place] = (flags[place] ?? 0) | flag;
}

/** A column with the numbers of the page; -1 stays. */
function renumbered(column: readonly number[], numbers: readonly number[] | null): readonly number[] {
  return numbers ? column.map((each) => (each < 0 ? each : at(numbers, each))) : column;
}

function renumberedColumns(columns: SpaceColumns, numbers: Renumbered): SpaceColumns {
  const changed = NUMBERS.map((name) => {
    const table = TABLES[name];
    return [name, renumbered(columns[name], table && numbers[table])] as const;
  });
  return { ...columns, ...Object.fromEntries(changed) };
}

function renumberedHead(head: SpaceHead, { gradients, texts }: Renumbered): SpaceHead {
  return {
    ...head,
    gradients: head.gradients.map((row) => ({ ...row, info: row.info < 0 ? row.info : at(gradients, row.info) })),
    own_classes: head.own_classes.map((own) => ({ ...own, classes: renumbered(own.classes, texts) })),
  };
}

/** The rows of a change. */
function rowsOf(change: GraphChange, numbers: Renumbered): Row[] {
  const { ids, dims: keys } = change;
  const columns = renumberedColumns(change.spaces[0] as SpaceColumns, numbers);
  const head = renumberedHead(change.head.spaces[0] as SpaceHead, numbers);
  const size = ids.length;
  const each = NUMBERS.map((name) => [name, full(columns[name], size)] as const);
  const inputsAt = starts(full(columns.arities, size), size);
  const waitsAt = starts(full(columns.waits, size), size);
  const slots = full(columns.slots, columns.producers.length);
  const ranks = change.head.signatures.map((signature) =>
    signature.reduce((sum, info) => sum + (change.head.infos[info]?.sizes?.length ?? 0), 0),
  );
  const signatures = full((change.spaces[0] as SpaceColumns).signatures, size);
  const dimsAt = starts(
    Int32Array.from({ length: size }, (_, i) => at(ranks, at(signatures, i))),
    size,
  );
  const steps = full(columns.dims, at(dimsAt, size));
  const gradients = new Map(head.gradients.map((row) => [row.node, row]));
  const origins = new Map<number, number>();
  for (let i = 0; i < change.origins.length; i += 2) origins.set(at(change.origins, i), at(change.origins, i + 1));
  let lost = 0;
  let newest = 0;
  const range = (starts: Int32Array, i: number): number[] =>
    Array.from({ length: at(starts, i + 1) - at(starts, i) }, (_, k) => at(starts, i) + k);
  return ids.map((id, i) => ({
    id,
    path: head.paths[at(columns.scopes, i)] as string,
    name: columns.names[i] as string,
    numbers: Object.fromEntries(each.map(([name, column]) => [name, at(column, i)])) as Numbers,
    inputs: range(inputsAt, i).map((place) => {
      const step = at(columns.producers, place);
      const tensor = step === 0 ? (head.foreign[lost++] as Input["lost"]) : null;
      return { producer: id - step, slot: at(slots, place), lost: tensor };
    }),
    awaited: range(waitsAt, i).map((place) => id - at(columns.awaited, place)),
    dims: range(dimsAt, i).map((place) => {
      const step = at(steps, place);
      return at(keys, step === 0 ? newest++ : newest - step);
    }),
    gradient: gradients.get(id) ?? null,
    origin: origins.get(id) ?? null,
  }));
}
