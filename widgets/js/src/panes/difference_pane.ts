// A difference: both states in one picture, side by side, or in words.

import { h, ownKeys } from "../dom";
import type { Host, MountOptions, StatesOfDifference } from "../shell/host";
import { Side } from "../shell/side";
import { followTheme } from "../shell/theme";
import { Viewer } from "../shell/viewer";
import { type DifferenceWay, WaysBar } from "../shell/ways";

/** The picture of both states, for a pane that lies over it. */
interface Under {
  readonly host: Host;
  /** The way in which the pane begins. */
  readonly way: DifferenceWay;
  /** Shows that picture again. */
  leave(): void;
}

/** One state: its picture below its title. */
interface State {
  readonly side: Side;
  readonly title: HTMLElement;
  readonly viewer: Viewer;
}

export class DifferencePane {
  readonly root: HTMLElement;
  readonly #end = new AbortController();
  #states: StatesOfDifference;
  readonly #options: MountOptions;
  readonly #one: Viewer | Under;
  readonly #bar = new WaysBar((way) => this.#show(way));
  readonly #places: Readonly<Record<DifferenceWay, HTMLElement>>;
  #beside: readonly State[] = [];

  /** `one` is the picture of both states: within the pane, or under it. */
  constructor(options: MountOptions, states: StatesOfDifference, one: Viewer | Under) {
    this.#states = states;
    this.#options = { ...options, height: "fill" };
    this.#one = one;
    this.#places = {
      one: h("div", { class: "gl-diff-place" }, one instanceof Viewer ? one.root : null),
      beside: h("div", { class: "gl-diff-place gl-fn-sides" }),
      words: h("pre", { class: "gl-diff-place gl-diff-words", tabindex: "0" }, states.words),
    };
    const places = [this.#places.one, this.#places.beside, this.#places.words];
    const pane = h("div", { class: "gl-fn" }, this.#bar.element, ...places);
    this.root = one instanceof Viewer ? h("div", { class: "graphloupe gl-of-difference" }, pane) : pane;
    if (!(one instanceof Viewer)) return;
    const { height } = options;
    if (height) this.root.style.setProperty("--gl-height", height === "fill" ? "100%" : height);
    if (height === "fill") this.root.dataset.fills = "";
    ownKeys(this.root);
    followTheme(this.root, this.#end.signal);
  }

  start(): void {
    const one = this.#one;
    if (one instanceof Viewer) {
      one.start();
      this.#show("one");
    } else {
      const stop = one.host.onMessage((message) => {
        if (message.type === "states") this.#change(message);
      });
      this.#end.signal.addEventListener("abort", stop);
      this.#show(one.way);
      this.#bar.focus(one.way);
    }
    const observer = new ResizeObserver(() => {
      this.root.classList.toggle("gl-fn-narrow", this.root.clientWidth < 560);
    });
    observer.observe(this.root);
    this.#end.signal.addEventListener("abort", () => observer.disconnect());
  }

  dispose(): void {
    if (this.#one instanceof Viewer) this.#one.dispose();
    for (const { viewer } of this.#beside) viewer.dispose();
    this.#end.abort();
    this.root.remove();
  }

  /** The difference has become another one, whose pictures come on their own. */
  #change({ titles, words, twins }: Omit<StatesOfDifference, "hosts">): void {
    this.#states = { titles, words, twins, hosts: this.#states.hosts };
    this.#places.words.textContent = words;
    for (const [place, { side, title }] of this.#beside.entries()) {
      title.textContent = titles[place] ?? "";
      side.rename(twins[place] ?? {});
    }
  }

  #show(way: DifferenceWay): void {
    if (way === "one" && !(this.#one instanceof Viewer)) return this.#one.leave();
    if (way === "beside" && this.#beside.length === 0) this.#open();
    this.root.dataset.way = way;
    this.#bar.press(way);
    for (const [name, place] of Object.entries(this.#places)) place.hidden = name !== way;
  }

  #open(): void {
    const { titles, twins, hosts } = this.#states;
    const [first, second] = [new Side(hosts[0], twins[0]), new Side(hosts[1], twins[1])];
    Side.tie(first, second);
    this.#beside = [first, second].map((side, place) => {
      const viewer = new Viewer(side.host, { ...this.#options, renderers: ["graphviz"], side });
      const title = h("h3", {}, titles[place] ?? "");
      const element = h(
        "section",
        { class: "gl-fn-side", "data-side": place === 0 ? "before" : "after", "aria-label": titles[place] ?? "" },
        title,
        h("div", { class: "gl-fn-picture" }, viewer.root),
      );
      for (const event of ["pointerdown", "wheel", "keydown", "focusin"])
        element.addEventListener(event, () => side.lead(), { capture: true, passive: true });
      this.#places.beside.append(element);
      return { side, title, viewer };
    });
    for (const { viewer } of this.#beside) viewer.start();
  }
}
