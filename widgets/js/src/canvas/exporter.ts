// Exports to a file or the clipboard: pictures, the scene as DOT and Mermaid, its numbers as CSV.
import { reason } from "../dom";
import { toDot } from "../page/dot_text";
import { toMermaid } from "../page/mermaid_text";
import type { Scene } from "../scene/generated";
import { word } from "../scene/words";
import { copyText, download } from "../shell/files";
import { PLAIN_LENS } from "./legend";
import type * as raster from "./raster";

/** The formats that are offered. */
export type FileFormat = "svg" | "dot" | "mermaid" | "png" | "pdf" | "csv";

const FILES: Readonly<Record<FileFormat, readonly [suffix: string, type: string]>> = {
  svg: ["svg", "image/svg+xml"],
  png: ["png", "image/png"],
  pdf: ["pdf", "application/pdf"],
  dot: ["dot", "text/vnd.graphviz"],
  mermaid: ["mmd", "text/plain"],
  csv: ["csv", "text/csv"],
};

/** The title of a graph without a name of its own. */
const UNNAMED = "graph";

/** The name of a file with a view's picture, without suffix: `resnet50-shapes`. A graph without a name has the notebook's. */
export function fileStem(title: string, lens: string, notebook = ""): string {
  const named = title === UNNAMED && notebook ? (notebook.split(/[/\\]/).at(-1) ?? "") : title;
  const model = named.replace(/\.(pb|pbtxt|html?|json|txt|keras|h5|onnx|ipynb)$/i, "");
  const plain = `${model || "graph"}${lens && lens !== PLAIN_LENS ? `-${lens}` : ""}`
    .normalize("NFC")
    .replace(/[^\p{L}\p{N}._-]+/gu, "-")
    .replace(/^[-.]+|[-.]+$/g, "");
  return [...plain].slice(0, 80).join("") || "graph";
}

/** The numbers of a lens by box, as CSV. */
function toCsv({ lenses, numbers = [] }: Scene, lens: string): string {
  const title = lenses.find(({ name }) => name === lens)?.title ?? "";
  const { unit = "", values = {} } = numbers.find((shown) => shown.lens === lens) ?? {};
  const rows = [["name", unit ? `${title} [${unit}]` : title], ...Object.entries(values)];
  return rows
    .map(([name, value]) => `${csvField(String(name).replace(/\/$/, ""))},${csvField(String(value))}\r\n`)
    .join("");
}

function csvField(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export interface ExporterActions {
  /** The picture as an SVG file; null if there is no picture. */
  svgText(): string | null;
  /** The graph and the lens that are shown, and the path of the notebook, "" if there is none. */
  shown(): { readonly scene: Scene; readonly lens: string; readonly notebook: string } | null;
  /** Loads what makes pixels and pages. */
  raster(): Promise<Pick<typeof raster, "pngOf" | "printPdf">>;
  say(text: string): void;
  fail(text: string): void;
}

export class Exporter {
  readonly #actions: ExporterActions;

  constructor(actions: ExporterActions) {
    this.#actions = actions;
  }

  start(format: FileFormat, copy: boolean): void {
    const { scene, lens = "" } = this.#actions.shown() ?? {};
    const write = { dot: toDot, mermaid: toMermaid, csv: (shown: Scene) => toCsv(shown, lens) }[format as string];
    const text = scene && (write ? write(scene) : this.#actions.svgText());
    if (!text) return this.#actions.fail(word("There is no picture to export yet"));
    if (format === "png" || format === "pdf") {
      const made = format === "pdf" ? this.#print(text) : this.#paint(text);
      made.catch((error: unknown) => this.#actions.fail(reason(error)));
      return;
    }
    if (copy) return this.copy(text);
    this.#save(format, new Blob([text], { type: FILES[format][1] }));
  }

  async #paint(svg: string): Promise<void> {
    const { file, scale } = await (await this.#actions.raster()).pngOf(svg);
    this.#save("png", file, scale < 1 ? ", smaller than it is: no browser draws it whole" : "");
  }

  async #print(svg: string): Promise<void> {
    (await this.#actions.raster()).printPdf(svg, this.#stem());
    this.#actions.say(word("Choose “Save as PDF” where the browser asks for a printer"));
  }

  #save(format: FileFormat, file: Blob, note = ""): void {
    const name = `${this.#stem()}.${FILES[format][0]}`;
    download(name, file);
    this.#actions.say(word("Saved {name}", { name: `${name}${note}` }));
  }

  #stem(): string {
    const { scene, lens = "", notebook = "" } = this.#actions.shown() ?? {};
    return fileStem(scene?.title ?? "", lens, notebook);
  }

  copy(text: string): void {
    copyText(text).then(
      () => this.#actions.say(word("Copied")),
      (error: unknown) => this.#actions.fail(reason(error)),
    );
  }
}
