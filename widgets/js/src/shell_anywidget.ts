// The viewer as an anywidget. A notebook saves this module with every widget, so it only loads the viewer: the "core"
// engine, which travels once a page like the others. Custom messages of the widget's model are the host.
import { engineUrl } from "./engines/load";
import type { FromKernel } from "./generated";
import type { Host } from "./host";
import type { mount } from "./viewer";

/** The part of anywidget's model that is used here. */
interface Model {
  send(content: unknown, callbacks?: unknown, buffers?: readonly ArrayBuffer[]): void;
  on(event: "msg:custom", callback: (content: unknown, buffers: readonly DataView[]) => void): void;
  off(event: "msg:custom", callback: (content: unknown, buffers: readonly DataView[]) => void): void;
}

function hostOf(model: Model): Host {
  return {
    send: (message, buffers) => model.send(message, undefined, buffers),
    onMessage: (callback) => {
      const listen = (content: unknown, buffers: readonly DataView[]): void =>
        callback(content as FromKernel, buffers ?? []);
      model.on("msg:custom", listen);
      return () => model.off("msg:custom", listen);
    },
  };
}

/** Shows one view of a widget; gives the function that ends it. */
async function render({ model, el }: { model: Model; el: HTMLElement }): Promise<() => void> {
  const host = hostOf(model);
  const waiting = document.createElement("p");
  waiting.textContent = "Waiting for the kernel…";
  el.append(waiting);
  try {
    const core = (await import(await engineUrl("core", host))) as { mount: typeof mount };
    // A panel of its own gives the view all its height; between cells it takes a fixed part of the page.
    const panel = el.closest(".jp-LinkedOutputView, .jupyterlab-sidecar") !== null;
    if (panel) el.style.height = "100%";
    const { dispose } = core.mount(el, host, { height: panel ? "fill" : "480px" });
    waiting.remove();
    return dispose;
  } catch (error) {
    waiting.textContent = `The graph cannot be shown: ${error instanceof Error ? error.message : error}. Run the cell again.`;
    return () => waiting.remove();
  }
}

/** Nothing to prepare: the kernel is never waited for here. */
function initialize(): void {}

export default { initialize, render };
