// The bar between picture and inspector: drag it, or move it with the arrow keys.
import { h, setAttributes } from "../dom";
import { word } from "../scene/words";

const STEP = 24;
const SMALLEST = 180;

/** A separator that resizes the pane after it: the width of a pane beside the picture, the height of one below it. */
export function splitter(pane: HTMLElement): HTMLElement {
  const stacked = (): boolean =>
    bar.parentElement !== null && getComputedStyle(bar.parentElement).flexDirection === "column";
  const resize = (size: number): void => {
    const available = stacked() ? bar.parentElement?.clientHeight : bar.parentElement?.clientWidth;
    const kept = Math.max(Math.min(size, (available ?? 600) - SMALLEST), 120);
    pane.style.setProperty(stacked() ? "--gl-pane-height" : "--gl-pane-width", `${Math.round(kept)}px`);
    announce();
  };
  /** Sets the separator's value: the size of the pane in percent. */
  const announce = (): void => {
    const available = stacked() ? bar.parentElement?.clientHeight : bar.parentElement?.clientWidth;
    const orientation = stacked() ? "horizontal" : "vertical";
    setAttributes(bar, {
      "aria-valuenow": Math.round((100 * size()) / (available || 600)),
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
    "aria-label": word("Resize the inspector"),
    "aria-valuemin": 0,
    "aria-valuemax": 100,
    "aria-valuenow": 50,
    focus: () => announce(),
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
