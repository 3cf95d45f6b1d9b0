// The search field with its list of hits: a combobox with keyboard control.
import { type Child, focusedIn, h, s } from "../dom";
import type { SearchHit, SearchMessage } from "../scene/generated";
import { ICONS } from "../style/icons";

const PAUSE_MS = 120;
/** So many hits are shown at first, and so many more each time more are asked for. */
const PAGE = 50;
const TERMS =
  "Several words must all match. Terms: op:MatMul, shape:[?,10], shape:64, dtype:float, cell:3, device:gpu, attr:padding, strides=2.";
let serial = 0;

export class Search {
  readonly element: HTMLElement;
  readonly #input: HTMLInputElement;
  readonly #list: HTMLUListElement;
  readonly #ask: (query: string, limit: number) => void;
  readonly #choose: (hit: SearchHit) => void;
  readonly #filter: (query: string) => void;
  readonly #leave: () => void;
  #hits: readonly SearchHit[] = [];
  #active = -1;
  #limit = PAGE;
  #total = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    ask: (query: string, limit: number) => void,
    choose: (hit: SearchHit) => void,
    filter: (query: string) => void,
    leave: () => void,
  ) {
    this.#ask = ask;
    this.#choose = choose;
    this.#filter = filter;
    this.#leave = leave;
    serial += 1;
    const listId = `gl-hits-${serial}`;
    this.#list = h("ul", { class: "gl-hits", id: listId, role: "listbox", "aria-label": "Nodes found", hidden: true });
    this.#input = h("input", {
      type: "search",
      class: "gl-search-field",
      placeholder: "Find a node",
      "aria-label": "Find a node by name, op or cell",
      title: `Find a node by name, op or cell (/). ${TERMS}`,
      role: "combobox",
      "aria-expanded": "false",
      "aria-autocomplete": "list",
      "aria-controls": listId,
      autocomplete: "off",
      spellcheck: "false",
      input: () => this.#typed(),
      keydown: (event: KeyboardEvent) => this.#key(event),
      blur: () => this.#close(),
      focus: () => this.#typed(),
    });
    const icon = s(
      "svg",
      { viewBox: "0 0 16 16", class: "gl-icon", "aria-hidden": "true" },
      s("path", { d: ICONS.search }),
    );
    this.element = h(
      "div",
      { class: "gl-search" },
      icon,
      this.#input,
      h("kbd", { "aria-hidden": "true" }, "/"),
      this.#list,
    );
  }

  focus(): void {
    this.#input.focus();
    this.#input.select();
  }

  /** Shows the answer, unless the query has changed in the meantime. */
  show({ query, hits, total }: SearchMessage): void {
    if (query !== this.#query() || focusedIn(this.#input) !== this.#input) return;
    this.#hits = hits;
    this.#total = total;
    const more = this.#limit > PAGE && this.#active > 0;
    this.#active = hits.length === 0 ? -1 : more ? this.#active : 0;
    const rows = hits.map((hit, index) =>
      h(
        "li",
        {
          role: "option",
          id: `${this.#list.id}-${index}`,
          "data-name": hit.name,
          // Not `click`, before which the field would lose its focus.
          mousedown: (event: MouseEvent) => {
            event.preventDefault();
            this.#take(hit);
          },
        },
        h("span", { class: "gl-hit-name" }, hit.name),
        h("span", { class: "gl-hit-op" }, hit.op),
      ),
    );
    this.#list.replaceChildren(...rows, ...this.#notes(query, hits.length, total));
    this.#open(true);
    this.#mark();
  }

  /** The line below the hits: their number, and buttons. A list of options can hold no buttons for screen readers. */
  #notes(query: string, shown: number, total: number): HTMLElement[] {
    const note = (...children: Child[]): HTMLElement =>
      h("li", { class: "gl-hit-note", role: "presentation", "aria-hidden": "true" }, ...children);
    if (shown === 0) return [note(`Nothing is called “${query}”`), note(h("small", {}, TERMS))];
    const counted = total === 1 ? "1 hit" : `${total.toLocaleString("en")} hits`;
    const button = (title: string, press: () => void): HTMLElement => {
      const mousedown = (event: MouseEvent): void => {
        event.preventDefault();
        press();
      };
      return h("button", { type: "button", class: "gl-text-button", tabindex: "-1", mousedown }, title);
    };
    const all = button("Highlight all (Shift+Enter)", () => this.#filterAll());
    if (shown >= total) return [note(counted, all)];
    const more = button("Show more", () => this.#more());
    return [note(`${shown.toLocaleString("en")} of ${counted}`, more, all)];
  }

  #filterAll(): void {
    const query = this.#query();
    this.#close();
    this.#leave();
    this.#filter(query);
  }

  #more(): void {
    this.#limit += 4 * PAGE;
    this.#ask(this.#query(), this.#limit);
  }

  #query(): string {
    return this.#input.value.trim();
  }

  #typed(): void {
    clearTimeout(this.#timer);
    if (!this.#query()) return this.#close();
    this.#limit = PAGE;
    this.#timer = setTimeout(() => this.#ask(this.#query(), this.#limit), PAUSE_MS);
  }

  #key(event: KeyboardEvent): void {
    event.stopPropagation();
    const { key } = event;
    if (key === "Escape") {
      this.#close();
      this.#input.value = "";
      return this.#leave();
    }
    const hit = this.#hits[this.#active];
    if (key === "Enter" && event.shiftKey && this.#query()) return this.#filterAll();
    if (key === "Enter" && hit && !this.#list.hidden) return this.#take(hit);
    if (key !== "ArrowDown" && key !== "ArrowUp") return;
    event.preventDefault();
    const count = this.#hits.length;
    if (count === 0) return;
    const last = this.#active === count - 1 && key === "ArrowDown";
    if (last && count < this.#total) {
      this.#active += 1;
      return this.#more();
    }
    this.#active = (this.#active + (key === "ArrowDown" ? 1 : count - 1)) % count;
    this.#mark();
  }

  #mark(): void {
    const options = [...this.#list.querySelectorAll('[role="option"]')];
    for (const [index, option] of options.entries())
      option.setAttribute("aria-selected", String(index === this.#active));
    const active = options[this.#active];
    this.#input.setAttribute("aria-activedescendant", active?.id ?? "");
    active?.scrollIntoView?.({ block: "nearest" });
  }

  #take(hit: SearchHit): void {
    this.#close();
    this.#leave();
    this.#choose(hit);
  }

  #open(open: boolean): void {
    this.#list.hidden = !open;
    this.#input.setAttribute("aria-expanded", String(open));
  }

  #close(): void {
    clearTimeout(this.#timer);
    this.#hits = [];
    this.#open(false);
  }
}
