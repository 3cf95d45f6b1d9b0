// The edges and boxes that lead to shape errors.
import type { ErrorRecord } from "../scene/generated";
import type { Instance } from "./parts";
import type { Box, Visible } from "./visible";

/** Nodes whose clashes are drawn; more would be a picture of nothing but red. */
const MAX_ERRORS = 3;

export class ClashLines {
  readonly #lines = new Map<string, number>();
  readonly #notes = new Map<Box, string>();

  constructor(visible: Visible) {
    const wrong: ErrorRecord[] = [];
    for (const box of visible.boxes) {
      const { errors } = box.part.instance.space.head;
      if (Object.keys(errors).length === 0) continue;
      for (const node of box.nodes) if (errors[node]?.has_error) wrong.push(errors[node]);
    }
    if (wrong.length === 0) return;
    // Chains name nodes in full, since they lead from bodies into the graph around.
    const named = new Map<string, Box>();
    for (const [instance, boxOf] of visible.boxOf) addNames(named, instance, boxOf, visible);
    for (const { chains } of wrong.slice(0, MAX_ERRORS))
      for (const [i, [steps, notes]] of chains.entries()) {
        for (const [producer, consumer] of steps) this.#mark(named.get(producer), named.get(consumer), i + 1);
        for (const [node, text] of notes) this.#note(named.get(node), text);
      }
  }

  /** The number of the chain between two boxes, 0 if there is none. */
  line(source: Box, target: Box): number {
    return this.#lines.get(`${source.index} ${target.index}`) ?? 0;
  }

  /** The number that was written at a box, and where; "" for most. */
  note(box: Box): string {
    return this.#notes.get(box) ?? "";
  }

  #mark(source: Box | undefined, target: Box | undefined, number: number): void {
    if (!source || !target || source === target) return;
    const key = `${source.index} ${target.index}`;
    if (!this.#lines.has(key)) this.#lines.set(key, number);
  }

  #note(box: Box | undefined, text: string): void {
    if (box && !this.#notes.has(box)) this.#notes.set(box, text);
  }
}

function addNames(named: Map<string, Box>, instance: Instance, boxOf: Int32Array, { boxes }: Visible): void {
  for (const [node, place] of boxOf.entries()) {
    const box = boxes[place];
    if (box) named.set(instance.name(node), box);
  }
}
