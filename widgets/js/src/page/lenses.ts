// Lenses: a further property of each box.
import type { LegendEntry, Lens, LensMark, LensNumbers, Overlay } from "../scene/generated";
import type { PageData } from "./data";
import { deviceOf, devicesOf, deviceWords } from "./devices";
import type { Dimensions } from "./dimensions";
import { SHAPE_TONES, shapeClass } from "./edges";
import { numbered, numberedClasses } from "./instances";
import { Counter, grouped } from "./order";
import { overlayMarks } from "./overlays";
import type { Instance, Part } from "./parts";
import { valueMarks } from "./recorded_values";
import { DIFFERENTIATED, GRADIENT, type Space } from "./space";
import { timeMarks } from "./times";
import { Group } from "./tree";
import { type Box, outputOf, type Tensor, tensorLabel } from "./visible";

/** The tone of the sixth class and all after it; 7 is the red of what is wrong. */
const LAST_TONE = 6;
const GRADIENT_TONES: Readonly<Record<string, number>> = {
  "not differentiated": 0,
  "forward, differentiated": 1,
  gradient: 2,
  "gradient seed or sum": 3,
};

type Classify = (instance: Instance, node: number) => string;

export interface LensView {
  readonly lens: Lens;
  readonly marks: ReadonlyMap<Box, LensMark>;
  /** The exact numbers behind the marks of an overlay. */
  readonly numbers?: LensNumbers;
}

interface ByClass {
  readonly rest?: string;
  readonly tones?: ReadonlyMap<string, number>;
  readonly words?: Classify;
  readonly empty: string;
  /** The words for boxes with nodes of several classes, which then have a tone of their own. */
  readonly several?: string;
  /** The classes that get the first tones, in order: those of the whole graph keep theirs whatever is open. */
  readonly first?: readonly string[];
}

/** All lenses for these boxes, including empty ones. */
export function allLenses(boxes: readonly Box[], whole: Space, dimensions: Dimensions): LensView[] {
  const { own_lenses: own, device_words: words } = whole.data.head;
  const text =
    (column: "functions" | "cells"): Classify =>
    ({ space }, node) =>
      space.text(column, node);
  return [
    lensView("structure", "Structure", new Map(), [], ""),
    shapes(boxes, dimensions),
    byClass("devices", "Devices", boxes, deviceOf, {
      words: deviceWords,
      rest: words ? "no device named" : "no device requested",
      empty: words || "No node asks for a device",
      several: "several devices",
      first: devicesOf(whole),
    }),
    byClass("gradients", "Gradients", boxes, gradientClass, {
      tones: new Map(Object.entries(GRADIENT_TONES)),
      words: gradientWords,
      empty: "Nothing here was differentiated",
    }),
    byClass("functions", "Functions", boxes, text("functions"), {
      rest: "no function call",
      empty: "No node calls a function",
    }),
    byClass("cells", "Cells", boxes, text("cells"), {
      rest: "made outside a cell",
      empty: "No node was made by a cell",
    }),
    timeLens(boxes, whole.data),
    valueLens(boxes, whole.data),
    ...(whole.data.head.overlays ?? []).map((overlay) => overlayLens(boxes, overlay)),
    ...own.map(([name, title], lens) => ownLens(name, title, boxes, lens)),
  ];
}

function timeLens(boxes: readonly Box[], data: PageData): LensView {
  const [marks, legend, note] = timeMarks(boxes, data);
  return { lens: { name: "time", title: "Time", legend, note }, marks };
}

function valueLens(boxes: readonly Box[], data: PageData): LensView {
  const [marks, legend, note] = valueMarks(boxes, data);
  return { lens: { name: "values", title: "Values", legend, note }, marks };
}

function overlayLens(boxes: readonly Box[], overlay: Overlay): LensView {
  const [marks, legend, note, values] = overlayMarks(boxes, overlay);
  const { name, title, unit } = overlay;
  return { lens: { name, title, legend, note }, marks, numbers: { lens: name, unit, values } };
}

function ownLens(name: string, title: string, boxes: readonly Box[], lens: number): LensView {
  const failures = boxes.map(({ part }) => part.instance.space.head.own_classes[lens]?.failure);
  const failure = failures.find(Boolean);
  if (failure) return lensView(name, title, new Map(), [], failure);
  return byClass(name, title, boxes, ({ space }, node) => space.ownClass(lens, node), {
    rest: "unmarked",
    empty: "No node here is marked",
  });
}

function gradientClass({ space }: Instance, node: number): string {
  if (!space.has(node, GRADIENT))
    return space.has(node, DIFFERENTIATED) ? "forward, differentiated" : "not differentiated";
  return typeof space.gradients.get(node)?.function === "string" ? "gradient" : "gradient seed or sum";
}

function gradientWords(instance: Instance, node: number): string {
  const record = instance.space.gradients.get(node);
  const known = typeof record?.function === "string";
  return known ? `gradient of ${record.forward} (${record.function})` : gradientClass(instance, node);
}

