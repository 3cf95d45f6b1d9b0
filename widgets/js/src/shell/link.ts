// A viewer's connection to its host, until the host ends.
import type { FromKernel, FromViewer } from "../scene/generated";
import type { Host } from "./host";

/** The event on a view's root element that announces that another kernel has replaced its own. */
export const ENDED_EVENT = "graphloupe-ended";

const ENDED = "The kernel of this picture has ended: run its cell again";
/** What the viewer says of itself: nobody waits for an answer. */
const REPORTS: ReadonlySet<string> = new Set<FromViewer["type"]>(["closed", "drawn", "lens", "look"]);

export class Link {
  readonly #host: Host;
  readonly #ended: (text: string) => void;

  /** `ended` is called with a text for the user when the kernel is gone. */
  constructor(host: Host, ended: (text: string) => void) {
    this.#host = host;
    this.#ended = ended;
  }

  /** Calls `receive` for each message until `signal` fires, and listens on `root` for the end of the kernel. */
  listen(receive: (message: FromKernel) => void, root: HTMLElement, signal: AbortSignal): void {
    signal.addEventListener("abort", this.#host.onMessage(receive));
    root.addEventListener(ENDED_EVENT, () => this.#ended(ENDED), { signal });
  }

  send(message: FromViewer): void {
    try {
      this.#host.send(message);
    } catch {
      // Notebooks do not announce a restart of the kernel to widgets; sending just fails.
      if (!REPORTS.has(message.type)) this.#ended(ENDED);
    }
  }
}
