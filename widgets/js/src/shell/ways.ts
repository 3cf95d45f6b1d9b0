// The ways in which a difference is shown: both states in one picture, side by side, or in words.
import { h } from "../dom";
import { word } from "../scene/words";

export type DifferenceWay = "one" | "beside" | "words";

const WAYS: readonly (readonly [DifferenceWay, string, string])[] = [
  ["one", "One picture", "Both states in one picture"],
  ["beside", "Side by side", "Each state in a picture of its own: they move, open and select together"],
  ["words", "In words", "The difference as text"],
];

/** The row with a button for each way. */
export class WaysBar {
  readonly element: HTMLElement;
  readonly #buttons: ReadonlyMap<DifferenceWay, HTMLButtonElement>;

  constructor(choose: (way: DifferenceWay) => void) {
    this.#buttons = new Map(
      WAYS.map(([way, text, title]) => [
        way,
        h(
          "button",
          { type: "button", class: "gl-segment", "data-way": way, title: word(title), click: () => choose(way) },
          word(text),
        ),
      ]),
    );
    const label = word("How the difference is shown");
    const buttons = h("div", { class: "gl-segments", role: "group", "aria-label": label }, ...this.#buttons.values());
    this.element = h("div", { class: "gl-fn-bar gl-ways" }, buttons);
    this.press("one");
  }

  /** Shows which way is chosen. */
  press(chosen: DifferenceWay): void {
    for (const [way, button] of this.#buttons) button.setAttribute("aria-pressed", String(way === chosen));
  }

  focus(way: DifferenceWay): void {
    this.#buttons.get(way)?.focus({ preventScroll: true });
  }
}
