// The graph as a tree of names, for screen readers and keyboards.

import { nodeLabel } from "../canvas/drawing";
import { focusedIn, h } from "../dom";
import { shownName } from "../scene/boxes";
import type { Scene, SceneGroup, SceneNode } from "../scene/generated";
import { word } from "../scene/words";

export interface OutlineActions {
  select(id: string): void;
  expand(id: string): void;
  collapse(id: string): void;
}

export class Outline {
  readonly element: HTMLElement;
  readonly #tree: HTMLElement;
  readonly #actions: OutlineActions;
  #scene: Scene | null = null;
  #selected = "";
  #all: ReadonlySet<string> = new Set();

  constructor(actions: OutlineActions) {
    this.#actions = actions;
    this.#tree = h("div", {
      class: "gl-tree",
      role: "tree",
      "aria-multiselectable": "true",
      "aria-label": word("Outline of the graph"),
    });
    this.#tree.addEventListener("keydown", (event) => this.#key(event));
    this.#tree.addEventListener("click", (event) => this.#click(event));
    this.element = h("nav", { class: "gl-outline", "aria-label": word("Outline"), hidden: true }, this.#tree);
  }

  get open(): boolean {
    return !this.element.hidden;
  }

  toggle(): void {
    this.element.hidden = this.open;
    if (!this.open) return;
    this.#build();
    this.#current()?.focus();
  }

  update(scene: Scene): void {
    this.#scene = scene;
    if (this.open) this.#build();
  }

  /** Marks what is selected; `id` is the box that was chosen last. */
  select(id: string, all: ReadonlySet<string>): void {
    this.#selected = id;
    this.#all = all;
    for (const item of this.#items()) this.#mark(item);
    if (this.open) this.#current()?.scrollIntoView?.({ block: "nearest" });
  }

  #items(): HTMLElement[] {
    return [...this.#tree.querySelectorAll<HTMLElement>('[role="treeitem"]')];
  }

  #current(): HTMLElement | undefined {
    const items = this.#items();
    return items.find((item) => item.dataset.id === this.#selected) ?? items[0];
  }

  #mark(item: HTMLElement): void {
    const chosen = item.dataset.id === this.#selected;
    item.setAttribute("aria-selected", String(this.#all.has(item.dataset.id ?? "")));
    item.tabIndex = chosen || (!this.#selected && item === this.#tree.firstElementChild) ? 0 : -1;
  }

  #build(): void {
    const scene = this.#scene;
    if (!scene) return;
    const focused = this.#tree.contains(focusedIn(this.#tree));
    const rows: HTMLElement[] = [];
    const known = new Set(scene.groups.map((group) => group.id));
    const inside = <T>(items: readonly T[], parent: (item: T) => string): Map<string, T[]> => {
      const map = new Map<string, T[]>();
      for (const item of items) {
        const key = known.has(parent(item)) ? parent(item) : "";
        map.set(key, [...(map.get(key) ?? []), item]);
      }
      return map;
    };
    const groups = inside(scene.groups, (group: SceneGroup) => group.parent);
    const nodes = inside(scene.nodes, (node: SceneNode) => node.group);
    const add = (parent: string, level: number): void => {
      if (level > 40) return;
      for (const group of groups.get(parent) ?? []) {
        rows.push(
          this.#row(
            group.id,
            level,
            group.label || group.id,
            group.kind,
            true,
            `open ${group.kind} ${shownName(group.id, group.label)}`,
          ),
        );
        add(group.id, level + 1);
      }
      for (const node of nodes.get(parent) ?? []) {
        if (node.kind === "stub") continue;
        const row = this.#row(
          node.id,
          level,
          node.label || node.id,
          node.op || node.kind,
          node.expandable ? false : null,
          nodeLabel(node),
        );
        row.classList.add(`gl-role-${node.role}`, `gl-state-${node.state}`);
        rows.push(row);
      }
    };
    add("", 1);
    this.#tree.replaceChildren(...rows);
    for (const row of rows) this.#mark(row);
    if (focused) this.#current()?.focus();
  }

  #row(id: string, level: number, name: string, kind: string, open: boolean | null, label: string): HTMLElement {
    return h(
      "div",
      {
        role: "treeitem",
        "data-id": id,
        "aria-level": level,
        "aria-expanded": open === null ? null : String(open),
        "aria-label": label,
        style: `--gl-level:${level - 1}`,
      },
      h("span", { class: "gl-twist", "aria-hidden": "true" }, open === null ? "" : open ? "−" : "+"),
      h("span", { class: "gl-row-name" }, name),
      kind === name ? null : h("span", { class: "gl-row-kind" }, kind),
    );
  }

  #click(event: Event): void {
    const { target } = event;
    const item = target instanceof Element ? target.closest<HTMLElement>('[role="treeitem"]') : null;
    const id = item?.dataset.id;
    if (!item || !id) return;
    if (target instanceof Element && target.classList.contains("gl-twist")) this.#toggle(item, id);
    else this.#actions.select(id);
  }

  #toggle(item: HTMLElement, id: string): void {
    const open = item.getAttribute("aria-expanded");
    if (open === "true") this.#actions.collapse(id);
    if (open === "false") this.#actions.expand(id);
  }

  #key(event: KeyboardEvent): void {
    const items = this.#items();
    const here = items.indexOf(focusedIn(this.#tree) as HTMLElement);
    const item = items[here];
    const id = item?.dataset.id;
    if (!item || !id) return;
    const expanded = item.getAttribute("aria-expanded");
    const steps: Readonly<Record<string, () => void>> = {
      ArrowDown: () => items[here + 1]?.focus(),
      ArrowUp: () => items[here - 1]?.focus(),
      Home: () => items[0]?.focus(),
      End: () => items[items.length - 1]?.focus(),
      Enter: () => this.#actions.select(id),
      " ": () => this.#toggle(item, id),
      ArrowRight: () => (expanded === "false" ? this.#actions.expand(id) : items[here + 1]?.focus()),
      ArrowLeft: () => (expanded === "true" ? this.#actions.collapse(id) : this.#parent(items, here)?.focus()),
    };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    step();
  }

  #parent(items: readonly HTMLElement[], here: number): HTMLElement | undefined {
    const level = Number(items[here]?.getAttribute("aria-level"));
    return [...items.slice(0, here)].reverse().find((item) => Number(item.getAttribute("aria-level")) < level);
  }
}
