// Runs layouts in Web Workers. A newer layout ends the worker of an older one; a spare stands ready to take over.
import type { LayoutAnswer, LayoutRequest } from "./graphviz";

/** The error of a layout that was cancelled by a newer one. */
export class Superseded extends Error {}

interface EngineGlobal {
  graphloupeGraphviz?: { layout(dot: string, format: string): Promise<string> };
}

/** Idle workers of the whole page, shared by its views. */
const idle: Worker[] = [];
const SPARES = 2;

function release(worker: Worker): void {
  worker.onmessage = null;
  worker.onerror = null;
  if (idle.length < SPARES) idle.push(worker);
  else worker.terminate();
}

/** Lays out on the page itself, where workers are forbidden. */
async function layoutHere(url: string, dot: string): Promise<string> {
  const page = globalThis as EngineGlobal;
  if (!page.graphloupeGraphviz) await import(/* @vite-ignore */ url);
  if (!page.graphloupeGraphviz) throw new Error("the layout engine did not start");
  return page.graphloupeGraphviz.layout(dot, "dot");
}

export class Layouter {
  #current: { worker: Worker; cancel: () => void } | null = null;
  #serial = 0;
  #workersWork = true;
  readonly #engine: () => Promise<string>;

  constructor(engine: () => Promise<string>) {
    this.#engine = engine;
  }

  /** Cancels the running layout; its promise is rejected with `Superseded`. */
  cancel(): void {
    this.#serial += 1;
    this.#current?.cancel();
    this.#current = null;
  }

  /** Lays out DOT and returns it with positions. Rejects with `Superseded`, or with an Error after a failure or `limit` ms. */
  async layout(dot: string, limit: number): Promise<string> {
    this.cancel();
    const serial = this.#serial;
    const url = await this.#engine();
    if (serial !== this.#serial) throw new Superseded();
    if (!this.#workersWork) return layoutHere(url, dot);
    try {
      return await this.#inWorker(url, dot, limit);
    } catch (error) {
      if (!(error instanceof WorkerForbidden)) throw error;
      this.#workersWork = false;
      return layoutHere(url, dot);
    }
  }

  /** Starts a spare worker, so that its engine is compiled before it is needed. */
  async warmUp(): Promise<void> {
    const url = await this.#engine();
    if (!this.#workersWork || idle.length > 0) return;
    try {
      idle.push(new Worker(url));
    } catch {
      this.#workersWork = false;
    }
  }

  #inWorker(url: string, dot: string, limit: number): Promise<string> {
    const worker = idle.pop() ?? startWorker(url);
    return new Promise((resolve, reject) => {
      const finish = (end: () => void, keep: boolean): void => {
        clearTimeout(timer);
        if (this.#current?.worker === worker) this.#current = null;
        if (keep) release(worker);
        else worker.terminate();
        end();
      };
      const timer = setTimeout(
        () => finish(() => reject(new Error(`layout took longer than ${limit} ms`)), false),
        limit,
      );
      this.#current = { worker, cancel: () => finish(() => reject(new Superseded()), false) };
      const id = this.#serial;
      worker.onmessage = ({ data }: MessageEvent<LayoutAnswer>) => {
        if (data.id !== id) return;
        const { text, error } = data;
        if (text !== undefined) finish(() => resolve(text), true);
        else finish(() => reject(new Error(`layout failed: ${error}`)), false);
      };
      worker.onerror = (event) => {
        event.preventDefault();
        finish(() => reject(new WorkerForbidden(event.message)), false);
      };
      worker.postMessage({ id, dot } satisfies LayoutRequest);
    });
  }
}

class WorkerForbidden extends Error {}

function startWorker(url: string): Worker {
  try {
    return new Worker(url);
  } catch (error) {
    throw new WorkerForbidden(String(error));
  }
}
