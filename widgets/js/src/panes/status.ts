// The status line: content, activity and failures. Screen readers announce changes.

import { h } from "../dom";
import { isDifference } from "../scene/differences";
import { MAX_BOXES, type Scene, type SceneMessage } from "../scene/generated";
import { shown } from "../scene/shown";
import { inWords, word } from "../scene/words";
import type { Notebook } from "../shell/notebook";

const inNodes = (count: number): string =>
  count === 1 ? word("1 node") : word("{count} nodes", { count: count.toLocaleString("en") });
const inBoxes = (count: number): string =>
  count === 1 ? word("1 box") : word("{count} boxes", { count: count.toLocaleString("en") });

export class Status {
  readonly element: HTMLElement;
  readonly #text = h("span", { class: "gl-status-text" });
  readonly #reconnect = h("button", { type: "button", class: "gl-text-button", hidden: true }, word("Reconnect"));
  readonly #facts = h("span", { class: "gl-status-facts" });
  readonly #live = h("span", { class: "gl-hidden", role: "status", "aria-live": "polite" });
  #shown: ReadonlySet<string> | null = null;
  /** The reason why the picture no longer changes; "" while it does. */
  #end = "";
  /** The scopes that were open in the last picture. */
  #folding: string | null = null;

  constructor() {
    this.element = h("div", { class: "gl-status" }, this.#text, this.#reconnect, this.#facts, this.#live);
  }

  /** Shows a temporary message. */
  say(text: string): void {
    this.#text.textContent = shown(text);
    this.#text.title = text;
    this.element.classList.remove("gl-failed");
  }

  /** Shows a temporary message, which screen readers read out. */
  tell(text: string): void {
    this.say(text);
    this.#live.textContent = "";
    this.#live.textContent = text;
  }

  /** True without a kernel, which could show the graph in place of a difference. */
  isOfPage = false;

  /** Shows the content of the picture; the tooltip has the full text. */
  describe(scene: Scene): void {
    const { title, summary } = scene;
    if (this.#end) this.fail(this.#end);
    else
      this.say(
        [title, isDifference(scene) && !this.isOfPage ? word("Esc shows the graph again") : "", inWords(summary)]
          .filter(Boolean)
          .join(" · "),
      );
  }

  /** The kernel is gone: says so for as long as the picture is there, and offers to run its cell again. */
  lose(text: string, notebook: Notebook | undefined): void {
    this.#end = text;
    this.fail(text);
    if (!notebook?.isKnown || !this.#reconnect.hidden) return;
    this.#reconnect.hidden = false;
    this.#reconnect.title = word("Run the cell that made this picture again");
    this.#reconnect.addEventListener("click", () => void this.#run(notebook));
  }

  async #run(notebook: Notebook): Promise<void> {
    this.say(word("Running its cell again…"));
    const done = await notebook.runCell().catch(() => false);
    this.fail(done ? this.#end : word("Its cell cannot be run on its own: run the cells above it first"));
  }

  /** The result of "expand all": everything is open, or the reason why not. */
  expanded({ nodes, total_nodes: total }: Scene): void {
    const closed = nodes.filter(({ expandable }) => expandable);
    if (closed.length === 0) return;
    const inside = closed.reduce((sum, { count }) => sum + count, 0);
    const [shown = "", all = ""] = [Math.max(total - inside, 0), total].map((count) => count.toLocaleString("en"));
    const rest =
      closed.length === 1
        ? word("1 box is still closed")
        : word("{count} boxes are still closed", { count: closed.length.toLocaleString("en") });
    const limit = { shown, all, most: MAX_BOXES, rest };
    this.say(word("{shown} of {all} nodes are shown: Expand all stops at {most} boxes, {rest}", limit));
  }

  /** Something went wrong. */
  fail(text: string): void {
    this.say(text);
    this.element.classList.add("gl-failed");
    this.#live.textContent = shown(text);
  }

  /** A picture is on the screen. */
  drawn({ scene, openings }: SceneMessage, delayMs: number | null): void {
    const { nodes } = scene;
    this.#facts.textContent = delayMs === null ? "" : `${Math.round(delayMs)} ms`;
    this.#facts.title = delayMs === null ? "" : word("From the end of the cell until the picture was on the screen");
    const folding = JSON.stringify(openings);
    const folded = this.#folding !== null && folding !== this.#folding;
    this.#folding = folding;
    this.#announce(
      scene.nodes.map((node) => node.id),
      nodes.filter((node) => node.state === "error").length,
      folded,
    );
  }

  /** Boxes that appear because something was opened are not new in the graph: `folded` says so. */
  #announce(ids: readonly string[], errors: number, folded: boolean): void {
    const before = this.#shown;
    this.#shown = new Set(ids);
    if (before === null) return this.#hear(word("Picture of {what}", { what: inNodes(ids.length) }), errors);
    if (folded) return this.#hear(word("{what} shown", { what: inBoxes(ids.length) }), errors);
    const added = ids.filter((id) => !before.has(id)).length;
    const removed = [...before].filter((id) => !this.#shown?.has(id)).length;
    const parts = [
      added ? word("{what} added", { what: inNodes(added) }) : "",
      removed ? word("{count} removed", { count: removed }) : "",
    ].filter(Boolean);
    this.#hear([word("Picture updated"), parts.join(", ")].filter(Boolean).join(": "), errors);
  }

  #hear(text: string, errors: number): void {
    this.#live.textContent = shown(errors ? word("{text}, {count} with errors", { text, count: errors }) : text);
  }
}
