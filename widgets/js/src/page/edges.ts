// Edges between boxes: one for each pair of boxes and kind.
import type { EdgeKind, LensMark, Role, SceneEdge, State } from "../scene/generated";
import type { ClashLines } from "./clash_lines";
import { copiedTo, copiesMark } from "./devices";
import type { Dimensions } from "./dimensions";
import { at, getOrMake } from "./order";
import type { Instance, Part } from "./parts";
import { type Dims, isForeign, isParameter } from "./structure";
import { type Box, inputsOf, outputOf, type Tensor, tensorName, type Visible } from "./visible";

/** More control edges than this into one box are thinned out. */
export const CROWD = 3;
export const SHAPE_TONES: Readonly<Record<string, number>> = {
  scalar: 1,
  vector: 2,
  matrix: 3,
  "rank 3 and more": 4,
  "sizes partly known": 5,
  "several shapes": 6,
  "rank unknown": 7,
};
/** Tensors with more elements than this are no mere numbers. */
const FEW_NUMBERS = 16;
/** Ends the ids of edges that are gone. */
const REMOVED = " (removed)";
/** Begin the labels of edges in the picture of a difference. */
const SIGNS: Readonly<Record<string, string>> = { "new": "+ ", removed: "− " };
/** The ids of edges are `source->target`, with one of these before the target. */
const MARKS: Readonly<Record<EdgeKind, string>> = { data: "", control: "^", reference: "&" };

/** All tensors (or control edges) between two boxes. */
export interface Bundle {
  readonly source: Box;
  readonly target: Box;
  readonly kind: EdgeKind;
  readonly tensors: Map<string, Tensor>;
  /** The tensors that are copied, by their names and the devices they go to. */
  readonly copies: Map<string, Tensor>;
  readonly errors: string[];
  isBackEdge: boolean;
  /** In the picture of a difference: its edges are those that kept nodes had before. */
  readonly isGone: boolean;
  /** The number of edges that were not there before, and that of removed nodes' own. */
  new: number;
  removed: number;
}

/** An input whose producer was removed from the graph. */
export interface LostInput {
  readonly tensor: Tensor;
  readonly target: Box;
  readonly error: string;
}

class Bundles {
  readonly tables: Readonly<Record<EdgeKind, Map<string, Bundle>>> = {
    data: new Map(),
    reference: new Map(),
    control: new Map(),
  };

  of(source: Box, target: Box, kind: EdgeKind): Bundle {
    return getOrMake(this.tables[kind], `${source.index} ${target.index}`, () => ({
      source,
      target,
      kind,
      tensors: new Map<string, Tensor>(),
      copies: new Map<string, Tensor>(),
      errors: [],
      isBackEdge: false,
      isGone: false,
      new: 0,
      removed: 0,
    }));
  }

  add(source: Box, target: Box, tensor: Tensor): Bundle | null {
    if (source === target) return null;
    const bundle = this.of(source, target, tensor.info.reference ? "reference" : "data");
    bundle.tensors.set(tensorName(tensor), tensor);
    return bundle;
  }
}

/** The bundles between boxes, in the order of their target nodes, and the inputs without a producer. */
export function bundleEdges(visible: Visible): [Bundle[], LostInput[]] {
  const bundles = new Bundles();
  const lost: LostInput[] = [];
  for (const box of visible.boxes) {
    const { instance } = box.part;
    const boxOf = visible.boxOf.get(instance) as Int32Array;
    for (const node of box.nodes) {
      if (reachesOut(instance, node, boxOf, box.index)) bundleInputs(visible, box, node, bundles, lost);
      for (const producer of instance.space.awaited(node))
        for (const source of visible.awaited(instance, producer))
          if (source !== box) bundles.of(source, box, "control");
    }
  }
  for (const call of visible.calls.keys()) joinBodies(visible, call, bundles);
  const { data, reference, control } = bundles.tables;
  return [withoutImplied([...data.values(), ...reference.values(), ...control.values()]), lost];
}

