// The nodes of a page's data as structure and tree read them.
import { CALLS, type CallRecord, type Layer, type NodeRole, type OpText, type TensorInfo } from "../../scene/generated";
import type { PageData } from "../data";
import { at, getOrMake } from "../order";
import { Space } from "../space";
import { type Callee, type GraphNode, isForeign, type Op, type Output, type Tensor } from "../structure";
import { isTouched } from "../touched";
import type { CallBody, GraphData, Marks, Opener } from "./calls";

const { MAX_DEPTH } = CALLS;
const NOTHING: OpText = {
  doc: "",
  traits: "",
  signature: "",
  layer: "",
  memory: "",
  elementwise: false,
  needs_only_shapes: false,
  label: "",
};

/** The record of a call of which the data says nothing. */
const NO_CALL: Omit<CallRecord, "node"> = {
  refusal: "",
  failure: "",
  hub: false,
  loop: false,
  choice: false,
  called: "",
  bodies: [],
  invariant: [],
  functions: [],
};

/** The attrs of windows, of the text of a definition. */
interface Windows {
  readonly strides: readonly number[];
  readonly isPadded: boolean;
  /** The groups of channels that are convolved apart, in a framework that says it. */
  readonly groups: number;
  /** The place among a filter's sizes of the channels of one group, counted from the end if it is negative. */
  readonly channels: number;
}

/** The tables that all spaces of a page's data share. */
class Shared {
  readonly data: PageData;
  readonly #ops = new Map<string, Op>();
  readonly #outputs = new Map<TensorInfo, Output>();
  readonly #windows = new Map<string, Windows>();

  constructor(data: PageData) {
    this.data = data;
  }

  /** The op of nodes of a kind. */
  op(name: string, kind: string): Op {
    const role = (kind === "function" ? "op" : kind) as NodeRole;
    return getOrMake(this.#ops, `${name} ${role}`, () => {
      const text = this.data.head.ops[name] ?? NOTHING;
      const { layer, memory, elementwise, needs_only_shapes: needsOnlyShapes, label } = text;
      return { name, layer: layer as Layer, role, memory, elementwise, needsOnlyShapes, label: label || name };
    });
  }

  /** The op, as one of its own for convolutions that take each channel apart: frameworks have one op for both. */
  convolution(op: Op, { groups, channels }: Windows, filter: Tensor | undefined): Op {
    const dims = filter === undefined ? null : at(filter.node.outputs, filter.index).dims;
    if (!(groups > 1) || dims?.at(channels) !== 1) return op;
    return getOrMake(this.#ops, `depthwise ${op.name} ${op.role}`, () => ({ ...op, layer: "depthwise convolution" }));
  }

  output(info: TensorInfo): Output {
    return getOrMake(this.#outputs, info, () => ({
      dims: info.sizes?.map((size) => (/^\d+$/.test(size) ? Number(size) : null)) ?? null,
      isResource: info.dtype === "resource",
    }));
  }

  windows(space: Space, node: number): Windows {
    return getOrMake(this.#windows, space.text("definitions", node), () => {
      const attrs = new Map(space.attrs(node));
      const strides = attrs.get("strides") ?? attrs.get("stride") ?? "";
      return {
        strides: /^\[-?\d+(, -?\d+)*\]$/.test(strides) ? strides.slice(1, -1).split(", ").map(Number) : [],
        isPadded: !["VALID", "'VALID'"].includes(attrs.get("padding") ?? ""),
        groups: Number(attrs.get("group") ?? attrs.get("groups") ?? attrs.get("feature_group_count") ?? 1),
        channels: attrs.has("feature_group_count") ? -2 : 1,
      };
    });
  }
}

/** A node of a space. */
class DataNode implements GraphNode {
  readonly id: number;
  readonly name: string;
  op: Op;
  readonly callees: readonly Callee[];
  readonly hasHub: boolean;
  readonly isGradient: boolean;
  readonly classes: ReadonlyMap<string, string>;
  readonly inputs: Tensor[] = [];
  readonly controlInputs: GraphNode[] = [];
  readonly consumers: GraphNode[] = [];
  readonly controlOutputs: GraphNode[] = [];
  readonly #space: Space;
  readonly #shared: Shared;
  #outputs: readonly Output[] | null = null;

  constructor(
    shared: Shared,
    space: Space,
    prefix: string,
    id: number,
    call: CallRecord | undefined,
    classes: ReadonlyMap<string, string>,
  ) {
    this.#shared = shared;
    this.#space = space;
    this.id = id;
    this.name = prefix + space.name(id);
    this.op = shared.op(space.text("ops", id), space.text("kinds", id));
    const called = call?.called ?? space.text("functions", id);
    const titles = called ? called.split(", ") : [];
    this.callees = titles.map((title, i) => ({ label: call?.bodies[i]?.label ?? "", title }));
    this.hasHub = call?.hub ?? false;
    this.isGradient = space.gradients.has(id);
    this.classes = classes;
  }

