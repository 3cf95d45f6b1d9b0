// The facts of nodes that the structure and the tree of a graph read: plain data, without the graph.
//
// A space of page data (`space.ts`) or a test makes these. Objects that are equal are one: each op has one `Op`, each node one
// `GraphNode`, so that they may be compared and be the keys of maps. Each field names its counterpart in Python, and the place in the
// page's data that has it.

import type { Layer, NodeRole } from "../../scene/generated";

/**
 * An op, or a function that stands for one: `node.op` and `node.registration.traits`.
 *
 * Functions and ops that are not registered have the defaults of `Traits`: "", "op", "unknown", false, false. `PageHead.ops` in page data.
 */
export interface Op {
  readonly name: string;
  /** The name in pictures: without the domain of another framework. `OpText.label` in page data. */
  readonly label: string;
  readonly layer: Layer;
  readonly role: NodeRole;
  /** The memory of the first output, of which only "alias" counts: the input as it is. */
  readonly memory: string;
  readonly elementwise: boolean;
  readonly needsOnlyShapes: boolean;
}

/** The sizes of a tensor, null for each unknown size and for an unknown rank: `tensor.shape.dims`. `TensorInfo.sizes` has them as texts. */
export type Dims = readonly (number | null)[] | null;

/** An output of a node. */
export interface Output {
  readonly dims: Dims;
  /** True for a handle of a variable or of another resource: `tensor.dtype.text == "resource"`. `TensorInfo.dtype` in page data. */
  readonly isResource: boolean;
}

/** A tensor: the output `index` of a node. */
export interface Tensor {
  readonly node: GraphNode;
  readonly index: number;
}

/** A function that a node calls: `widgets.scene.calls.Callee`. Page data have a `CallRecord` for each call instead. */
export interface Callee {
  /** Distinguishes the callees of one node (`then`, `body`); "" if there is one only. */
  readonly label: string;
  /** `Callee.title`: the function's name, after `∇ ` for a gradient. */
  readonly title: string;
}

export interface GraphNode {
  /** `node.id`: nodes in the order of their creation. The place in the columns of a space does for it. */
  readonly id: number;
  /** `node.name`, with the path of the call around it in a body. `Space.name`. */
  readonly name: string;
  /** Column `ops`. */
  readonly op: Op;
  /**
   * `node.inputs`; columns `arities`, `producers`, `slots`.
   *
   * A producer may be a node that the graph has no more, or that another one of its name replaced: `SpaceHead.foreign`. It is
   * found by name among others, and its op is "".
   */
  readonly inputs: readonly Tensor[];
  /** `node.control_inputs`; columns `waits`, `awaited`. */
  readonly controlInputs: readonly GraphNode[];
  /** `node.outputs`; columns `signatures`, `dims`. */
  readonly outputs: readonly Output[];
  /** The nodes that take its outputs, once for each such input: those of `node.consumers()` with a slot. Made from all `inputs`. */
  readonly consumers: readonly GraphNode[];
  /** The nodes that wait for it: those of `node.consumers()` with the slot -1. Made from all `controlInputs`. */
  readonly controlOutputs: readonly GraphNode[];
  /** True if `node.graph.gradient_records` has it; none of a body has one. `SpaceHead.gradients` in page data, *not* the flag GRADIENT. */
  readonly isGradient: boolean;
  /** `node.attr["strides"]`; empty if it is absent or no list. Column `definitions` has it as a text. */
  readonly strides: readonly number[];
  /** False if `node.attr["padding"]` is VALID. Column `definitions` has it as a text. */
  readonly isPadded: boolean;
  /** `callees(node)`; not empty iff `calls_functions(node)`. Column `functions` has their names. */
  readonly callees: readonly Callee[];
  /** The classes of modules of another framework by the paths of scopes: `foreign_of(node.graph).classes`. `SpaceHead.classes`. */
  readonly classes?: ReadonlyMap<string, string>;
  /** `has_hub(node)`: a branch or loop, which keeps a box between its inputs and its bodies. `CallRecord` in page data. */
  readonly hasHub: boolean;
}

/** True for a node of another framework. */
export const isForeign = ({ op }: GraphNode): boolean => op.label !== op.name;

/** True iff a node calls functions: its op is one, or attrs name them. */
export const callsFunctions = (node: GraphNode): boolean => node.callees.length > 0;
