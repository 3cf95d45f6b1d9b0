// The viewer as an anywidget.
// A notebook saves this module with every widget, so it only loads the viewer: the "core" engine, which travels once a
// page like the others. The host is the widget's model with its custom messages.
import { reason } from "../dom";
import { engineUrl } from "../engines/load";
import type { FromKernel } from "../scene/generated";
import type { Host } from "./host";
import { LOST_EVENT } from "./link";
import type { mount } from "./mount";
import { type Manager, Notebook } from "./notebook";
import { FORWARD_EVENT, LIVE_EVENT, panelOf, SidePanel, settle } from "./side_panel";

/** The part of anywidget's model that is used here. */
interface Model {
  send(content: unknown, callbacks?: unknown): void;
  on(event: "comm:close" | "change:language", callback: () => void): void;
  on(
    event: "msg:custom",
    callback: (content: unknown, buffers: readonly (ArrayBuffer | ArrayBufferView)[]) => void,
  ): void;
  off(
    event: "msg:custom",
    callback: (content: unknown, buffers: readonly (ArrayBuffer | ArrayBufferView)[]) => void,
  ): void;
  get(name: "home" | "title" | "panel" | "kind" | "language"): unknown;
  readonly widget_manager?: Manager;
}

/** The heights of views between cells. */
const HEIGHTS = { graph: "480px", function: "640px" } as const;
/** The milliseconds for which a dragged panel may be out of the page. */
const LEAVE_MS = 300;

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

/** The notebook and kernel of a view. A model may be restored from what a notebook holds, which may be anything. */
function homeOf(model: Model): { notebook: string; kernel: string; model: string; cell: string } {
  const home = (model.get("home") ?? {}) as Readonly<Record<string, unknown>>;
  return {
    notebook: textOf(home.notebook),
    kernel: textOf(home.kernel),
    model: textOf(home.model),
    cell: textOf(home.cell),
  };
}

/** The bytes of a buffer. Some hosts send views, some buffers, and some those of another frame, which are no instances of this one's classes. */
function viewOf(buffer: ArrayBuffer | ArrayBufferView): DataView {
  return ArrayBuffer.isView(buffer)
    ? new DataView(buffer.buffer, buffer.byteOffset, buffer.byteLength)
    : new DataView(buffer);
}

function hostOf(model: Model): Host {
  const manager = model.widget_manager;
  const home = homeOf(model);
  return {
    notebookPath: home.notebook,
    notebook: manager && new Notebook(manager, home.model, home.cell),
    send: (message, handled) => {
      const status = ({ content }: { content: { execution_state: string } }): void => {
        if (content.execution_state === "idle") handled?.();
      };
      // marimo calls its callbacks, ipywidgets reads theirs.
      model.send(
        message,
        Object.assign(() => undefined, { iopub: { status } }),
      );
    },
    onMessage: (callback) => {
      const listen = (content: unknown, buffers: readonly (ArrayBuffer | ArrayBufferView)[]): void =>
        callback(content as FromKernel, (buffers ?? []).map(viewOf));
      model.on("msg:custom", listen);
      return () => model.off("msg:custom", listen);
    },
  };
}

/** The panel around `el`, moved beside the other panels; null if there is none or JupyterLab gives no access to it. */
async function takePlace(model: Model, el: HTMLElement): Promise<SidePanel | null> {
  const manager = model.widget_manager;
  const id = textOf(model.get("panel"));
  if (!manager || !id) return null;
  try {
    const panel = await SidePanel.find(el, id, manager);
    panel?.join();
    return panel;
  } catch (error) {
    // The view works just as well where the panel has opened.
    console.debug("Graphloupe's panel stays where it is:", error);
    return null;
  }
}

