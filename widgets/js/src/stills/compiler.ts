// Pictures of graphs that live in a kernel, compiled from the data that is kept of them.
import { type Notes, readLines } from "../page/data";
import { type Asked, type Beginning, GraphPage } from "../page/graph_page";
import { KeptData, type News } from "../page/kept";
import type { GraphChange, Openings, Scene } from "../scene/generated";

/** The graphs whose data is kept, the latest used ones: a kernel sends the data of others again. */
const MOST_GRAPHS = 12;
/** The nodes that they have together, if they are several. */
const MOST_NODES = 100_000;

/** A picture that a kernel wants. */
export interface Wish extends Beginning, News {
  /** The parts and nodes that were opened since the openings were known. */
  readonly asked: readonly Asked[];
}

/** A graph. */
class Compiler {
  readonly #kept = new KeptData();
  #page: { readonly page: GraphPage; readonly news: string } | null = null;

  get nodes(): number {
    return this.#kept.nodes;
  }

  apply(change: GraphChange): boolean {
    this.#page = null;
    return this.#kept.apply(change) !== null;
  }

  /** The picture of a wish; null if no data has come yet. */
  page(wish: Wish): GraphPage | null {
    const news = JSON.stringify([wish.fresh, wish.altered]);
    if (this.#page?.news !== news) {
      const data = this.#kept.marked(wish);
      this.#page = data && { page: new GraphPage(data, wish), news };
    }
    this.#page?.page.begin(wish);
    return this.#page?.page ?? null;
  }
}

const compilers = new Map<string, Compiler>();

/** The compiler of a graph: the latest used is last. */
function compilerOf(key: string): Compiler {
  const compiler = compilers.get(key) ?? new Compiler();
  compilers.delete(key);
  compilers.set(key, compiler);
  return compiler;
}

/** Forgets the graphs that were used least lately, if they are too many or too large. */
function forgetOldest(): void {
  let nodes = 0;
  for (const compiler of compilers.values()) nodes += compiler.nodes;
  for (const [key, compiler] of compilers) {
    if (compilers.size === 1 || (compilers.size <= MOST_GRAPHS && nodes <= MOST_NODES)) return;
    compilers.delete(key);
    nodes -= compiler.nodes;
  }
}

/** An answer; null if the data of the graph is not here, and is to be sent whole. */
export type Compiled<T> = {
  readonly answer: T;
  readonly openings: Openings;
  /** False if a node is not there around which was to be opened. */
  readonly found: boolean;
} | null;

/** Applies changes of a graph, and gives what is asked of the picture of a wish. */
export function compiled<T>(
  key: string,
  changes: readonly GraphChange[],
  wish: Wish,
  ask: (page: GraphPage) => T,
): Compiled<T> {
  const compiler = compilerOf(key);
  const applied = changes.every((change) => compiler.apply(change));
  const page = applied ? compiler.page(wish) : null;
  if (!page) {
    compilers.delete(key);
    return null;
  }
  forgetOldest();
  return answered(page, wish, ask);
}

function answered<T>(page: GraphPage, { asked }: Wish, ask: (page: GraphPage) => T): Compiled<T> {
  const found = page.surround(asked);
  return { answer: ask(page), openings: page.choices.openings, found };
}

/** The picture of a wish, of the data of a page, which is not kept. */
export function first(data: string, notes: Notes, wish: Wish): Compiled<Scene> {
  return answered(new GraphPage({ ...readLines(data), notes }, wish), wish, sceneOf);
}

export const sceneOf = (page: GraphPage): Scene => page.scene;
export const boxesOf = (page: GraphPage): Record<string, string> => page.boxes();
export const mainsOf = (page: GraphPage): readonly string[] => page.mains();
export const nothingOf = (): null => null;
