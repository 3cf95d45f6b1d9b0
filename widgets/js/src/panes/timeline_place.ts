// The place of the timeline, whose script is loaded when it is opened for the first time.
import { h } from "../dom";
import type { TimelinesMessage } from "../scene/generated";
import { installStyle } from "../style/style";
import type { TimelineActions, TimelinePane } from "./timeline";

/** The script of the timeline (`engines/timeline.ts`). */
export interface TimelineScript {
  readonly TimelinePane: typeof TimelinePane;
  readonly css: string;
}

export interface PlaceActions extends TimelineActions {
  /** The timeline was opened or closed. */
  toggled(open: boolean): void;
  /** The script did not come. */
  failed(error: unknown): void;
}

export class TimelinePlace {
  readonly element = h("div", { class: "gl-timeline-place" });
  readonly #load: () => Promise<TimelineScript>;
  readonly #actions: PlaceActions;
  #coming: Promise<void> | null = null;
  #pane: TimelinePane | null = null;
  #selection: ReadonlySet<string> = new Set();
  #isOver = false;

  constructor(load: () => Promise<TimelineScript>, actions: PlaceActions) {
    this.#load = load;
    this.#actions = actions;
  }

  dispose(): void {
    this.#isOver = true;
    this.#pane?.dispose();
  }

  toggle(): void {
    if (this.#pane) return this.#toggle(this.#pane);
    this.#coming ??= this.#load().then(
      (script) => this.#open(script),
      (error: unknown) => {
        this.#coming = null;
        this.#actions.failed(error);
      },
    );
  }

  refresh(): void {
    this.#pane?.refresh();
  }

  receive(message: TimelinesMessage): void {
    this.#pane?.receive(message);
  }

  /** Marks the bars of these boxes and frames. */
  select(ids: ReadonlySet<string>): void {
    this.#selection = ids;
    this.#pane?.select(ids);
  }

  #open({ TimelinePane: Pane, css }: TimelineScript): void {
    if (this.#isOver) return;
    installStyle(this.element, css);
    this.#pane = new Pane(this.#actions);
    this.element.append(this.#pane.element);
    this.#toggle(this.#pane);
    this.#pane.select(this.#selection);
  }

  #toggle(pane: TimelinePane): void {
    pane.toggle();
    this.#actions.toggled(pane.open);
  }
}