/** True if an input of a node comes from elsewhere: most edges of a large graph are within a box. */
function reachesOut({ space }: Instance, node: number, boxOf: Int32Array, box: number): boolean {
  for (let i = at(space.inputsAt, node); i < at(space.inputsAt, node + 1); i++) {
    const step = space.producers[i] as number;
    if (step === 0 || boxOf[node - step] !== box) return true;
  }
  return false;
}

function bundleInputs(visible: Visible, box: Box, node: number, bundles: Bundles, lost: LostInput[]): void {
  const { instance } = box.part;
  const errors = instance.space.head.errors[node]?.inputs;
  for (const [slot, tensor] of inputsOf(instance, node).entries()) {
    if (visible.box(instance, tensor.node) === box) continue;
    const sources = visible.sources(tensor);
    const error = errors?.[slot];
    if (sources.length === 0) lost.push({ tensor, target: box, error: error ?? "" });
    for (const [source, given] of sources) {
      if (isKeptElsewhere(source, given)) continue;
      const bundle = bundles.add(source, box, given);
      const device = bundle && copiedTo(given, instance, node);
      if (device) bundle.copies.set(`${tensorName(given)} ${device}`, given);
      if (bundle && error !== undefined)
        bundle.errors.push(`${tensorName(tensor)} into ${instance.name(node)}: ${error}`);
    }
  }
}

/**
 * True for a weight or constant of another framework that lies in a box with other nodes.
 *
 * Several modules may take it, often since an exporter keeps one of equal tensors. No arrow shows that: it would say that the first of them comes
 * before the others. From a box of weights alone there are arrows, but not for a few numbers, such as the bounds of all activations.
 */
function isKeptElsewhere({ nodes }: Box, { instance, node }: Tensor): boolean {
  const isStored = (each: number): boolean => isParameter(instance.graph.node(each));
  if (node < 0 || nodes.length < 2 || !isForeign(instance.graph.node(node)) || !isStored(node)) return false;
  return !nodes.every(isStored) || instance.graph.node(node).outputs.every(({ dims }) => areFew(dims));
}

/** True for a tensor of a few numbers. */
const areFew = (dims: Dims): boolean =>
  dims !== null && dims.reduce<number>((product, size) => product * (size ?? Infinity), 1) <= FEW_NUMBERS;

/** Leaves out control edges that a path of tensors and another control edge imply. */
function withoutImplied(bundles: Bundle[]): Bundle[] {
  const waits = new Map<Box, Set<Box>>();
  const after = new Map<Box, Box[]>();
  for (const { kind, source, target } of bundles) {
    if (kind === "control") getOrMake(waits, target, () => new Set<Box>()).add(source);
    else if (kind === "data") getOrMake(after, source, (): Box[] => []).push(target);
  }
  const isImplied = ({ kind, source, target }: Bundle): boolean => {
    const sources = waits.get(target);
    if (kind !== "control" || !sources || sources.size <= CROWD || source.nodes.length <= 1) return false;
    return reaches(source, sources, after);
  };
  return bundles.filter((bundle) => !isImplied(bundle));
}

/** True if tensors lead from one box to another one of `ends`, and not back. */
function reaches(start: Box, ends: ReadonlySet<Box>, after: ReadonlyMap<Box, readonly Box[]>): boolean {
  const seen = new Set([start]);
  const stack = [start];
  let found = false;
  for (let box = stack.pop(); box; box = stack.pop()) {
    for (const target of after.get(box) ?? []) {
      if (target === start) return false;
      found ||= ends.has(target);
      if (seen.has(target)) continue;
      seen.add(target);
      stack.push(target);
    }
  }
  return found;
}

/** Adds the edges into the bodies of an open call, and for a loop those back into its own box. */
function joinBodies(visible: Visible, call: Part, bundles: Bundles): void {
  const { hub: hasHub, choice } = call.call;
  const hub = hasHub ? visible.box(call.instance, call.node) : undefined;
  const inputs = inputsOf(call.instance, call.node);
  for (const body of call.bodies()) {
    const { arguments: args, returns } = body.space.head;
    for (const [i, arg] of args.entries()) {
      const target = visible.box(body, arg) as Box;
      const input = inputs[i];
      if (hub) bundles.add(hub, target, outputOf(body, arg, 0));
      else if (input) for (const [source, tensor] of visible.sources(input)) bundles.add(source, target, tensor);
    }
    if (!hub) {
      joinControls(visible, call, body, bundles);
      continue;
    }
    for (const ret of choice ? [] : returns) {
      const back = bundles.add(visible.box(body, ret) as Box, hub, inputsOf(body, ret)[0] as Tensor);
      if (back) back.isBackEdge = true;
    }
  }
}

