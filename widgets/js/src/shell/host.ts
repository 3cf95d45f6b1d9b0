import type { LowerScript } from "../panes/lower/place";
import type { FromKernel, FromViewer } from "../scene/generated";
import type { Notebook } from "./notebook";
import type { Side, Twins } from "./side";

/** The other end of a viewer: a kernel behind a comm, or the data inside a standalone page. */
export interface Host {
  /** The notebook around the viewer; undefined in a standalone page. */
  readonly notebook?: Notebook | undefined;
  /** The path of the notebook, after which files are named. */
  readonly notebookPath?: string | undefined;
  /** Sends a message. `handled` is called when the kernel has processed it, where a host knows that. */
  send(message: FromViewer, handled?: () => void): void;
  /** True for a message that it answers although its kernel has ended. */
  isAlone?(message: FromViewer): boolean;
  /** Calls `callback` for each message. Returns a function that stops this. */
  onMessage(callback: (message: FromKernel, buffers: readonly DataView[]) => void): () => void;
}

export interface MountOptions {
  /** True for a graph that lives in a kernel, which sends what has changed in it: pictures are compiled here. */
  readonly live?: boolean;
  /** True without a kernel: functions have no views of their own. */
  readonly offline?: boolean;
  /** True for a picture in which nothing opens or closes. */
  readonly fixed?: boolean;
  /** The renderers for which the host has an engine; by default both. */
  readonly renderers?: readonly ("graphviz" | "mermaid")[];
  /** True to omit the row of controls, for a picture beside another one. */
  readonly bare?: boolean;
  /** Show a picture that is too large in part, instead of asking for one of fewer boxes. */
  readonly complete?: boolean;
  /** The kind of content: a graph, or a function with definition and body. */
  readonly kind?: "graph" | "function";
  /** Gives the script of the panel below the picture; by default it is loaded from the host. */
  readonly lower?: () => Promise<LowerScript>;
  /** The language of words: `zh`; English by default. */
  readonly language?: string | undefined;
  /** The height of the viewer in CSS; "fill" for that of the parent element. */
  readonly height?: string;
  /** Both states of the difference that the picture shows. */
  readonly states?: StatesOfDifference;
  /** Ties the picture to the one beside it. */
  readonly side?: Side;
}

/** Both states of a difference, from the earlier to the later. */
export interface StatesOfDifference {
  readonly titles: readonly [string, string];
  readonly words: string;
  readonly twins: readonly [Twins, Twins];
  readonly hosts: readonly [Host, Host];
}

export interface Handle {
  /** Ends workers, listeners and observers, and empties the element. */
  dispose(): void;
}

/** A view of a function, or of both states of a difference, that lies over the picture of a graph. */
export interface Overlay {
  readonly root: HTMLElement;
  start(): void;
  dispose(): void;
}
