// The pane of the values of a run: NaN and Inf, zeros, and the gradients along the depth.
import { type Child, h } from "../../dom";
import type { FromKernel, HealthMessage, HealthRow, RunHealth } from "../../scene/generated";
import { word } from "../../scene/words";
import { MagnitudePlot } from "./magnitudes";
import type { LowerActions, LowerPane } from "./pane";

export class HealthPane implements LowerPane {
  readonly name = "values";
  readonly title = "Values";
  readonly controls = h("div", { class: "gl-lower-controls" });
  readonly element = h("div", { class: "gl-health" });
  readonly #actions: LowerActions;
  #boxes: Readonly<Record<string, string>> = {};
  #selection: ReadonlySet<string> = new Set();
  #plot: MagnitudePlot | undefined;

  constructor(actions: LowerActions) {
    this.#actions = actions;
  }

  dispose(): void {}

  shown(): void {
    this.#actions.send({ type: "want_health" });
  }

  hidden(): void {}

  drawn(): void {
    this.shown();
  }

  resized(): void {
    this.#plot?.draw(this.element.clientWidth);
  }

  press(): boolean {
    return false;
  }

  receive(message: FromKernel): void {
    if (message.type === "health") this.#show(message);
  }

  select(ids: ReadonlySet<string>): void {
    this.#selection = ids;
    for (const mark of this.element.querySelectorAll<HTMLElement | SVGElement>("[data-node]"))
      mark.classList.toggle("gl-lit", this.#isLit(mark.dataset.node ?? ""));
  }

  #show({ health, boxes, note }: HealthMessage): void {
    this.#boxes = boxes;
    this.#plot = undefined;
    const parts = health ? this.#report(health) : [h("p", { class: "gl-health-note" }, note)];
    this.element.replaceChildren(...parts);
    this.resized();
  }

  #report(health: RunHealth): HTMLElement[] {
    const { summary, first, inputs, bad, zeros, more_bad: moreBad, more_zeros: moreZeros, magnitudes } = health;
    if (magnitudes.length > 0)
      this.#plot = new MagnitudePlot(magnitudes, {
        link: (node) => this.#link(node),
        choose: (node) => this.#choose(node),
        isLit: (node) => this.#isLit(node),
      });
    const found: Child[] = [
      h("p", { class: "gl-health-note", role: "status" }, h("strong", {}, summary)),
      first && h("h4", {}, word("First NaN or Inf")),
      first && h("ul", {}, this.#row(first)),
      inputs.length > 0 && h("h4", {}, word("Computed from")),
      inputs.length > 0 && h("ul", {}, ...inputs.map((row) => this.#row(row))),
      ...(this.#plot?.elements ?? []),
      ...this.#list(word("All with NaN or Inf"), bad, moreBad),
      ...this.#list(word("All zero"), zeros, moreZeros),
    ];
    return found.filter((part) => part instanceof HTMLElement);
  }

  #list(title: string, rows: readonly HealthRow[], more: number): Child[] {
    if (rows.length === 0) return [];
    const rest = more > 0 ? h("li", {}, word("and {count} more", { count: more.toLocaleString("en") })) : null;
    return [h("h4", {}, title), h("ul", {}, ...rows.map((row) => this.#row(row)), rest)];
  }

  #row({ node, text }: HealthRow): HTMLElement {
    return h("li", { "data-node": node, class: this.#isLit(node) ? "gl-lit" : "" }, this.#link(node), ` ${text}`);
  }

  #link(node: string): HTMLElement {
    return h("button", { type: "button", class: "gl-link", click: () => this.#choose(node) }, node);
  }

  #choose(node: string): void {
    this.#actions.choose(node, this.#boxes[node] ?? "");
  }

  #isLit(node: string): boolean {
    return this.#selection.has(node) || this.#selection.has(this.#boxes[node] ?? "");
  }
}
