// A function: definition on the left, body for the chosen attrs on the right, breadcrumbs above.

import { h, ownKeys, reason } from "../dom";
import type { FromKernel, FunctionMessage } from "../scene/generated";
import { shown } from "../scene/shown";
import { word } from "../scene/words";
import { copyText } from "../shell/files";
import type { Host, MountOptions } from "../shell/host";
import { Link } from "../shell/link";
import { liveHost } from "../shell/live_host";
import { paneHost, type Unwrapped } from "../shell/pane_host";
import { followTheme } from "../shell/theme";
import { Viewer } from "../shell/viewer";
import { AttrForm } from "./attr_form";
import { codeFigure } from "./code";
import { Status } from "./status";

/** One side of the pane: heading, optional controls, text and picture. */
class Side {
  readonly element: HTMLElement;
  readonly viewer: Viewer;
  readonly #title = h("h3", {});
  readonly #text = h("div", { class: "gl-fn-text" });
  readonly #copy: (text: string) => void;
  #shown = "";

  constructor(name: string, viewer: Viewer, copy: (text: string) => void, ...above: readonly HTMLElement[]) {
    this.viewer = viewer;
    this.#copy = copy;
    this.element = h(
      "section",
      { class: "gl-fn-side", "data-side": name, "aria-label": name },
      this.#title,
      ...above,
      this.#text,
      h("div", { class: "gl-fn-picture" }, viewer.root),
    );
  }

  show(title: string, text: string): void {
    this.#title.textContent = shown(title);
    if (text === this.#shown) return;
    this.#shown = text;
    this.#text.replaceChildren(...(text ? [codeFigure(text, "", this.#copy)] : []));
  }
}

export interface PaneOptions extends MountOptions {
  /** The first function to show, if the pane lies over the picture of a graph. */
  readonly over?: FunctionMessage;
}

export class FunctionPane {
  readonly root: HTMLElement;
  readonly #link: Link;
  readonly #end = new AbortController();
  readonly #over: FunctionMessage | undefined;
  readonly #crumbs = h("ol", { class: "gl-crumbs" });
  readonly #uses: HTMLSelectElement;
  readonly #usesBox: HTMLElement;
  readonly #gradient: HTMLButtonElement;
  readonly #form: AttrForm;
  readonly #problem = h("p", { class: "gl-fn-problem", role: "alert", hidden: true });
  readonly #sides: Readonly<Record<"definition" | "instance", Side>>;
  readonly #status = new Status();
  #shown: FunctionMessage | null = null;

