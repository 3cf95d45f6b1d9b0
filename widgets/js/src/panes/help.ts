// The list of keyboard shortcuts, and the licences of what a standalone page contains.
import { focusedIn, h, iconButton } from "../dom";
import { word } from "../scene/words";
import { keyNames, type Shortcut } from "../shell/shortcuts";
import { ICONS } from "../style/icons";

export class Help {
  readonly element: HTMLElement;
  readonly #closeButton: HTMLButtonElement;
  #before: Element | null = null;

  constructor(table: readonly Shortcut[]) {
    this.#closeButton = iconButton(ICONS.close, "Close the list (Esc)", () => this.close());
    const rows = table.flatMap((shortcut) => {
      const keys = keyNames(shortcut).flatMap((name, index) => [index > 0 ? " " : "", h("kbd", {}, name)]);
      return [h("dt", {}, ...keys), h("dd", {}, word(shortcut.says))];
    });
    this.element = h(
      "div",
      {
        class: "gl-help",
        role: "dialog",
        "aria-modal": "true",
        "aria-label": word("Keyboard shortcuts"),
        hidden: true,
      },
      h(
        "div",
        { class: "gl-help-card" },
        h("header", {}, h("h2", {}, word("Keyboard shortcuts")), this.#closeButton),
        h("dl", { tabindex: "0" }, ...rows),
        licences(),
      ),
    );
    this.element.addEventListener("click", (event) => {
      if (event.target === this.element) this.close();
    });
    this.element.addEventListener("keydown", (event) => this.#key(event));
  }

  open(): void {
    this.#before = focusedIn(this.element);
    this.element.hidden = false;
    this.#closeButton.focus();
  }

  close(): void {
    this.element.hidden = true;
    if (this.#before instanceof HTMLElement || this.#before instanceof SVGElement) this.#before.focus();
  }

  /** The focus stays in the list until it is closed. */
  #key(event: KeyboardEvent): void {
    event.stopPropagation();
    if (event.key === "Escape" || event.key === "?") {
      event.preventDefault();
      return this.close();
    }
    if (event.key !== "Tab") return;
    event.preventDefault();
    const stops = [...this.element.querySelectorAll<HTMLElement>("button, dl, summary, pre")];
    const shown = stops.filter((stop) => stop.tagName !== "PRE" || stop.closest("details")?.open);
    const place = shown.indexOf(focusedIn(this.element) as HTMLElement);
    shown.at((place + (event.shiftKey ? -1 : 1)) % shown.length)?.focus();
  }
}

/** The notices that a standalone page carries, null where there are none. */
function licences(): HTMLElement | null {
  const text = document.getElementById("graphloupe-licences")?.textContent;
  if (!text) return null;
  return h(
    "details",
    { class: "gl-licences" },
    h("summary", {}, "Licences of the parts of this page"),
    h("pre", { tabindex: "0" }, text.trim()),
  );
}
