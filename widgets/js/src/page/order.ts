// Lists and counters that order, choose and count as Python's do.

/** Compares texts by code points, as Python orders strings. */
export function compareTexts(a: string, b: string): number {
  const most = Math.min(a.length, b.length);
  let i = 0;
  while (i < most && a.charCodeAt(i) === b.charCodeAt(i)) i += 1;
  if (i < most || isHighSurrogate(a, i - 1)) {
    const from = isHighSurrogate(a, i - 1) ? i - 1 : i;
    const difference = (a.codePointAt(from) as number) - (b.codePointAt(from) as number);
    if (difference !== 0) return difference;
    if (i < most) return (a.codePointAt(i) as number) - (b.codePointAt(i) as number);
  }
  return a.length - b.length;
}

/** True if a code point of two units begins here, or half of one. */
const isHighSurrogate = (text: string, place: number): boolean => (text.charCodeAt(place) & 0xfc00) === 0xd800;

/** Counts values in the order in which they come. */
export class Counter<T = string> {
  readonly counts = new Map<T, number>();

  constructor(values: Iterable<T> = []) {
    for (const value of values) this.add(value);
  }

  add(value: T, count = 1): void {
    this.counts.set(value, (this.counts.get(value) ?? 0) + count);
  }

  /** The most common values with their counts; of equals the one that came first. */
  mostCommon(most = this.counts.size): [T, number][] {
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

/** The value at a place within a list. */
export const at = <T>(list: ArrayLike<T>, place: number): T => list[place] as T;

/** The whole numbers from `start` to `stop` - 1. */
export const range = (start: number, stop: number): number[] =>
  Array.from({ length: Math.max(0, stop - start) }, (_, i) => start + i);

/** The sums of the numbers up to each of them, after 0. */
export function runningSums(numbers: Iterable<number>): number[] {
  const sums = [0];
  for (const number of numbers) sums.push(at(sums, sums.length - 1) + number);
  return sums;
}

export const sum = (numbers: Iterable<number>): number => {
  let total = 0;
  for (const number of numbers) total += number;
  return total;
};

/** Compares lists of numbers by the first place in which they differ, then by length. */
export function compareLists(one: readonly number[], other: readonly number[]): number {
  for (let i = 0; i < one.length && i < other.length; i++) if (one[i] !== other[i]) return at(one, i) - at(other, i);
  return one.length - other.length;
}

/** The first of the largest values, none of an empty list. */
export function largest<T>(values: Iterable<T>, compare: (one: T, other: T) => number): T | undefined {
  let found: T | undefined;
  let isFirst = true;
  for (const value of values) {
    if (isFirst || compare(value, found as T) > 0) found = value;
    isFirst = false;
  }
  return found;
}

/** True iff both are absent, or have the same values in the same order. */
export function areEqual<T>(one: readonly T[] | null, other: readonly T[] | null): boolean {
  if (one === null || other === null) return one === other;
  return one.length === other.length && one.every((value, i) => value === other[i]);
}

export const countOf = <T>(counter: Counter<T>, value: T): number => counter.counts.get(value) ?? 0;

/** The number of all values. */
export const totalOf = <T>(counter: Counter<T>): number => sum(counter.counts.values());

/** Adds the counts of another counter. */
export function addAll<T>(counter: Counter<T>, other: Counter<T>): void {
  for (const [value, count] of other.counts) counter.add(value, count);
}

/** The number of values that both have. */
export function commonTotal<T>(one: Counter<T>, other: Counter<T>): number {
  let total = 0;
  for (const [value, count] of one.counts) total += Math.min(count, countOf(other, value));
  return total;
}

/** The values that the one has more often than the other. */
export function excess<T>(one: Counter<T>, other: Counter<T>): Counter<T> {
  const found = new Counter<T>();
  for (const [value, count] of one.counts) {
    const more = count - countOf(other, value);
    if (more > 0) found.add(value, more);
  }
  return found;
}
