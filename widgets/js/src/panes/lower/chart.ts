// The chart of one timeline: a row of bars for each device and link, by mouse and keyboard.
import { h, s } from "../../dom";
import {
  type Bar,
  barsOf,
  bytes,
  duration,
  moved,
  type Rows,
  rowsOf,
  ticks,
  type Window,
  zoomed,
} from "../../scene/bars";
import type { StepTimeline, TimelineLane } from "../../scene/generated";

const ROW = 20;
const AXIS = 20;
/** The least height of a lane: two lines of text. */
const LANE = 40;
const NARROW = 34;
const LETTER = 6.6;
const DRAG = 4;

export interface ChartHost {
  /** The part of the time on the screen, the same for all charts. */
  window(): Window;
  look(window: Window): void;
  /** The longest of the timelines, in nanoseconds. */
  length(): number;
  lit(node: string): boolean;
  choose(node: string): void;
  say(text: string): void;
}

export class Chart {
  readonly element: HTMLElement;
  readonly timeline: StepTimeline;
  readonly #host: ChartHost;
  readonly #rows: Rows;
  readonly #svg = s("svg", { "aria-hidden": "true" });
  readonly #plot: HTMLElement;
  readonly #tops: number[] = [];
  readonly #height: number;
  #bars: Bar[] = [];
  /** The span that the keyboard is at. */
  #at = -1;
  #drag: { readonly x: number; readonly window: Window; far: boolean } | null = null;

  constructor(timeline: StepTimeline, host: ChartHost) {
    this.timeline = timeline;
    this.#host = host;
    this.#rows = rowsOf(timeline);
    let top = AXIS;
    for (const count of this.#rows.counts) {
      this.#tops.push(top);
      top += Math.max(LANE, count * ROW + 6);
    }
    this.#height = top;
    this.#plot = h(
      "div",
      {
        class: "gl-plot",
        tabindex: 0,
        role: "application",
        "aria-roledescription": "timeline",
        "aria-label": `${timeline.title}. Arrow keys go from bar to bar, Enter shows the node in the picture, + and - zoom, 0 shows all`,
        keydown: (event: KeyboardEvent) => this.#key(event),
        wheel: (event: WheelEvent) => this.#wheel(event),
        pointerdown: (event: PointerEvent) => this.#press(event),
        pointermove: (event: PointerEvent) => this.#move(event),
        pointerup: (event: PointerEvent) => this.#release(event),
        pointercancel: () => {
          this.#drag = null;
        },
      },
      this.#svg,
    );
    const lanes = timeline.lanes.map((lane, i) => this.#laneText(lane, i));
    this.element = h(
      "div",
      { class: "gl-chart" },
      h("div", { class: "gl-lanes", style: `height:${top}px` }, ...lanes),
      this.#plot,
    );
  }

