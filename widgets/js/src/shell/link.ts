// A viewer's connection to its host, until the host ends.
import type { FromKernel, FromViewer } from "../scene/generated";
import type { Host } from "./host";

/** What a view hears, as an event of its root, when another kernel has taken the place of the one that fed it. */
export const ENDED_EVENT = "graphloupe-ended";

const ENDED = "The kernel of this picture has ended: run its cell again";
/** What the viewer says of itself: nobody waits for an answer. */
const REPORTS: ReadonlySet<string> = new Set<FromViewer["type"]>(["closed", "drawn", "lens", "look"]);

export class Link {
  readonly #host: Host;
  readonly #ended: (text: string) => void;

  /** `ended` hears it when something is asked for and there is nobody to ask. */
  constructor(host: Host, ended: (text: string) => void) {
    this.#host = host;
    this.#ended = ended;
  }

  /** Calls back for every message that comes in, and hears at `root` that none will come any more, until `signal` fires. */
  listen(receive: (message: FromKernel) => void, root: HTMLElement, signal: AbortSignal): void {
    signal.addEventListener("abort", this.#host.onMessage(receive));
    root.addEventListener(ENDED_EVENT, () => this.#ended(ENDED), { signal });
  }

  send(message: FromViewer): void {
    try {
      this.#host.send(message);
    } catch {
      // A notebook does not tell its widgets that the kernel has been restarted: their lines are cut, and say no more than that.
      if (!REPORTS.has(message.type)) this.#ended(ENDED);
    }
  }
}
