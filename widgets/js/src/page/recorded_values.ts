// The values lens: the statistics of a recorded run on boxes.
import {
  type HealthMessage,
  type LegendEntry,
  type LensMark,
  type RunValues,
  VALUE_LENS,
  type Values,
} from "../scene/generated";
import type { PageData } from "./data";
import { grouped } from "./order";
import type { Instance } from "./parts";
import { rowsOf } from "./run_rows";
import type { Box } from "./visible";

const { NOT_RECORDED, CLASSES, TONES } = VALUE_LENS;

/** The marks of the boxes, the legend, and the health of the run in words, or the reason why there are no marks. */
export function valueMarks(
  boxes: readonly Box[],
  { head: { values }, notes }: PageData,
): [ReadonlyMap<Box, LensMark>, LegendEntry[], string] {
  if (!values) return [new Map(), [], notes?.values ?? NOT_RECORDED];
  const marks = new Map<Box, LensMark>();
  const tones = new Set<number>();
  for (const box of boxes) {
    const mark = markOf(box, values);
    if (!mark) continue;
    marks.set(box, mark);
    tones.add(mark.tone);
  }
  const legend = TONES.map((tone, place) => ({ tone, text: CLASSES[place] as string }));
  return [marks, legend.filter(({ tone }) => tones.has(tone)), values.health.summary];
}

function markOf({ part, nodes }: Box, values: RunValues): LensMark | null {
  const known = rowsOf(part.instance, values);
  const classes = CLASSES.map(() => 0);
  let single = -1;
  for (let i = 0; i < nodes.length; i++) {
    const row = known[nodes[i] as number] ?? -1;
    if (row < 0) continue;
    single = row;
    const kind = values.classes[row] as number;
    classes[kind] = (classes[kind] ?? 0) + 1;
  }
  if (single < 0) return null;
  const tone = TONES[classes.findIndex((many) => many > 0)] as number;
  if (nodes.length === 1) return { text: values.words[single] as string, tone };
  const texts = classes.flatMap((many, kind) => (many > 0 ? [`${CLASSES[kind]} × ${grouped(many)}`] : []));
  return { text: texts.join(", "), tone };
}

/** The inspector's rows on the recorded values of a node. */
export function valueRows(instance: Instance, node: number): readonly (readonly [string, string])[] {
  const { values } = instance.space.data.head;
  const row = values ? (rowsOf(instance, values)[node] ?? -1) : -1;
  return row < 0 || !values ? [] : (values.rows[row] ?? []);
}

/** The full statistics of a node, null if there are none. */
export function detailOf(instance: Instance, node: number): Values | null {
  const { values } = instance.space.data.head;
  const row = values ? (rowsOf(instance, values)[node] ?? -1) : -1;
  return row < 0 || !values ? null : (values.details[row] ?? null);
}

/** The health of the run; `boxOf` gives the box of a node in the picture. */
export function healthOf({ head: { values }, notes }: PageData, boxOf: (name: string) => string): HealthMessage {
  if (!values) return { type: "health", health: null, boxes: {}, note: notes?.values ?? NOT_RECORDED };
  const { health } = values;
  const { first, inputs, bad, zeros, magnitudes } = health;
  const named = [...(first ? [first] : []), ...inputs, ...bad, ...zeros, ...magnitudes].map(({ node }) => node);
  const boxes = Object.fromEntries(named.map((name) => [name, boxOf(name)]).filter(([, box]) => box));
  return { type: "health", health, boxes, note: "" };
}
