import type { FromKernel, FromViewer } from "../scene/generated";

/** The other end of a viewer: a kernel behind a comm, or the data inside a standalone page. */
export interface Host {
  send(message: FromViewer, buffers?: readonly ArrayBuffer[]): void;
  /** Calls back for every message that comes in; returns a function that ends this. */
  onMessage(callback: (message: FromKernel, buffers: readonly DataView[]) => void): () => void;
}

export interface MountOptions {
  /** No kernel behind the host: what only a kernel can do (expand, collapse) is not offered. */
  readonly offline?: boolean;
  /** Renderers that the host has an engine for; both when left out. */
  readonly renderers?: readonly ("graphviz" | "mermaid")[];
  /** Without the row of controls: for a picture beside another one. */
  readonly bare?: boolean;
  /** What is shown: a graph, or a function with definition and body. */
  readonly kind?: "graph" | "function";
  /** Height of the viewer as CSS; "fill" takes the height of the parent element. */
  readonly height?: string;
}

export interface Handle {
  /** Ends workers, listeners and observers, and empties the element. */
  dispose(): void;
}

/** What shows a function over the picture of a graph. */
export interface Overlay {
  readonly root: HTMLElement;
  start(): void;
  dispose(): void;
}
