// The panel below the picture: one pane at a time, chosen by tabs.
import { h, iconButton } from "../../dom";
import type { FromKernel, Scene } from "../../scene/generated";
import { word } from "../../scene/words";
import { ICONS } from "../../style/icons";
import type { LowerActions, LowerPane } from "./pane";

let serial = 0;

export class LowerPanel {
  readonly element: HTMLElement;
  readonly #panes: readonly LowerPane[];
  readonly #tabs: readonly HTMLButtonElement[];
  readonly #resized: ResizeObserver;
  #current: LowerPane;

  constructor(panes: readonly [LowerPane, ...LowerPane[]], actions: LowerActions) {
    serial += 1;
    this.#panes = panes;
    [this.#current] = panes;
    const id = (pane: LowerPane): string => `gl-lower-${serial}-${pane.name}`;
    this.#tabs = panes.map((pane) => {
      const attributes = { id: `${id(pane)}-tab`, type: "button", role: "tab", "aria-controls": id(pane) };
      return h("button", { ...attributes, click: () => this.show(pane.name) }, word(pane.title));
    });
    for (const pane of panes) {
      pane.element.id = id(pane);
      pane.element.setAttribute("role", "tabpanel");
      pane.element.setAttribute("aria-labelledby", `${id(pane)}-tab`);
      pane.element.classList.add("gl-lower-pane");
    }
    const tabs = h(
      "div",
      { class: "gl-tabs", role: "tablist", "aria-label": word("Panel below the picture") },
      ...this.#tabs,
    );
    tabs.addEventListener("keydown", (event) => this.#tabKey(event));
    this.element = h(
      "section",
      { class: "gl-lower", "aria-label": word("Runs"), hidden: true },
      h(
        "header",
        {},
        tabs,
        ...panes.map(({ controls }) => controls),
        iconButton(ICONS.close, "Close the panel", () => actions.close()),
      ),
      ...panes.map(({ element }) => element),
    );
    this.element.addEventListener("keydown", (event) => {
      if (event.defaultPrevented || event.key !== "Escape") return;
      event.preventDefault();
      event.stopPropagation();
      actions.close();
    });
    this.#resized = new ResizeObserver(() => this.#current.resized());
    this.#resized.observe(this.element);
    this.#mark();
  }

  get open(): boolean {
    return !this.element.hidden;
  }

  /** The name of the pane that is shown, or would be. */
  get current(): string {
    return this.#current.name;
  }

  dispose(): void {
    this.#resized.disconnect();
    for (const pane of this.#panes) pane.dispose();
  }

  /** Shows a pane, and opens the panel if it was closed. */
  show(name: string): void {
    const next = this.#panes.find((pane) => pane.name === name);
    if (!next || (this.open && next === this.#current)) return;
    if (this.open) this.#current.hidden();
    this.#current = next;
    this.element.hidden = false;
    this.#mark();
    next.shown();
  }

  hide(): void {
    if (!this.open) return;
    this.element.hidden = true;
    this.#current.hidden();
  }

  /** Hands a message to all panes: each takes its own. */
  receive(message: FromKernel): void {
    for (const pane of this.#panes) pane.receive(message);
  }

  select(ids: ReadonlySet<string>): void {
    for (const pane of this.#panes) pane.select(ids);
  }

  drawn(scene: Scene): void {
    if (this.open) this.#current.drawn(scene);
  }

  press(event: KeyboardEvent): boolean {
    return this.open && this.#current.press(event);
  }

  #mark(): void {
    for (const [place, pane] of this.#panes.entries()) {
      const isCurrent = pane === this.#current;
      pane.element.hidden = !isCurrent;
      pane.controls.hidden = !isCurrent;
      const tab = this.#tabs[place];
      tab?.setAttribute("aria-selected", String(isCurrent));
      if (tab) tab.tabIndex = isCurrent ? 0 : -1;
    }
  }

  #tabKey(event: KeyboardEvent): void {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const here = this.#tabs.indexOf(event.target as HTMLButtonElement);
    if (step === undefined || here < 0) return;
    event.preventDefault();
    event.stopPropagation();
    const count = this.#panes.length;
    const next = this.#panes[(here + step + count) % count];
    if (!next) return;
    this.show(next.name);
    this.#tabs[this.#panes.indexOf(next)]?.focus();
  }
}
