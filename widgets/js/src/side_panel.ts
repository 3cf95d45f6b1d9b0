// The panel that jupyterlab-sidecar opens beside a notebook.

const PANEL = ".jp-LinkedOutputView, .jupyterlab-sidecar";

/** Where a press of a mouse would begin and end that hits `element`. JupyterLab offers a widget no other way to its tabs. */
function pressOn(element: Element): void {
  const { left, top, width, height } = element.getBoundingClientRect();
  const place = { bubbles: true, cancelable: true, button: 0, clientX: left + width / 2, clientY: top + height / 2 };
  element.dispatchEvent(new PointerEvent("pointerdown", place));
  element.dispatchEvent(new PointerEvent("pointerup", place));
}

function tabOf(panel: HTMLElement): HTMLElement | undefined {
  return [...document.querySelectorAll<HTMLElement>("[data-id]")].find(({ dataset }) => dataset.id === panel.id);
}

/** Brings a panel before those that cover it. One that is to be seen stays as it is: it would take the focus from the cells. */
export function bringToFront(panel: HTMLElement): void {
  const tab = tabOf(panel);
  if (tab && !tab.classList.contains("lm-mod-current")) pressOn(tab);
}

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

/** Closes the panels that an earlier kernel of the same notebook has left behind: nobody feeds their views any more. */
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
  const icon = tabOf(panel)?.querySelector(".lm-TabBar-tabCloseIcon");
  if (icon) pressOn(icon);
}
