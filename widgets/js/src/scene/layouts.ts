// From a scene to geometry: the layout engine with its cache, time limit and fast mode.

import { type Layouter, Superseded } from "../engines/layouter";
import { edgeLabelSize } from "./boxes";
import { circlesOf } from "./circles";
import { fittingScale, fold } from "./fold";
import type { Scene, SceneEdge } from "./generated";
import { parseGeometry } from "./geometry";
import { layoutDot } from "./layout_dot";
import { LEGIBLE } from "./measure";
import type { Geometry, Size } from "./places";

const LIMIT_MS = 6_000;
const FAST_LIMIT_MS = 20_000;
const EMPTY: Geometry = { width: 0, height: 0, nodes: new Map(), groups: new Map(), edges: new Map() };

/** Laid-out pictures with more boxes are not tried in the other direction: it would take too long. */
export const FEW_BOXES = 150;
/** The most boxes of a first picture. */
const FEW_IN_FRAME = 40;
/** The number of times by which the other direction must enlarge a picture. */
const TURN_GAIN = 1.15;

/** One layout of a scene: the request to the engine, and the engine's answer. */
interface Layout {
  readonly dot: string;
  readonly placed: string;
}

function withSize(edge: SceneEdge): [string, Size][] {
  const size = edgeLabelSize(edge);
  return size ? [[edge.id, size]] : [];
}

/** True if one frame holds most of a few boxes: with fewer boxes it would be closed, and the picture would say little. */
export function isOneFrame({ nodes }: Scene): boolean {
  const counts = new Map<string, number>();
  for (const { group } of nodes) if (group) counts.set(group, (counts.get(group) ?? 0) + 1);
  return nodes.length <= FEW_IN_FRAME && 2 * Math.max(0, ...counts.values()) > nodes.length;
}

export class Layouts {
  readonly #layouter: Pick<Layouter, "layout" | "cancel" | "warmUp">;
  readonly #hard: () => void;
  readonly #fast: boolean;
  /** The last layouts, with data flowing down and across. A scene that differs in texts only is not laid out again. */
  readonly #last = new Map<boolean, Layout>();
  /** True if the last picture flows across. */
  #across = false;

  /** `hard` is called if a layout fails or takes too long, and shortcuts are taken; with `fast` they are taken at once. */
  constructor(layouter: Pick<Layouter, "layout" | "cancel" | "warmUp">, hard: () => void, fast = false) {
    this.#layouter = layouter;
    this.#hard = hard;
    this.#fast = fast;
  }

  /**
   * The geometry of a scene, in the direction and folded so that it is large in the panel. Without a panel data flows down.
   * `labels` are those of lines. Rejects with `Superseded` if a newer scene replaces it.
   */
  async place(scene: Scene, panel: Size | null, labels = true): Promise<Geometry> {
    if (scene.nodes.length === 0) {
      this.cancel();
      return EMPTY;
    }
    if (!panel) return this.#placed(scene, false, labels);
    const sizes = new Map(scene.edges.flatMap((edge) => withSize(edge)));
    const folded = async (across: boolean): Promise<Geometry> =>
      fold(await this.#placed(scene, across, labels), panel, across, sizes, circlesOf(scene));
    const first = await folded(this.#across);
    const scale = fittingScale(first, panel);
    if (scale >= LEGIBLE || scene.nodes.length > FEW_BOXES) return first;
    const other = await folded(!this.#across);
    if (fittingScale(other, panel) < TURN_GAIN * scale) return first;
    this.#across = !this.#across;
    return other;
  }

  cancel(): void {
    this.#layouter.cancel();
  }

  /** Prepares a worker for the next layout. */
  warmUp(): Promise<void> {
    return this.#layouter.warmUp();
  }

  async #placed(scene: Scene, across: boolean, labels: boolean): Promise<Geometry> {
    const dot = layoutDot(scene, { fast: this.#fast, across, labels });
    const last = this.#last.get(across);
    if (last?.dot === dot) {
      this.cancel();
      return parseGeometry(last.placed, scene);
    }
    const placed = await this.#layouter.layout(dot, LIMIT_MS).catch((error: unknown) => {
      if (error instanceof Superseded) throw error;
      this.#hard();
      return this.#layouter.layout(layoutDot(scene, { fast: true, across }), FAST_LIMIT_MS);
    });
    this.#last.set(across, { dot, placed });
    return parseGeometry(placed, scene);
  }
}
