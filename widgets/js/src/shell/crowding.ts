// Pictures that are too large to be legible as a whole, which are asked for with fewer boxes.
import { fittingScale } from "../scene/fold";
import type { FromViewer, SceneMessage } from "../scene/generated";
import type { Geometry } from "../scene/geometry";
import { LEGIBLE } from "../scene/measure";
import type { Size } from "../scene/places";

export class Crowding {
  readonly #send: (message: FromViewer) => void;
  /** The most boxes that were asked for so that the picture is legible. */
  #limit: number;

  /** With `complete` a picture that is too large is shown in part. */
  constructor(send: (message: FromViewer) => void, complete: boolean) {
    this.#send = send;
    this.#limit = complete ? 0 : Infinity;
  }

  /**
   * True for a picture that is too large to be legible as a whole, unless the user opened something in it. A mirrored one has two columns,
   * which are read from top to bottom: its width counts alone.
   */
  isCropped({ openings }: SceneMessage, geometry: Geometry | undefined, panel: Size | null): boolean {
    if (openings.mode === "all" || openings.opened.length > 0 || !geometry || !panel) return false;
    return fittingScale(openings.mirror ? { ...geometry, height: 1 } : geometry, panel) < LEGIBLE;
  }

  /** Asks for fewer boxes. True if the answer is to be awaited: the picture is then drawn once, as it stays. */
  asksForLess({ scene: { nodes }, openings }: SceneMessage, geometry: Geometry, panel: Size): boolean {
    if (openings.mode !== "auto") return false;
    const share = (panel.width * panel.height) / (geometry.width * geometry.height);
    const wanted = Math.max(1, Math.floor(nodes.length * Math.min(0.85, Math.max(0.4, share))));
    if (wanted >= this.#limit) return false;
    this.#limit = wanted;
    this.#send({ type: "crowded", boxes: wanted });
    return true;
  }

  /** Asks for the usual number of boxes, for a panel that has become larger. */
  asksForMore(): void {
    if (this.#limit > 0) this.#limit = Infinity;
    this.#send({ type: "crowded", boxes: 0 });
  }
}
