// Mouse, touch and wheel on the canvas, turned into camera moves and clicks on boxes.
import { focusedIn, h } from "../dom";
import type { Point, Rect } from "../scene/geometry";
import type { Camera } from "./camera";

export interface Press {
  readonly target: Element;
  readonly double: boolean;
  /** With Shift: further boxes are chosen. */
  readonly more: boolean;
}

const CLICK_SLACK = 4;

/**
 * Listens on the canvas until `signal` fires. `press` is called for clicks that were no drag, `surround` with the part of
 * the picture that a drag with Shift went around.
 */
export function listenToGestures(
  canvas: HTMLElement,
  camera: Camera,
  press: (press: Press) => void,
  surround: (rect: Rect) => void,
  signal: AbortSignal,
): void {
  const pointers = new Map<number, { x: number; y: number }>();
  let travelled = 0;
  let pinch = 0;
  let active = false;
  let corner: Point | null = null;
  const band = h("div", { class: "gl-band" });

  const between = (a: Point, b: Point): Rect => {
    const [x, y] = [Math.min(a.x, b.x), Math.min(a.y, b.y)];
    return { x, y, width: Math.abs(a.x - b.x), height: Math.abs(a.y - b.y) };
  };
  const stretch = (from: Point, to: Point): void => {
    const { x, y, width, height } = between(from, to);
    band.style.cssText = `left:${x}px;top:${y}px;width:${width}px;height:${height}px`;
    if (!band.isConnected) canvas.append(band);
  };

  const place = (event: MouseEvent): { x: number; y: number } => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };

  const down = (event: PointerEvent): void => {
    if (event.button !== 0) return;
    active = true;
    if (pointers.size === 0) travelled = 0;
    pointers.set(event.pointerId, place(event));
    pinch = 0;
    corner = event.shiftKey && pointers.size === 1 ? place(event) : null;
  };

  const drag = (event: PointerEvent): void => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    if (event.buttons === 0) return up(event);
    const now = place(event);
    pointers.set(event.pointerId, now);
    travelled += Math.hypot(now.x - before.x, now.y - before.y);
    if (travelled < CLICK_SLACK) return;
    canvas.setPointerCapture?.(event.pointerId);
    canvas.classList.add("gl-dragging");
    if (corner) return stretch(corner, now);
    if (pointers.size === 1) return camera.pan(now.x - before.x, now.y - before.y);
    const [a, b] = [...pointers.values()];
    if (!a || !b) return;
    const distance = Math.hypot(a.x - b.x, a.y - b.y);
    if (pinch > 0) camera.zoom(distance / pinch, { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 });
    pinch = distance;
  };

  const up = (event: PointerEvent): void => {
    if (corner && band.isConnected) {
      surround(between(camera.toPicture(corner), camera.toPicture(place(event))));
    }
    corner = null;
    band.remove();
    pointers.delete(event.pointerId);
    pinch = 0;
    if (pointers.size === 0) canvas.classList.remove("gl-dragging");
  };

  // In a notebook the wheel scrolls the page until the user has clicked the diagram.
  const mayZoom = (event: WheelEvent): boolean =>
    event.ctrlKey || event.metaKey || active || !canvas.closest(".jp-Notebook") || canvas.contains(focusedIn(canvas));

  const wheel = (event: WheelEvent): void => {
    if (!mayZoom(event)) return;
    event.preventDefault();
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    const speed = event.ctrlKey ? 0.01 : 0.0016;
    camera.zoom(Math.exp(-event.deltaY * lines * speed), place(event));
  };

  const click = (event: MouseEvent): void => {
    if (travelled >= CLICK_SLACK || !(event.target instanceof Element)) return;
    press({ target: event.target, double: event.detail === 2 && !event.shiftKey, more: event.shiftKey });
  };

  canvas.addEventListener("pointerdown", down, { signal });
  canvas.addEventListener("pointermove", drag, { signal });
  canvas.addEventListener("pointerup", up, { signal });
  canvas.addEventListener("pointercancel", up, { signal });
  canvas.addEventListener("pointerleave", () => (active = canvas.contains(focusedIn(canvas))), { signal });
  canvas.addEventListener("wheel", wheel, { signal, passive: false });
  canvas.addEventListener("click", click, { signal });
}
