// The panels that jupyterlab-sidecar opens: one column of tabs for all notebooks and kernels.
import { afterPaint } from "../dom";
import { ENDED_EVENT } from "./link";

const PANEL = ".jp-LinkedOutputView, .jupyterlab-sidecar";

/** The part of a Lumino widget that is used here; all of JupyterLab's widgets are such. */
export interface Widget {
  readonly node: HTMLElement;
  readonly title: { label: string; caption: string };
  readonly parent: object | null;
  /** The document, of a widget that shows one. */
  readonly context?: object;
  /** Called when a user goes to the widget, by its tab or by keys. */
  onActivateRequest?(message: object): void;
  close(): void;
}

interface TabBar {
  readonly node: HTMLElement;
  readonly titles: readonly object[];
  readonly currentTitle: { readonly owner: Widget } | null;
}

/** JupyterLab's main area. */
export interface Dock {
  widgets(): Iterable<Widget>;
  tabBars(): Iterable<TabBar>;
  addWidget(widget: Widget, options: { readonly mode: "split-right" | "tab-after"; readonly ref: Widget }): void;
  selectWidget(widget: Widget): void;
  /** The draggable bars between columns and rows. */
  readonly layout: { handles(): Iterable<HTMLElement>; moveHandle(handle: HTMLElement, x: number, y: number): void };
}

/** The part of sidecar's widget that is used here. */
interface SidecarModel {
  readonly views?: Readonly<Record<string, Promise<{ readonly _outputView?: Widget }>>>;
}

/** The part of a widget manager that is used here: finds the model of a widget on this page by its id. */
export interface PanelManager {
  get_model(id: string): Promise<unknown>;
  readonly context?: object;
}

/** The identity of a view: the path of its notebook, its kernel process, its model, and its title. */
export interface Home {
  readonly notebook: string;
  readonly kernel: string;
  readonly model?: string;
  readonly title: string;
}

/** The event on the document that announces a live view, or the end of one. */
export const LIVE_EVENT = "graphloupe-live";

/** The event on a panel that asks its application to bring it forward, where only the application can. */
export const FORWARD_EVENT = "graphloupe-forward";

/** The side panel around `element`; null between cells. */
export function panelOf(element: Element): HTMLElement | null {
  return element.closest<HTMLElement>(PANEL);
}

/** Records the identity of a panel, or of a view between cells. Views of an earlier kernel are notified of its end. */
export function settle(place: HTMLElement, { notebook, kernel, model = "", title }: Home): void {
  Object.assign(place.dataset, {
    graphloupeNotebook: notebook,
    graphloupeKernel: kernel,
    graphloupeModel: model,
    graphloupeTitle: title,
  });
  document.dispatchEvent(new Event(LIVE_EVENT));
  if (!notebook) return;
  for (const other of document.querySelectorAll<HTMLElement>("[data-graphloupe-notebook]")) {
    if (!isForerunner(other, place)) continue;
    for (const view of other.querySelectorAll(".graphloupe")) view.dispatchEvent(new Event(ENDED_EVENT));
  }
}

/** True if the page has a live view with this model. */
export function isLive(model: string): boolean {
  const places = document.querySelectorAll<HTMLElement>("[data-graphloupe-model]");
  return model !== "" && [...places].some(({ dataset }) => dataset.graphloupeModel === model);
}

/** True if `other` is of the same notebook as `place`, and of another kernel. */
function isForerunner({ dataset: other }: HTMLElement, { dataset: place }: HTMLElement): boolean {
  const same = other.graphloupeNotebook === place.graphloupeNotebook;
  return same && Boolean(place.graphloupeNotebook) && other.graphloupeKernel !== place.graphloupeKernel;
}

function isDock(parent: object | null): parent is Dock {
  return (
    parent !== null && ["widgets", "tabBars", "addWidget", "selectWidget", "layout"].every((name) => name in parent)
  );
}

function leftOf(element: HTMLElement): number {
  return element.getBoundingClientRect().left;
}

/**
 * The places of the bars between columns before column `column` was added in half of the column at its left.
 * All columns became narrower then, by one more bar of `gap` pixels. A place is the left edge of a bar, in pixels from the
 * left edge of the first column; `width` is the width of all columns together.
 */
export function placesBefore(places: readonly number[], column: number, width: number, gap: number): number[] {
  const bars = places.length;
  const scale = (width - (bars - 1) * gap) / (width - bars * gap);
  const columnsBefore = (bar: number): number => ((places[bar] ?? 0) - bar * gap) * scale;
  return places.slice(1).map((_, bar) => columnsBefore(bar < column - 1 ? bar : bar + 1) + bar * gap);
}

/** One panel among those of JupyterLab's main area. */
export class SidePanel {
  readonly #widget: Widget;
  readonly #dock: Dock;
  readonly #document: object | undefined;

  /** `document` is that of the panel's notebook, undefined if unknown. */
  constructor(widget: Widget, dock: Dock, document?: object) {
    this.#widget = widget;
    this.#dock = dock;
    this.#document = document;
  }

  /** The panel around `element`, opened by the widget `sidecar`; null if JupyterLab gives no access to it. */
  static async find(element: HTMLElement, sidecar: string, manager: PanelManager): Promise<SidePanel | null> {
    const { views } = (await manager.get_model(sidecar)) as SidecarModel;
    for (const view of Object.values(views ?? {})) {
      const widget = (await view)._outputView;
      if (widget?.node.contains(element) && isDock(widget.parent))
        return new SidePanel(widget, widget.parent, manager.context);
    }
    return null;
  }

