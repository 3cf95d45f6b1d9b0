// The status line: content, activity and failures. Screen readers announce changes.
import { h } from "../dom";
import type { Scene, SceneMessage } from "../scene/generated";

const plural = (count: number, word: string): string =>
  `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;

export class Status {
  readonly element: HTMLElement;
  readonly #text = h("span", { class: "gl-status-text" });
  readonly #facts = h("span", { class: "gl-status-facts" });
  readonly #live = h("span", { class: "gl-hidden", role: "status", "aria-live": "polite" });
  #shown: ReadonlySet<string> | null = null;

  constructor() {
    this.element = h("div", { class: "gl-status" }, this.#text, this.#facts, this.#live);
  }

  /** Shows a temporary message. */
  say(text: string): void {
    this.#text.textContent = text;
    this.#text.title = text;
    this.element.classList.remove("gl-failed");
  }

  /** Shows the content of the picture; the tooltip has the full text. */
  describe({ title, summary }: Scene): void {
    this.say([title, summary].filter(Boolean).join(" · "));
  }

  /** Shows a failure. */
  fail(text: string): void {
    this.say(text);
    this.element.classList.add("gl-failed");
    this.#live.textContent = text;
  }

  /** Notes that a picture was drawn. */
  drawn({ scene }: SceneMessage, delayMs: number | null): void {
    const { nodes } = scene;
    this.#facts.textContent = delayMs === null ? "" : `${Math.round(delayMs)} ms`;
    this.#facts.title = delayMs === null ? "" : "From the end of the cell until the picture was on the screen";
    this.#announce(
      scene.nodes.map((node) => node.id),
      nodes.filter((node) => node.state === "error").length,
    );
  }

  #announce(ids: readonly string[], errors: number): void {
    const before = this.#shown;
    this.#shown = new Set(ids);
    if (before === null) return this.#hear(`Picture of ${plural(ids.length, "node")}`, errors);
    const added = ids.filter((id) => !before.has(id)).length;
    const removed = [...before].filter((id) => !this.#shown?.has(id)).length;
    const parts = [added ? `${plural(added, "node")} added` : "", removed ? `${removed} removed` : ""].filter(Boolean);
    this.#hear(`Picture updated${parts.length ? `: ${parts.join(", ")}` : ""}`, errors);
  }

  #hear(text: string, errors: number): void {
    this.#live.textContent = errors ? `${text}, ${errors} with errors` : text;
  }
}
