// The plot of the gradients along the depth, and the same as a table.
import { h, s } from "../../dom";
import type { GradientMagnitude } from "../../scene/generated";
import { word } from "../../scene/words";

const HEIGHT = 120;
const LEFT = 44;
/** The pixels for the names below the plot. */
const FOOT = 16;
/** The least and the greatest width of a point's column, in pixels. */
const NARROW = 12;
const WIDE = 56;
/** The pixels of a character of the names, at least. */
const CHARACTER = 6.5;
/** The exponents at which gradients count as vanishing and exploding. */
const VANISHING = -7;
const EXPLODING = 3;
/** The change along the depth, as an exponent, from which gradients count as vanishing or exploding, and the least points that show it. */
const STEEP = 3;
const LEAST_POINTS = 4;
const MOST_POINTS = 200;

export interface PlotActions {
  readonly link: (node: string) => HTMLElement;
  readonly choose: (node: string) => void;
  readonly isLit: (node: string) => boolean;
}

export class MagnitudePlot {
  readonly elements: readonly HTMLElement[];
  readonly #magnitudes: readonly GradientMagnitude[];
  readonly #actions: PlotActions;
  readonly #plot = h("div", { class: "gl-plot gl-magnitudes" });
  readonly #label: string;
  #width = -1;

  constructor(magnitudes: readonly GradientMagnitude[], actions: PlotActions) {
    this.#magnitudes = magnitudes;
    this.#actions = actions;
    const shapes = magnitudes.some(({ weight }) => weight)
      ? ` ${word("Squares are variables, constants and nodes computed from them alone.")}`
      : "";
    this.#label = `${word("Greatest gradient by each node, from the first layer to the loss.")} ${trend(magnitudes)}${shapes}`;
    this.elements = [
      h("h4", {}, word("Gradients along the depth")),
      h("p", { class: "gl-health-note" }, this.#label),
      this.#plot,
      this.#table(),
    ];
    this.draw(0);
  }

  /** Draws the plot for a pane of this width in pixels, 0 if it is unknown. */
  draw(pane: number): void {
    const count = this.#magnitudes.length;
    const column = Math.max(NARROW, Math.min(WIDE, (pane - LEFT - 28) / count));
    const width = Math.ceil(LEFT + 12 + count * column);
    if (width === this.#width) return;
    this.#width = width;
    const levels = this.#magnitudes.flatMap(({ level }) => (level === null ? [] : [level]));
    const low = Math.floor(Math.min(0, ...levels));
    const high = Math.ceil(Math.max(0, low + 1, ...levels));
    const y = (level: number): number => HEIGHT - ((level - low) / (high - low)) * (HEIGHT - 12) - 6;
    const x = (place: number): number => LEFT + (place + 0.5) * column;
    const path = this.#magnitudes.flatMap(({ level, weight }, place) =>
      level === null || weight ? [] : [`${x(place).toFixed(1)},${y(level).toFixed(1)}`],
    );
    this.#plot.replaceChildren(
      s(
        "svg",
        { width, height: HEIGHT + FOOT, role: "img", "aria-label": this.#label },
        ...rules(low, high, width - 8, y),
        s("polyline", { class: "gl-course", points: path.join(" ") }),
        ...this.#magnitudes.map((magnitude, place) => this.#point(magnitude, x(place), y)),
        ...this.#names(x),
      ),
    );
  }

  #point({ node, level, text, bad, weight }: GradientMagnitude, x: number, y: (level: number) => number): SVGElement {
    const shown = level === null ? HEIGHT - 4 : y(level);
    const kind = bad ? "gl-bad" : level === null ? "gl-zero" : "";
    const lit = this.#actions.isLit(node) ? "gl-lit" : "";
    const cross = `M${x - 4},${shown - 4}L${x + 4},${shown + 4}M${x - 4},${shown + 4}L${x + 4},${shown - 4}`;
    const mark = bad
      ? s("path", { d: cross })
      : weight
        ? s("rect", { x: x - 3.5, y: shown - 3.5, width: 7, height: 7 })
        : s("circle", { cx: x, cy: shown, r: 4 });
    const title = s("title", {}, `${node}: ${told(text, bad)}`);
    const point = s("g", { class: `gl-point ${kind} ${lit}`, "data-node": node }, title, mark);
    point.addEventListener("click", () => this.#actions.choose(node));
    return point;
  }

  /** The names of as many nodes as there is room for, the last one always. */
  #names(x: (place: number) => number): SVGElement[] {
    const found: SVGElement[] = [];
    let free = Number.POSITIVE_INFINITY;
    for (let place = this.#magnitudes.length - 1; place >= 0; place--) {
      const { node, weight } = this.#magnitudes[place] as GradientMagnitude;
      const name = node.slice(node.lastIndexOf("/") + 1);
      const half = (name.length * CHARACTER) / 2;
      const middle = Math.min(x(place), this.#width - half);
      if (middle + half > free || middle - half < LEFT - 20 || (weight && found.length > 0)) continue;
      free = middle - half - 8;
      found.push(s("text", { class: "gl-time", x: middle, y: HEIGHT + 12, "text-anchor": "middle" }, name));
    }
    return found;
  }

  #table(): HTMLElement {
    const rows = this.#magnitudes.map(({ node, depth, text, bad }) =>
      h(
        "tr",
        { "data-node": node },
        h("th", { scope: "row" }, this.#actions.link(node)),
        h("td", {}, String(depth)),
        h("td", {}, told(text, bad)),
      ),
    );
    const heads = [word("Node"), word("Depth"), word("Greatest gradient")].map((text) =>
      h("th", { scope: "col" }, text),
    );
    return h(
      "details",
      { class: "gl-lower-table" },
      h("summary", {}, word("As a table")),
      h("table", {}, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows)),
    );
  }
}

