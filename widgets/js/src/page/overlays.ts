// Overlays: numbers of the user on boxes.
import type { LegendEntry, LensMark, Overlay } from "../scene/generated";
import { getOrMake, grouped } from "./order";
import type { Instance } from "./parts";
import type { Box } from "./visible";

/** The tones from hot to cold. */
const HEAT: readonly number[] = [7, 2, 5, 3, 6, 1];
const SUFFIXES = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
] as const;
const TIMES: readonly string[] = ["ns", "µs", "ms", "s"];
const MOST_LISTED = 10;

/** The rows of an overlay in one instance. */
interface Rows {
  /** The row of each node, -1 for none. */
  readonly ofNode: Int32Array;
  /** The rows of scopes around each node, the outermost first. */
  readonly around: ReadonlyMap<number, readonly number[]>;
  /** The number of nodes in each scope with a row. */
  readonly sizes: ReadonlyMap<number, number>;
}

const known = new WeakMap<Overlay, WeakMap<Instance, Rows>>();

function rowsIn(instance: Instance, overlay: Overlay): Rows {
  const byInstance = known.get(overlay) ?? new WeakMap<Instance, Rows>();
  known.set(overlay, byInstance);
  const kept = byInstance.get(instance);
  if (kept) return kept;
  const { space } = instance;
  const place = overlay.prefixes.indexOf(instance.prefix);
  const ofNode = new Int32Array(space.size).fill(-1);
  const ofScope = new Map<string, number>();
  for (const [row, name] of overlay.names.entries()) {
    if (overlay.places[row] !== place) continue;
    const node = space.find(name);
    if (node === undefined) ofScope.set(name, row);
    else ofNode[node] = row;
  }
  const around = new Map<number, number[]>();
  const sizes = new Map<number, number>();
  for (let node = 0; ofScope.size > 0 && node < space.size; node++) {
    const name = space.name(node);
    for (let end = name.indexOf("/"); end >= 0; end = name.indexOf("/", end + 1)) {
      const row = ofScope.get(name.slice(0, end));
      if (row === undefined) continue;
      getOrMake(around, node, () => []).push(row);
      sizes.set(row, (sizes.get(row) ?? 0) + 1);
    }
  }
  const rows = { ofNode, around, sizes };
  byInstance.set(instance, rows);
  return rows;
}

/** The rows that make up the number of some nodes: of whole scopes, and of nodes outside of these. */
function rowsFor(instance: Instance, nodes: ArrayLike<number>, overlay: Overlay): number[] {
  const { ofNode, around, sizes } = rowsIn(instance, overlay);
  const counts = new Map<number, number>();
  if (around.size > 0)
    for (let i = 0; i < nodes.length; i++)
      for (const row of around.get(nodes[i] as number) ?? []) counts.set(row, (counts.get(row) ?? 0) + 1);
  const whole = (row: number): boolean => counts.get(row) === sizes.get(row);
  const rows = new Set<number>();
  for (let i = 0; i < nodes.length; i++) {
    const node = nodes[i] as number;
    const own = ofNode[node] as number;
    // The box of a lone node shows its own number; without one, that of a scope which is nothing else.
    const scope = nodes.length > 1 || own < 0 ? around.get(node)?.find(whole) : undefined;
    const row = scope ?? own;
    if (row >= 0) rows.add(row);
  }
  return [...rows];
}

function combined(values: readonly number[], { combine }: Overlay): number {
  if (combine === "max") return values.reduce((most, value) => Math.max(most, value), Number.NEGATIVE_INFINITY);
  const sum = values.reduce((total, value) => total + value, 0);
  return combine === "mean" ? sum / values.length : sum;
}

/** The number of some nodes, and of how many rows it is; undefined without any. */
function numberOf(
  instance: Instance,
  nodes: ArrayLike<number>,
  overlay: Overlay,
): readonly [number, number] | undefined {
  const rows = rowsFor(instance, nodes, overlay);
  if (rows.length === 0) return undefined;
  return [
    combined(
      rows.map((row) => overlay.values[row] as number),
      overlay,
    ),
    rows.length,
  ];
}

