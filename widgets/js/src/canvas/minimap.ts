// A small picture of all boxes, with a frame around what the window shows. It is there only when that is not all, and not in a low window.
import { h } from "../dom";
import type { Geometry, Rect } from "../scene/geometry";
import type { Size } from "../scene/places";

const WIDTH = 150;
const HEIGHT = 110;
/** The height in pixels of the lowest window with a map: in a lower one it would cover much of the picture. */
const LOWEST = 320;

export class Minimap {
  readonly element: HTMLElement;
  readonly #canvas = h("canvas", { width: 2 * WIDTH, height: 2 * HEIGHT });
  readonly #frame = h("div", { class: "gl-minimap-frame" });
  #scale = 0;

  /** `goTo` is called with the point of the picture to show. */
  constructor(goTo: (x: number, y: number) => void) {
    const move = (event: PointerEvent): void => {
      if (event.type === "pointermove" && event.buttons === 0) return;
      event.stopPropagation();
      const box = this.#canvas.getBoundingClientRect();
      goTo((event.clientX - box.left) / this.#scale, (event.clientY - box.top) / this.#scale);
    };
    const stop = (event: Event): void => event.stopPropagation();
    this.element = h(
      "div",
      {
        class: "gl-minimap",
        "aria-hidden": "true",
        hidden: true,
        pointerdown: move,
        pointermove: move,
        click: stop,
      },
      this.#canvas,
      this.#frame,
    );
  }

  draw({ width, height, nodes, groups }: Geometry): void {
    this.#scale = Math.min(WIDTH / Math.max(width, 1), HEIGHT / Math.max(height, 1));
    const [across, down] = [width * this.#scale, height * this.#scale];
    this.#canvas.style.cssText = `width:${across}px;height:${down}px`;
    this.#canvas.width = Math.ceil(2 * across);
    this.#canvas.height = Math.ceil(2 * down);
    const context = typeof CanvasRenderingContext2D === "undefined" ? null : this.#canvas.getContext("2d");
    if (!context) return;
    const style = getComputedStyle(this.element);
    context.scale(2 * this.#scale, 2 * this.#scale);
    context.lineWidth = 1 / this.#scale;
    context.strokeStyle = style.getPropertyValue("--gl-rule-2");
    for (const { x, y, width: w, height: h } of groups.values()) context.strokeRect(x, y, w, h);
    context.fillStyle = style.getPropertyValue("--gl-scope-line");
    for (const { x, y, width: w, height: h } of nodes.values()) context.fillRect(x, y, w, h);
  }

  /** The part of the picture that a window of some size shows now. */
  show(seen: Rect, { width, height }: Size, window: Size): void {
    const all = seen.x <= 1 && seen.y <= 1 && seen.x + seen.width >= width - 1 && seen.y + seen.height >= height - 1;
    this.element.hidden = all || this.#scale === 0 || window.height < LOWEST;
    if (all) return;
    const left = Math.max(seen.x, 0);
    const top = Math.max(seen.y, 0);
    const right = Math.min(seen.x + seen.width, width);
    const bottom = Math.min(seen.y + seen.height, height);
    const px = (value: number): string => `${Math.max(value * this.#scale, 2).toFixed(1)}px`;
    Object.assign(this.#frame.style, {
      left: `${(left * this.#scale).toFixed(1)}px`,
      top: `${(top * this.#scale).toFixed(1)}px`,
      width: px(right - left),
      height: px(bottom - top),
    });
  }
}
