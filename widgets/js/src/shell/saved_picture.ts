// The picture of a saved output: interactive, and hidden while a live view of it is in the page.
import { reason } from "../dom";
import { engineUrl } from "../engines/load";
import { MAX_UNPACKED_BYTES } from "../scene/generated";
import { type FindScript, localHost, type PictureData, statesOf } from "./local_host";
import type { mount } from "./mount";
import { isLive, LIVE_EVENT } from "./side_panel";

/** The data of an output, as `widgets.render.saved` writes it. */
export interface SavedPicture extends PictureData {
  /** The id of the live view's model, "" without one. */
  readonly model: string;
}

const HEIGHT = "480px";
/** The milliseconds after which no live view is expected any more. */
const LIVE_MS = 1000;

export class SavedPictureView {
  readonly #place: HTMLElement;
  readonly #still: HTMLElement;
  readonly #picture: SavedPicture;
  readonly #findScript: FindScript;
  readonly #end = new AbortController();
  #mounted: Promise<() => void> | null = null;
  #next: ReturnType<typeof setTimeout> | undefined;

  /** `place` has the still picture, which an interactive one replaces. */
  constructor(place: HTMLElement, still: HTMLElement, picture: SavedPicture, findScript: FindScript) {
    this.#place = place;
    this.#still = still;
    this.#picture = picture;
    this.#findScript = findScript;
    const { signal } = this.#end;
    document.addEventListener(LIVE_EVENT, () => this.#follow(), { signal });
    this.#follow();
    const timer = setTimeout(() => this.#watch(), LIVE_MS);
    signal.addEventListener("abort", () => clearTimeout(timer));
  }

  dispose(): void {
    this.#end.abort();
    clearTimeout(this.#next);
    this.#leave();
  }

  /** Gives way to a live view, and comes back when that has gone, however it went. */
  #follow(): void {
    clearTimeout(this.#next);
    const live = this.#isLive;
    this.#place.style.display = live ? "none" : "";
    if (!live) return;
    this.#leave();
    this.#next = setTimeout(() => this.#follow(), LIVE_MS);
  }

  /** Waits until the place is in sight. */
  #watch(): void {
    const observer = new IntersectionObserver((entries) => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) this.#look();
    });
    observer.observe(this.#place);
    this.#end.signal.addEventListener("abort", () => observer.disconnect());
  }

  #look(): void {
    if (!this.#isLive) this.#mounted ??= this.#mount();
  }

  get #isLive(): boolean {
    return isLive(this.#picture.model);
  }

  #leave(): void {
    void this.#mounted?.then((dispose) => {
      dispose();
      this.#place.replaceChildren(this.#still);
    });
    this.#mounted = null;
  }

  /** Mounts the viewer. Returns the function that unmounts it; if it fails, the still picture stays. */
  async #mount(): Promise<() => void> {
    const element = document.createElement("div");
    try {
      const host = localHost(this.#picture, this.#findScript, MAX_UNPACKED_BYTES);
      const core = (await import(await engineUrl("core", host))) as { mount: typeof mount };
      this.#place.replaceChildren(element);
      const { dispose } = core.mount(element, host, {
        offline: true,
        fixed: !this.#picture.graph_gzip_base64,
        height: HEIGHT,
        language: this.#picture.language,
        ...statesOf(this.#picture, this.#findScript, MAX_UNPACKED_BYTES),
      });
      return dispose;
    } catch (error) {
      console.warn("Graphloupe shows the still picture:", reason(error));
      this.#place.replaceChildren(this.#still);
      return () => undefined;
    }
  }
}
