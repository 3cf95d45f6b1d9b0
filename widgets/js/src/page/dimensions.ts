// Dimensions that are the same number.
import { type Dim, UNKNOWNS } from "../scene/generated";
import type { Instance, Part } from "./parts";
import { calleeArguments, inputsOf, outputOf, type Tensor, type Visible } from "./visible";

const { MAX_NODES } = UNKNOWNS;

/** True for an unknown size without a name: `?`, `?1`. */
const isUnknown = (size: string): boolean => size.startsWith("?");
const isKnown = (size: string): boolean => /^\d+$/.test(size);

export class Dimensions {
  readonly #parents = new Map<string, string>();
  readonly #names: ReadonlyMap<string, string>;

  constructor(visible: Visible) {
    for (const [call, bodies] of visible.calls)
      for (const body of bodies) {
        const given = calleeArguments(call) ?? [];
        for (const [i, arg] of body.space.head.arguments.entries()) {
          const outside = given[i];
          if (outside) this.#join(outside, outputOf(body, arg, 0), call, i);
        }
        this.#joinResults(call, body);
      }
    const names = this.#namesOutside(visible);
    this.#names = new Map([...names, ...this.#numbered(visible, names)]);
  }

  /**
   * The texts of unknown sizes: `?` for the first in the picture, `?1` for the next.
   *
   * Files of other frameworks do not say which of their unknown sizes are one number, so all of theirs are `?`.
   */
  #numbered(visible: Visible, names: ReadonlyMap<string, string>): Map<string, string> {
    const texts = new Map<string, string>();
    let count = 0;
    for (const instance of [visible.root, ...[...visible.calls.values()].flat()]) {
      if (instance.space.size > MAX_NODES) continue;
      for (let node = 0; node < instance.space.size; node++) {
        const isNumbered = !instance.space.isForeign(node);
        for (const [slot, { sizes }] of instance.space.outputs(node).entries()) {
          if (!sizes?.some(isUnknown)) continue;
          const keys = this.#keys(outputOf(instance, node, slot));
          for (const [i, text] of sizes.entries()) {
            const key = this.#root(keys[i] ?? "");
            if (isUnknown(text) && !names.has(key) && !texts.has(key))
              texts.set(key, isNumbered ? `?${count++ || ""}` : "?");
          }
        }
      }
    }
    return texts;
  }

  /** The dimensions of a tensor, none if its rank is unknown. */
  of(tensor: Tensor): Dim[] {
    const keys = this.#keys(tensor);
    return (tensor.info.sizes ?? []).map((text, i) => {
      const key = this.#root(keys[i] ?? "");
      return { text: isUnknown(text) ? (this.#names.get(key) ?? text) : text, key };
    });
  }

  /** The shape of a tensor in this picture: `[?1,10]`, `?` for an unknown rank. */
  shapeText(tensor: Tensor): string {
    if (tensor.info.sizes === null) return "?";
    return `[${this.of(tensor)
      .map(({ text }) => text)
      .join(",")}]`;
  }

  /** Type and shape of a tensor in this picture: `float [?1,10]`; "" for an unknown type. */
  label(tensor: Tensor): string {
    const { dtype } = tensor.info;
    return dtype === "INVALID" ? "" : `${dtype} ${this.shapeText(tensor)}`;
  }

  /** The dimensions shared by several tensors; others are left out. */
  common(tensors: readonly Tensor[]): Dim[] {
    const [first = [], ...others] = tensors.map((tensor) => this.of(tensor));
    const same = (dims: readonly Dim[]): boolean =>
      dims.length === first.length &&
      dims.every(({ text, key }, i) => text === first[i]?.text && key === first[i]?.key);
    return others.every(same) ? first : [];
  }

  /** The names of unknown sizes outside of open calls; inside they have none of their own. */
  #namesOutside(visible: Visible): ReadonlyMap<string, string> {
    const names = new Map<string, string>();
    for (const inside of visible.given.values())
      for (const tensor of inside.values()) {
        const keys = this.#keys(tensor);
        for (const [i, text] of (tensor.info.sizes ?? []).entries()) {
          const key = this.#root(keys[i] ?? "");
          if (!isUnknown(text) && !names.has(key)) names.set(key, text);
        }
      }
    return names;
  }

  #keys({ instance, node, slot, dims }: Tensor): string[] {
    const own = node < 0 ? [] : instance.space.dims(node, slot);
    return (own.length > 0 ? own : (dims ?? [])).map((number) => `${instance.prefix}#${number}`);
  }

  /** Identifies the dimensions of two shapes, with the outer one's keys. In a loop, only loop invariants. */
  #join(outside: Tensor, inside: Tensor, call: Part, index: number): void {
    const [outer, inner] = [this.#keys(outside), this.#keys(inside)];
    for (const [i, key] of inner.entries()) {
      const other = outer[i];
      if (other === undefined) return;
      if (!call.call.loop || call.call.invariant[index]?.[i] === "1")
        this.#parents.set(this.#root(key), this.#root(other));
    }
  }

  /** Identifies the results of a call with the returns of its body. */
  #joinResults(call: Part, body: Instance): void {
    const outputs = call.instance.space.outputs(call.node);
    if (!call.call.choice && body.record?.label === "cond") return;
    for (const [i, ret] of body.space.head.returns.entries()) {
      const returned = inputsOf(body, ret)[0];
      if (i >= outputs.length || !returned) return;
      const output = outputOf(call.instance, call.node, i);
      if (call.call.choice) this.#joinChoice(output, returned, body.prefix);
      else this.#join(output, returned, call, i);
    }
  }

  /** Identifies known sizes made in a branch. Other sizes are kept: branches may return different ones. */
  #joinChoice(outside: Tensor, inside: Tensor, prefix: string): void {
    const [outer, inner] = [this.#keys(outside), this.#keys(inside)];
    for (const [i, size] of (outside.info.sizes ?? []).entries()) {
      const [a, b] = [outer[i], inner[i]];
      if (a === undefined || b === undefined) return;
      const root = this.#root(b);
      if (isKnown(size) && root.startsWith(`${prefix}#`)) this.#parents.set(root, this.#root(a));
    }
  }

  #root(key: string): string {
    let root = key;
    for (
      let parent = this.#parents.get(root);
      parent !== undefined && parent !== root;
      parent = this.#parents.get(root)
    )
      root = parent;
    return root;
  }
}
