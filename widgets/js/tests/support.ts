// A viewer on a page without a kernel: the test plays the kernel, the real Graphviz lays out.
import "../src/engines/graphviz";
import { sceneMessage } from "../dev/sample";
import * as lower from "../src/engines/lower";
import type { FromKernel, FromViewer, Scene, SceneMessage } from "../src/scene/generated";
import type { MountOptions } from "../src/shell/host";
import { mount } from "../src/shell/mount";
import type { Notebook } from "../src/shell/notebook";

export { edge, group, inspection, node, SAMPLE, scene, sceneMessage } from "../dev/sample";

/** Names and labels that would do harm if they were ever read as markup or DOT. */
export const HOSTILE = [
  "<script>window.harmed = true</script>",
  '"; n0 -> n1 [label="boo',
  "</text><image href='http://evil.example/x.png'/>",
  "a\nb\tc\u0000d\u2028e",
  "\\N \\L &lt; %s $T",
  "x".repeat(3000),
  "שלום עולם مرحبا",
  "👩‍🔬 数据流 ∇",
];

export class Page {
  readonly root: HTMLElement;
  readonly sent: FromViewer[] = [];
  readonly dispose: () => void;
  /** The kernel was restarted: whatever is sent is refused. */
  cut = false;
  readonly #listeners = new Set<(message: FromKernel, buffers: readonly DataView[]) => void>();

  /** The requests that the kernel has not handled yet. */
  readonly #unhandled: (() => void)[] = [];

  constructor(options: MountOptions = {}, notebook?: Notebook) {
    const place = document.createElement("div");
    document.body.append(place);
    const handle = mount(
      place,
      {
        notebook,
        send: (message, handled) => {
          if (this.cut) throw new Error("Cannot send");
          this.sent.push(message);
          if (handled) this.#unhandled.push(handled);
        },
        onMessage: (callback) => {
          this.#listeners.add(callback);
          return () => this.#listeners.delete(callback);
        },
      },
      { lower: () => Promise.resolve(lower), ...options },
    );
    this.dispose = () => {
      handle.dispose();
      place.remove();
    };
    const root = place.querySelector<HTMLElement>(".graphloupe");
    if (!root) throw new Error("nothing was mounted");
    this.root = root;
  }

  get listening(): number {
    return this.#listeners.size;
  }

  /** The kernel has handled everything that was sent. */
  handle(): void {
    for (const handled of this.#unhandled.splice(0)) handled();
  }

  /** The kernel says something. */
  receive(message: FromKernel): void {
    for (const listener of [...this.#listeners]) listener(message, []);
  }

  /** The kernel sends a scene; resolves when it is drawn. */
  async show(shown: Scene, fields: Partial<SceneMessage> = {}): Promise<void> {
    this.receive(sceneMessage(shown, fields));
    await this.drawn(shown.revision);
  }

  async drawn(revision: number): Promise<void> {
    await until(() => this.root.dataset.revision === String(revision) && this.root.dataset.busy === "false");
  }

  /** The last message of a type that the viewer sent. */
  last<T extends FromViewer["type"]>(type: T): Extract<FromViewer, { type: T }> | undefined {
    return this.sent.filter((message): message is Extract<FromViewer, { type: T }> => message.type === type).pop();
  }

  box(id: string): SVGGElement {
    const found = [...this.root.querySelectorAll<SVGGElement>("[data-node-id]")].find(
      (box) => box.dataset.nodeId === id,
    );
    if (!found) throw new Error(`no box ${id}`);
    return found;
  }

  one<E extends Element = Element>(selector: string): E {
    const found = this.root.querySelector<E>(selector);
    if (!found) throw new Error(`nothing matches ${selector}`);
    return found;
  }

  text(selector: string): string {
    return this.one(selector).textContent ?? "";
  }

  key(key: string, target: Element = this.one(".gl-canvas"), fields: KeyboardEventInit = {}): void {
    target.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true, ...fields }));
  }

  click(target: Element, detail = 1): void {
    target.dispatchEvent(new MouseEvent("click", { bubbles: true, detail }));
  }
}

export async function until(holds: () => boolean, limit = 10_000): Promise<void> {
  const end = Date.now() + limit;
  while (!holds()) {
    if (Date.now() > end) throw new Error(`not within ${limit} ms: ${holds}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

// The engine is on this page already (imported above); jsdom has no workers, so layouts run here.
const engines = globalThis as { graphloupeEngines?: { urls: Map<string, Promise<string>> } };
engines.graphloupeEngines = { urls: new Map([["graphviz@test", Promise.resolve("blob:graphviz")]]) };
