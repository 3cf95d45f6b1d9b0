// A difference: both states in one picture, side by side, or in words.

import { h, ownKeys } from "../dom";
import { word } from "../scene/words";
import type { Host, MountOptions, StatesOfDifference } from "../shell/host";
import { Side } from "../shell/side";
import { followTheme } from "../shell/theme";
import { Viewer } from "../shell/viewer";

type Way = "one" | "beside" | "words";

const WAYS: readonly (readonly [Way, string, string])[] = [
  ["one", "One picture", "Both states in one picture"],
  ["beside", "Side by side", "Each state in a picture of its own: they move, open and select together"],
  ["words", "In words", "The difference as text"],
];

export class DifferencePane {
  readonly root: HTMLElement;
  readonly #end = new AbortController();
  readonly #states: StatesOfDifference;
  readonly #options: MountOptions;
  readonly #union: Viewer;
  readonly #buttons = new Map<Way, HTMLButtonElement>();
  readonly #places: Readonly<Record<Way, HTMLElement>>;
  #beside: readonly Viewer[] = [];

  constructor(host: Host, options: MountOptions, states: StatesOfDifference) {
    this.#states = states;
    this.#options = { ...options, height: "fill" };
    this.#union = new Viewer(host, this.#options);
    const bar = h("div", { class: "gl-segments", role: "group", "aria-label": word("How the difference is shown") });
    for (const [way, text, title] of WAYS) {
      const press = (): void => this.#show(way);
      const button = h(
        "button",
        { type: "button", class: "gl-segment", "data-way": way, title: word(title), click: press },
        word(text),
      );
      this.#buttons.set(way, button);
      bar.append(button);
    }
    this.#places = {
      one: h("div", { class: "gl-diff-place" }, this.#union.root),
      beside: h("div", { class: "gl-diff-place gl-fn-sides" }),
      words: h("pre", { class: "gl-diff-place gl-diff-words", tabindex: "0" }, states.words),
    };
    const places = [this.#places.one, this.#places.beside, this.#places.words];
    const pane = h("div", { class: "gl-fn" }, h("div", { class: "gl-fn-bar" }, bar), ...places);
    this.root = h("div", { class: "graphloupe gl-of-difference" }, pane);
    const { height } = options;
    if (height) this.root.style.setProperty("--gl-height", height === "fill" ? "100%" : height);
    if (height === "fill") this.root.dataset.fills = "";
    ownKeys(this.root);
    followTheme(this.root, this.#end.signal);
  }

  start(): void {
    this.#union.start();
    this.#show("one");
    const observer = new ResizeObserver(() => {
      this.root.classList.toggle("gl-fn-narrow", this.root.clientWidth < 560);
    });
    observer.observe(this.root);
    this.#end.signal.addEventListener("abort", () => observer.disconnect());
  }

  dispose(): void {
    for (const viewer of [this.#union, ...this.#beside]) viewer.dispose();
    this.#end.abort();
    this.root.remove();
  }

  #show(way: Way): void {
    if (way === "beside" && this.#beside.length === 0) this.#open();
    this.root.dataset.way = way;
    for (const [name, button] of this.#buttons) {
      button.setAttribute("aria-pressed", String(name === way));
      this.#places[name].hidden = name !== way;
    }
  }

  #open(): void {
    const { titles, twins, hosts } = this.#states;
    const [first, second] = [new Side(hosts[0], twins[0]), new Side(hosts[1], twins[1])];
    Side.tie(first, second);
    this.#beside = [first, second].map((side, place) => {
      const viewer = new Viewer(side.host, { ...this.#options, renderers: ["graphviz"], side });
      const title = titles[place] ?? "";
      const element = h(
        "section",
        { class: "gl-fn-side", "data-side": place === 0 ? "before" : "after", "aria-label": title },
        h("h3", {}, title),
        h("div", { class: "gl-fn-picture" }, viewer.root),
      );
      for (const event of ["pointerdown", "wheel", "keydown", "focusin"])
        element.addEventListener(event, () => side.lead(), { capture: true, passive: true });
      this.#places.beside.append(element);
      return viewer;
    });
    for (const viewer of this.#beside) viewer.start();
  }
}
