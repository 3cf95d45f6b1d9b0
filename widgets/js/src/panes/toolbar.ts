// The row of controls above the picture.

import type { FileFormat } from "../canvas/exporter";
import { focusedIn, h, iconButton } from "../dom";
import type { Renderer, Scene } from "../scene/generated";
import { word } from "../scene/words";
import { ICONS } from "../style/icons";

export interface ToolbarActions {
  lens(name: string): void;
  renderer(renderer: Renderer): void;
  expandAll(): void;
  collapseAll(): void;
  outline(): void;
  mirror(): void;
  lower(): void;
  back(): void;
  forward(): void;
  help(): void;
  export(format: FileFormat, copy: boolean): void;
}

const RENDERERS: readonly (readonly [Renderer, string])[] = [
  ["graphviz", "Graphviz"],
  ["mermaid", "Mermaid"],
];
const FORMATS: readonly (readonly [FileFormat, string])[] = [
  ["svg", "SVG picture"],
  ["png", "PNG picture"],
  ["pdf", "PDF (print)"],
  ["dot", "DOT text"],
  ["mermaid", "Mermaid text"],
  ["csv", "numbers (CSV)"],
];

/** Not text: nothing to copy. */
const PAGE_ONLY: ReadonlySet<FileFormat> = new Set(["png", "pdf"]);

export class Toolbar {
  readonly element: HTMLElement;
  readonly #lenses: HTMLSelectElement;
  readonly #lensBox: HTMLElement;
  readonly #renderers = new Map<Renderer, HTMLButtonElement>();
  readonly #menu: HTMLElement;
  readonly #menuButton: HTMLButtonElement;
  readonly #outlineButton: HTMLButtonElement;
  readonly #lowerButton: HTMLButtonElement;
  readonly #mirror: HTMLButtonElement;
  readonly #back: HTMLButtonElement;
  readonly #forward: HTMLButtonElement;
  #lensKey = "";

