// The tensors that make the peak of a timeline's memory, or are alive at another moment, as a table.
import { h } from "../../dom";
import { bytes, duration } from "../../scene/bars";
import type { StepTimeline } from "../../scene/generated";
import { aliveAt, type Curve } from "../../scene/memory";
import { word } from "../../scene/words";

const MOST_ROWS = 40;
const MOST_NAMED = 3;

export interface MemoryHost {
  /** A link to the node of a label. */
  link(label: number): HTMLElement;
  /** The table now shows this moment of a lane. */
  moved(lane: number, time: number): void;
}

/** The largest tensors of a moment in words. */
export function momentWords(timeline: StepTimeline, lane: number, time: number): string {
  const alive = aliveAt(timeline, lane, time);
  const held = alive.reduce((sum, each) => sum + each.bytes, 0);
  const named = alive.slice(0, MOST_NAMED).map((each) => `${shortName(timeline, each.label)} ${bytes(each.bytes)}`);
  if (alive.length > MOST_NAMED) named.push(word("and {count} more", { count: alive.length - MOST_NAMED }));
  const device = timeline.lanes[lane]?.text ?? "";
  const what = named.join(", ") || word("nothing");
  return word("{held} alive at {time} on {device}: {what}", { held: bytes(held), time: duration(time), device, what });
}

/** The name of a node without the calls around it. */
function shortName({ labels }: StepTimeline, label: number): string {
  return labels[label]?.split(" > ").at(-1) ?? "";
}

export class MemoryTable {
  readonly element: HTMLElement;
  readonly #timeline: StepTimeline;
  readonly #curves: readonly (Curve | null)[];
  readonly #host: MemoryHost;
  readonly #title = h("summary", {});
  readonly #body = h("div", {});
  readonly #lanes: HTMLSelectElement;
  readonly #time: HTMLInputElement;
  #lane: number;
  #at = 0;

  constructor(timeline: StepTimeline, curves: readonly (Curve | null)[], host: MemoryHost) {
    this.#timeline = timeline;
    this.#curves = curves;
    this.#host = host;
    const used = curves.flatMap((curve, lane) => (curve ? [lane] : []));
    this.#lane = used.reduce((a, b) => ((curves[b]?.peak ?? 0) > (curves[a]?.peak ?? 0) ? b : a), used[0] ?? 0);
    this.#lanes = h(
      "select",
      { "aria-label": word("Device"), change: () => this.peak(Number(this.#lanes.value)) },
      ...used.map((lane) => h("option", { value: String(lane) }, timeline.lanes[lane]?.text ?? "")),
    );
    this.#lanes.hidden = used.length < 2;
    this.#time = h("input", {
      type: "range",
      min: "0",
      max: String(Math.max(1, timeline.length)),
      step: "any",
      "aria-label": word("Moment of the step"),
      input: () => this.show(this.#lane, Number(this.#time.value)),
      keydown: (event: KeyboardEvent) => this.#step(event),
    });
    const toPeak = h(
      "button",
      { type: "button", class: "gl-text-button", click: () => this.peak(this.#lane) },
      word("At the peak"),
    );
    this.element = h(
      "details",
      { class: "gl-lower-table gl-memory-table" },
      this.#title,
      h("div", { class: "gl-memory-choice" }, this.#lanes, this.#time, toPeak),
      this.#body,
    );
    this.peak(this.#lane);
  }

  /** Shows the peak of a lane. */
  peak(lane: number): void {
    this.show(lane, this.#curves[lane]?.peakAt ?? 0);
  }

  /** Shows a moment of a lane. */
  show(lane: number, time: number): void {
    const { lanes, length } = this.#timeline;
    this.#lane = lane;
    this.#at = Math.min(Math.max(0, time), length);
    this.#lanes.value = String(lane);
    this.#time.value = String(this.#at);
    const isPeak = this.#at === this.#curves[lane]?.peakAt;
    const words = momentWords(this.#timeline, lane, this.#at);
    this.#time.setAttribute("aria-valuetext", words);
    this.#title.textContent = `${isPeak ? word("Memory at the peak") : word("Memory")}: ${words}`;
    const alive = aliveAt(this.#timeline, lane, this.#at);
    const held = alive.reduce((sum, each) => sum + each.bytes, 0);
    const rows = alive
      .slice(0, MOST_ROWS)
      .map((each) =>
        h(
          "tr",
          {},
          h("th", { scope: "row" }, this.#host.link(each.label), each.count > 1 ? ` × ${each.count}` : null),
          h("td", {}, bytes(each.bytes)),
          h("td", {}, `${Math.round((100 * each.bytes) / held)} %`),
          h("td", {}, word("{from} to {to}", { from: duration(each.from), to: duration(each.to) })),
        ),
      );
    const shown =
      alive.length > MOST_ROWS
        ? word("The largest {most} of {count}", { most: MOST_ROWS, count: alive.length })
        : word("The largest first");
    const moment = { time: duration(this.#at), device: lanes[lane]?.text ?? "", held: bytes(held), shown };
    const caption = word("Tensors alive at {time} on {device}: {held}. {shown}", moment);
    const heads = [word("Made by"), word("Bytes"), word("Share"), word("Alive")];
    this.#body.replaceChildren(
      h(
        "table",
        {},
        h("caption", {}, caption),
        h("thead", {}, h("tr", {}, ...heads.map((text) => h("th", { scope: "col" }, text)))),
        h("tbody", {}, ...rows),
      ),
    );
    this.#host.moved(lane, this.#at);
  }

  /** Arrow keys go to the next moment at which something begins or ends. */
  #step(event: KeyboardEvent): void {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const times = this.#curves[this.#lane]?.times ?? [];
    const next = step > 0 ? times.find((time) => time > this.#at) : times.filter((time) => time < this.#at).at(-1);
    if (next !== undefined) this.show(this.#lane, next);
  }
}
