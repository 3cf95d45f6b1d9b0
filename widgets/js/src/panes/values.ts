// The inspector's values of a constant or variable. The kernel sends statistics, a histogram and pages of rows.

import { type Child, h, s } from "../dom";
import type { ValueRow, Values } from "../scene/generated";
import { word } from "../scene/words";

/** Requests the page with row `first` of the values of a node. */
export type AskForValues = (name: string, first: number) => void;

const count = (value: number): string => value.toLocaleString("en");

export class ValuesPane {
  readonly element = h("div", { class: "gl-values" });
  readonly #ask: AskForValues;
  #name = "";
  #table: HTMLElement | null = null;
  #first = 0;

  constructor(ask: AskForValues) {
    this.#ask = ask;
  }

  /** Shows the values of a node. If its page was another than the first, that page is requested again. */
  show(name: string, values: Values): void {
    const again = name === this.#name && this.#first > 0 && this.#first < values.total;
    this.#name = name;
    if (again) this.#ask(name, this.#first);
    else this.#turn(values);
    const type = [values.dtype, values.shape].filter(Boolean).join(" ");
    this.element.replaceChildren(
      ...[
        values.note && h("p", { class: "gl-note" }, values.note),
        type && values.statistics.length > 0 && h("p", {}, h("code", {}, type)),
        values.statistics.length > 0 && facts(values),
        values.bins.length > 0 && histogram(values),
        values.picture.length > 0 && picture(values),
        this.#table,
      ].filter((part) => part instanceof Node),
    );
  }

  /** Shows another page, unless another node is shown meanwhile. */
  receive(name: string, values: Values): void {
    if (name !== this.#name) return;
    const before = this.#table;
    const hadFocus = before?.contains(before.ownerDocument.activeElement);
    this.#turn(values);
    if (!this.#table) return;
    before?.replaceWith(this.#table);
    if (hadFocus) this.#table.querySelector<HTMLElement>("input")?.focus();
  }

  #turn(values: Values): void {
    this.#first = values.first;
    this.#table = values.rows.length > 0 ? h("div", {}, table(values), this.#pager(values)) : null;
  }

  #pager({ first, total, page, rows }: Values): HTMLElement | null {
    if (total <= rows.length) return null;
    const button = (label: string, title: string, to: number): HTMLElement =>
      h(
        "button",
        {
          type: "button",
          class: "gl-text-button",
          title,
          disabled: to < 0 || to >= total,
          click: () => this.#ask(this.#name, to),
        },
        label,
      );
    const field = h("input", {
      type: "number",
      min: 1,
      max: total,
      value: first + 1,
      "aria-label": word("First row of the page"),
      change: () => this.#ask(this.#name, Math.min(Math.max(Math.round(Number(field.value)) || 1, 1), total) - 1),
    });
    return h(
      "div",
      { class: "gl-pager" },
      button("‹", word("Previous rows"), first - page),
      h(
        "label",
        {},
        `${word("Rows")} `,
        field,
        ` ${word("to {last} of {total}", { last: count(first + rows.length), total: count(total) })}`,
      ),
      button("›", word("Next rows"), first + page),
    );
  }
}

function facts({ statistics }: Values): HTMLElement {
  const pairs = statistics.map(([name, value]) => h("li", {}, `${name} `, h("code", {}, value)));
  return h("ul", { class: "gl-facts" }, ...pairs);
}

function histogram({ bins, statistics }: Values): HTMLElement {
  const most = Math.max(...bins);
  const bars = bins.map((many, place) => {
    const height = (many / most) * 40;
    return s("rect", { x: place + 0.06, y: 40 - height, width: 0.88, height });
  });
  const [low = "", high = ""] = ["min", "max"].map((name) => statistics.find(([other]) => other === name)?.[1]);
  const picture = s(
    "svg",
    {
      viewBox: `0 0 ${bins.length} 40`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": word("Histogram of the values from {low} to {high}", { low, high }),
    },
    ...bars,
  );
  return h("figure", { class: "gl-histogram" }, picture, h("figcaption", {}, h("span", {}, low), h("span", {}, high)));
}

/** The first image in a tensor, a square for each pixel. */
function picture({ picture: rows, pictures }: Values): HTMLElement {
  const [first = []] = rows;
  const pixels = rows.flatMap((row, y) =>
    row.map((level, x) => s("rect", { x, y, width: 1.05, height: 1.05, fill: `rgb(${level},${level},${level})` })),
  );
  const label = word("The first of {count} images, black for the least value", { count: count(pictures) });
  const size = { viewBox: `0 0 ${first.length} ${rows.length}`, role: "img", "aria-label": label };
  return h("figure", { class: "gl-image" }, s("svg", size, ...pixels), h("figcaption", {}, label));
}

function table({ rows }: Values): HTMLElement {
  const cells = ({ index, cells: texts }: ValueRow): Child[] => [
    index ? h("th", { scope: "row" }, index) : null,
    ...texts.map((text) => h("td", {}, text)),
  ];
  return h(
    "div",
    { class: "gl-value-rows", tabindex: 0, role: "region", "aria-label": word("Values") },
    h("table", {}, h("tbody", {}, ...rows.map((row) => h("tr", {}, ...cells(row))))),
  );
}
