// Widths: tensors of unknown size that must have the same one.
import { getOrMake } from "../order";
import type { Items } from "./items";
import type { Dims, GraphNode, Tensor } from "./nodes";
import { isPlumbing } from "./serving";

/** Layers whose results are as wide as what they take, but for parameters, beside elementwise ops. */
const WIDE: ReadonlySet<string> = new Set(["addition", "bias", "normalization", "softmax"]);
/** Layers whose results cover the same area as what they take. */
const FLAT: ReadonlySet<string> = new Set(["addition", "bias", "concatenation", "normalization", "product", "softmax"]);
/** Layers whose results cover the same area as what they take if they are padded and have no strides. */
const WINDOWS: ReadonlySet<string> = new Set(["convolution", "depthwise convolution", "pooling"]);

/** Disjoint sets of names, joined step by step. */
class Sets {
  readonly #parents = new Map<string, string>();

  /** The representative of the set of a name. */
  find(start: string): string {
    let name = start;
    for (let parent = this.#parents.get(name) ?? name; parent !== name; parent = this.#parents.get(name) ?? name) {
      const next = this.#parents.get(parent) ?? parent;
      this.#parents.set(name, next);
      name = next;
    }
    return name;
  }

  /** Joins the sets of a name and of others. */
  join(name: string, others: Iterable<string>): void {
    for (const other of others) this.#parents.set(this.find(other), this.find(name));
  }
}

interface Classes {
  /** The nodes with tensors of the same area. */
  readonly areas: Sets;
  /** Those of the same width. */
  readonly widths: Sets;
  /** The known widths. */
  readonly sizes: ReadonlyMap<string, number>;
}

/**
 * The sizes of tensors, where equal unknown sizes are distinguished from others.
 *
 * The filters of variables are often of unknown shape. A sum still says that both its operands are equally wide.
 */
export class Widths {
  readonly #items: Items;
  readonly #serving: ReadonlySet<string>;
  readonly #areas = new Map<string, number>();
  readonly #widths = new Map<string, number>();
  #classes: Classes | null = null;

  /** `serving` are the names of nodes that are parameters, constants or plumbing. */
  constructor(items: Items, serving: ReadonlySet<string>) {
    this.#items = items;
    this.#serving = serving;
  }

  /**
   * The dimensions of a tensor, or its area as a negative number and its width if sizes are unknown.
   *
   * The first size, that of the batch, may be unknown. The width is negative too, unless a tensor of the same width has a known one.
   */
  known(tensor: Tensor | null): Dims {
    if (tensor === null) return null;
    const dims = tensor.node.outputs[tensor.index]?.dims ?? null;
    if (dims !== null && dims.indexOf(null, 1) < 0) return dims;
    this.#classes ??= this.#classified();
    const { areas, widths, sizes } = this.#classes;
    const { name } = tensor.node;
    const area = this.#number(this.#areas, areas.find(name));
    const width = widths.find(name);
    return [area, sizes.get(width) || this.#number(this.#widths, width)];
  }

  #number(numbers: Map<string, number>, name: string): number {
    return getOrMake(numbers, name, () => -1 - this.#areas.size - this.#widths.size);
  }

  #classified(): Classes {
    const [areas, widths] = [new Sets(), new Sets()];
    const nodes = this.#items.members.flat();
    for (const node of nodes) {
      const { layer, elementwise } = node.op;
      const same = elementwise || isPlumbing(node);
      if (same || WIDE.has(layer)) widths.join(node.name, this.#sources(node));
      if (same || FLAT.has(layer) || (WINDOWS.has(layer) && isEvery(node) && node.isPadded))
        areas.join(node.name, this.#sources(node));
    }
    const sizes = new Map<string, number>();
    for (const node of nodes) {
      const last = this.#serving.has(node.name) ? null : node.outputs[0]?.dims?.at(-1);
      if (last === null || last === undefined) continue;
      const width = widths.find(node.name);
      sizes.set(width, Math.max(sizes.get(width) ?? 0, last));
    }
    return { areas, widths, sizes };
  }

  #sources(node: GraphNode): string[] {
    return node.inputs.map((tensor) => tensor.node.name).filter((name) => !this.#serving.has(name));
  }
}

/** True iff windows begin at every place: all strides are 1. */
const isEvery = (node: GraphNode): boolean => node.strides.length > 0 && node.strides.every((stride) => stride === 1);
