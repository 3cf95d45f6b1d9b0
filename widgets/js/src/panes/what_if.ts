// The inspector's question what would change on another device. The kernel predicts it, and requests the device on demand.

import { type Child, h } from "../dom";
import type { Effect, EffectRow, RequestLine, SourceRow, WhatIf, WhyStep } from "../scene/generated";
import { shown } from "../scene/shown";
import { word } from "../scene/words";

/** Requests the devices for some boxes (`device` is null), or the effect of one; `apply` requests the device itself. */
export type TryDevice = (ids: readonly string[], device: string | null, apply: boolean) => void;

/** The parts of the inspector that the pane uses. */
export interface Parts {
  steps(steps: readonly WhyStep[]): HTMLElement;
  source(row: SourceRow | null): HTMLElement | null;
  code(text: string, title: string): HTMLElement;
}

const same = (some: readonly string[], others: readonly string[]): boolean =>
  some.length === others.length && some.every((id, index) => id === others[index]);

export class WhatIfPane {
  readonly element: HTMLDetailsElement;
  readonly #ask: TryDevice;
  readonly #parts: Parts;
  readonly #body = h("div", { class: "gl-what-if-body" });
  readonly #result = h("div", { class: "gl-what-if-result", role: "status" });
  readonly #requested = h("p", { class: "gl-note" });
  #select: HTMLSelectElement | null = null;
  /** The chosen device was requested. */
  #isApplied = false;
  #ids: readonly string[] = [];

  constructor(ask: TryDevice, parts: Parts) {
    this.#ask = ask;
    this.#parts = parts;
    this.element = h(
      "details",
      { class: "gl-what-if" },
      h("summary", {}, word("What if it were on another device?")),
      this.#body,
    );
    this.element.addEventListener("toggle", () => {
      if (this.element.open && !this.#select) this.#ask(this.#ids, null, false);
    });
  }

  /** Shows the pane for other boxes, or for the same ones after a cell. */
  show(ids: readonly string[]): void {
    const again = same(ids, this.#ids) && this.#select;
    this.#ids = [...ids];
    if (!again) {
      this.#select = null;
      this.#isApplied = false;
      this.#body.replaceChildren();
      this.#result.replaceChildren();
    }
    if (this.element.open) this.#ask(this.#ids, again ? this.#chosen : null, false);
  }

  /** Shows the answer of the kernel, unless other boxes are shown meanwhile. */
  receive(answer: WhatIf): void {
    if (!same(answer.ids, this.#ids)) return;
    if (answer.note) {
      this.#body.replaceChildren(h("p", { class: "gl-note" }, answer.note));
      return;
    }
    if (!this.#select) this.#offer(answer);
    this.#requested.textContent = shown(`Requested now: ${answer.requested || "nothing"}`);
    if (answer.device !== this.#chosen) return;
    // The picture that follows a request asks again: the lines for the cells stay.
    if (this.#isApplied && !answer.applied && !answer.effect?.error) return;
    this.#isApplied = answer.applied;
    this.#result.replaceChildren(...(answer.effect ? this.#effect(answer.effect, answer) : []));
    this.#result.scrollIntoView?.({ block: "nearest" });
  }

  /** The chosen device, null before a choice. */
  get #chosen(): string | null {
    const value = this.#select?.value ?? "";
    return value ? value.slice(1) : null;
  }

  #offer({ devices }: WhatIf): void {
    // A value begins with "=", so that no request differs from no choice.
    const select = h(
      "select",
      { change: () => this.#choose() },
      h("option", { value: "" }, word("Choose a device")),
      h("option", { value: "=" }, word("No request")),
      ...devices.map(({ name, label }) => h("option", { value: `=${name}` }, label)),
    );
    this.#select = select;
    this.#body.replaceChildren(h("label", {}, h("span", {}, "Device "), select), this.#requested, this.#result);
  }

  #choose(): void {
    this.#isApplied = false;
    this.#result.replaceChildren();
    if (this.#chosen === null) return;
    this.#result.append(h("p", { class: "gl-note" }, "Predicting the effect"));
    this.#ask(this.#ids, this.#chosen, false);
  }

  #effect(effect: Effect, { applied }: WhatIf): HTMLElement[] {
    if (effect.error) return [this.#broken(effect)];
    const apply = (): void => this.#ask(this.#ids, this.#chosen, true);
    const parts: (HTMLElement | null)[] = [
      rows(effect.rows),
      this.#moved(effect),
      ...effect.notes.map((note) => h("p", { class: "gl-note" }, note)),
      applied
        ? h("p", { class: "gl-applied" }, "Requested. A cell that runs again without its line takes the request back:")
        : h("button", { type: "button", class: "gl-text-button", "data-apply": "", click: apply }, "Apply"),
      ...effect.lines.map((line) => this.#line(line)),
    ];
    return parts.filter((part) => part !== null);
  }

  #broken({ error, conflict }: Effect): HTMLElement {
    return h(
      "div",
      { class: "gl-error-box" },
      h("h3", {}, "Breaks a constraint"),
      h("p", { class: "gl-error-text" }, error),
      conflict.length > 0
        ? h("p", {}, "These nodes cannot be placed together; without any one of them the others can:")
        : null,
      conflict.length > 0 ? this.#parts.steps(conflict) : null,
    );
  }

  #moved({ moved, more }: Effect): HTMLElement {
    const count = moved.length + more;
    if (count === 0) return h("p", {}, "No node moves");
    return h(
      "details",
      { class: "gl-why" },
      h("summary", {}, `${count.toLocaleString("en")} ${count === 1 ? "node moves" : "nodes move"}`),
      this.#parts.steps(moved),
      more > 0 ? h("p", { class: "gl-note" }, `and ${more.toLocaleString("en")} more`) : null,
    );
  }

  #line({ source, code, nodes, others: alike }: RequestLine): HTMLElement {
    const [first = "", ...others] = nodes;
    const title = `Above the line that makes ${first}${others.length > 0 ? ` and ${others.length} more` : ""}`;
    const warning = `The line makes ${alike} other ${alike === 1 ? "node" : "nodes"} too: put the request around the call that makes these alone`;
    return h(
      "div",
      { class: "gl-request-line" },
      this.#parts.source(source),
      this.#parts.code(code, title),
      alike > 0 ? h("p", { class: "gl-note" }, warning) : null,
    );
  }
}

function rows(found: readonly EffectRow[]): HTMLElement {
  const cells = ({ what, before, after, change }: EffectRow): Child[] => [
    h("th", { scope: "row" }, what),
    h("td", {}, before),
    h("td", {}, change ? `${after}, ${change}` : after),
  ];
  const head = ["", "Before", "After"].map((title) => h("th", { scope: "col" }, title));
  return h(
    "table",
    { class: "gl-clashes" },
    h("thead", {}, h("tr", {}, ...head)),
    h("tbody", {}, ...found.map((row) => h("tr", {}, ...cells(row)))),
  );
}
