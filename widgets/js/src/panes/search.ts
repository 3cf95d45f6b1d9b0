// The search field with its list of hits: a combobox with keyboard control.
import { h, s } from "../dom";
import type { SearchHit, SearchMessage } from "../scene/generated";
import { ICONS } from "../style/icons";

const PAUSE_MS = 120;
let serial = 0;

export class Search {
  readonly element: HTMLElement;
  readonly #input: HTMLInputElement;
  readonly #list: HTMLUListElement;
  readonly #ask: (query: string) => void;
  readonly #choose: (hit: SearchHit) => void;
  readonly #leave: () => void;
  #hits: readonly SearchHit[] = [];
  #active = -1;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(ask: (query: string) => void, choose: (hit: SearchHit) => void, leave: () => void) {
    this.#ask = ask;
    this.#choose = choose;
    this.#leave = leave;
    serial += 1;
    const listId = `gl-hits-${serial}`;
    this.#list = h("ul", { class: "gl-hits", id: listId, role: "listbox", "aria-label": "Nodes found", hidden: true });
    this.#input = h("input", {
      type: "search",
      class: "gl-search-field",
      placeholder: "Find a node",
      "aria-label": "Find a node by name, op or cell",
      title: "Find a node by name, op or cell (/)",
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
    if (query !== this.#query() || document.activeElement !== this.#input) return;
    this.#hits = hits;
    this.#active = hits.length > 0 ? 0 : -1;
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
    const more = total - hits.length;
    const note = hits.length === 0 ? `Nothing is called “${query}”` : more > 0 ? `and ${more} more` : "";
    this.#list.replaceChildren(
      ...rows,
      ...(note ? [h("li", { class: "gl-hit-note", role: "presentation" }, note)] : []),
    );
    this.#open(true);
    this.#mark();
  }

  #query(): string {
    return this.#input.value.trim();
  }

  #typed(): void {
    clearTimeout(this.#timer);
    if (!this.#query()) return this.#close();
    this.#timer = setTimeout(() => this.#ask(this.#query()), PAUSE_MS);
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
    if (key === "Enter" && hit && !this.#list.hidden) return this.#take(hit);
    if (key !== "ArrowDown" && key !== "ArrowUp") return;
    event.preventDefault();
    const count = this.#hits.length;
    if (count === 0) return;
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
