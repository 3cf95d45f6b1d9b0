// The panel that jupyterlab-sidecar opens beside a notebook.

const PANEL = ".jp-LinkedOutputView, .jupyterlab-sidecar";

/** What a view belongs to: its notebook's path, the kernel process that feeds it, and its title. */
export interface Home {
  readonly notebook: string;
  readonly kernel: string;
  readonly title: string;
}

/** The side panel that `element` lies in; null between cells. */
export function panelOf(element: Element): HTMLElement | null {
  return element.closest<HTMLElement>(PANEL);
}

/**
 * Closes the panels that an earlier kernel of the same notebook has left behind: nobody feeds their views any more.
 * JupyterLab offers a widget no way to do that, so it is done as a person would, by the tab's close button.
 */
export function closeForerunners(panel: HTMLElement, home: Home): void {
  if (!home.notebook) return;
  panel.dataset.graphloupeNotebook = home.notebook;
  panel.dataset.graphloupeKernel = home.kernel;
  panel.dataset.graphloupeTitle = home.title;
  for (const other of document.querySelectorAll<HTMLElement>("[data-graphloupe-notebook]")) {
    const { graphloupeNotebook: notebook, graphloupeKernel: kernel, graphloupeTitle: title } = other.dataset;
    if (notebook === home.notebook && title === home.title && kernel !== home.kernel) closeTab(other);
  }
}

function closeTab(panel: HTMLElement): void {
  const tab = [...document.querySelectorAll<HTMLElement>("[data-id]")].find(({ dataset }) => dataset.id === panel.id);
  const icon = tab?.querySelector(".lm-TabBar-tabCloseIcon");
  if (!icon) return;
  const { left, top, width, height } = icon.getBoundingClientRect();
  const place = { bubbles: true, cancelable: true, button: 0, clientX: left + width / 2, clientY: top + height / 2 };
  icon.dispatchEvent(new PointerEvent("pointerdown", place));
  icon.dispatchEvent(new PointerEvent("pointerup", place));
}
