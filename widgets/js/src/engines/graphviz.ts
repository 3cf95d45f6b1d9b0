// The Graphviz engine: one script for a Web Worker, a page without workers, and V8 inside Python.
import { type Format, Graphviz } from "@hpcc-js/wasm-graphviz";
import { inOrder } from "./sides";

/** A request for one layout; the answer has the same `id`. */
export interface LayoutRequest {
  readonly id: number;
  readonly dot: string;
}

/** The DOT with positions in `text`, or the reason for its absence in `error`. `ready`: the worker has compiled its engine. */
export interface LayoutAnswer {
  readonly id: number;
  readonly text?: string;
  readonly error?: string;
  readonly ready?: boolean;
}

interface Scope {
  graphloupeGraphviz?: { layout(dot: string, format?: string): Promise<string> };
  crypto?: unknown;
  performance?: unknown;
  WorkerGlobalScope?: unknown;
  postMessage?(answer: LayoutAnswer): void;
  onmessage?: ((event: { data: LayoutRequest }) => void) | null;
}

const scope = globalThis as unknown as Scope;

// Plain V8 has neither. Graphviz uses them for a hash salt and a clock, so they need not be secure.
scope.crypto ??= { getRandomValues: (bytes: Uint8Array) => bytes.fill(Math.floor(Math.random() * 256)) };
scope.performance ??= { now: () => Date.now() };

const loaded = Graphviz.load();

async function layout(dot: string, format = "json"): Promise<string> {
  return inOrder(dot, (await loaded).layout(dot, format as Format, "dot"));
}

scope.graphloupeGraphviz = { layout };

function answer(message: LayoutAnswer): void {
  scope.postMessage?.(message);
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

if (scope.WorkerGlobalScope !== undefined && scope.postMessage !== undefined) {
  scope.onmessage = ({ data }) => {
    layout(data.dot, "dot").then(
      (text) => answer({ id: data.id, text }),
      (error: unknown) => answer({ id: data.id, error: reason(error) }),
    );
  };
  loaded.then(
    () => answer({ id: -1, ready: true }),
    (error: unknown) => answer({ id: -1, error: reason(error) }),
  );
}
