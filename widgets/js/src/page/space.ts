// A graph, or the body of a function: its nodes by number.
import type { GradientRow, SpaceColumns, SpaceHead, TensorInfo } from "../scene/generated";
import type { PageData } from "./data";
import { at } from "./order";

export const SHORT = 1;
export const GRADIENT = 2;
export const PARTIAL = 4;
export const DIFFERENTIATED = 8;
/** On another device than the requested one. */
export const ELSEWHERE = 16;
/** New with the last cell, and changed by it. */
export const FRESH = 32;
export const ALTERED = 64;

export const NODE = 0;
export const THING = 1;
export const CALL = 2;
export const GROUP = 3;
export const SCOPE = 4;

type TextColumn = "ops" | "kinds" | "details" | "cells" | "devices" | "requests" | "functions" | "definitions";

/** A column whose one value stands for all. */
export function full(column: readonly number[], size: number): ArrayLike<number> {
  return column.length === size ? column : new Int32Array(size).fill(column[0] ?? 0);
}

/** The places where the entries of each node begin in a flat column. */
export function starts(sizes: ArrayLike<number>, count: number): Int32Array {
  const found = new Int32Array(count + 1);
  for (let i = 0; i < count; i++) found[i + 1] = at(found, i) + at(sizes, i);
  return found;
}

export class Space {
  readonly data: PageData;
  readonly head: SpaceHead;
  readonly columns: SpaceColumns;
  readonly size: number;
  readonly flags: ArrayLike<number>;
  readonly inputsAt: Int32Array;
  readonly producers: readonly number[];
  readonly slots: ArrayLike<number>;
  readonly waitsAt: Int32Array;
  readonly gradients: ReadonlyMap<number, GradientRow>;
  /** For each gradient node the node that it differentiates. */
  readonly origins: ReadonlyMap<number, number>;
  readonly #foreignAt = new Map<number, number>();
  #dimsAt: Int32Array | null = null;
  #dimKeys: Int32Array | null = null;
  #byName: Map<string, number> | null = null;

  /** All spaces by number, so that each is decoded once. */
  readonly #all: (Space | undefined)[];

  private constructor(data: PageData, place: number, all: (Space | undefined)[]) {
    this.#all = all;
    all[place] = this;
    this.data = data;
    this.head = data.head.spaces[place] as SpaceHead;
    this.columns = data.spaces[place] as SpaceColumns;
    this.size = this.columns.names.length;
    this.flags = full(this.columns.flags, this.size);
    this.inputsAt = starts(full(this.columns.arities, this.size), this.size);
    this.producers = this.columns.producers;
    this.slots = full(this.columns.slots, this.producers.length);
    this.waitsAt = starts(full(this.columns.waits, this.size), this.size);
    this.gradients = new Map(this.head.gradients.map((row) => [row.node, row]));
    const { origins } = this.head;
    const pairs = Array.from({ length: origins.length / 2 }, (_, i): [number, number] => [
      at(origins, 2 * i),
      at(origins, 2 * i + 1),
    ]);
    this.origins = new Map(pairs);
    this.#readForeign();
  }

  /** The space of the graph. */
  static first(data: PageData): Space {
    return new Space(data, 0, []);
  }

  /** The space with this number. */
  other(place: number): Space {
    return this.#all[place] ?? new Space(this.data, place, this.#all);
  }

