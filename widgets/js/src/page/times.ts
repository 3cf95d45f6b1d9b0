// The time lens: the times of a recorded run on boxes.
import { type LegendEntry, type LensMark, type RunTimes, TIME_LENS } from "../scene/generated";
import type { PageData } from "./data";
import { byteCount } from "./devices";
import { grouped } from "./order";
import type { Instance } from "./parts";
import { rowsOf } from "./run_rows";
import type { Box } from "./visible";

/** The tones from hot to cold. A box is in the next tone if its time is less than half of the time at which the one before begins. */
const HEAT: readonly number[] = [7, 2, 5, 3, 6, 1];
const { NOT_RECORDED } = TIME_LENS;
const LAST = HEAT.length - 1;
const UNITS = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
] as const;

/** The recorded times of some nodes together. */
interface Spent {
  nodes: number;
  runs: number;
  own: number;
  total: number;
  lasting: number;
  shortest: number;
  longest: number;
  bytes: number;
  threads: number;
  readonly on: number[];
}

function spentBy(instance: Instance, nodes: ArrayLike<number>, times: RunTimes): Spent {
  const known = rowsOf(instance, times);
  const spent: Spent = {
    nodes: 0,
    runs: 0,
    own: 0,
    total: 0,
    lasting: 0,
    shortest: 0,
    longest: 0,
    bytes: 0,
    threads: 0,
    on: times.devices.map(() => 0),
  };
  for (let i = 0; i < nodes.length; i++) {
    const row = known[nodes[i] as number] ?? -1;
    if (row < 0) continue;
    const get = (column: readonly number[]): number => column[row] as number;
    spent.shortest = spent.nodes ? Math.min(spent.shortest, get(times.shortest)) : get(times.shortest);
    spent.longest = Math.max(spent.longest, get(times.longest));
    spent.threads = Math.max(spent.threads, get(times.threads));
    spent.nodes += 1;
    spent.runs += get(times.runs);
    spent.own += get(times.own);
    spent.total += get(times.total);
    spent.lasting += get(times.lasting);
    spent.bytes += get(times.sizes);
    for (const [place, taken] of (times.on[row] ?? []).entries()) spent.on[place] = (spent.on[place] ?? 0) + taken;
  }
  return spent;
}

/** The marks of the boxes, the legend, and the clock in words, or the reason why there are no marks. */
export function timeMarks(
  boxes: readonly Box[],
  { head: { times }, notes }: PageData,
): [ReadonlyMap<Box, LensMark>, LegendEntry[], string] {
  if (!times) return [new Map(), [], notes?.times ?? NOT_RECORDED];
  const found = boxes.map((box) => [box, spentBy(box.part.instance, box.nodes, times)] as const);
  const hottest = found.reduce((most, [, { total }]) => Math.max(most, total), 0);
  const marks = new Map<Box, LensMark>();
  const levels = new Set<number>();
  for (const [box, spent] of found) {
    if (spent.runs === 0) continue;
    const level = heat(spent.total, hottest);
    levels.add(level);
    marks.set(box, { text: words(spent, box.nodes.length, times), tone: HEAT[level] as number });
  }
  const legend = [...levels].sort().map((level) => ({ tone: HEAT[level] as number, text: range(level, hottest) }));
  return [marks, legend, `${times.clock}; the step took ${timeText(times.length)}`];
}

function words(spent: Spent, count: number, times: RunTimes): string {
  const parts = [timeText(spent.total), shareText(spent.total, times)];
  if (spent.own !== spent.total) parts.push(`self ${timeText(spent.own)}`);
  if (count > 1) parts.push(`${grouped(spent.runs)} node run${spent.runs === 1 ? "" : "s"}`);
  else if (spent.runs > 1) parts.push(`${grouped(spent.runs)} runs`);
  return parts.join(", ");
}

/** The level of a time, 0 for at least half of the hottest. */
function heat(time: number, hottest: number): number {
  let level = 0;
  while (level < LAST && time * 2 ** (level + 1) < hottest) level += 1;
  return level;
}

/** The times of a level in words. */
function range(level: number, hottest: number): string {
  const from = (power: number): string => timeText(Math.floor(hottest / 2 ** power));
  if (level === 0) return `${from(1)} and more`;
  return level === LAST ? `below ${from(level)}` : `${from(level + 1)} to ${from(level)}`;
}

/** The inspector's rows on the recorded times of some nodes. */
export function timeRows(instance: Instance, nodes: ArrayLike<number>): (readonly [string, string])[] {
  const { times } = instance.space.data.head;
  if (!times) return [];
  const spent = spentBy(instance, nodes, times);
  if (spent.runs === 0) return [["runs", "none in the recorded run"]];
  const several = nodes.length > 1;
  const found: (readonly [string, string])[] = [
    ["total", `${timeText(spent.total)}, ${shareText(spent.total, times)}`],
  ];
  if (spent.own !== spent.total) found.push(["self", `${timeText(spent.own)}, without the functions that it calls`]);
  found.push(["runs", grouped(spent.runs) + (several ? `, of ${grouped(spent.nodes)} nodes` : "")]);
  if (!several && spent.runs > 1) {
    found.push(["mean run", timeText(Math.floor(spent.lasting / spent.runs))]);
    found.push(["shortest, longest", `${timeText(spent.shortest)}, ${timeText(spent.longest)}`]);
  }
  const where = times.devices.flatMap((name, place) => {
    const taken = spent.on[place] ?? 0;
    return taken || times.on.length === 0 ? [[name, taken] as const] : [];
  });
  const texts = where.map(([name, taken]) => (where.length > 1 ? `${name} ${timeText(taken)}` : name));
  found.push(["on", texts.join(", ")]);
  if (spent.threads > 1) found.push(["threads", String(spent.threads)]);
  if (spent.bytes) found.push(["made", byteCount(spent.bytes)]);
  found.push(["clock", times.clock]);
  return found;
}

/** A duration with three digits: `12.3 ms`. */
function timeText(ns: number): string {
  const [size, unit] = UNITS.find(([least]) => ns >= least) ?? [1, "ns"];
  const digits = size === 1 || ns >= 100 * size ? 0 : ns >= 10 * size ? 1 : 2;
  const scale = 10 ** digits;
  const rounded = Math.floor((2 * ns * scale + size) / (2 * size));
  const rest = digits ? `.${String(rounded % scale).padStart(digits, "0")}` : "";
  return `${grouped(Math.floor(rounded / scale))}${rest} ${unit}`;
}

/** The share of the step, or of the time of all devices. */
function shareText(time: number, { whole, devices }: RunTimes): string {
  const percent = whole ? Math.floor((200 * time + whole) / (2 * whole)) : 0;
  const share = percent || !time ? `${percent} %` : "under 1 %";
  return `${share} of ${devices.length > 1 ? "the time of all devices" : "the step"}`;
}