/** Opens the difference that a line under a cell links to, in views on the screen. Returns the function that ends this. */
function followLinks(host: Host, el: HTMLElement): () => void {
  const follow = (event: MouseEvent): void => {
    const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
    const since = /#graphloupe-difference-(\d+)$/.exec(link?.getAttribute("href") ?? "")?.[1];
    if (since === undefined) return;
    event.preventDefault();
    if (el.getClientRects().length === 0) return;
    try {
      host.send({ type: "want_difference", since: Number(since) });
    } catch {
      // A kernel that has ended takes no messages: the view says so.
      el.querySelector(".graphloupe")?.dispatchEvent(new Event(LOST_EVENT));
    }
  };
  document.addEventListener("click", follow, true);
  return () => document.removeEventListener("click", follow, true);
}

/** Mounts the viewer in `el`. Returns the function that unmounts it. */
async function mountIn(model: Model, el: HTMLElement): Promise<() => void> {
  const waiting = document.createElement("p");
  waiting.textContent = "Waiting for the kernel…";
  el.append(waiting);
  const host = hostOf(model);
  const around = panelOf(el);
  settle(around ?? el, { ...homeOf(model), title: textOf(model.get("title")) });
  const panel = around && (await takePlace(model, el));
  try {
    const core = (await import(await engineUrl("core", host))) as { mount: typeof mount };
    // A view takes the full height of its panel, and a fixed height between cells.
    const kind = model.get("kind") === "function" ? "function" : "graph";
    if (around) el.style.height = "100%";
    const { dispose } = core.mount(el, host, {
      height: around ? "fill" : HEIGHTS[kind],
      kind,
      live: true,
      language: textOf(model.get("language")),
    });
    const ignore = host.onMessage((message) => {
      // The message comes from a cell that has just ended, so its notebook is the one in use.
      const news = message.type === "unchanged" || (message.type === "change" && message.sent_at > 0);
      if (message.type === "to_front" || (news && panel?.isBehindAnotherNotebook)) {
        if (panel) panel.comeForward();
        else around?.dispatchEvent(new Event(FORWARD_EVENT, { bubbles: true }));
      }
    });
    const stopFollowing = kind === "graph" ? followLinks(host, el) : () => undefined;
    waiting.remove();
    panel?.closeForerunners();
    return () => {
      stopFollowing();
      ignore();
      dispose();
      panel?.nameTabs();
      document.dispatchEvent(new Event(LIVE_EVENT));
    };
  } catch (error) {
    waiting.textContent = `The graph cannot be shown: ${reason(error)}. Run the cell again.`;
    return () => waiting.remove();
  }
}

/**
 * Shows one view of a widget while it is in the page. Returns the function that ends it.
 * JupyterLab keeps the views of a closed panel detached: they neither work nor count as visible.
 */
function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
  let kept = false;
  let onPurpose = false;
  const listen = (content: unknown): void => {
    onPurpose ||= (content as FromKernel).type === "goodbye";
  };
  // The notebook removes the views of a model whose comm closes, and hides what was around them.
  const keep = (): void => {
    const place = el.parentElement?.parentElement;
    if (onPurpose || !place) return;
    kept = true;
    for (const view of el.querySelectorAll(".graphloupe")) view.dispatchEvent(new Event(LOST_EVENT));
    setTimeout(() => place.append(el));
  };
  model.on("msg:custom", listen);
  model.on("comm:close", keep);
  let mounted: Promise<() => void> | null = null;
  let leaving: ReturnType<typeof setTimeout> | undefined;
  const leave = (): void => {
    void mounted?.then((dispose) => dispose());
    mounted = null;
  };
  const look = (): void => {
    clearTimeout(leaving);
    if (el.isConnected) mounted ??= mountIn(model, el);
    else leaving = setTimeout(leave, LEAVE_MS);
  };
  model.on("change:language", () => {
    if (!mounted) return;
    leave();
    look();
  });
  const observer = new ResizeObserver(look);
  observer.observe(el);
  look();
  return () => {
    if (kept) return;
    observer.disconnect();
    clearTimeout(leaving);
    leave();
  };
}

/** Does nothing: no step of the viewer waits for the kernel. */
function initialize(): void {}

export default { initialize, render };
