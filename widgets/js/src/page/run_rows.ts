// The rows of nodes in the columns of a recorded run.
import type { Instance } from "./parts";

/** The names of nodes, a row each: their entry in `prefixes`, followed by that in `names`. */
interface NamedRows {
  readonly prefixes: readonly string[];
  readonly places: readonly number[];
  readonly names: readonly string[];
}

/** The rows that are known, by columns and instance. */
const known = new WeakMap<NamedRows, WeakMap<Instance, Int32Array>>();

/** The row of each node of an instance, -1 for none. */
export function rowsOf(instance: Instance, columns: NamedRows): Int32Array {
  const byInstance = known.get(columns) ?? new WeakMap<Instance, Int32Array>();
  known.set(columns, byInstance);
  let found = byInstance.get(instance);
  if (found) return found;
  found = new Int32Array(instance.space.size).fill(-1);
  const place = columns.prefixes.indexOf(instance.prefix);
  for (const [row, name] of columns.names.entries()) {
    const node = columns.places[row] === place ? instance.space.find(name) : undefined;
    if (node !== undefined) found[node] = row;
  }
  byInstance.set(instance, found);
  return found;
}
