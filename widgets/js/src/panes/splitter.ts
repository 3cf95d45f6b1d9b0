// The bar between picture and inspector: drag it, or move it with the arrow keys.
import { h, setAttributes } from "../dom";

const STEP = 24;
const SMALLEST = 180;

/** A separator that resizes the pane after it, by its width beside the picture and by its height below it. */
export function splitter(pane: HTMLElement): HTMLElement {
  const stacked = (): boolean =>
    bar.parentElement !== null && getComputedStyle(bar.parentElement).flexDirection === "column";
  const resize = (size: number): void => {
    const room = stacked() ? bar.parentElement?.clientHeight : bar.parentElement?.clientWidth;
    const kept = Math.max(Math.min(size, (room ?? 600) - SMALLEST), 120);
    pane.style.setProperty(stacked() ? "--gl-pane-height" : "--gl-pane-width", `${Math.round(kept)}px`);
    tell();
  };
  /** Says where it stands, in percent of the room that the pane takes. */
  const tell = (): void => {
    const room = stacked() ? bar.parentElement?.clientHeight : bar.parentElement?.clientWidth;
    const orientation = stacked() ? "horizontal" : "vertical";
    setAttributes(bar, {
      "aria-valuenow": Math.round((100 * size()) / (room || 600)),
      "aria-orientation": orientation,
    });
  };
  const size = (): number => (stacked() ? pane.offsetHeight : pane.offsetWidth);
  const drag = (event: PointerEvent): void => {
    if (!bar.hasPointerCapture(event.pointerId)) return;
    const box = pane.getBoundingClientRect();
    resize(stacked() ? box.bottom - event.clientY : box.right - event.clientX);
  };
  const bar = h("div", {
    class: "gl-splitter",
    role: "separator",
    tabindex: "0",
    "aria-label": "Resize the inspector",
    "aria-valuemin": 0,
    "aria-valuemax": 100,
    "aria-valuenow": 50,
    focus: () => tell(),
    pointerdown: (event: PointerEvent) => bar.setPointerCapture(event.pointerId),
    pointermove: drag,
    keydown: (event: KeyboardEvent) => {
      const grow = { ArrowLeft: 1, ArrowUp: 1, ArrowRight: -1, ArrowDown: -1 }[event.key];
      if (!grow) return;
      event.preventDefault();
      resize(size() + grow * STEP);
    },
  });
  return bar;
}
