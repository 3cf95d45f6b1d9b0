// The row of controls above the picture.
import { h, iconButton, s } from "../dom";
import type { ExportFormat, Lens, Renderer } from "../scene/generated";
import { ICONS } from "../style/icons";

export interface ToolbarActions {
  lens(name: string): void;
  renderer(renderer: Renderer): void;
  expandAll(): void;
  collapseAll(): void;
  outline(): void;
  export(format: ExportFormat, copy: boolean): void;
}

const RENDERERS: readonly (readonly [Renderer, string])[] = [
  ["graphviz", "Graphviz"],
  ["mermaid", "Mermaid"],
];
const FORMATS: readonly (readonly [ExportFormat, string])[] = [
  ["svg", "SVG picture"],
  ["dot", "DOT text"],
  ["mermaid", "Mermaid text"],
];

export class Toolbar {
  readonly element: HTMLElement;
  readonly #lenses: HTMLSelectElement;
  readonly #lensBox: HTMLElement;
  readonly #renderers = new Map<Renderer, HTMLButtonElement>();
  readonly #menu: HTMLElement;
  readonly #menuButton: HTMLButtonElement;
  readonly #outlineButton: HTMLButtonElement;
  #lensKey = "";

  constructor(search: HTMLElement, actions: ToolbarActions, renderers: readonly Renderer[], offline: boolean) {
    this.#lenses = h("select", {
      class: "gl-lenses",
      "aria-label": "Lens",
      title: "What the colours of the picture tell",
      change: () => actions.lens(this.#lenses.value),
    });
    this.#lensBox = h("label", { class: "gl-lens-box", hidden: true }, h("span", {}, "Lens"), this.#lenses);
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
        ? h("div", { class: "gl-segments", role: "group", "aria-label": "Renderer" }, ...this.#renderers.values())
        : null;
    this.#outlineButton = iconButton(ICONS.outline, "Outline: the graph as a list", () => actions.outline());
    this.#menu = this.#exportMenu(actions);
    this.#menuButton = iconButton(ICONS.download, "Export the picture", () => this.#toggleMenu());
    this.#menuButton.setAttribute("aria-haspopup", "menu");
    const menuBox = h("div", { class: "gl-menu-box" }, this.#menuButton, this.#menu);
    this.#toggleMenu(false);
    menuBox.addEventListener("focusout", (event) => {
      if (!(event.relatedTarget instanceof Node && menuBox.contains(event.relatedTarget))) this.#toggleMenu(false);
    });
    menuBox.addEventListener("keydown", (event) => this.#menuKey(event));
    const folding = offline
      ? []
      : [
          iconButton(ICONS.expand, "Expand all", () => actions.expandAll()),
          iconButton(ICONS.collapse, "Collapse all", () => actions.collapseAll()),
        ];
    this.element = h(
      "div",
      { class: "gl-toolbar", role: "toolbar", "aria-label": "Graph view" },
      search,
      this.#lensBox,
      h(
        "div",
        { class: "gl-controls" },
        switcher,
        h("span", { class: "gl-spacer" }),
        ...folding,
        this.#outlineButton,
        menuBox,
      ),
    );
  }

  /** Shows the available lenses, and the chosen lens and renderer. */
  update(lenses: readonly Lens[], lens: string, renderer: Renderer): void {
    const key = JSON.stringify(lenses.map(({ name, title }) => [name, title]));
    if (key !== this.#lensKey) {
      this.#lensKey = key;
      this.#lenses.replaceChildren(...lenses.map(({ name, title }) => h("option", { value: name }, title)));
    }
    this.#lensBox.hidden = lenses.length === 0;
    this.#lenses.value = lens;
    for (const [name, button] of this.#renderers) button.setAttribute("aria-pressed", String(name === renderer));
  }

  outlineOpen(open: boolean): void {
    this.#outlineButton.setAttribute("aria-pressed", String(open));
  }

  #exportMenu(actions: ToolbarActions): HTMLElement {
    const run = (format: ExportFormat, copy: boolean) => (): void => {
      this.#toggleMenu(false);
      actions.export(format, copy);
    };
    const rows = FORMATS.map(([format, title]) =>
      h(
        "div",
        { class: "gl-menu-row", role: "none" },
        h(
          "button",
          { type: "button", role: "menuitem", "data-export": format, click: run(format, false) },
          `Download ${title}`,
        ),
        h(
          "button",
          {
            type: "button",
            role: "menuitem",
            class: "gl-button",
            "data-copy": format,
            "aria-label": `Copy ${title}`,
            title: `Copy ${title}`,
            click: run(format, true),
          },
          s("svg", { viewBox: "0 0 16 16", class: "gl-icon", "aria-hidden": "true" }, s("path", { d: ICONS.copy })),
        ),
      ),
    );
    return h("div", { class: "gl-menu", role: "menu", "aria-label": "Export" }, ...rows);
  }

  #toggleMenu(open = this.#menu.hidden): void {
    this.#menu.hidden = !open;
    this.#menuButton.setAttribute("aria-expanded", String(open));
    if (open) this.#menu.querySelector("button")?.focus();
  }

  #menuKey(event: KeyboardEvent): void {
    const buttons = [...this.#menu.querySelectorAll("button")];
    const here = buttons.indexOf(document.activeElement as HTMLButtonElement);
    if (event.key === "Escape" && !this.#menu.hidden) {
      event.stopPropagation();
      this.#toggleMenu(false);
      this.#menuButton.focus();
    }
    // Each row is a format: the left button saves it, the right one copies it.
    const steps: Readonly<Record<string, number>> = { ArrowDown: 2, ArrowUp: -2, ArrowRight: 1, ArrowLeft: -1 };
    const step = steps[event.key];
    if (here < 0 || !step) return;
    event.preventDefault();
    buttons[(here + step + buttons.length) % buttons.length]?.focus();
  }
}
