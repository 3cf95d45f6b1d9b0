// The pane that lies over a picture: a function, or both states of a difference.
import type { FunctionMessage, StatesMessage } from "../scene/generated";
import type { Overlay } from "./host";
import type { DifferenceWay } from "./ways";

/** Creates what can lie over a picture, which listens to the host itself. */
export interface Covers {
  function?(message: FunctionMessage): Overlay;
  /** Both states are shown in a way, until `leave` is called. */
  states?(message: StatesMessage, under: { way: DifferenceWay; leave(): void }): Overlay;
}

export class Cover {
  readonly #root: () => HTMLElement;
  #shown: readonly [kind: keyof Covers, overlay: Overlay] | null = null;

  /** `root` gives the element that is covered. */
  constructor(root: () => HTMLElement) {
    this.#root = root;
  }

  get isOpen(): boolean {
    return this.#shown !== null;
  }

  /** Lays over the picture what `create` creates, unless something lies there. */
  open(kind: keyof Covers, create: () => Overlay | undefined): void {
    const overlay = this.#shown ? undefined : create();
    if (!overlay) return;
    this.#shown = [kind, overlay];
    this.#root().append(overlay.root);
    this.#root().classList.add("gl-covered");
    overlay.start();
  }

  /** Takes away what is of this kind. True if there was such. */
  close(kind: keyof Covers): boolean {
    if (this.#shown?.[0] !== kind) return false;
    this.dispose();
    this.#root().classList.remove("gl-covered");
    return true;
  }

  dispose(): void {
    this.#shown?.[1].dispose();
    this.#shown?.[1].root.remove();
    this.#shown = null;
  }
}