  constructor(search: HTMLElement, actions: ToolbarActions, renderers: readonly Renderer[], fixed: boolean) {
    this.#lenses = h("select", {
      class: "gl-lenses",
      "aria-label": word("Lens"),
      title: word("What the colours of the picture tell"),
      change: () => actions.lens(this.#lenses.value),
    });
    this.#lensBox = h("label", { class: "gl-lens-box", hidden: true }, h("span", {}, word("Lens")), this.#lenses);
    const offered = RENDERERS.filter(([name]) => renderers.includes(name));
    for (const [name, title] of offered) {
      const press = (): void => actions.renderer(name);
      this.#renderers.set(
        name,
        h("button", { type: "button", class: "gl-segment", "data-renderer-choice": name, click: press }, title),
      );
    }
    const switcher =
      offered.length > 1
        ? h("div", { class: "gl-segments", role: "group", "aria-label": word("Renderer") }, ...this.#renderers.values())
        : null;
    this.#mirror = iconButton(ICONS.mirror, "Mirror gradients (m)", () => actions.mirror());
    this.#outlineButton = iconButton(ICONS.outline, "Outline: the graph as a list", () => actions.outline());
    this.#lowerButton = iconButton(ICONS.timeline, "Timeline: when each node runs (t)", () => actions.lower());
    this.#back = iconButton(ICONS.back, "Back to where you were (Alt+Left)", () => actions.back());
    this.#forward = iconButton(ICONS.forward, "Forward again (Alt+Right)", () => actions.forward());
    this.canGo(false, false);
    this.#menu = this.#exportMenu(actions);
    this.#menuButton = iconButton(ICONS.download, "Export the picture", () => this.#toggleMenu());
    this.#menuButton.setAttribute("aria-haspopup", "menu");
    const menuBox = h("div", { class: "gl-menu-box" }, this.#menuButton, this.#menu);
    this.#toggleMenu(false);
    menuBox.addEventListener("focusout", (event) => {
      if (!(event.relatedTarget instanceof Node && menuBox.contains(event.relatedTarget))) this.#toggleMenu(false);
    });
    menuBox.addEventListener("keydown", (event) => this.#menuKey(event));
    const folding = fixed
      ? []
      : [
          iconButton(ICONS.expand, "Expand all", () => actions.expandAll()),
          iconButton(ICONS.collapse, "Collapse all", () => actions.collapseAll()),
        ];
    this.element = h(
      "div",
      { class: "gl-toolbar", role: "toolbar", "aria-label": word("Graph view") },
      search,
      this.#lensBox,
      h(
        "div",
        { class: "gl-controls" },
        switcher,
        h(
          "div",
          { class: "gl-icons" },
          this.#back,
          this.#forward,
          ...folding,
          this.#mirror,
          this.#outlineButton,
          this.#lowerButton,
          iconButton(ICONS.help, "Keyboard shortcuts (?)", () => actions.help()),
          menuBox,
        ),
      ),
    );
  }

  /** Shows the available lenses, whether gradients can be beside what they differentiate, and the chosen lens and renderer. */
  update({ lenses, numbers = [], mirror }: Scene, lens: string, renderer: Renderer): void {
    const key = JSON.stringify(lenses.map(({ name, title }) => [name, title]));
    if (key !== this.#lensKey) {
      this.#lensKey = key;
      this.#lenses.replaceChildren(...lenses.map(({ name, title }) => h("option", { value: name }, word(title))));
    }
    this.#lensBox.hidden = lenses.length === 0;
    const csv = this.#menu.querySelector<HTMLElement>("[data-export=csv]")?.parentElement;
    if (csv) csv.hidden = numbers.every((shown) => shown.lens !== lens);
    this.#mirror.hidden = !mirror && lenses.every(({ name, note }) => name !== "gradients" || note !== "");
    this.#mirror.setAttribute("aria-pressed", String(mirror));
    this.#lenses.value = lens;
    for (const [name, button] of this.#renderers) button.setAttribute("aria-pressed", String(name === renderer));
  }

  /** True for each direction in the history that has a place to go to. */
  canGo(back: boolean, forward: boolean): void {
    this.#back.disabled = !back;
    this.#forward.disabled = !forward;
  }

  outlineOpen(open: boolean): void {
    this.#outlineButton.setAttribute("aria-pressed", String(open));
  }

  lowerOpen(open: boolean): void {
    this.#lowerButton.setAttribute("aria-pressed", String(open));
  }

  #exportMenu(actions: ToolbarActions): HTMLElement {
    const run = (format: FileFormat, copy: boolean) => (): void => {
      this.#toggleMenu(false);
      actions.export(format, copy);
    };
    const rows = FORMATS.map(([format, title]) =>
      h(
        "div",
        { class: "gl-menu-row", role: "none", hidden: format === "csv" },
        h(
          "button",
          { type: "button", role: "menuitem", "data-export": format, click: run(format, false) },
          word("Download {what}", { what: word(title) }),
        ),
        PAGE_ONLY.has(format) ? null : this.#copyButton(title, format, run(format, true)),
      ),
    );
    return h("div", { class: "gl-menu", role: "menu", "aria-label": word("Export") }, ...rows);
  }

  #copyButton(title: string, format: FileFormat, press: () => void): HTMLElement {
    const label = word("Copy {what}", { what: word(title) });
    const button = iconButton(ICONS.copy, label, press);
    button.setAttribute("role", "menuitem");
    button.dataset.copy = format;
    return button;
  }

  #toggleMenu(open = this.#menu.hidden): void {
    this.#menu.hidden = !open;
    this.#menuButton.setAttribute("aria-expanded", String(open));
    if (open) this.#menu.querySelector("button")?.focus();
  }

  #menuKey(event: KeyboardEvent): void {
    const buttons = [...this.#menu.querySelectorAll<HTMLButtonElement>(":scope > :not([hidden]) button")];
    const here = buttons.indexOf(focusedIn(this.element) as HTMLButtonElement);
    if (event.key === "Escape" && !this.#menu.hidden) {
      event.stopPropagation();
      this.#toggleMenu(false);
      this.#menuButton.focus();
    }
    // A row is a format: to its left what saves it, to its right what copies it, if that can be copied.
    const rows = [...this.#menu.querySelectorAll(".gl-menu-row:not([hidden])")].map((row) => [
      ...row.querySelectorAll("button"),
    ]);
    const line = rows.findIndex((row) => row.includes(buttons[here] as HTMLButtonElement));
    const column = rows[line]?.indexOf(buttons[here] as HTMLButtonElement) ?? 0;
    const down = { ArrowDown: 1, ArrowUp: -1 }[event.key] ?? 0;
    const across = { ArrowRight: 1, ArrowLeft: -1 }[event.key] ?? 0;
    if (here < 0 || (!down && !across)) return;
    event.preventDefault();
    if (across) return buttons[(here + across + buttons.length) % buttons.length]?.focus();
    const row = rows[(line + down + rows.length) % rows.length] ?? [];
    (row[column] ?? row[0])?.focus();
  }
}
