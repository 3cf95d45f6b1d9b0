// Numbers of the instances of a repeat that differ, in words.
import { Counter, compareTexts, grouped } from "./order";
import type { Instance, Part } from "./parts";

/** The most labels with their numbers in one text. */
const MOST = 3;

/** The instances with each label: `number 4: /CPU:1; others: /CPU:0`. "" if all labels are equal. */
export function numbered(labels: readonly string[]): string {
  const counter = new Counter(labels);
  if (counter.counts.size < 2) return "";
  const [first, count] = counter.mostCommon(1)[0] as [string, number];
  const usual = count > 1 ? first : null;
  const rare = [...counter.counts.keys()].filter((label) => label !== usual);
  const words = rare.slice(0, MOST).map((label) => {
    const places = labels.flatMap((each, i) => (each === label ? [i + 1] : []));
    return `${numbers(places)}: ${label}`;
  });
  if (rare.length > MOST) words.push("…");
  if (usual !== null) words.push(`others: ${usual}`);
  return words.join("; ");
}

/** The classes of nodes in each instance of a repeat. "" if they are the same in all, or for another part. */
export function numberedClasses(
  part: Part,
  classify: (instance: Instance, node: number) => string,
  rest: string,
): string {
  return numbered(
    part.instances.map((each) => {
      const { counts } = new Counter([...each.nodes()].map((node) => classify(each.instance, node)).filter(Boolean));
      const found = [...counts.keys()].sort(compareTexts);
      if (found.length < 2) return found[0] ?? rest;
      return found.map((label) => `${label} × ${grouped(counts.get(label) ?? 0)}`).join(", ");
    }),
  );
}

/** The instance of a repeat that contains a node: `number 4, `. "" if there is none. */
export function numberOf(part: Part, node: number): string {
  const place = part.instances.findIndex((each) => each.nodes().includes(node));
  return place < 0 ? "" : `number ${place + 1}, `;
}

/** `number 4`, `numbers 1 to 3, 5`. */
function numbers(places: readonly number[]): string {
  const runs: [number, number][] = [];
  for (const place of places) {
    const last = runs.at(-1);
    if (last && last[1] === place - 1) last[1] = place;
    else runs.push([place, place]);
  }
  const texts = runs.map(([from, to]) => (from === to ? `${from}` : `${from} to ${to}`));
  return `${places.length === 1 ? "number" : "numbers"} ${texts.join(", ")}`;
}
