// The pane of the recorded run and the predicted step, linked to the boxes of the picture.

import { h, iconButton } from "../../dom";
import { bytes, duration, totals, type Window, zoomed } from "../../scene/bars";
import type { FromKernel, StepTimeline, TimelinesMessage } from "../../scene/generated";
import { curvesOf } from "../../scene/memory";
import { shown } from "../../scene/shown";
import { word } from "../../scene/words";
import { ICONS } from "../../style/icons";
import { Chart } from "./chart";
import { MemoryTable } from "./memory";
import type { LowerActions, LowerPane } from "./pane";

const MOST_ROWS = 200;

export class TimelinePane implements LowerPane {
  readonly name = "timeline";
  readonly title = "Timeline";
  readonly controls: HTMLElement;
  readonly element: HTMLElement;
  readonly #actions: LowerActions;
  readonly #choices = h("select", { "aria-label": word("Which timeline"), change: () => this.#show() });
  readonly #said = h("p", { class: "gl-timeline-said", role: "status" });
  #key = "";
  #timelines: readonly StepTimeline[] = [];
  #boxes: Readonly<Record<string, string>> = {};
  #charts: Chart[] = [];
  #window: Window = { from: 0, to: 1 };
  #length = 1;
  #selection: ReadonlySet<string> = new Set();
  #isShown = false;

  constructor(actions: LowerActions) {
    this.#actions = actions;
    const zoom = (factor: number) => (): void => {
      const { from, to } = this.#window;
      this.#look(zoomed(this.#window, factor, (from + to) / 2, this.#length));
    };
    this.controls = h(
      "div",
      { class: "gl-lower-controls" },
      this.#choices,
      this.#said,
      iconButton(ICONS.plus, "Zoom into the time", zoom(2)),
      iconButton(ICONS.minus, "Zoom out of the time", zoom(0.5)),
      iconButton(ICONS.fit, "The whole time", () => this.#look({ from: 0, to: this.#length })),
    );
    this.element = h("div", {});
  }

  dispose(): void {}

  shown(): void {
    this.#isShown = true;
    this.#ask();
    this.#draw();
  }

  hidden(): void {
    this.#isShown = false;
  }

  drawn(): void {
    this.#ask();
  }

  resized(): void {
    this.#draw();
  }

  press(): boolean {
    return false;
  }

  receive(message: FromKernel): void {
    if (message.type === "timelines") this.#receive(message);
  }

  /** Requests the timelines, unless they are those that are there. */
  #ask(): void {
    this.#actions.send({ type: "want_timelines", known: this.#key });
  }

