// A plugin that gives side panels a place in Notebook 7.
import { FORWARD_EVENT } from "./side_panel";

interface Widget {
  readonly id: string;
  readonly node: HTMLElement;
  readonly parent: Widget | null;
  hasClass(name: string): boolean;
  /** Of a split panel. */
  relativeSizes?(): number[];
  setRelativeSizes?(sizes: number[]): void;
}

/** The part of the application's shell that is used here. */
interface Shell {
  add(widget: Widget, area: string, options?: object): void;
  widgets(area: string): Iterable<Widget>;
  /** Shows a panel, also if its area is collapsed. */
  activateById(id: string): void;
  readonly _rightHandler?: { sideBar?: object };
}

/** The part of the page that the right panel gets: Notebook 7 opens it as narrow as it can be. */
const SHARE = 0.4;

function widen(widget: Widget): void {
  let split: Widget | null = widget;
  while (split && !split.setRelativeSizes) split = split.parent;
  const sizes = split?.relativeSizes?.() ?? [];
  const right = sizes.pop() ?? 1;
  if (right >= SHARE) return;
  const others = sizes.map((size) => (size / (1 - right)) * (1 - SHARE));
  split?.setRelativeSizes?.([...others, SHARE]);
}

/**
 * Sends the panels of jupyterlab-sidecar to the right panel of Notebook 7, which has one document and no columns for it.
 * Sidecar looks for the tabs of JupyterLab's right area, too.
 */
function activate({ shell }: { readonly shell: Shell }): void {
  const right = shell._rightHandler;
  if (!right || right.sideBar) return;
  right.sideBar = { tabCloseRequested: { connect: () => undefined } };
  const add = shell.add.bind(shell);
  shell.add = (widget, area, options) => {
    if (area !== "main" || !widget.hasClass("jupyterlab-sidecar")) return add(widget, area, options);
    add(widget, "right");
    // Sidecar shows the panel after this.
    setTimeout(() => widen(widget));
  };
  document.addEventListener(FORWARD_EVENT, ({ target }) => {
    const panel = [...shell.widgets("right")].find(({ node }) => node.contains(target as Node));
    if (panel) shell.activateById(panel.id);
  });
}

export const SIDE_PANEL_PLUGIN = { id: "graphloupe:side-panel", autoStart: true, activate };
