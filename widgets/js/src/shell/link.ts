// A viewer's connection to its host, until the host ends.
import type { FromKernel, FromViewer } from "../scene/generated";
import type { Host } from "./host";

/** The event on a view's root element that announces that another kernel has replaced its own, or that its comm is lost. */
export const ENDED_EVENT = "graphloupe-ended";
export const LOST_EVENT = "graphloupe-lost";

const ENDED = "The kernel of this picture has ended: run its cell again";
const UNKNOWN = "The kernel no longer knows this picture: run its cell again";
/** The milliseconds for which an answer may be later than the report that its request was handled. */
const GRACE_MS = 500;
/** The viewer's reports, which get no answer. */
const REPORTS: ReadonlySet<string> = new Set<FromViewer["type"]>(["closed", "drawn", "lens", "look"]);
/** The requests that the kernel always answers. */
const ANSWERED: ReadonlySet<string> = new Set<FromViewer["type"]>([
  "explain",
  "filter",
  "find",
  "inspect",
  "open_function",
  "ready",
  "renderer",
  "values",
]);

export class Link {
  readonly #host: Host;
  readonly #ended: (text: string) => void;
  /** The reason for the end; "" while the host answers. */
  #end = "";
  #received = 0;

  /** `ended` is called with a text for the user when the kernel is gone. */
  constructor(host: Host, ended: (text: string) => void) {
    this.#host = host;
    this.#ended = ended;
  }

  /** Calls `receive` for each message until `signal` fires, and listens on `root` for the end of the kernel. */
  listen(receive: (message: FromKernel) => void, root: HTMLElement, signal: AbortSignal): void {
    const stop = this.#host.onMessage((message) => {
      this.#received += 1;
      receive(message);
    });
    signal.addEventListener("abort", stop);
    root.addEventListener(ENDED_EVENT, () => this.#lose(ENDED), { signal });
    root.addEventListener(LOST_EVENT, () => this.#lose(UNKNOWN), { signal });
    const stopWatching = this.#host.notebook?.onEnd(() => this.#lose(ENDED));
    if (stopWatching) signal.addEventListener("abort", stopWatching);
  }

  send(message: FromViewer): void {
    if (this.#end) {
      if (this.#host.isAlone?.(message)) this.#host.send(message);
      else if (!REPORTS.has(message.type)) this.#ended(this.#end);
      return;
    }
    try {
      this.#host.send(message, ANSWERED.has(message.type) ? this.#expectAnswer() : undefined);
    } catch {
      // Outside of notebooks nothing announces a restart of the kernel to widgets; sending just fails.
      if (!REPORTS.has(message.type)) this.#lose(ENDED);
    }
  }

  /** Returns the callback for a handled request: a kernel that has not answered by then has lost the comm. */
  #expectAnswer(): () => void {
    const before = this.#received;
    return () => {
      setTimeout(() => {
        if (this.#received === before) this.#lose(UNKNOWN);
      }, GRACE_MS);
    };
  }

  #lose(text: string): void {
    this.#end ||= text;
    this.#ended(this.#end);
  }
}
