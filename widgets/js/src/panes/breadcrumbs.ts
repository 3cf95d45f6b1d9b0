// The frames around the selected box, from the outside in.
import { h } from "../dom";
import { shownName } from "../scene/boxes";
import type { Scene } from "../scene/generated";
import { word } from "../scene/words";

export class Breadcrumbs {
  readonly element = h("nav", { class: "gl-way", "aria-label": word("Place of the selected box"), hidden: true });
  readonly #select: (id: string) => void;

  constructor(select: (id: string) => void) {
    this.#select = select;
  }

  show({ title, nodes, groups }: Scene, id: string): void {
    const frames = new Map(groups.map((group) => [group.id, group]));
    const box = nodes.find((node) => node.id === id);
    const way: { readonly id: string; readonly label: string }[] = [];
    for (let frame = frames.get(box ? box.group : (frames.get(id)?.parent ?? "")); frame && way.length < 60; ) {
      way.unshift({ id: frame.id, label: frame.label || frame.id });
      frame = frames.get(frame.parent);
    }
    this.element.hidden = way.length === 0;
    const links = way.map(({ id: frame, label }) =>
      h(
        "li",
        {},
        h(
          "button",
          { type: "button", class: "gl-crumb", title: shownName(frame, label), click: () => this.#select(frame) },
          label,
        ),
      ),
    );
    const last = box?.label || frames.get(id)?.label || id;
    this.element.replaceChildren(
      h(
        "ol",
        { class: "gl-crumbs" },
        h(
          "li",
          {},
          h("button", { type: "button", class: "gl-crumb", click: () => this.#select("") }, title || "graph"),
        ),
        ...links,
        h("li", { "aria-current": "location" }, h("span", { class: "gl-crumb" }, last)),
      ),
    );
  }
}
