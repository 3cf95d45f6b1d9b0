// Small helpers that count and compare as Python does.

/** Compares texts by code points, as Python orders strings. */
export function compareTexts(a: string, b: string): number {
  const [left, right] = [a[Symbol.iterator](), b[Symbol.iterator]()];
  for (;;) {
    const [x, y] = [left.next(), right.next()];
    if (x.done || y.done) return (x.done ? 0 : 1) - (y.done ? 0 : 1);
    const difference = (x.value.codePointAt(0) as number) - (y.value.codePointAt(0) as number);
    if (difference !== 0) return difference;
  }
}

/** Counts values in the order in which they come. */
export class Counter {
  readonly counts = new Map<string, number>();

  constructor(values: Iterable<string> = []) {
    for (const value of values) this.add(value);
  }

  add(value: string, count = 1): void {
    this.counts.set(value, (this.counts.get(value) ?? 0) + count);
  }

  /** The most common values with their counts; of equals the one that came first. */
  mostCommon(most = this.counts.size): [string, number][] {
    return [...this.counts].sort((a, b) => b[1] - a[1]).slice(0, most);
  }
}

const GROUPED = new Intl.NumberFormat("en-US");

/** `12,345`. */
export const grouped = (count: number): string => GROUPED.format(count);

/** `1 node`, `2 nodes`. */
export const counted = (count: number, word: string): string => `${grouped(count)} ${word}${count === 1 ? "" : "s"}`;

/** The value of a key, made and kept when it is not there yet. */
export function getOrMake<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}
