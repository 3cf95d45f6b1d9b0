// The pane of the values of a run: NaN and Inf, zeros, and the gradients along the depth.
import { type Child, h, s } from "../../dom";
import type { FromKernel, GradientMagnitude, HealthMessage, HealthRow, RunHealth } from "../../scene/generated";
import type { LowerActions, LowerPane } from "./pane";

const HEIGHT = 120;
/** The width of a point's column in the plot, in pixels. */
const COLUMN = 14;
/** The exponents at which gradients count as vanishing and exploding. */
const VANISHING = -7;
const EXPLODING = 3;

export class HealthPane implements LowerPane {
  readonly name = "values";
  readonly title = "Values";
  readonly controls = h("div", { class: "gl-lower-controls" });
  readonly element = h("div", { class: "gl-health" });
  readonly #actions: LowerActions;
  #boxes: Readonly<Record<string, string>> = {};
  #selection: ReadonlySet<string> = new Set();

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

  resized(): void {}

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
    const parts = health ? this.#report(health) : [h("p", { class: "gl-health-note" }, note)];
    this.element.replaceChildren(...parts);
  }

  #report(health: RunHealth): HTMLElement[] {
    const { summary, first, inputs, bad, zeros, more_bad: moreBad, more_zeros: moreZeros, magnitudes } = health;
    const found: Child[] = [
      h("p", { class: "gl-health-note", role: "status" }, h("strong", {}, summary)),
      first && h("h4", {}, "First NaN or Inf"),
      first && h("ul", {}, this.#row(first)),
      inputs.length > 0 && h("h4", {}, "Computed from"),
      inputs.length > 0 && h("ul", {}, ...inputs.map((row) => this.#row(row))),
      ...this.#plot(magnitudes),
      ...this.#list("All with NaN or Inf", bad, moreBad),
      ...this.#list("All zero", zeros, moreZeros),
    ];
    return found.filter((part) => part instanceof HTMLElement);
  }

  #list(title: string, rows: readonly HealthRow[], more: number): Child[] {
    if (rows.length === 0) return [];
    const rest = more > 0 ? h("li", {}, `and ${more.toLocaleString("en")} more`) : null;
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

  /** The magnitudes of gradients along the depth, as a plot and as a table. */
  #plot(magnitudes: readonly GradientMagnitude[]): Child[] {
    if (magnitudes.length === 0) return [];
    const levels = magnitudes.flatMap(({ level }) => (level === null ? [] : [level]));
    const low = Math.floor(Math.min(0, ...levels));
    const high = Math.ceil(Math.max(1, ...levels));
    const y = (level: number): number => HEIGHT - ((level - low) / (high - low)) * (HEIGHT - 12) - 6;
    const step = Math.max(1, Math.ceil((high - low) / 6));
    const rules = Array.from({ length: Math.floor((high - low) / step) + 1 }, (_, i) => low + i * step).flatMap(
      (level) => [
        s("line", { class: "gl-tick", x1: 44, x2: 44 + magnitudes.length * COLUMN, y1: y(level), y2: y(level) }),
        s("text", { x: 40, y: y(level) + 4, "text-anchor": "end" }, `1e${level}`),
      ],
    );
    const points = magnitudes.map((magnitude, place) => this.#point(magnitude, 44 + (place + 0.5) * COLUMN, y));
    const size = { width: 52 + magnitudes.length * COLUMN, height: HEIGHT };
    const label = `Greatest gradient of each node, from the first layer to the loss. ${trend(magnitudes)}`;
    const rows = magnitudes.map(({ node, depth, text, bad }) =>
      h(
        "tr",
        { "data-node": node },
        h("th", { scope: "row" }, this.#link(node)),
        h("td", {}, String(depth)),
        h("td", {}, bad ? `${text}, with NaN or Inf` : text),
      ),
    );
    const heads = ["Node", "Depth", "Greatest gradient"].map((text) => h("th", { scope: "col" }, text));
    return [
      h("h4", {}, "Gradients along the depth"),
      h("p", { class: "gl-health-note" }, label),
      h(
        "div",
        { class: "gl-plot gl-magnitudes" },
        s("svg", { ...size, role: "img", "aria-label": label }, ...rules, ...points),
      ),
      h(
        "details",
        { class: "gl-lower-table" },
        h("summary", {}, "As a table"),
        h("table", {}, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows)),
      ),
    ];
  }

  #point({ node, level, text, bad }: GradientMagnitude, x: number, y: (level: number) => number): SVGElement {
    const shown = level === null ? HEIGHT - 4 : y(level);
    const kind = bad ? "gl-bad" : level === null ? "gl-zero" : "";
    const lit = this.#isLit(node) ? "gl-lit" : "";
    const point = s("g", { class: `gl-point ${kind} ${lit}`, "data-node": node });
    point.append(
      s("title", {}, `${node}: ${text}${bad ? ", with NaN or Inf" : ""}`),
      bad
        ? s("path", { d: `M${x - 4},${shown - 4}L${x + 4},${shown + 4}M${x - 4},${shown + 4}L${x + 4},${shown - 4}` })
        : s("circle", { cx: x, cy: shown, r: 4 }),
    );
    point.addEventListener("click", () => this.#choose(node));
    return point;
  }
}

/** The course of the magnitudes in words. */
function trend(magnitudes: readonly GradientMagnitude[]): string {
  if (magnitudes.some(({ bad }) => bad)) return "Some have NaN or Inf (crosses).";
  const levels = magnitudes.flatMap(({ level }) => (level === null ? [] : [level]));
  const [least, most] = [Math.min(...levels), Math.max(...levels)];
  if (levels.length === 0) return "All are zero.";
  if (most >= EXPLODING) return `They reach 1e${Math.round(most)}: exploding.`;
  if (least <= VANISHING) return `They fall to 1e${Math.round(least)}: vanishing.`;
  return levels.length < magnitudes.length ? "Some are zero." : "They stay in a usual range.";
}