  #readForeign(): void {
    let found = 0;
    for (let i = 0; i < this.producers.length; i++) if (this.producers[i] === 0) this.#foreignAt.set(i, found++);
  }

  text(column: TextColumn, node: number): string {
    return this.#text(this.columns[column], node);
  }

  /** True for a node of another framework. */
  isForeign(node: number): boolean {
    const op = this.text("ops", node);
    const label = this.data.head.ops[op]?.label;
    return !!label && label !== op;
  }

  /** The class of a node under a lens of the user. */
  ownClass(lens: number, node: number): string {
    return this.#text(this.head.own_classes[lens]?.classes ?? [], node);
  }

  #text(column: readonly number[], node: number): string {
    return this.data.texts[column.length === 1 ? at(column, 0) : at(column, node)] ?? "";
  }

  /** The attrs of a node. */
  attrs(node: number): readonly (readonly [string, string])[] {
    return this.#definition(node).filter(([name]) => name && !name.includes("\t"));
  }

  /** The facts of the source about a node that are no attrs, in a section of the inspector. */
  facts(node: number, section: string): (readonly [string, string])[] {
    const start = `${section}\t`;
    return this.#definition(node).flatMap(([name, text]) =>
      name.startsWith(start) ? [[name.slice(start.length), text] as const] : [],
    );
  }

  /** The first values of a large constant; empty if the page has none. */
  preview(node: number): readonly string[] {
    return (
      this.#definition(node)
        .find(([name]) => !name)?.[1]
        .split("\t") ?? []
    );
  }

  #definition(node: number): (readonly [string, string])[] {
    const lines = this.text("definitions", node).split("\n").filter(Boolean);
    return lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)] as const);
  }

  has(node: number, flag: number): boolean {
    return (at(this.flags, node) & flag) !== 0;
  }

  /** The name within the space. */
  name(node: number): string {
    const path = this.head.paths[at(this.columns.scopes, node)];
    const name = this.columns.names[node] as string;
    return path ? `${path}/${name}` : name;
  }

  find(name: string): number | undefined {
    if (!this.#byName) {
      this.#byName = new Map();
      for (let i = 0; i < this.size; i++) this.#byName.set(this.name(i), i);
    }
    return this.#byName.get(name);
  }

  /** The nodes that a node waits for. */
  awaited(node: number): number[] {
    const { awaited } = this.columns;
    const found: number[] = [];
    for (let i = at(this.waitsAt, node); i < at(this.waitsAt, node + 1); i++) found.push(node - at(awaited, i));
    return found;
  }

  /** The record of an input from elsewhere, by the place of the input in its column. */
  foreign(input: number): SpaceHead["foreign"][number] {
    return this.head.foreign[this.#foreignAt.get(input) as number] as SpaceHead["foreign"][number];
  }

  /** The types and shapes of the outputs of a node. */
  outputs(node: number): TensorInfo[] {
    const { signatures } = this.columns;
    const infos = this.data.head.signatures[signatures.length === 1 ? at(signatures, 0) : at(signatures, node)] ?? [];
    return infos.map((info) => this.data.head.infos[info] as TensorInfo);
  }

  /** Numbers for the dimensions of an output; equal numbers are one dimension. */
  dims(node: number, slot: number): number[] {
    const [starts, keys] = this.#dims();
    const outputs = this.outputs(node);
    let from = at(starts, node);
    for (let i = 0; i < slot; i++) from += outputs[i]?.sizes?.length ?? 0;
    return Array.from({ length: outputs[slot]?.sizes?.length ?? 0 }, (_, i) => at(keys, from + i));
  }

  #dims(): [Int32Array, Int32Array] {
    if (this.#dimsAt && this.#dimKeys) return [this.#dimsAt, this.#dimKeys];
    const { signatures, dims } = this.columns;
    const sizes = this.data.head.signatures.map((infos) =>
      infos.reduce((sum, info) => sum + (this.data.head.infos[info]?.sizes?.length ?? 0), 0),
    );
    const each = full(signatures, this.size);
    this.#dimsAt = starts(
      Int32Array.from({ length: this.size }, (_, node) => sizes[at(each, node)] ?? 0),
      this.size,
    );
    const count = at(this.#dimsAt, this.size);
    const steps = full(dims, count);
    this.#dimKeys = new Int32Array(count);
    let newest = 0;
    for (let i = 0; i < count; i++) this.#dimKeys[i] = at(steps, i) === 0 ? newest++ : newest - at(steps, i);
    return [this.#dimsAt, this.#dimKeys];
  }
}