/** The marks of the boxes, the legend, a note if there are none, and the numbers by the ids of boxes. */
export function overlayMarks(
  boxes: readonly Box[],
  overlay: Overlay,
): [ReadonlyMap<Box, LensMark>, LegendEntry[], string, Record<string, number>] {
  const numbers = boxes.flatMap((box) => {
    const number = numberOf(box.part.instance, box.nodes, overlay);
    return number === undefined ? [] : [[box, number] as const];
  });
  const greatest = numbers.reduce((most, [, [value]]) => Math.max(most, Math.abs(value)), 0);
  const bounds = boundsOf(overlay, greatest);
  const marks = new Map<Box, LensMark>();
  const levels = new Set<number>();
  for (const [box, [value, count]] of numbers) {
    const level = levelOf(value, bounds);
    levels.add(level);
    const of = count > 1 && overlay.combine !== "sum" ? `, ${overlay.combine} of ${grouped(count)}` : "";
    marks.set(box, { text: `${numberText(value, overlay.unit)}${of}`, tone: HEAT[level] as number });
  }
  const legend = [...levels].sort((a, b) => a - b).map((level) => entry(level, bounds, overlay.unit));
  const values = Object.fromEntries(numbers.map(([{ id }, [value]]) => [id, value]));
  return [marks, legend, marks.size > 0 ? "" : `No box here has a number of ${overlay.title}`, values];
}

/** The least absolute values of the tones from hot to cold, the coldest has none. */
function boundsOf({ bounds, scale }: Overlay, greatest: number): readonly number[] {
  if (bounds.length > 0) return bounds.slice(0, HEAT.length - 1);
  const steps = HEAT.slice(1).map((_, i) => i + 1);
  return steps.map((step) => (scale === "linear" ? greatest * (1 - step / HEAT.length) : greatest / 2 ** step));
}

function levelOf(value: number, bounds: readonly number[]): number {
  const level = bounds.findIndex((least) => Math.abs(value) >= least && value !== 0);
  return level < 0 ? bounds.length : level;
}

function entry(level: number, bounds: readonly number[], unit: string): LegendEntry {
  const text = (place: number): string => numberText(bounds[place] as number, unit);
  const words =
    level === 0
      ? `${text(0)} and more`
      : level === bounds.length
        ? `below ${text(level - 1)}`
        : `${text(level)} to ${text(level - 1)}`;
  return { tone: HEAT[level] as number, text: words };
}

/** The inspector's rows on the numbers of some nodes: those of the overlays, and the greatest of the nodes. */
export function overlayRows(instance: Instance, nodes: ArrayLike<number>): (readonly [string, string])[] {
  return (instance.space.data.head.overlays ?? []).flatMap((overlay) => {
    const number = numberOf(instance, nodes, overlay);
    if (number === undefined) return [];
    const [value, count] = number;
    const of = count > 1 ? `, ${overlay.combine} of ${grouped(count)}` : "";
    const rows = count > 1 ? rowsFor(instance, nodes, overlay) : [];
    const ordered = rows.sort((a, b) => Math.abs(overlay.values[b] as number) - Math.abs(overlay.values[a] as number));
    return [
      [overlay.title, `${numberText(value, overlay.unit)}${of}`] as const,
      ...ordered
        .slice(0, MOST_LISTED)
        .map((row) => [`· ${overlay.names[row]}`, numberText(overlay.values[row] as number, overlay.unit)] as const),
    ];
  });
}

/** A number with three digits: `12.3 M`, `4 ms` for 4000 µs. */
export function numberText(value: number, unit: string): string {
  const size = Math.abs(value);
  const place = TIMES.indexOf(unit === "us" ? "µs" : unit);
  if (place >= 0 && place + 1 < TIMES.length && size >= 1000)
    return numberText(value / 1000, TIMES[place + 1] as string);
  const [divisor, suffix] = SUFFIXES.find(([least]) => size >= least) ?? [1, ""];
  const digits = Number.isFinite(value) ? String(Number((value / divisor).toPrecision(3))) : String(value);
  return [digits, `${suffix}${unit}`].filter(Boolean).join(" ");
}