  #receive({ key, timelines, boxes }: TimelinesMessage): void {
    this.#boxes = boxes;
    if (!timelines) return this.#draw();
    this.#key = key;
    this.#timelines = timelines;
    const drawn = timelines.filter(({ spans }) => spans.starts.length > 0);
    const titles =
      drawn.length > 1 ? ["Both", ...drawn.map(({ title }) => title)] : timelines.map(({ title }) => title);
    const before = this.#choices.value;
    this.#choices.replaceChildren(
      ...titles.map((title) => h("option", { value: title }, title === "Both" ? word("Both") : title)),
    );
    this.#choices.hidden = titles.length < 2;
    if (titles.includes(before)) this.#choices.value = before;
    this.#show();
  }

  /** Marks the bars of these boxes and frames. */
  select(ids: ReadonlySet<string>): void {
    this.#selection = ids;
    this.#draw();
  }

  #show(): void {
    const chosen = this.#choices.value;
    const shown = this.#timelines.filter(({ title }) => chosen === "Both" || chosen === "" || chosen === title);
    const length = Math.max(1, ...shown.map((timeline) => timeline.length));
    if (length !== this.#length) this.#window = { from: 0, to: length };
    this.#length = length;
    this.#charts = [];
    const none = h("p", { class: "gl-timeline-clock" }, word("This picture carries no timeline"));
    this.element.replaceChildren(...(shown.length > 0 ? shown.map((timeline) => this.#section(timeline)) : [none]));
    this.#draw();
  }

  #section(timeline: StepTimeline): HTMLElement {
    const { title, clock, notes, spans, length } = timeline;
    const head = h(
      "p",
      { class: "gl-timeline-clock" },
      h("strong", {}, `${title}: ${duration(length)}`),
      ` ${[clock, ...notes].join("; ")}`,
    );
    if (spans.starts.length === 0) return h("div", {}, head);
    const curves = curvesOf(timeline);
    const table = curves.some(Boolean)
      ? new MemoryTable(timeline, curves, {
          link: (label) => this.#link(timeline, label),
          moved: (lane, time) => this.#charts.find((chart) => chart.timeline === timeline)?.mark(lane, time),
        })
      : null;
    const chart = new Chart(timeline, curves, {
      window: () => this.#window,
      look: (window) => this.#look(window),
      length: () => this.#length,
      lit: (node) => this.#isLit(node),
      choose: (node) => this.#actions.choose(node, this.#boxes[node] ?? ""),
      say: (text) => {
        this.#said.textContent = shown(text);
      },
      moment: (lane, time) => table?.show(lane, time),
    });
    this.#charts.push(chart);
    return h("div", {}, head, chart.element, table?.element ?? null, this.#table(timeline));
  }

  #isLit(node: string): boolean {
    if (this.#selection.size === 0) return false;
    const box = this.#boxes[node];
    if (this.#selection.has(node) || (box !== undefined && this.#selection.has(box))) return true;
    return [...this.#selection].some((id) => isWithin(node, id));
  }

  #look(window: Window): void {
    this.#window = window;
    this.#draw();
  }

  #draw(): void {
    if (!this.#isShown) return;
    for (const chart of this.#charts) chart.draw();
  }

  /** The same in a table, made when it is opened. */
  #table(timeline: StepTimeline): HTMLElement {
    const details = h("details", { class: "gl-lower-table gl-timeline-table" }, h("summary", {}, word("As a table")));
    details.addEventListener(
      "toggle",
      () => {
        const all = totals(timeline);
        const rows = all
          .slice(0, MOST_ROWS)
          .map(({ label, lane, runs, ns, bytes: size }) =>
            h(
              "tr",
              {},
              h("th", { scope: "row" }, this.#link(timeline, label)),
              h("td", {}, timeline.lanes[lane]?.text ?? ""),
              h("td", {}, String(runs)),
              h("td", {}, duration(ns)),
              h("td", {}, size > 0 ? bytes(size) : ""),
            ),
          );
        const heads = [word("Node or copy"), word("Device or link"), word("Times"), word("Time"), word("Bytes")];
        const counts = { most: MOST_ROWS, count: all.length };
        const shown =
          all.length > MOST_ROWS
            ? word("The longest {most} of {count}, the longest first", counts)
            : word("All {count}, the longest first", counts);
        details.append(
          h(
            "table",
            {},
            h("caption", {}, `${timeline.title}: ${timeline.clock}. ${shown}`),
            h("thead", {}, h("tr", {}, ...heads.map((text) => h("th", { scope: "col" }, text)))),
            h("tbody", {}, ...rows),
          ),
        );
      },
      { once: true },
    );
    return details;
  }

  #link(timeline: StepTimeline, label: number): HTMLElement {
    const node = timeline.nodes[label] ?? "";
    const choose = (): void => this.#actions.choose(node, this.#boxes[node] ?? "");
    return h("button", { type: "button", class: "gl-link", click: choose }, timeline.labels[label] ?? "");
  }
}

/** True if a node is within a scope, or in a function that a node calls. */
function isWithin(node: string, id: string): boolean {
  return node.startsWith(id.endsWith("/") ? id : `${id}/`) || node.startsWith(`${id}:`);
}