function lensView(
  name: string,
  title: string,
  marks: ReadonlyMap<Box, LensMark>,
  legend: readonly LegendEntry[],
  empty: string,
): LensView {
  const marked = [...marks.values()].some(({ tone }) => tone > 0);
  return { lens: { name, title, legend, note: marked ? "" : empty }, marks };
}

function legendOf(used: ReadonlyMap<number, string>): LegendEntry[] {
  return [...used].sort(([a], [b]) => a - b).map(([tone, text]) => ({ tone, text }));
}

/** A lens by classes; "" is the class of unmarked nodes. */
function byClass(
  name: string,
  title: string,
  boxes: readonly Box[],
  classify: Classify,
  { rest = "", tones: given, words, empty, several = "", first = [] }: ByClass,
): LensView {
  const counters = boxes.map(({ part, nodes }) => {
    const counter = new Counter();
    for (const node of nodes) counter.add(classify(part.instance, node));
    return counter;
  });
  const tones = given ?? tonesOf([...first, ...counters.flatMap(({ counts }) => [...counts.keys()])]);
  const marks = new Map<Box, LensMark>();
  let mixed = false;
  const used = new Map<number, string>();
  for (const [i, box] of boxes.entries()) {
    const counter = markedOf(counters[i] as Counter, given);
    if (![...counter.counts.keys()].some((item) => item !== "")) continue;
    const main = counter.mostCommon().find(([item]) => item !== "")?.[0] ?? "";
    const named = [...counter.counts.keys()].filter((item) => item !== "");
    const isMixed = several !== "" && named.length > 1;
    const tone = isMixed ? LAST_TONE : (tones.get(main) ?? 0);
    mixed ||= isMixed;
    for (const item of several ? named : [main]) {
      const its = tones.get(item) ?? 0;
      if (!used.has(its)) used.set(its, item);
    }
    const text =
      words && box.nodes.length === 1
        ? words(box.part.instance, box.nodes[0] as number)
        : (counter.counts.size > 1 && numberedClasses(box.part, classify, rest)) || counterText(counter, rest);
    marks.set(box, { text, tone });
  }
  if ([...tones.values()].filter((tone) => tone === LAST_TONE).length > 1) used.set(LAST_TONE, "others");
  if (mixed) used.set(LAST_TONE, [used.get(LAST_TONE) ?? "", several].filter(Boolean).join(" or "));
  return lensView(name, title, marks, legendOf(used), empty);
}

/** The classes that have a tone of their own, if there are any: the others say nothing about the box. */
function markedOf(counter: Counter, tones: ReadonlyMap<string, number> | undefined): Counter {
  const marked = new Counter();
  for (const [item, count] of counter.counts) if (tones?.get(item)) marked.add(item, count);
  return marked.counts.size > 0 ? marked : counter;
}

/** Tones 1, 2, ... for classes in order, and the last tone for all others. */
function tonesOf(classes: readonly string[]): ReadonlyMap<string, number> {
  const named = new Set(classes.filter((item) => item !== ""));
  return new Map([["", 0], ...[...named].map((item, i) => [item, Math.min(i + 1, LAST_TONE)] as const)]);
}

function counterText(counter: Counter, rest: string): string {
  const { size } = counter.counts;
  if (size === 1) return [...counter.counts.keys()][0] || rest;
  const parts = counter.mostCommon(3).map(([item, count]) => `${item || rest} × ${grouped(count)}`);
  return parts.join(", ") + (size > 3 ? ", …" : "");
}

/** The tensors that the instances of a repeat pass on; none for other parts, and if one passes on none. */
function passedOn({ fold, instance }: Part): Tensor[] {
  const outputs = fold instanceof Group ? fold.outputs : [];
  const found = outputs.flatMap((output) => (output ? [outputOf(instance, output.node.id, output.index)] : []));
  return found.length === outputs.length ? found : [];
}

/** The shapes lens marks the outputs of nodes; edges have their own marks. */
function shapes(boxes: readonly Box[], dimensions: Dimensions): LensView {
  const marks = new Map<Box, LensMark>();
  const used = new Map<number, string>();
  for (const box of boxes) {
    const { instance } = box.part;
    const tensors = passedOn(box.part);
    if (tensors.length > 0) {
      const found = shapeClass(tensors);
      const labels = tensors.map(tensorLabel);
      const text = numbered(labels) || `each ${labels[0]}`;
      const tone = SHAPE_TONES[found] ?? 0;
      used.set(tone, found);
      marks.set(box, { text, tone });
    }
    const infos = box.main < 0 ? [] : instance.space.outputs(box.main);
    if (infos.length === 0) continue;
    const outputs = infos.map((_, slot) => outputOf(instance, box.main, slot));
    const found = shapeClass(outputs);
    const tone = SHAPE_TONES[found] ?? 0;
    used.set(tone, found);
    const text =
      outputs
        .slice(0, 4)
        .map((tensor) => dimensions.label(tensor))
        .join(", ") + (outputs.length > 4 ? ", …" : "");
    marks.set(box, { text, tone });
  }
  return lensView("shapes", "Shapes", marks, legendOf(used), "");
}
