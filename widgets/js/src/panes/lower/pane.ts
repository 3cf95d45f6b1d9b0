// A pane of the panel below the picture.
import type { Stage } from "../../canvas/stage";
import type { FromKernel, FromViewer, Scene } from "../../scene/generated";

/** The parts of the viewer that a pane may use. */
export interface LowerActions {
  /** The picture, on which a pane may put marks. */
  readonly stage: Stage;
  /** Sends a request to the host. */
  send(message: FromViewer): void;
  /** Shows a node in the picture. `box` is its box, "" if that is not known. */
  choose(node: string, box: string): void;
  /** Says something in the status line, which screen readers announce. */
  say(text: string): void;
  /** The current scene, null before the first one. */
  scene(): Scene | null;
  /** Closes the panel. */
  close(): void;
}

/** A pane: one tab of the panel. */
export interface LowerPane {
  /** The name by which hosts and keys open it. */
  readonly name: string;
  /** The title of its tab. */
  readonly title: string;
  /** The controls in the header of the panel, shown with the pane. */
  readonly controls: HTMLElement;
  readonly element: HTMLElement;
  /** The pane is now visible. */
  shown(): void;
  /** The pane is no longer visible. */
  hidden(): void;
  /** A message from the host that the viewer itself does not use. */
  receive(message: FromKernel): void;
  /** These boxes and frames are selected. */
  select(ids: ReadonlySet<string>): void;
  /** Another picture is on the screen, perhaps after a run. */
  drawn(scene: Scene): void;
  /** The size of the pane may have changed. */
  resized(): void;
  /** Handles a key that was pressed while the pane is visible. True if it did. */
  press(event: KeyboardEvent): boolean;
  dispose(): void;
}
