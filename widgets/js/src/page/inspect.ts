// The inspector's content: the facts about one box.
import {
  CONST,
  type Explanation,
  type GradientInfo,
  type GradientText,
  type Inspection,
  type NodeKind,
  type TensorRow,
  type Values,
  type Why,
  type WhyStep,
} from "../scene/generated";
import { deviceWords } from "./devices";
import { Dimensions } from "./dimensions";
import { MIRROR, Mirrored } from "./mirror";
import { at, Counter, counted, getOrMake, grouped } from "./order";
import { overlayRows } from "./overlays";
import type { Instance, Part } from "./parts";
import { detailOf, valueRows } from "./recorded_values";
import { CALL, type Space } from "./space";
import { REFUSED } from "./stubs";
import { timeRows } from "./times";
import { type Box, inputsOf, isGradientBody, outputOf, type Tensor, tensorName, type Visible } from "./visible";

const MAX_CONSUMERS = 24;
const MAX_CONTENTS = 40;
const MAX_ERRORS = 10;
const MAX_BUILT = 200;

const EMPTY: Omit<Inspection, "id" | "name" | "kind"> = {
  op: "",
  node_def: "",
  summary: "",
  doc: "",
  traits: "",
  placement: [],
  signature: "",
  device: "",
  attrs: [],
  modules: [],
  quantization: [],
  origin: [],
  inputs: [],
  outputs: [],
  control_inputs: [],
  control_outputs: [],
  source: null,
  error: "",
  clashes: [],
  chains: [],
  why: [],
  gradient: null,
  registered_gradient: null,
  functions: [],
  contents: [],
  times: [],
  numbers: [],
  recorded: [],
  values: null,
  waits: false,
};

/** A node in the graph or in a body. */
export interface Place {
  readonly instance: Instance;
  readonly node: number;
}

/** A use of an output: the consumer and its input, -1 for a control edge. */
type Use = readonly [number, number];

export class Inspector {
  readonly #visible: Visible;
  readonly #root: Instance;
  #dimensions: Dimensions | null = null;

  constructor(visible: Visible, root: Instance) {
    this.#visible = visible;
    this.#root = root;
  }

  /** The inspection of a box, frame, stub or node; null if nothing has this id. */
  inspect(id: string): Inspection | null {
    const found = this.#find(id.startsWith("stub:") ? this.#behindStub(id) : id);
    return found && { ...found, id };
  }