  /**
   * Makes a panel that has just opened a tab beside another one: its forerunner, else one of its notebook, else any.
   * Later the user decides about its place.
   */
  join(): void {
    const { node } = this.#widget;
    if (node.dataset.graphloupeJoined) return;
    node.dataset.graphloupeJoined = "true";
    node.dataset.graphloupeTab = this.#widget.title.label;
    this.#widget.onActivateRequest = () => node.querySelector<HTMLElement>(".gl-canvas")?.focus();
    const others = this.#panels().filter((other) => other !== this.#widget);
    const ofNotebook = others.filter(
      (other) => other.node.dataset.graphloupeNotebook === node.dataset.graphloupeNotebook,
    );
    const neighbour = others.find((other) => this.#isSame(other)) ?? ofNotebook.at(-1) ?? others.at(-1);
    const joins =
      neighbour && !this.#notebookBeside(neighbour) && !others.some((other) => this.#together(other, this.#widget));
    if (joins) {
      const restoreWidths = this.#widthsWithout();
      this.#dock.addWidget(this.#widget, { mode: "tab-after", ref: neighbour });
      this.#dock.selectWidget(this.#widget);
      afterPaint(restoreWidths);
    }
    this.#uncover();
    this.nameTabs();
  }

  /** Closes the panels of the same graph left over from earlier kernels of the notebook, or without a kernel's end. */
  closeForerunners(): void {
    for (const other of this.#panels()) {
      if (other === this.#widget || !this.#isSame(other)) continue;
      if (isForerunner(other.node, this.#widget.node) || other.node.querySelector(".gl-lost")) other.close();
    }
  }

  /** Brings the panel to the front, beside its notebook; the focus stays in the cells. */
  comeForward(): void {
    this.#uncover();
    this.#dock.selectWidget(this.#widget);
  }

  /** Moves the panel out of the column of tabs that its notebook is in, where it would cover the notebook. */
  #uncover(): void {
    const notebook = this.#notebookBeside(this.#widget);
    if (!notebook) return;
    this.#dock.addWidget(this.#widget, { mode: "split-right", ref: notebook });
    this.#dock.selectWidget(notebook);
  }

  /** The notebook if `panel` is a tab beside it, else undefined. */
  #notebookBeside(panel: Widget): Widget | undefined {
    if (!this.#document) return undefined;
    const notebook = [...this.#dock.widgets()].find(({ context }) => context === this.#document);
    return notebook && this.#together(notebook, panel) ? notebook : undefined;
  }

  /** True if a panel of another notebook covers this one. */
  get isBehindAnotherNotebook(): boolean {
    const seen = this.#barOf(this.#widget)?.currentTitle?.owner.node.dataset.graphloupeNotebook;
    return seen !== undefined && seen !== this.#widget.node.dataset.graphloupeNotebook;
  }

  /** Adds the names of notebooks to the tabs if there are panels of several notebooks. */
  nameTabs(): void {
    const panels = this.#panels();
    const several = new Set(panels.map(({ node }) => node.dataset.graphloupeNotebook)).size > 1;
    for (const { node, title } of panels) {
      const { graphloupeTab: tab = title.label, graphloupeNotebook: path = "" } = node.dataset;
      const name = /([^/\\]*?)(\.ipynb)?$/.exec(path)?.[1];
      title.label = several && name ? `${tab} · ${name}` : tab;
      title.caption = path ? `${tab} of ${path}` : tab;
    }
  }

  /**
   * Returns a function that restores the widths of the other columns after the panel's own column is gone.
   * JupyterLab would distribute its width among all, and make the notebook narrower with each restart.
   */
  #widthsWithout(): () => void {
    const { layout } = this.#dock;
    const seen = (): HTMLElement[] =>
      [...layout.handles()]
        .filter((handle) => !handle.classList.contains("lm-mod-hidden"))
        .sort((a, b) => leftOf(a) - leftOf(b));
    const bars = [...this.#dock.tabBars()].map(({ node }) => node.getBoundingClientRect());
    const start = Math.min(...bars.map(({ left }) => left));
    const width = Math.max(...bars.map(({ right }) => right)) - start;
    const handles = seen();
    const column = handles.filter((handle) => leftOf(handle) < leftOf(this.#widget.node)).length;
    const places = placesBefore(
      handles.map((handle) => leftOf(handle) - start),
      column,
      width,
      handles[0]?.offsetWidth ?? 0,
    );
    return () => {
      const left = seen();
      const plain = [...handles, ...left].every(({ dataset }) => dataset.orientation === "horizontal");
      if (!plain || left.length !== places.length) return;
      for (const [index, handle] of left.entries()) {
        const moved = (places[index] ?? 0) + start - leftOf(handle);
        if (Math.abs(moved) >= 1) layout.moveHandle(handle, handle.offsetLeft + moved, handle.offsetTop);
      }
    };
  }

  /** All panels with views of this project. */
  #panels(): Widget[] {
    return [...this.#dock.widgets()].filter(({ node }) => node.dataset.graphloupeNotebook !== undefined);
  }

  #isSame({ node }: Widget): boolean {
    const { graphloupeNotebook: notebook, graphloupeTitle: title } = this.#widget.node.dataset;
    return node.dataset.graphloupeNotebook === notebook && node.dataset.graphloupeTitle === title;
  }

  #barOf(widget: Widget): TabBar | undefined {
    return [...this.#dock.tabBars()].find(({ titles }) => titles.includes(widget.title));
  }

  #together(one: Widget, other: Widget): boolean {
    return this.#barOf(one)?.titles.includes(other.title) ?? false;
  }
}