/** Lines across the plot at whole exponents. */
function rules(low: number, high: number, right: number, y: (level: number) => number): SVGElement[] {
  const step = Math.max(1, Math.ceil((high - low) / 6));
  return Array.from({ length: Math.floor((high - low) / step) + 1 }, (_, i) => low + i * step).flatMap((level) => [
    s("line", { class: "gl-tick", x1: LEFT, x2: right, y1: y(level), y2: y(level) }),
    s("text", { x: LEFT - 4, y: y(level) + 4, "text-anchor": "end" }, level === 0 ? "1" : `1e${level}`),
  ]);
}

function told(text: string, bad: boolean): string {
  return bad ? word("{text}, with NaN or Inf", { text }) : text;
}

/** The course of the magnitudes in words. */
function trend(magnitudes: readonly GradientMagnitude[]): string {
  if (magnitudes.some(({ bad }) => bad)) return word("Some have NaN or Inf (crosses).");
  const levels = magnitudes.flatMap(({ level }) => (level === null ? [] : [level]));
  const [least, most] = [Math.min(...levels), Math.max(...levels)];
  if (levels.length === 0) return word("All are zero.");
  if (most >= EXPLODING) return word("They reach {most}: exploding.", { most: `1e${Math.round(most)}` });
  if (least <= VANISHING) return word("They fall to {least}: vanishing.", { least: `1e${Math.round(least)}` });
  const change = changeAlongDepth(magnitudes);
  if (Math.abs(change) >= STEEP) {
    const times = Math.round(10 ** Math.abs(change)).toLocaleString("en-US", { maximumSignificantDigits: 2 });
    return change < 0
      ? word("They fall {times}-fold from the loss to the first layer: vanishing.", { times })
      : word("They grow {times}-fold from the loss to the first layer: exploding.", { times });
  }
  if (levels.length < magnitudes.length) return word("Some are zero (hollow).");
  if (most - least >= STEEP) {
    const ends = { least: `1e${Math.round(least)}`, most: `1e${Math.round(most)}` };
    return word("They are between {least} and {most}.", ends);
  }
  return word("They stay in a usual range.");
}

/**
 * The exponent by which gradients change from the loss to the first layer: the median of the slopes between all pairs of points, over the
 * whole depth. A single jump, such as by the mean over a batch, hardly counts.
 */
function changeAlongDepth(magnitudes: readonly GradientMagnitude[]): number {
  const all = magnitudes.flatMap(({ depth, level, weight }) => (level === null || weight ? [] : [{ depth, level }]));
  const every = Math.ceil(all.length / MOST_POINTS);
  const points = all.filter((_, i) => i % every === 0);
  if (points.length < LEAST_POINTS) return 0;
  const slopes: number[] = [];
  for (const [i, a] of points.entries())
    for (const b of points.slice(i + 1)) {
      if (a.depth !== b.depth) slopes.push((b.level - a.level) / (b.depth - a.depth));
    }
  slopes.sort((a, b) => a - b);
  const median = slopes[slopes.length >> 1] ?? 0;
  const depths = points.map(({ depth }) => depth);
  return -median * (Math.max(...depths) - Math.min(...depths));
}
