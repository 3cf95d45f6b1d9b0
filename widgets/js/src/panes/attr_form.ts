// The attrs of a function as a form. Invalid entries are kept, with their errors beside them.

import { focusedIn, h, setAttributes } from "../dom";
import type { AttrField } from "../scene/generated";
import { oneLine } from "../scene/measure";

const PAUSE_MS = 250;
let serial = 0;

type Control = HTMLInputElement | HTMLSelectElement;

interface Row {
  readonly element: HTMLElement;
  readonly control: Control;
  readonly error: HTMLElement;
}

export class AttrForm {
  readonly element = h("form", {
    class: "gl-attr-form",
    "aria-label": "Attributes",
    submit: (e: Event) => e.preventDefault(),
  });
  readonly #set: (name: string, value: string) => void;
  readonly #rows = new Map<string, Row>();
  #key = "";
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(set: (name: string, value: string) => void) {
    this.#set = set;
  }

  /** Shows the fields of the kernel. A field in which the user is typing keeps the user's text. */
  show(fields: readonly AttrField[]): void {
    const key = JSON.stringify(fields.map(({ name, kind, choices }) => [name, kind, choices]));
    if (key !== this.#key) this.#build(fields);
    this.#key = key;
    this.element.hidden = fields.length === 0;
    for (const field of fields) this.#update(field);
  }

  dispose(): void {
    clearTimeout(this.#timer);
  }

  #build(fields: readonly AttrField[]): void {
    this.#rows.clear();
    for (const field of fields) this.#rows.set(field.name, this.#row(field));
    this.element.replaceChildren(...[...this.#rows.values()].map(({ element }) => element));
  }

  #row(field: AttrField): Row {
    serial += 1;
    const id = `gl-attr-${serial}`;
    const error = h("span", { class: "gl-field-error", id: `${id}-error`, role: "alert" });
    const hint = h("span", { class: "gl-field-hint", id: `${id}-hint` }, field.hint);
    const control = field.choices.length > 0 ? this.#choice(field) : this.#text(field);
    setAttributes(control, {
      id,
      "data-attr": field.name,
      "aria-describedby": `${id}-hint ${id}-error`,
      title: field.doc || null,
    });
    const label = h("label", { for: id }, field.name);
    return { element: h("div", { class: "gl-field" }, label, control, hint, error), control, error };
  }

  #choice(field: AttrField): HTMLSelectElement {
    const select = h("select", { change: () => this.#set(field.name, select.value) });
    select.append(...field.choices.map((choice) => h("option", { value: choice }, choice)));
    return select;
  }

  #text(field: AttrField): HTMLInputElement {
    const say = (): void => {
      clearTimeout(this.#timer);
      this.#set(field.name, input.value);
    };
    const input = h("input", {
      type: "text",
      autocomplete: "off",
      spellcheck: "false",
      inputmode: field.kind === "int" ? "numeric" : null,
      change: say,
      input: () => {
        clearTimeout(this.#timer);
        this.#timer = setTimeout(say, PAUSE_MS);
      },
    });
    return input;
  }

  #update(field: AttrField): void {
    const row = this.#rows.get(field.name);
    if (!row) return;
    const { control, error, element } = row;
    const typing = control === focusedIn(control) && control instanceof HTMLInputElement;
    if (control instanceof HTMLSelectElement && !field.choices.includes(field.value)) {
      control.append(h("option", { value: field.value }, field.value));
    }
    if (!typing) control.value = field.value;
    error.textContent = oneLine(field.error);
    element.classList.toggle("gl-wrong", field.error !== "");
    setAttributes(control, { "aria-invalid": field.error ? "true" : null });
  }
}