  #find(id: string): Inspection | null {
    if (id.startsWith(REFUSED)) return this.#refused(id.slice(REFUSED.length));
    const box = this.#visible.boxes.find((other) => other.id === id);
    if (box)
      return box.main < 0 ? this.#scope(box.part, box.nodes, box.id) : this.#node(box.part.instance, box.main, box);
    const frame = this.#visible.frames.find((other) => other.id === id);
    if (frame) {
      const { part } = frame;
      return part.kind === CALL
        ? this.#node(part.instance, part.node, null)
        : this.#scope(part, part.nodes(), frame.id);
    }
    const node = this.#root.space.find(id);
    return node === undefined ? null : this.#node(this.#root, node, null);
  }

  /** The inspection of a node that could not be made. */
  #refused(name: string): Inspection | null {
    const refused = this.#root.space.head.refused.find((other) => other.name === name);
    if (!refused) return null;
    const inputs = refused.inputs.map(([node, slot]) => ({
      ...this.#inputRow(outputOf(this.#root, node, slot), "", ""),
      note: "",
    }));
    return { ...EMPTY, id: name, name, kind: "not made", error: refused.text, inputs };
  }

  /** The box behind a stub `stub:<box>:<consumer>`. Ids of boxes in open calls begin with the id of the call. */
  #behindStub(id: string): string {
    const fitting = this.#visible.boxes.filter((box) => id.startsWith(`stub:${box.id}:`)).map((box) => box.id);
    return fitting.reduce((best, other) => (other.length > best.length ? other : best), "") || id;
  }

  #place(instance: Instance, node: number): string {
    return this.#visible.placeOf(instance, node);
  }

  /** The place of a node by its full name. */
  #placeOf(name: string): string {
    for (const instance of this.#visible.boxOf.keys()) {
      if (!name.startsWith(instance.prefix)) continue;
      const node = instance.space.find(name.slice(instance.prefix.length));
      if (node !== undefined) return this.#place(instance, node);
    }
    return "";
  }

  #node(instance: Instance, node: number, box: Box | null): Inspection {
    const { space } = instance;
    const name = instance.name(node);
    const op = space.text("ops", node);
    const text = space.data.head.ops[op];
    const attrs = space.attrs(node);
    const call = box?.part.kind === CALL ? box.part : this.#visible.callOf(instance, node);
    const error = space.head.errors[node];
    const uses = usesOf(space);
    const inputs = inputsOf(instance, node);
    const [inNames, outNames] = space.data.head.slots[at1(space.columns.slot_names, node)] ?? [[], []];
    const helpers = box === null ? [] : [...box.nodes].filter((other) => other !== node);
    const source = at1(space.columns.sources, node);
    return {
      id: box?.id ?? name,
      name,
      op,
      kind: space.text("kinds", node) as NodeKind,
      node_def: definitionText(instance, node, space.text("requests", node)),
      summary: "",
      doc: text?.doc ?? "",
      traits: text?.traits ?? "",
      placement: [],
      signature: text?.signature ?? "",
      device: deviceWords(instance, node),
      attrs,
      modules: space.facts(node, "module"),
      quantization: space.facts(node, "quantization"),
      origin: space.facts(node, "source"),
      inputs: [
        ...this.#argumentRows(instance, node),
        ...inputs.map((tensor, slot) => this.#inputRow(tensor, inNames[slot] ?? "", error?.inputs[slot] ?? "")),
      ],
      outputs: this.#outputRows(instance, node, outNames, uses.get(node) ?? []),
      control_inputs: space.awaited(node).map((other) => this.#controlRow(instance, other)),
      control_outputs: (uses.get(node) ?? [])
        .filter(([, slot]) => slot < 0)
        .slice(0, MAX_CONSUMERS)
        .map(([other]) => this.#controlRow(instance, other)),
      source: space.data.sources[source] ?? null,
      error: [error?.text, call?.failure].filter(Boolean).join("\n"),
      clashes: error?.clashes ?? [],
      chains: (error?.explained ?? []).map((why) => this.#explained(why)),
      why: (space.head.why[node] ?? []).map((why) => this.#explained(why, outputOf.bind(null, instance, node))),
      gradient: this.#gradient(instance, node, space.gradients.get(node)?.body_node ?? ""),
      registered_gradient: registered(space, node),
      functions: call?.call.functions ?? [],
      contents: contents(space, helpers),
      times: timeRows(instance, box?.nodes ?? [node]),
      numbers: overlayRows(instance, box?.nodes ?? [node]),
      recorded: valueRows(instance, node),
      values: previewOf(space, node) ?? detailOf(instance, node),
      waits: false,
    };
  }

  #scope(part: Part, nodes: Int32Array, id: string): Inspection {
    const { instance } = part;
    const { space } = instance;
    const mirrored = part instanceof Mirrored ? part : null;
    const inlined = mirrored?.ofNode
      ? [...nodes].find((node) => space.gradients.get(node)?.function != null)
      : undefined;
    // A gradient of another framework has no function here, but a node that it differentiates.
    const forward = mirrored?.ofNode ? part.key.slice(MIRROR.length) : "";
    const described = inlined ?? [...nodes].find((node) => forward && space.gradients.get(node)?.forward === forward);
    const isGradient = mirrored ? described !== undefined : isGradientBody(this.#root, part.key);
    const functions = part.isBody
      ? (instance.call?.call.functions ?? []).filter(({ label }) => label === instance.record?.label)
      : [];
    const wrong = [...nodes].filter((node) => space.head.errors[node]);
    const errors = wrong.slice(0, MAX_ERRORS).map((node) => `${instance.name(node)}: ${space.head.errors[node]?.text}`);
    if (wrong.length > MAX_ERRORS) errors.push(`and ${wrong.length - MAX_ERRORS} more`);
    const sources = [...nodes].map((node) => space.data.sources[at1(space.columns.sources, node)] ?? null);
    const made = new Set(sources.map((source) => (source ? source.cell || source.file : "")));
    const first = described ?? nodes[0];
    return {
      ...EMPTY,
      id,
      name: mirrored?.label ?? part.key,
      kind:
        isGradient && !(mirrored && inlined === undefined)
          ? "inlined gradient function"
          : functions.length > 0
            ? "function"
            : "scope",
      summary: counted(nodes.length, "node"),
      inputs: this.#boundary(instance, nodes, id),
      source: made.size === 1 ? (sources[0] ?? null) : null,
      error: errors.join("\n"),
      clashes: wrong.length === 1 ? (space.head.errors[wrong[0] as number]?.clashes ?? []) : [],
      gradient: isGradient && first !== undefined ? this.#gradient(instance, first, "") : null,
      functions,
      contents: contents(space, nodes),
      times: timeRows(instance, nodes),
      numbers: overlayRows(instance, nodes),
    };
  }

  #row(tensor: Tensor, more: Partial<TensorRow>): TensorRow {
    const { dtype } = tensor.info;
    this.#dimensions ??= new Dimensions(this.#visible);
    const shape = this.#dimensions.shapeText(tensor);
    return { name: "", tensor: tensorName(tensor), dtype, shape, node: "", error: "", note: "", ...more };
  }

  #inputRow(tensor: Tensor, name: string, error: string): TensorRow {
    const { instance, node } = tensor;
    const place = node < 0 ? "" : this.#place(instance, node);
    return this.#row(tensor, { name, error, node: place, note: node < 0 ? "" : scalarNote(tensor) });
  }

  /** The tensors given to an argument of an open call. */
  #argumentRows(instance: Instance, node: number): TensorRow[] {
    const tensor = this.#visible.given.get(instance)?.get(node);
    if (!tensor) return [];
    const sources = this.#visible.sources(tensor);
    return [this.#row(tensor, { name: "given", node: sources.length === 1 ? (sources[0]?.[0].id ?? "") : "" })];
  }

  /** One row for each consumer of each output; an output without consumers has one row. */
  #outputRows(instance: Instance, node: number, names: readonly string[], uses: readonly Use[]): TensorRow[] {
    const { space } = instance;
    return space.outputs(node).flatMap((_, slot) => {
      const tensor = outputOf(instance, node, slot);
      const name = names[slot] ?? "";
      const users = uses.filter(
        ([user, input]) => input >= 0 && at(space.slots, at(space.inputsAt, user) + input) === slot,
      );
      if (users.length === 0) return [this.#row(tensor, { name, tensor: "", note: "not used" })];
      const rows = users.slice(0, MAX_CONSUMERS).map(([user, input]) =>
        this.#row(tensor, {
          name,
          tensor: instance.name(user),
          node: this.#place(instance, user),
          note: `input ${input}`,
        }),
      );
      const rest = users.length - MAX_CONSUMERS;
      if (rest > 0) rows.push(this.#row(tensor, { name, tensor: "", note: `and ${grouped(rest)} more consumers` }));
      return rows;
    });
  }

  #controlRow(instance: Instance, node: number): TensorRow {
    const place = this.#place(instance, node);
    return { name: "", tensor: `^${instance.name(node)}`, dtype: "", shape: "", node: place, error: "", note: "" };
  }

  /** The tensors that enter a scope. */
  #boundary(instance: Instance, nodes: Int32Array, id: string): TensorRow[] {
    const inside = new Set(nodes);
    const entering = new Map<string, Tensor>();
    for (const node of nodes)
      for (const tensor of inputsOf(instance, node))
        if (!inside.has(tensor.node) && !entering.has(tensorName(tensor))) entering.set(tensorName(tensor), tensor);
    return [...entering.values()].slice(0, MAX_CONSUMERS).map((tensor) => {
      const place = tensor.node < 0 ? "" : this.#place(instance, tensor.node);
      return this.#row(tensor, { node: place === id ? "" : place });
    });
  }

  #gradient(instance: Instance, node: number, bodyNode: string): GradientInfo | null {
    const { space } = instance;
    const record = space.gradients.get(node);
    if (!record) return null;
    const forward = this.#root.space.find(record.forward) ?? -1;
    return {
      ...(space.data.head.gradients[record.info] ?? { function: "", definition: "", instantiated: "" }),
      differentiates: record.forward,
      differentiates_id: this.#visible.box(this.#root, forward)?.id ?? "",
      body_node: bodyNode,
      built: record.info < 0 ? "" : built(instance, node),
    };
  }

  /** An inspection with what the kernel says of the node. */
  explained(inspection: Inspection, { why, placement, values, ...texts }: Explanation, place: Place): Inspection {
    const output = outputOf.bind(null, place.instance, place.node);
    return {
      ...inspection,
      ...texts,
      why: why.map((each) => this.#explained(each, output)),
      placement: this.placed(placement),
      values: values ?? detailOf(place.instance, place.node),
      waits: false,
    };
  }

  /** Steps with the places of their nodes. */
  placed(steps: readonly WhyStep[]): WhyStep[] {
    return steps.map((step) => ({ ...step, node: step.name && this.#placeOf(step.name) }));
  }

  /** An explanation with places, and with the keys of dimensions in the picture. */
  #explained(why: Why, output?: (slot: number) => Tensor): Why {
    const [slot = "", place = ""] = why.key.split(":");
    let { key } = why;
    if (output && key) {
      this.#dimensions ??= new Dimensions(this.#visible);
      key = this.#dimensions.of(output(Number(slot)))[Number(place)]?.key ?? "";
    }
    return { ...why, key, steps: this.placed(why.steps) };
  }
}

const NO_VALUES: Values = {
  note: "",
  dtype: "",
  shape: "",
  statistics: [],
  bins: [],
  rows: [],
  first: 0,
  total: 0,
  page: 0,
  picture: [],
  pictures: 0,
};

/** The first values of a constant, and the reason why there are no more. */
function previewOf(space: Space, node: number): Values | null {
  if (space.text("kinds", node) === "variable")
    return { ...NO_VALUES, note: "The value of a variable is shown where a kernel runs" };
  const cells = space.preview(node);
  const note = "The first values; all of them are shown where a kernel runs";
  return cells.length > 0 ? { ...NO_VALUES, note, rows: [{ index: "", cells }], total: 1 } : null;
}

const at1 = (column: readonly number[], node: number): number => at(column, column.length === 1 ? 0 : node);

const knownUses = new WeakMap<Space, ReadonlyMap<number, readonly Use[]>>();

/** The uses of the outputs of each node, and what waits for it. */
function usesOf(space: Space): ReadonlyMap<number, readonly Use[]> {
  const known = knownUses.get(space);
  if (known) return known;
  const uses = new Map<number, Use[]>();
  for (let node = 0; node < space.size; node++) {
    const from = at(space.inputsAt, node);
    for (let i = from; i < at(space.inputsAt, node + 1); i++) {
      const step = at(space.producers, i);
      if (step !== 0) getOrMake(uses, node - step, (): Use[] => []).push([node, i - from]);
    }
    for (const other of space.awaited(node)) getOrMake(uses, other, (): Use[] => []).push([node, -1]);
  }
  knownUses.set(space, uses);
  return uses;
}

/** The value of a scalar constant. */
function scalarNote({ instance: { space }, node, info: { sizes } }: Tensor): string {
  const small = sizes?.every((size) => size === "1" || size === "0");
  return space.text("ops", node) === CONST && small ? `= ${space.text("details", node)}` : "";
}

function registered(space: Space, node: number): GradientInfo | null {
  const text: GradientText | undefined = space.data.head.gradients[at1(space.columns.registered, node)];
  return text ? { ...text, differentiates: "", differentiates_id: "", body_node: "", built: "" } : null;
}

/** The definition of a node in the text form; large tensors are abbreviated. */
function definitionText(instance: Instance, node: number, device: string): string {
  const { space } = instance;
  const attrs = space
    .attrs(node)
    .map((attr) => attr.join("="))
    .join(", ");
  const inputs = inputsOf(instance, node).map(({ name, slot }) => (slot === 0 ? name : `${name}:${slot}`));
  const controls = space.awaited(node).map((other) => instance.name(other));
  const after = (device ? ` device="${device}"` : "") + (controls.length > 0 ? ` @ ${controls.join(", ")}` : "");
  return `${instance.name(node)} = ${space.text("ops", node)}${attrs ? `[${attrs}]` : ""}(${inputs.join(", ")})${after}`;
}

/** The nodes of an inlined gradient body, by their names in it. */
function built(instance: Instance, node: number): string {
  const { space } = instance;
  const scope = `${space.name(node).slice(0, space.name(node).lastIndexOf("/"))}/`;
  const info = space.gradients.get(node)?.info;
  const lines: string[] = [];
  for (const [other, record] of space.gradients) {
    if (record.info !== info || !space.name(other).startsWith(scope)) continue;
    lines.push(definitionText(instance, other, "").replaceAll(scope, ""));
    if (lines.length === MAX_BUILT) break;
  }
  return lines.join("\n");
}

/** The number of nodes by op. */
function contents(space: Space, nodes: Iterable<number>): [string, number][] {
  const counter = new Counter();
  for (const node of nodes) counter.add(space.text("ops", node));
  return counter.mostCommon(MAX_CONTENTS);
}
