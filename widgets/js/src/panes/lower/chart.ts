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
import { textWidth } from "../../scene/measure";
import { areaPath, type Curve, columnsOf } from "../../scene/memory";
import { word } from "../../scene/words";
import { momentWords } from "./memory";

const ROW = 20;
const AXIS = 20;
/** The least height of a lane: two lines of text. */
const LANE = 40;
/** The height of the memory below the bars of a lane. */
const MEMORY = 30;
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
  /** Tells about the memory of a lane at a time. */
  moment(lane: number, time: number): void;
}

export class Chart {
  readonly element: HTMLElement;
  readonly timeline: StepTimeline;
  readonly #host: ChartHost;
  readonly #rows: Rows;
  readonly #curves: readonly (Curve | null)[];
  readonly #svg = s("svg", { "aria-hidden": "true" });
  readonly #plot: HTMLElement;
  readonly #tops: number[] = [];
  /** The base line of the memory of each lane. */
  readonly #bases: number[] = [];
  readonly #height: number;
  #bars: Bar[] = [];
  /** The span that the keyboard is at. */
  #at = -1;
  #moment: { readonly lane: number; readonly time: number } | null = null;
  #drag: { readonly x: number; readonly window: Window; far: boolean } | null = null;

  constructor(timeline: StepTimeline, curves: readonly (Curve | null)[], host: ChartHost) {
    this.timeline = timeline;
    this.#curves = curves;
    this.#host = host;
    this.#rows = rowsOf(timeline);
    let top = AXIS;
    for (const [lane, count] of this.#rows.counts.entries()) {
      this.#tops.push(top);
      const bars = count * ROW + 6;
      top += Math.max(LANE, bars + (curves[lane] ? MEMORY + 6 : 0));
      this.#bases.push(top - 4);
    }
    this.#height = top;
    this.#plot = h(
      "div",
      {
        class: "gl-plot",
        tabindex: 0,
        role: "application",
        "aria-roledescription": "timeline",
        "aria-label": `${timeline.title}. ${word("Arrow keys go from bar to bar, Enter shows the node in the picture, m tells the peak of the memory, + and - zoom, 0 shows all")}`,
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
    const facts =
      lane.peak < 0
        ? word("busy {share} %", { share })
        : word("busy {share} %, peak {peak}", { share, peak: bytes(lane.peak) });
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
        x + 3 + textWidth(duration(time), "label") <= width
          ? s("text", { x: x + 3, y: AXIS - 6, class: "gl-time" }, duration(time))
          : null,
      );
    });
    const rules = this.#tops.map((top) => s("path", { d: `M0 ${top - 1.5}H${width}`, class: "gl-lane-rule" }));
    this.#svg.setAttribute("width", String(width));
    this.#svg.setAttribute("height", String(this.#height));
    const memory = this.#curves.flatMap((curve, lane) => (curve ? [this.#drawMemory(curve, lane, window, width)] : []));
    this.#svg.replaceChildren(...axis, ...rules, ...memory, ...this.#bars.map((bar) => this.#drawBar(bar)));
  }

  /** Marks a moment in the memory of a lane. */
  mark(lane: number, time: number): void {
    this.#moment = { lane, time };
    this.draw();
  }

  #drawMemory(curve: Curve, lane: number, window: Window, width: number): SVGElement {
    const base = this.#bases[lane] ?? 0;
    const scale = width / Math.max(1, window.to - window.from);
    const area = areaPath(columnsOf(curve, window, width), curve.peak, MEMORY - 2, base);
    const group = s("g", { class: "gl-memory", "data-lane": lane }, s("path", { d: area }));
    const place = (time: number): number => (time - window.from) * scale;
    const peak = place(curve.peakAt);
    if (peak >= 0 && peak <= width) {
      const text = word("peak {peak}", { peak: bytes(curve.peak) });
      const isLeft = peak > width - 100;
      const x = peak + (isLeft ? -6 : 6);
      group.append(
        s("path", { class: "gl-memory-peak", d: `M${peak.toFixed(1)} ${base - MEMORY + 2}l-4 -6h8Z` }),
        s("text", { x, y: base - MEMORY + 4, "text-anchor": isLeft ? "end" : "start" }, text),
      );
    }
    if (this.#moment?.lane === lane) {
      const x = place(this.#moment.time).toFixed(1);
      group.append(s("path", { class: "gl-memory-moment", d: `M${x} ${base}V${base - MEMORY}` }));
    }
    return group;
  }

  /** The lane whose memory is at this height; -1 for none. */
  #memoryAt(y: number): number {
    return this.#bases.findIndex((base, lane) => this.#curves[lane] && y <= base + 3 && y >= base - MEMORY);
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
    if (count > 1)
      return word("{count} short bars from {first} on, on {where}. Zoom in to see them", {
        count,
        first: this.#label(first),
        where,
      });
    const [lasting, start] = [spans.lasting[first] ?? 0, spans.starts[first] ?? 0].map(duration);
    const turn = spans.iterations[first] ?? -1;
    const size = spans.sizes[first] ?? 0;
    const parts = [
      word("{node}: {lasting} from {start} on", {
        node: this.#label(first),
        lasting: lasting ?? "",
        start: start ?? "",
      }),
      size > 0 && bytes(size),
      turn >= 0 && word("iteration {count}", { count: turn }),
      where,
      this.#host.lit(this.#node(first)) && word("selected in the picture"),
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
    if (!drag) return this.#hover(event);
    const by = drag.x - event.clientX;
    if (!drag.far && Math.abs(by) < DRAG) return;
    drag.far = true;
    const { window } = drag;
    this.#host.look(moved(window, (by / this.#width) * (window.to - window.from), this.#host.length()));
  }

  /** Tells the memory under the mouse. */
  #hover({ clientX, clientY }: PointerEvent): void {
    const lane = this.#memoryAt(clientY - this.#plot.getBoundingClientRect().top);
    if (lane >= 0) this.#host.say(momentWords(this.timeline, lane, Math.max(0, Math.round(this.#time(clientX)))));
  }

  #release(event: PointerEvent): void {
    const dragged = this.#drag?.far ?? true;
    this.#drag = null;
    if (dragged) return;
    const box = this.#plot.getBoundingClientRect();
    const bar = this.#barAt(event.clientX - box.left, event.clientY - box.top);
    if (bar) return this.#enter(bar);
    const lane = this.#memoryAt(event.clientY - box.top);
    if (lane >= 0) this.#host.moment(lane, Math.max(0, Math.round(this.#time(event.clientX))));
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
      m: () => this.#tellPeak(),
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

  /** Tells the peak of the memory of the lane that the keyboard is at, or of the first that has any. */
  #tellPeak(): void {
    const here = this.#current()?.lane ?? -1;
    const lane = this.#curves[here] ? here : this.#curves.findIndex(Boolean);
    const curve = this.#curves[lane];
    if (!curve) return this.#host.say(word("This timeline has no memory"));
    this.#host.moment(lane, curve.peakAt);
    this.#host.say(momentWords(this.timeline, lane, curve.peakAt));
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
