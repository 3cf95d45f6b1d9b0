// The scopes that names form, with long chains of scopes in scopes as one.

/** Up to this many scopes in a row that hold nothing but the next one are scopes of their own; more are one with the last. */
const MOST_SINGLE = 4;
const LONGEST_LABEL = 40;

/** The path of the scope around a name, "" if there is none. */
export const scopeOf = (name: string): string => name.slice(0, Math.max(0, name.lastIndexOf("/")));

/** The last component of a path. */
export const lastPart = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

/** The number of slashes in a path. */
export function countSlashes(path: string): number {
  let count = 0;
  for (let at = path.indexOf("/"); at >= 0; at = path.indexOf("/", at + 1)) count += 1;
  return count;
}

/**
 * The scope around each scope below `root`, outermost first.
 *
 * A name with 100,000 scopes would give paths of gigabytes, so that a path exists only where something is: nodes, several scopes, or a
 * node of the same name. `prefixes` are the paths that hold nodes, `names` the names of these nodes.
 */
export function parentsOf(root: string, prefixes: Iterable<string>, names: Iterable<string>): Map<string, string> {
  // Any order will do in which what begins with a path follows it.
  const held = [...prefixes]
    .filter((prefix) => prefix !== root)
    .map((prefix) => `${prefix}/`)
    .sort();
  const needed = new Set(held);
  for (let i = 1; i < held.length; i++) needed.add(shared(held[i - 1] as string, held[i] as string));
  for (const name of names) {
    const path = `${name}/`;
    if (held[bisectLeft(held, path)]?.startsWith(path)) needed.add(path);
  }
  const top = root ? `${root}/` : "";
  needed.delete("");
  needed.delete(top);
  const parents = new Map<string, string>();
  const around = [top];
  for (const path of [...needed].sort()) {
    while (!path.startsWith(around.at(-1) as string)) around.pop();
    let outer = around.at(-1) as string;
    if (countSlashes(path.slice(outer.length, -1)) <= MOST_SINGLE)
      for (let at = path.indexOf("/", outer.length); at < path.length - 1; at = path.indexOf("/", at + 1)) {
        parents.set(path.slice(0, at), outer.slice(0, -1));
        outer = path.slice(0, at + 1);
      }
    parents.set(path.slice(0, -1), outer.slice(0, -1));
    around.push(path);
  }
  return parents;
}

/** The last component of a path, or `a/b/c` of a chain of scopes, abbreviated where it is long. */
export function chainLabel(path: string, parent: string | null): string {
  const inside = parent ? path.slice(parent.length + 1) : path;
  if (!inside.includes("/") || [...inside].length <= LONGEST_LABEL) return inside;
  return `${inside.slice(0, inside.indexOf("/"))}/…/${lastPart(inside)}`;
}

/** The longest path, with its slash, that begins both. */
function shared(one: string, other: string): string {
  let end = 0;
  for (let i = 0; i < one.length && one.charCodeAt(i) === other.charCodeAt(i); i++) if (one[i] === "/") end = i + 1;
  return one.slice(0, end);
}

function bisectLeft(sorted: readonly string[], text: string): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] as string) < text) low = middle + 1;
    else high = middle;
  }
  return low;
}
