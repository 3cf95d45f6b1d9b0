// From a scene to geometry: the layout engine with its cache, time limit and fast mode.

import { Layouter, Superseded } from "../engines/layouter";
import type { Scene } from "./generated";
import { type Geometry, parseGeometry } from "./geometry";
import { layoutDot } from "./layout_dot";

const LIMIT_MS = 6_000;
const FAST_LIMIT_MS = 20_000;
const EMPTY: Geometry = { width: 0, height: 0, nodes: new Map(), groups: new Map(), edges: new Map() };

export class Layouts {
  readonly #layouter: Layouter;
  readonly #hard: () => void;
  /** The layout of the last scene. A scene that differs in texts only is not laid out again. */
  #last: { dot: string; placed: string } | null = null;

  /** `engine` returns the URL of the engine's script; `hard` is called if a layout takes too long. */
  constructor(engine: () => Promise<string>, hard: () => void) {
    this.#layouter = new Layouter(engine);
    this.#hard = hard;
  }

  /** The geometry of a scene. Rejects with `Superseded` if a newer scene replaces it. */
  async place(scene: Scene): Promise<Geometry> {
    if (scene.nodes.length === 0) {
      this.cancel();
      return EMPTY;
    }
    const dot = layoutDot(scene);
    if (this.#last?.dot === dot) {
      this.cancel();
      return parseGeometry(this.#last.placed, scene);
    }
    const placed = await this.#layouter.layout(dot, LIMIT_MS).catch((error: unknown) => {
      if (error instanceof Superseded) throw error;
      this.#hard();
      return this.#layouter.layout(layoutDot(scene, true), FAST_LIMIT_MS);
    });
    this.#last = { dot, placed };
    return parseGeometry(placed, scene);
  }

  cancel(): void {
    this.#layouter.cancel();
  }

  /** Prepares a worker for the next layout. */
  warmUp(): Promise<void> {
    return this.#layouter.warmUp();
  }
}