  #laneText(lane: TimelineLane, i: number): HTMLElement {
    const share = this.timeline.length ? Math.round((100 * lane.busy) / this.timeline.length) : 0;
    const facts = `busy ${share} %${lane.peak < 0 ? "" : `, peak ${bytes(lane.peak)}`}`;
    return h(
      "div",
      { class: "gl-lane", style: `top:${this.#tops[i]}px`, title: `${lane.name}: ${facts}` },
      h("span", {}, lane.text),
      h("span", { class: "gl-lane-facts" }, facts),
    );
  }

  get #width(): number {
    return Math.max(80, this.#plot.clientWidth);
  }

  draw(): void {
    const { timeline } = this;
    const width = this.#width;
    const window = this.#host.window();
    const scale = width / Math.max(1, window.to - window.from);
    const lit = timeline.nodes.map((node) => this.#host.lit(node));
    this.#bars = barsOf(timeline, this.#rows, window, width, (label) => lit[label] ?? false);
    const axis = ticks(window, width).map((time) => {
      const x = (time - window.from) * scale;
      return s(
        "g",
        {},
        s("path", { d: `M${x.toFixed(1)} ${AXIS - 4}V${this.#height}`, class: "gl-tick" }),
        s("text", { x: x + 3, y: AXIS - 6, class: "gl-time" }, duration(time)),
      );
    });
    const rules = this.#tops.map((top) => s("path", { d: `M0 ${top - 1.5}H${width}`, class: "gl-lane-rule" }));
    this.#svg.setAttribute("width", String(width));
    this.#svg.setAttribute("height", String(this.#height));
    this.#svg.replaceChildren(...axis, ...rules, ...this.#bars.map((bar) => this.#drawBar(bar)));
  }

  #drawBar(bar: Bar): SVGElement {
    const { lane, row, x, width, count, first, last } = bar;
    const y = (this.#tops[lane] ?? 0) + 2 + row * ROW;
    const kind = this.timeline.lanes[lane]?.link ? "gl-copy-bar" : "gl-node-bar";
    const here = first <= this.#at && this.#at <= last && this.#covers(bar, this.#at);
    const classes = ["gl-bar", kind, count > 1 && "gl-many", bar.lit && "gl-lit", here && "gl-here"].filter(Boolean);
    const letters = Math.floor((width - 6) / LETTER);
    const label = count > 1 ? `${count}` : (this.#label(first).split("/").at(-1) ?? "");
    const shown = label.length > letters ? `${label.slice(0, letters - 1)}…` : label;
    const group = s(
      "g",
      { class: classes.join(" "), "data-span": first, "data-node": this.#node(first) },
      s("title", {}, this.#words(bar)),
      s("rect", { x: x.toFixed(1), y, width: Math.max(width - 0.5, 1).toFixed(1), height: ROW - 4, rx: 2 }),
    );
    if (width > NARROW) group.append(s("text", { x: Math.max(x, 0) + 4, y: y + 12 }, shown));
    return group;
  }

  #label(span: number): string {
    return this.timeline.labels[this.timeline.spans.labels[span] ?? 0] ?? "";
  }

  #node(span: number): string {
    return this.timeline.nodes[this.timeline.spans.labels[span] ?? 0] ?? "";
  }

  #covers(bar: Bar, span: number): boolean {
    return this.timeline.spans.lanes[span] === bar.lane && this.#rows.of[span] === bar.row;
  }

  /** A bar in words. */
  #words({ first, count, lane }: Bar): string {
    const { spans, lanes } = this.timeline;
    const where = lanes[lane]?.text ?? "";
    if (count > 1) return `${count} short bars from ${this.#label(first)} on, on ${where}. Zoom in to see them`;
    const turn = spans.iterations[first] ?? -1;
    const size = spans.sizes[first] ?? 0;
    const parts = [
      `${this.#label(first)}: ${duration(spans.lasting[first] ?? 0)} from ${duration(spans.starts[first] ?? 0)} on`,
      size > 0 && bytes(size),
      turn >= 0 && `iteration ${turn}`,
      where,
      this.#host.lit(this.#node(first)) && "selected in the picture",
    ];
    return parts.filter(Boolean).join(", ");
  }

  // ---- mouse -------------------------------------------------------------------------------------------------------

  #time(clientX: number): number {
    const { from, to } = this.#host.window();
    return from + ((clientX - this.#plot.getBoundingClientRect().left) / this.#width) * (to - from);
  }

  #wheel(event: WheelEvent): void {
    const window = this.#host.window();
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      const factor = Math.exp(-event.deltaY / 300);
      return this.#host.look(zoomed(window, factor, this.#time(event.clientX), this.#host.length()));
    }
    const sideways = event.deltaX || (event.shiftKey ? event.deltaY : 0);
    if (!sideways) return;
    event.preventDefault();
    this.#host.look(moved(window, (sideways / this.#width) * (window.to - window.from), this.#host.length()));
  }

  #press(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.#drag = { x: event.clientX, window: this.#host.window(), far: false };
    this.#plot.setPointerCapture?.(event.pointerId);
  }

  #move(event: PointerEvent): void {
    const drag = this.#drag;
    if (!drag) return;
    const by = drag.x - event.clientX;
    if (!drag.far && Math.abs(by) < DRAG) return;
    drag.far = true;
    const { window } = drag;
    this.#host.look(moved(window, (by / this.#width) * (window.to - window.from), this.#host.length()));
  }

  #release(event: PointerEvent): void {
    const dragged = this.#drag?.far ?? true;
    this.#drag = null;
    if (dragged) return;
    const box = this.#plot.getBoundingClientRect();
    const bar = this.#barAt(event.clientX - box.left, event.clientY - box.top);
    if (bar) this.#enter(bar);
  }

  /** The bar at a place, with a pixel around it; the last of several, which is drawn on top. */
  #barAt(x: number, y: number): Bar | undefined {
    return [...this.#bars].reverse().find(({ lane, row, x: left, width }) => {
      const top = (this.#tops[lane] ?? 0) + row * ROW;
      return x >= left - 1 && x <= left + width + 1 && y >= top && y < top + ROW;
    });
  }

  /** Shows the node of a bar in the picture; several short bars are enlarged instead. */
  #enter(bar: Bar): void {
    this.#at = bar.first;
    if (bar.count > 1) this.#enlarge(bar);
    else this.#host.choose(this.#node(bar.first));
    this.#host.say(this.#words(bar));
    this.draw();
  }

  #enlarge({ x, width }: Bar): void {
    const window = this.#host.window();
    const scale = (window.to - window.from) / this.#width;
    const middle = window.from + (x + width / 2) * scale;
    const factor = Math.max(2, Math.min(20, this.#width / Math.max(4 * width, 1)));
    this.#host.look(zoomed(window, factor, middle, this.#host.length()));
  }

  // ---- keyboard ----------------------------------------------------------------------------------------------------

  #key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const window = this.#host.window();
    const length = this.#host.length();
    const middle = this.#at < 0 ? (window.from + window.to) / 2 : (this.timeline.spans.starts[this.#at] ?? 0);
    const work: Record<string, () => void> = {
      ArrowRight: () => this.#walk(1),
      ArrowLeft: () => this.#walk(-1),
      ArrowDown: () => this.#climb(1),
      ArrowUp: () => this.#climb(-1),
      Home: () => this.#goTo(this.#bars[0]),
      End: () => this.#goTo(this.#bars.at(-1)),
      "+": () => this.#host.look(zoomed(window, 2, middle, length)),
      "=": () => this.#host.look(zoomed(window, 2, middle, length)),
      "-": () => this.#host.look(zoomed(window, 0.5, middle, length)),
      "0": () => this.#host.look({ from: 0, to: length }),
      Enter: () => {
        const bar = this.#current();
        if (bar) this.#enter(bar);
      },
    };
    const run = work[event.key];
    if (!run) return;
    event.preventDefault();
    event.stopPropagation();
    run();
  }

  #current(): Bar | undefined {
    return this.#bars.find((bar) => bar.first <= this.#at && this.#at <= bar.last && this.#covers(bar, this.#at));
  }

  /** To the next bar of the lane; beyond the edge of the screen the time moves along. */
  #walk(step: number): void {
    const here = this.#current();
    if (!here) return this.#goTo(this.#bars[0]);
    const row = this.#bars.filter(({ lane }) => lane === here.lane).sort((a, b) => a.x - b.x || a.row - b.row);
    const next = row[row.indexOf(here) + step];
    if (next) return this.#goTo(next);
    const { spans } = this.timeline;
    for (let i = here.first + step; i >= 0 && i < spans.starts.length; i += step) {
      if (spans.lanes[i] !== here.lane) continue;
      const window = this.#host.window();
      this.#at = i;
      const middle = (window.from + window.to) / 2;
      this.#host.look(moved(window, (spans.starts[i] ?? 0) - middle, this.#host.length()));
      return this.#tellHere();
    }
  }

  /** To the nearest bar of the lane above or below. */
  #climb(step: number): void {
    const here = this.#current();
    if (!here) return this.#goTo(this.#bars[0]);
    for (let lane = here.lane + step; lane >= 0 && lane < this.timeline.lanes.length; lane += step) {
      const there = this.#bars.filter((bar) => bar.lane === lane);
      if (there.length === 0) continue;
      return this.#goTo(there.reduce((a, b) => (Math.abs(b.x - here.x) < Math.abs(a.x - here.x) ? b : a)));
    }
  }

  #goTo(bar: Bar | undefined): void {
    if (!bar) return;
    this.#at = bar.first;
    this.draw();
    this.#tellHere();
  }

  #tellHere(): void {
    const bar = this.#current();
    if (bar) this.#host.say(this.#words(bar));
  }
}
