// All scopes of one graph.
import { isForeign, isParameter } from "../structure";
import type { GraphData, Opener } from "./calls";

import { Group, type Part } from "./folds";
import { passesOn, served } from "./saved_models";
import { Call, Scope, Scopes } from "./scopes";

/** The most parts that the first picture of a file of weights has. */
const FEW_PARTS = 24;

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
   * In a SavedModel that is the signature that is served, down to the body that computes. In a file of weights, which has no edges to show, it
   * is the outer scopes, as long as they have few parts.
   */
  get openedFirst(): ReadonlySet<string> {
    this.#openedFirst ??= new Set(this.#isOfWeights() ? this.#keysOfWeights() : this.#keysToServed());
    return this.#openedFirst;
  }

  #isOfWeights(): boolean {
    return this.graph.nodes.every((node) => isForeign(node) && isParameter(node));
  }

  *#keysOfWeights(): Generator<string> {
    let level = this.scopes.root.parts();
    for (let shown = level.length; level.length > 0; ) {
      const scopes = level.filter((part) => part instanceof Scope);
      level = scopes.flatMap((scope) => scope.parts());
      shown += level.length;
      if (shown > FEW_PARTS) return;
      yield* scopes.map(({ key }) => key);
    }
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
