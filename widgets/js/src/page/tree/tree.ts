// All scopes of one graph.
import type { GraphData, Opener } from "./calls";
import { Group, type Part } from "./folds";
import { passesOn, served } from "./saved_models";
import { Call, Scope, Scopes } from "./scopes";

export class ScopeTree {
  readonly graph: GraphData;
  readonly scopes: Scopes;
  #openedFirst: ReadonlySet<string> | null = null;

  constructor(graph: GraphData, opener: Opener) {
    this.graph = graph;
    this.scopes = new Scopes("", graph, opener);
  }

  /**
   * The keys of what is open until the user closes it.
   *
   * In a SavedModel that is the signature that is served, down to the body that computes.
   */
  get openedFirst(): ReadonlySet<string> {
    this.#openedFirst ??= new Set(this.#keysToServed());
    return this.#openedFirst;
  }

  *#keysToServed(): Generator<string> {
    const found = served(this.graph, this.scopes.root.parts());
    if (!found) return;
    yield found.key;
    let work: readonly Part[] = found.items.filter((part) => part instanceof Call);
    for (;;) {
      const [part, ...others] = work;
      if (others.length > 0 || !(part instanceof Call || part instanceof Scope)) return;
      yield part.key;
      work = part.parts().filter((inner) => !(inner instanceof Group) && !passesOn(inner));
    }
  }
}