  get outputs(): readonly Output[] {
    this.#outputs ??= this.#space.outputs(this.id).map((info) => this.#shared.output(info));
    return this.#outputs;
  }

  get strides(): readonly number[] {
    return this.#shared.windows(this.#space, this.id).strides;
  }

  get isPadded(): boolean {
    return this.#shared.windows(this.#space, this.id).isPadded;
  }
}

/** A producer that is in no space, with the one output that is taken: it was removed or replaced. */
function elsewhere(name: string, output: Output): GraphNode {
  const op: Op = { name: "", label: "", layer: "", role: "op", memory: "", elementwise: false, needsOnlyShapes: false };
  const none = { inputs: [], controlInputs: [], consumers: [], controlOutputs: [], callees: [], strides: [] };
  return {
    ...none,
    id: -1,
    name,
    op,
    outputs: [output],
    isGradient: false,
    isPadded: true,
    hasHub: false,
  };
}

/** The nodes of a space, whose names begin with `prefix`. */
function nodesOfSpace(
  shared: Shared,
  space: Space,
  prefix: string,
  calls: ReadonlyMap<number, CallRecord>,
  classes: ReadonlyMap<string, string>,
): readonly GraphNode[] {
  const nodes = Array.from(
    { length: space.size },
    (_, id) => new DataNode(shared, space, prefix, id, calls.get(id), classes),
  );
  for (const node of nodes) {
    for (let i = at(space.inputsAt, node.id); i < at(space.inputsAt, node.id + 1); i++) {
      const step = at(space.producers, i);
      const index = at(space.slots, i);
      const producer = nodes[node.id - step] as DataNode;
      if (step !== 0) {
        node.inputs.push({ node: producer, index });
        producer.consumers.push(node);
      } else {
        const { name, info } = space.foreign(i);
        node.inputs.push({ node: elsewhere(prefix + name, shared.output(info)), index: 0 });
      }
    }
    for (const awaited of space.awaited(node.id)) {
      const producer = nodes[awaited] as DataNode;
      node.controlInputs.push(producer);
      producer.controlOutputs.push(node);
    }
    if (node.op.layer === "convolution" && isForeign(node))
      node.op = shared.convolution(node.op, shared.windows(space, node.id), node.inputs[1]);
  }
  return nodes;
}

/** A space in the place where it is: the graph, or the body of one call. Opens its calls. */
export class SpaceGraph implements GraphData, Opener {
  readonly space: Space;
  readonly prefix: string;
  readonly nodes: readonly GraphNode[];
  readonly isBody: boolean;
  readonly saverNodes: ReadonlySet<string>;
  readonly signatures: ReadonlyMap<string, ReadonlySet<string>>;
  readonly classes: ReadonlyMap<string, string>;
  readonly marks: Marks | null;
  readonly #calls: ReadonlyMap<number, CallRecord>;
  readonly #shared: Shared;
  readonly #depth: number;

  private constructor(shared: Shared, space: Space, prefix: string, depth: number) {
    this.#shared = shared;
    this.space = space;
    this.prefix = prefix;
    this.#depth = depth;
    this.isBody = depth > 0;
    this.#calls = new Map(space.head.calls.map((record) => [record.node, record]));
    // Pictures saved by earlier versions have none.
    this.classes = new Map(Object.entries(space.head.classes ?? {}).map(([path, kind]) => [prefix + path, kind]));
    this.nodes = nodesOfSpace(shared, space, prefix, this.#calls, this.classes);
    const name = (node: number): string => this.node(node).name;
    const { difference, saver_nodes: savers, saved_signatures: signatures } = space.head;
    this.saverNodes = new Set(savers.map(name));
    this.signatures = new Map(signatures.map(([signature, ends]) => [signature, new Set(ends.map(name))]));
    this.marks = difference && {
      touched: new Set(
        Object.keys(difference.nodes)
          .map(Number)
          .filter((node) => isTouched(difference, node))
          .map(name),
      ),
      oldEdges: difference.old_edges.map(([producer, , consumer]) => [name(producer), name(consumer)] as const),
    };
  }

  /** The graph of a page's data. */
  static first(data: PageData): SpaceGraph {
    return new SpaceGraph(new Shared(data), Space.first(data), "", 0);
  }

  /** The node of this number. */
  node(node: number): GraphNode {
    return this.nodes[node] as GraphNode;
  }

  /** The record of a node that calls. */
  call(node: number): CallRecord {
    return this.#calls.get(node) ?? { ...NO_CALL, node };
  }

  bodies(node: GraphNode): readonly CallBody[] {
    if (this.#depth >= MAX_DEPTH) return [];
    return this.call(node.id).bodies.map(({ space, label, scope_label }) => {
      const path = `${node.name}:${label}`;
      const graph = new SpaceGraph(this.#shared, this.space.other(space), `${path}/`, this.#depth + 1);
      return { path, label: scope_label, graph, opener: graph };
    });
  }
}
