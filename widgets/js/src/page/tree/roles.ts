// The scopes of the backward pass.
import { getOrMake } from "../order";
import { scopeOf } from "./chains";
import type { SpaceGraph } from "./from_data";
import type { Scope, Scopes } from "./scopes";

export class Roles {
  readonly #counts = new Map<string, number>();
  readonly #scopes: Scopes;
  /** The paths of the scopes that are one inlined gradient function. */
  readonly bodies: ReadonlySet<string>;

  constructor({ nodes, space }: SpaceGraph, scopes: Scopes) {
    this.#scopes = scopes;
    const forwards = new Map<Scope, Set<string>>();
    for (const { node, forward, function: by } of space.head.gradients) {
      let scope: Scope | null = scopes.byPath.get(scopeOf(nodes[node]?.name ?? "")) ?? null;
      if (scope?.path && scope.scopes.size === 0 && by !== null)
        getOrMake(forwards, scope, () => new Set<string>()).add(forward);
      for (; scope?.path; scope = scope.parent) this.#counts.set(scope.path, (this.#counts.get(scope.path) ?? 0) + 1);
    }
    const bodies = [...forwards].filter(([scope, found]) => found.size === 1 && isWhole(scope));
    this.bodies = new Set(bodies.map(([{ path }]) => path));
  }

  /** True iff most nodes of the scope with this path are gradient nodes. */
  isMostlyGradient(path: string): boolean {
    return 2 * (this.#counts.get(path) ?? 0) > (this.#scopes.byPath.get(path)?.total ?? 0);
  }
}

const isWhole = ({ nodes }: Scope): boolean => [...nodes.values()].every(({ isGradient }) => isGradient);
