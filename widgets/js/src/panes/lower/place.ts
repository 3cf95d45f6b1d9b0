// The place of the panel below the picture. Its script is loaded when the panel is first opened.
import type * as raster from "../../canvas/raster";
import { h } from "../../dom";
import type { FromKernel, Scene } from "../../scene/generated";
import { installStyle } from "../../style/style";
import type { Help } from "../help";
import type { LowerActions } from "./pane";
import type { LowerPanel } from "./panel";

/** The script of the panel (`engines/lower.ts`), which also makes pixels and lists keys. */
export interface LowerScript extends Pick<typeof raster, "pngOf" | "printPdf"> {
  readonly Help: typeof Help;
  makePanel(actions: LowerActions): LowerPanel;
  readonly css: string;
}

export interface PlaceActions extends LowerActions {
  /** A pane was opened, or all were closed (""). */
  toggled(pane: string): void;
  /** The script did not come. */
  failed(error: unknown): void;
}

export class LowerPlace {
  readonly element = h("div", { class: "gl-lower-place" });
  readonly #load: () => Promise<LowerScript>;
  readonly #actions: PlaceActions;
  #coming: Promise<void> | null = null;
  #panel: LowerPanel | null = null;
  #selection: ReadonlySet<string> = new Set();
  #isOver = false;

  constructor(load: () => Promise<LowerScript>, actions: PlaceActions) {
    this.#load = load;
    this.#actions = actions;
  }

  dispose(): void {
    this.#isOver = true;
    this.#panel?.dispose();
  }

  /** Opens a pane; closes the panel if the pane is open. */
  toggle(pane: string): void {
    if (this.#panel?.open && this.#panel.current === pane) this.close();
    else this.show(pane);
  }

  /** Opens a pane. */
  show(pane: string): void {
    if (this.#panel) return this.#show(this.#panel, pane);
    this.#coming ??= this.#load().then(
      (script) => this.#make(script, pane),
      (error: unknown) => {
        this.#coming = null;
        this.#actions.failed(error);
      },
    );
  }

  close(): void {
    this.#panel?.hide();
    this.#actions.toggled("");
  }

  drawn(scene: Scene): void {
    this.#panel?.drawn(scene);
  }

  receive(message: FromKernel): void {
    this.#panel?.receive(message);
  }

  press(event: KeyboardEvent): boolean {
    return this.#panel?.press(event) ?? false;
  }

  /** Marks what belongs to these boxes and frames. */
  select(ids: ReadonlySet<string>): void {
    this.#selection = ids;
    this.#panel?.select(ids);
  }

  #make({ makePanel, css }: LowerScript, pane: string): void {
    if (this.#isOver) return;
    installStyle(this.element, css);
    this.#panel = makePanel(this.#actions);
    this.element.append(this.#panel.element);
    this.#show(this.#panel, pane);
    this.#panel.select(this.#selection);
  }

  #show(panel: LowerPanel, pane: string): void {
    panel.show(pane);
    this.#actions.toggled(panel.current);
  }
}
