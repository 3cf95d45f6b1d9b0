// Small helpers that count and compare as Python does.

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
