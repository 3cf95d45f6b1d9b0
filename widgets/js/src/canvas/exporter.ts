// Exports: SVG from the page itself, DOT and Mermaid from the kernel; to a file or the clipboard.
import { reason } from "../dom";
import type { ExportFormat, ExportMessage } from "../scene/generated";
import { copyText, download } from "../shell/files";

export interface ExporterActions {
  /** The picture as an SVG file; null if there is no picture. */
  svgText(): string | null;
  /** Requests the text of a format from the kernel. */
  ask(format: ExportFormat): void;
  say(text: string): void;
  fail(text: string): void;
}

export class Exporter {
  readonly #actions: ExporterActions;
  /** The pending export. Answers to other views of the same widget are ignored. */
  #wanted: { format: ExportFormat; copy: boolean } | null = null;

  constructor(actions: ExporterActions) {
    this.#actions = actions;
  }

  start(format: ExportFormat, copy: boolean): void {
    this.#wanted = { format, copy };
    if (format !== "svg") return this.#actions.ask(format);
    const text = this.#actions.svgText();
    if (text === null) this.#actions.fail("There is no picture to export yet");
    else this.receive({ type: "export", format, name: "graph.svg", text });
  }

  receive({ format, name, text }: ExportMessage): void {
    const wanted = this.#wanted;
    if (wanted?.format !== format) return;
    this.#wanted = null;
    if (wanted.copy) return this.copy(text);
    download(name || `graph.${format}`, text, format === "svg" ? "image/svg+xml" : "text/plain");
    this.#actions.say(`Saved ${name}`);
  }

  copy(text: string): void {
    copyText(text).then(
      () => this.#actions.say("Copied"),
      (error: unknown) => this.#actions.fail(reason(error)),
    );
  }
}
