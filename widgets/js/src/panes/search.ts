// The search field: a combobox with a list of hits, and buttons that apply to all hits below it.
import { focusedIn, h, s } from "../dom";
import type { SearchHit, SearchMessage } from "../scene/generated";
import { word } from "../scene/words";
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
  readonly #panel: HTMLElement;
  readonly #list: HTMLUListElement;
  readonly #counted: HTMLElement;
  readonly #terms: HTMLElement;
  readonly #showMore: HTMLButtonElement;
  readonly #highlightAll: HTMLButtonElement;
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
    this.#list = h("ul", { id: listId, role: "listbox", "aria-label": word("Nodes found"), tabindex: "-1" });
    this.#counted = h("span", { role: "status" });
    this.#terms = h("small", {}, TERMS);
    const button = (title: string, click: () => void): HTMLButtonElement =>
      h("button", { type: "button", class: "gl-text-button", click }, word(title));
    this.#showMore = button("Show more", () => this.#more());
    this.#highlightAll = button("Highlight all (Shift+Enter)", () => this.#filterAll());
    this.#panel = h(
      "div",
      // The field keeps the focus while the mouse presses something here.
      { class: "gl-hits", hidden: true, mousedown: (event: MouseEvent) => event.preventDefault() },
      this.#list,
      h("div", { class: "gl-hit-note" }, this.#counted, this.#terms, this.#showMore, this.#highlightAll),
    );
    this.#input = h("input", {
      type: "search",
      class: "gl-search-field",
      placeholder: word("Find a node"),
      "aria-label": word("Find a node by name, op or cell"),
      title: `Find a node by name, op or cell (/). ${TERMS}`,
      role: "combobox",
      "aria-expanded": "false",
      "aria-autocomplete": "list",
      "aria-controls": listId,
      autocomplete: "off",
      spellcheck: "false",
      input: () => this.#typed(),
      focus: () => this.#panel.hidden && this.#typed(),
    });
    const icon = s(
      "svg",
      { viewBox: "0 0 16 16", class: "gl-icon", "aria-hidden": "true" },
      s("path", { d: ICONS.search }),
    );
    this.element = h(
      "div",
      {
        class: "gl-search",
        keydown: (event: KeyboardEvent) => this.#key(event),
        focusout: ({ relatedTarget }: FocusEvent) =>
          this.element.contains(relatedTarget as Node | null) || this.#close(),
      },
      icon,
      this.#input,
      h("kbd", { "aria-hidden": "true" }, "/"),
      this.#panel,
    );
  }

  focus(): void {
    this.#input.focus();
    this.#input.select();
  }

  /** Shows the answer, unless the query has changed in the meantime. */
  show({ query, hits, total }: SearchMessage): void {
    if (query !== this.#query() || !this.element.contains(focusedIn(this.#input))) return;
    this.#hits = hits;
    this.#total = total;
    const more = this.#limit > PAGE && this.#active > 0;
    this.#active = hits.length === 0 ? -1 : more ? this.#active : 0;
    const rows = hits.map((hit, index) =>
      h(
        "li",
        { role: "option", id: `${this.#list.id}-${index}`, "data-name": hit.name, click: () => this.#take(hit) },
        h("span", { class: "gl-hit-name" }, hit.name),
        h("span", { class: "gl-hit-op" }, hit.op),
      ),
    );
    this.#list.replaceChildren(...rows);
    this.#note(query, hits.length, total);
    this.#open(true);
    this.#mark();
  }

  /** Shows the number of hits below them, and the buttons that apply. */
  #note(query: string, shown: number, total: number): void {
    const counted = total === 1 ? "1 hit" : `${total.toLocaleString("en")} hits`;
    const all = shown >= total;
    this.#counted.textContent =
      shown === 0 ? `Nothing is called “${query}”` : all ? counted : `${shown.toLocaleString("en")} of ${counted}`;
    this.#terms.hidden = shown > 0;
    this.#highlightAll.hidden = shown === 0;
    // The focus does not vanish with the button.
    if (all && focusedIn(this.#showMore) === this.#showMore) this.#highlightAll.focus();
    this.#showMore.hidden = all;
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
    if (event.target !== this.#input) return;
    const hit = this.#hits[this.#active];
    if (key === "Enter" && event.shiftKey && this.#query()) return this.#filterAll();
    if (key === "Enter" && hit && !this.#panel.hidden) return this.#take(hit);
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
    this.#panel.hidden = !open;
    this.#input.setAttribute("aria-expanded", String(open && this.#hits.length > 0));
  }

  #close(): void {
    clearTimeout(this.#timer);
    this.#hits = [];
    this.#open(false);
  }
}
