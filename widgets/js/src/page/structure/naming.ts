// Names of groups: from the names of their members, or else from their ops.
import { CONTROL_FLOW, type Layer, NEXT_ITERATION } from "../../scene/generated";
import { at, Counter, compareTexts, countOf, largest } from "../order";
import type { Dims, Op } from "./nodes";
import { PARAMETRIC } from "./serving";

const WORDS = /[_.\-/]+/;
/** The parts of an op's name that say nothing of what it computes. */
const VERSION = /^Fused|Native$|V\p{Nd}+$/gu;
const BEGINNING: ReadonlySet<string> = new Set([
  "concatenation",
  "convolution",
  "depthwise convolution",
  "pooling",
  "product",
  "resizing",
  "transposed convolution",
]);
const NORMALISING: ReadonlySet<string> = new Set(["addition", "normalization", "pooling", "scaling"]);
const TAILS: ReadonlySet<string> = new Set(["block", "layer", "stage", "unit"]);

/** The words that all names begin with, "" if there are none; without those of `within`, with which everything around begins. */
export function commonName(names: readonly string[], within: readonly string[]): string {
  const all = commonWords(names);
  let known = 0;
  while (known < all.length && known < within.length && all[known] === within[known]) known++;
  const words = all.slice(known);
  if (words.length > 1 && TAILS.has(at(words, words.length - 1))) words.pop();
  return words.some((word) => [...word].length > 2) ? words.filter(Boolean).join("_") : "";
}

/** True for a name that says more than `block` or `layer`. */
export const isTelling = (name: string): boolean => name.split(WORDS).some((word) => word && !TAILS.has(word));

/** The first words of nearly all names. */
export function sharedWords(names: readonly string[]): string[] {
  let split = names.map((name) => name.split(WORDS));
  const found: string[] = [];
  while (split.length > 0) {
    const place = found.length;
    const longer = split.filter((words) => words.length > place + 1);
    const [first] = new Counter(longer.map((words) => at(words, place))).mostCommon(1);
    if (first === undefined || 10 * first[1] < 9 * names.length) break;
    found.push(first[0]);
    split = longer.filter((words) => words[place] === first[0]);
  }
  return TAILS.has(found.at(-1) ?? "") ? found.slice(0, -1) : found;
}

/** The first words of all names: parts of names between separators. */
function commonWords(names: readonly string[]): string[] {
  const first = largest(names, (one, other) => compareTexts(other, one))?.split(WORDS) ?? [];
  const last = largest(names, compareTexts)?.split(WORDS) ?? [];
  const end = first.findIndex((word, i) => word !== last[i]);
  return end < 0 ? first : first.slice(0, end);
}

/** The path of the innermost scope that has all these nodes. */
export function commonScope(names: readonly string[]): string {
  const first =
    largest(names, (one, other) => compareTexts(other, one))
      ?.split("/")
      .slice(0, -1) ?? [];
  const last = largest(names, compareTexts)?.split("/").slice(0, -1) ?? [];
  const end = first.findIndex((part, i) => part !== last[i]);
  return (end < 0 ? first : first.slice(0, end)).join("/");
}

/** True for an op that a model's layer begins with, which an activation or a sum then ends. */
export const beginsLayer = (op: Op): boolean => BEGINNING.has(op.layer);

/** The name of a known kind of block, "" if it is none. `ops` are its ops, `layers` its own layers, as `tellingLayers` gives them. */
export function kindName(ops: Counter<Op>, layers: Counter<Layer>): string {
  if ([...ops.counts.keys()].some((op) => NEXT_ITERATION.has(op.name))) {
    const inside = new Counter<Op>();
    for (const [op, count] of ops.counts) if (!CONTROL_FLOW.has(op.name)) inside.add(op, count);
    const name = kindName(inside, layers) || opsName(inside, false);
    return name ? `while loop: ${name}` : "while loop";
  }
  const count = (layer: Layer): number => countOf(layers, layer);
  const products = count("product");
  const deep = count("depthwise convolution");
  const convolutions = count("convolution") + deep;
  if (count("attention") > 0 && products >= 2 && count("addition") >= 2) return "transformer layer";
  if (count("softmax") > 0 && products >= 4)
    return products >= 6 && count("addition") >= 2 ? "transformer layer" : "attention";
  const isResidual = count("addition") > count("scaling");
  if (deep > 0 && convolutions >= 2) {
    if (deep === 1) return convolutions >= 3 ? "inverted residual block" : "separable convolution";
    if (count("concatenation") > 0) return "separable convolution cell";
    return isResidual ? "separable residual block" : "separable convolution";
  }
  if (convolutions >= 2 && count("concatenation") > 0 && count("transposed convolution") === 0)
    return convolutions === 2 ? "dense block" : "inception block";
  if (convolutions >= 2 && isResidual) return "residual block";
  if (count("tanh") >= 1 && count("sigmoid") >= 2) return count("tanh") >= 2 ? "LSTM step" : "GRU step";
  return "";
}

/** The most telling ops in words. `isNormalised` is true if there is a normalisation with known statistics: a product and a sum. */
export function opsName(ops: Counter<Op>, isNormalised: boolean): string {
  const heavy = [...ops.counts.keys()].filter((op) => PARAMETRIC.has(op.layer));
  const others = ops
    .mostCommon()
    .map(([op]) => op)
    .filter((op) => !PARAMETRIC.has(op.layer));
  const norm = isNormalised ? "BatchNorm" : isLayerNorm(ops) ? "LayerNorm" : "";
  const left = norm ? others.filter((op) => !NORMALISING.has(op.layer)) : others;
  let rest = left.map((op) => op.label);
  if (norm && heavy.length === 0 && !isNormalised) rest = [norm];
  else if (norm) rest.splice(left[0]?.layer === "bias" ? 1 : 0, 0, norm);
  const names = [...heavy.map((op) => op.label), ...rest].slice(0, 3);
  return names.map((name) => name.replace(VERSION, "")).join(", ");
}

/** True iff there is a normalisation whose statistics are computed. */
export const isLayerNorm = (ops: Counter<Op>): boolean =>
  [...ops.counts.keys()].some((op) => op.layer === "normalization" && op.elementwise);

/** True iff there are a product and a sum, as of a normalisation with known statistics. */
export function isScaled(ops: Counter<Op>): boolean {
  const layers = new Set([...ops.counts.keys()].map((op) => op.layer));
  return layers.has("scaling") && layers.has("addition");
}

/** A shape without the batch: `56×56×256`; "" for scalars and unknown ranks. */
export function shapeWords(dims: Dims): string {
  const sizes = dims?.slice(1) ?? [];
  return sizes.some(Boolean) ? sizes.map((size) => size ?? "?").join("×") : "";
}
