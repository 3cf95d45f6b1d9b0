// A host for a graph in a kernel: a worker compiles its pictures, and the kernel explains them.
import { reason } from "../dom";
import { engineUrl } from "../engines/load";
import type { FromWorker, ToWorker } from "../page/worker";
import type { FromKernel, FromViewer, Openings } from "../scene/generated";
import type { Host } from "./host";

type Listener = (message: FromKernel, buffers: readonly DataView[]) => void;

/** The requests that the worker answers, and those that the kernel gets as well. */
const BY_WORKER: ReadonlySet<FromViewer["type"]> = new Set([
  "collapse",
  "crowded",
  "expand",
  "filter",
  "find",
  "inspect",
  "lens",
  "renderer",
  "restore",
  "reveal",
  "try_device",
  "want_health",
] as const satisfies readonly FromViewer["type"][]);
const REPORTED: ReadonlySet<FromViewer["type"]> = new Set([
  "lens",
  "renderer",
] as const satisfies readonly FromViewer["type"][]);

/** True for a request that needs no kernel once the graph is on the page. */
export const needsNoKernel = ({ type }: FromViewer): boolean => BY_WORKER.has(type) && type !== "try_device";

class LiveHost implements Host {
  readonly notebook: Host["notebook"];
  readonly notebookPath: Host["notebookPath"];
  readonly #kernel: Host;
  readonly #listeners = new Set<Listener>();
  #stop: (() => void) | null = null;
  #worker: Promise<Worker> | null = null;
  /** The open scopes, as the kernel knows them. */
  #openings = "";

  constructor(kernel: Host) {
    this.#kernel = kernel;
    this.notebook = kernel.notebook;
    this.notebookPath = kernel.notebookPath;
  }

  isAlone(message: FromViewer): boolean {
    return this.#worker !== null && needsNoKernel(message);
  }

  send(message: FromViewer, handled?: () => void): void {
    if (!BY_WORKER.has(message.type) || !this.#worker) return this.#kernel.send(message, handled);
    if (REPORTED.has(message.type)) this.#report(message);
    this.#post(message);
  }

  onMessage(callback: Listener): () => void {
    this.#listeners.add(callback);
    this.#stop ??= this.#kernel.onMessage((message, buffers) => this.#receive(message, buffers));
    return () => {
      this.#listeners.delete(callback);
      if (this.#listeners.size === 0) this.#end();
    };
  }

  #tell(message: FromKernel, buffers: readonly DataView[] = []): void {
    for (const listener of [...this.#listeners]) listener(message, buffers);
  }

  /** Tells the kernel what was chosen here, while there is one. */
  #report(message: FromViewer): void {
    try {
      this.#kernel.send(message);
    } catch {
      // The picture works without its kernel; what needs one says so.
    }
  }

  #receive(message: FromKernel, buffers: readonly DataView[]): void {
    switch (message.type) {
      case "change": {
        const [change] = buffers;
        if (!change) return;
        if (message.choices) this.#openings = textOf(message.choices.openings);
        this.#start();
        this.#post({ change, message });
        return this.#tell(message);
      }
      case "explanation":
      case "names":
      case "steps":
      case "timelines":
      case "what_if":
        return this.#post({ told: message });
      default:
        return this.#tell(message, buffers);
    }
  }

  #start(): void {
    if (this.#worker) return;
    const coming = engineUrl("page", this.#kernel).then((url) => {
      const worker = new Worker(url);
      worker.onmessage = ({ data }) => this.#answer(data as FromWorker);
      worker.onerror = ({ message }) => this.#fail("ready", message);
      return worker;
    });
    this.#worker = coming;
  }

  #post(message: ToWorker): void {
    this.#worker?.then(
      (worker) => worker.postMessage(message),
      (error: unknown) => this.#fail("type" in message ? message.type : "ready", reason(error)),
    );
  }

  #answer(message: FromWorker): void {
    if (message.type === "ask") return this.#report(message.request);
    if (message.type !== "scene") return this.#tell(message);
    this.#tell(message);
    const openings = textOf(message.openings);
    if (openings !== this.#openings) this.#report({ type: "openings", openings: message.openings });
    this.#openings = openings;
  }

  #fail(request: string, text: string): void {
    this.#tell({ type: "failure", request, text });
  }

  #end(): void {
    this.#stop?.();
    this.#stop = null;
    this.#worker?.then(
      (worker) => worker.terminate(),
      () => undefined,
    );
    this.#worker = null;
  }
}

const textOf = (openings: Openings): string => JSON.stringify(openings);

/** The host of a picture whose graph lives in the kernel behind `kernel`. */
export function liveHost(kernel: Host): Host {
  return new LiveHost(kernel);
}