  constructor(host: Host, options: PaneOptions) {
    this.#link = new Link(host, (text) => this.#status.lose(text, host.notebook));
    this.#over = options.over;
    this.#form = new AttrForm((name, value) => this.#send({ type: "set_attr", name, value }));
    this.#uses = h("select", {
      class: "gl-uses",
      title: "Instantiations and calls of this function",
      change: () => this.#send({ type: "choose_use", place: Number(this.#uses.value) }),
    });
    this.#usesBox = h("label", { class: "gl-lens-box", hidden: true }, h("span", {}, "Used as"), this.#uses);
    this.#gradient = h("button", {
      type: "button",
      class: "gl-text-button",
      "data-differentiate": "true",
      click: () => this.#send({ type: "differentiate" }),
    });
    const copy = (text: string): void => {
      copyText(text).then(
        () => this.#status.say(word("Copied")),
        (error: unknown) => this.#status.fail(reason(error)),
      );
    };
    const whole: MountOptions = { ...options, height: "fill", complete: true };
    const definition = new Viewer(paneHost(host, "definition"), { ...whole, bare: true });
    const instanceHost = paneHost(host, "instance");
    const instance = new Viewer(options.live ? liveHost(instanceHost) : instanceHost, whole);
    this.#sides = {
      definition: new Side("Definition", definition, copy),
      instance: new Side("Instantiation", instance, copy, this.#form.element, this.#problem),
    };
    const bar = h(
      "div",
      { class: "gl-fn-bar" },
      h("nav", { "aria-label": "Way to this function" }, this.#crumbs),
      h("span", { class: "gl-spacer" }),
      this.#usesBox,
      this.#gradient,
    );
    const sides = h("div", { class: "gl-fn-sides" }, this.#sides.definition.element, this.#sides.instance.element);
    const pane = h("div", { class: "gl-fn", "data-function": "" }, bar, sides, this.#status.element);
    this.root = options.over ? pane : h("div", { class: "graphloupe gl-of-function" }, pane);
    pane.addEventListener("keydown", (event) => this.#key(event));
    if (options.over) return;
    if (options.height) this.root.style.setProperty("--gl-height", options.height === "fill" ? "100%" : options.height);
    ownKeys(this.root);
    followTheme(this.root, this.#end.signal);
  }

  start(): void {
    this.#link.listen((message) => this.#receive(message), this.root, this.#end.signal);
    this.#watchSize();
    if (this.#over) this.#show(this.#over);
    else this.#link.send({ type: "ready" });
    this.#sides.definition.viewer.start();
    this.#sides.instance.viewer.start();
    if (this.#over) this.#focusHere();
  }

  dispose(): void {
    this.#form.dispose();
    for (const { viewer } of Object.values(this.#sides)) viewer.dispose();
    if (!this.#over) this.#link.send({ type: "closed" });
    this.#end.abort();
    this.root.remove();
  }

  #send(message: Unwrapped): void {
    this.#link.send(message);
  }

  #receive(message: FromKernel): void {
    if (message.type === "function") this.#show(message);
    if (message.type === "failure") this.#status.fail(message.text);
  }

  #show(message: FunctionMessage): void {
    const before = this.#shown;
    this.#shown = message;
    const moved = before !== null && before.crumbs.length !== message.crumbs.length;
    this.#showCrumbs(message);
    this.#showUses(message);
    this.#form.show(message.fields);
    this.#problem.textContent =
      message.problem &&
      `${message.problem.replace(/\s+/g, " ")}${message.instantiated ? " What is shown is the last body that could be had." : ""}`;
    this.#problem.hidden = message.problem === "";
    this.#gradient.textContent = "∇ Gradient";
    this.#gradient.title = `Differentiate the instantiated body: ${message.gradient}`;
    this.#gradient.hidden = message.gradient === "";
    const { definition, instance } = this.#sides;
    definition.show(message.derived ? "Derived by differentiating" : "Definition", message.definition);
    instance.show("Instantiated", message.instantiated);
    this.root.dataset.function = message.name;
    this.root.dataset.steps = String(message.crumbs.length);
    this.#status.say("");
    if (moved) this.#focusHere();
  }

  #showCrumbs({ crumbs }: FunctionMessage): void {
    const rows = crumbs.map(({ label, detail }, index) => {
      const here = index === crumbs.length - 1;
      const name = h("span", { class: "gl-crumb-name" }, label);
      const detailText = detail ? h("span", { class: "gl-crumb-detail" }, detail) : null;
      const go = (): void => this.#send({ type: "back", crumb: index });
      return h(
        "li",
        {},
        here
          ? h("span", { class: "gl-crumb", tabindex: "-1", "aria-current": "page" }, name, detailText)
          : h(
              "button",
              { type: "button", class: "gl-crumb", "data-crumb": index, title: detail || null, click: go },
              name,
            ),
      );
    });
    this.#crumbs.replaceChildren(...rows);
  }

  #showUses({ uses, chosen }: FunctionMessage): void {
    const rows = uses.map(({ label, detail }, index) =>
      h("option", { value: index }, detail ? `${label}: ${detail}` : label),
    );
    if (chosen < 0) rows.unshift(h("option", { value: -1, disabled: true }, "attrs chosen by hand"));
    this.#uses.replaceChildren(...rows);
    this.#uses.value = String(chosen);
    this.#usesBox.hidden = uses.length === 0;
  }

  #focusHere(): void {
    this.#crumbs.querySelector<HTMLElement>("[aria-current]")?.focus({ preventScroll: true });
  }

  /** Goes back on Backspace and Alt+Left, except in text fields. */
  #key(event: KeyboardEvent): void {
    const typing = event.target instanceof Element && event.target.matches("input, select, textarea");
    const asks = event.key === "Backspace" || (event.key === "ArrowLeft" && event.altKey);
    const crumbs = this.#shown?.crumbs.length ?? 0;
    if (typing || !asks || event.defaultPrevented || crumbs < 2) return;
    event.preventDefault();
    event.stopPropagation();
    this.#send({ type: "back", crumb: crumbs - 2 });
  }

  #watchSize(): void {
    const observer = new ResizeObserver(() => {
      this.root.classList.toggle("gl-fn-narrow", this.root.clientWidth < 760);
    });
    observer.observe(this.root);
    this.#end.signal.addEventListener("abort", () => observer.disconnect());
  }
}