/** Passes the control inputs of an open call on to its body. */
function joinControls(visible: Visible, call: Part, body: Instance, bundles: Bundles): void {
  for (const producer of call.instance.space.awaited(call.node))
    for (const source of visible.awaited(call.instance, producer))
      for (const target of visible.beginnings(body)) if (source !== target) bundles.of(source, target, "control");
}

/** `new` or `removed` in the picture of a difference if all tensors are. */
function stateOf({ isGone, removed, new: fresh, tensors }: Bundle): State {
  const count = tensors.size || 1;
  return isGone || removed >= count ? "removed" : fresh >= count ? "new" : "normal";
}

export function sceneEdge(
  bundle: Bundle,
  roles: readonly Role[],
  dimensions: Dimensions,
  clashes: ClashLines,
  visible: Visible,
): SceneEdge {
  const { source, target, kind, tensors, copies, errors, isBackEdge } = bundle;
  const state = stateOf(bundle);
  const all = [...tensors.values()];
  const labels = new Set(all.map((tensor) => dimensions.label(tensor)));
  const label = labels.size === 1 ? ([...labels][0] as string) : "";
  const dims = label ? dimensions.common(all) : [];
  const [toGradient, fromGradient] = [roles[target.index] === "gradient", roles[source.index] === "gradient"];
  const [from, to] = [visible.order(source), visible.order(target)];
  const loose = to > 0 && from !== to;
  const turned = from > 0 && from % 2 === 0; // gradients of gradients flow as the forward pass does
  return {
    id: `${source.id}->${MARKS[kind]}${target.id}${bundle.isGone ? REMOVED : ""}`,
    state,
    source: source.id,
    target: target.id,
    kind,
    label: (SIGNS[state] ?? "") + outputOfSeveral(source, all) + label,
    count: tensors.size || 1,
    dims,
    error: errors.join("\n"),
    clash: kind === "control" ? 0 : clashes.line(source, target),
    reversed: isBackEdge || (toGradient && fromGradient && !turned && !loose),
    loose,
    role: toGradient || fromGradient ? "gradient" : "forward",
    lenses: {
      ...(all.length > 0 && { shapes: shapeMark(all, dimensions) }),
      ...(copies.size > 0 && { devices: copiesMark(copies.values()) }),
    },
  };
}

/** `:1 ` for one tensor of a box whose node has several outputs. */
function outputOfSeveral({ part, main }: Box, [tensor, ...others]: readonly Tensor[]): string {
  const isOwn = tensor && others.length === 0 && tensor.instance === part.instance && tensor.node === main;
  return isOwn && part.instance.space.outputs(main).length > 1 ? `:${tensor.slot} ` : "";
}

const RANKS = ["scalar", "vector", "matrix", "rank 3 and more"] as const;

/** The row of the shapes lens's legend for these tensors. */
export function shapeClass(tensors: readonly Tensor[]): string {
  const classes = new Set(
    tensors.map(({ info: { sizes } }) => {
      if (sizes === null) return "rank unknown";
      return sizes.every((size) => /^\d+$/.test(size))
        ? (RANKS[Math.min(sizes.length, 3)] as string)
        : "sizes partly known";
    }),
  );
  return classes.size === 1 ? ([...classes][0] as string) : "several shapes";
}

function shapeMark(tensors: readonly Tensor[], dimensions: Dimensions): LensMark {
  const found = shapeClass(tensors);
  const text = tensors.length === 1 ? dimensions.label(tensors[0] as Tensor) : `${tensors.length} tensors, ${found}`;
  return { text, tone: SHAPE_TONES[found] ?? 0 };
}
