import { beforeEach, expect, test, vi } from "vitest";
import { ENDED_EVENT } from "../src/shell/link";
import { type Dock, type Home, panelOf, placesBefore, SidePanel, settle, type Widget } from "../src/shell/side_panel";

/** JupyterLab's main area as far as panels use it: columns of tabs, each with the one that is to be seen. */
class FakeDock implements Dock {
  readonly node = document.createElement("div");
  readonly columns: { tabs: FakeWidget[]; seen: FakeWidget }[] = [];

  open(label: string): FakeWidget {
    const widget = new FakeWidget(this, label);
    this.columns.push({ tabs: [widget], seen: widget });
    this.node.append(widget.node);
    return widget;
  }

  readonly layout = { handles: () => [], moveHandle: () => undefined };

  get labels(): string[][] {
    return this.columns.map(({ tabs }) => tabs.map(({ title }) => title.label));
  }

  get seen(): string[] {
    return this.columns.map(({ seen }) => seen.title.label);
  }

  widgets(): Widget[] {
    return this.columns.flatMap(({ tabs }) => tabs);
  }

  tabBars(): ReturnType<Dock["tabBars"]> {
    const titled = ({ tabs, seen }: { tabs: FakeWidget[]; seen: FakeWidget }) => ({
      node: document.createElement("div"),
      titles: tabs.map(({ title }) => title),
      currentTitle: { owner: seen },
    });
    return this.columns.map(titled);
  }

  addWidget(widget: FakeWidget, { mode, ref }: { mode: "split-right" | "tab-after"; ref: Widget }): void {
    this.remove(widget);
    for (const column of this.columns)
      column.seen = column.tabs.includes(column.seen) ? column.seen : (column.tabs[0] ?? widget);
    if (mode === "split-right") {
      this.columns.push({ tabs: [widget], seen: widget });
      return;
    }
    const column = this.columns.find(({ tabs }) => tabs.includes(ref as FakeWidget));
    column?.tabs.splice(column.tabs.indexOf(ref as FakeWidget) + 1, 0, widget);
  }

  selectWidget(widget: Widget): void {
    for (const column of this.columns) {
      if (column.tabs.includes(widget as FakeWidget)) column.seen = widget as FakeWidget;
    }
  }

  remove(widget: FakeWidget): void {
    for (const column of this.columns) column.tabs = column.tabs.filter((tab) => tab !== widget);
    this.columns.splice(0, this.columns.length, ...this.columns.filter(({ tabs }) => tabs.length > 0));
  }
}

class FakeWidget implements Widget {
  readonly node: HTMLElement = document.createElement("div");
  readonly title: { label: string; caption: string };
  readonly parent: FakeDock;
  context?: object;
  onActivateRequest?(message: object): void;

  constructor(dock: FakeDock, label: string) {
    this.parent = dock;
    this.title = { label, caption: "" };
    this.node.className = "jupyterlab-sidecar";
  }

  close(): void {
    this.parent.remove(this);
    this.node.remove();
  }
}

let dock: FakeDock;

/** A panel opens and its view is shown: what the shell does then. */
function show(home: Home): SidePanel {
  const widget = dock.open(home.title === "graph" ? "Graph" : `Graph ${home.title}`);
  settle(widget.node, home);
  const panel = new SidePanel(widget, dock);
  panel.join();
  panel.closeForerunners();
  return panel;
}

const home = (notebook: string, kernel: string, title = "graph"): Home => ({ notebook, kernel, title });

beforeEach(() => {
  dock = new FakeDock();
  document.body.replaceChildren(dock.node);
});

test("a panel takes the place of the one that an earlier kernel of the notebook left behind, among those of other graphs", () => {
  show(home("a.ipynb", "1"));
  show(home("a.ipynb", "1", "g"));
  show(home("a.ipynb", "1", "h"));
  show(home("a.ipynb", "2"));
  expect(dock.labels).toEqual([["Graph", "Graph g", "Graph h"]]);
  expect(dock.seen).toEqual(["Graph"]);
  show(home("a.ipynb", "2", "h"));
  show(home("a.ipynb", "2", "g"));
  expect(dock.labels).toEqual([["Graph", "Graph g", "Graph h"]]);
});

test("panels of several notebooks are tabs beside each other, which say what they belong to as long as there are several", () => {
  show(home("/home/me/a.ipynb", "1"));
  const second = show(home("/home/me/b.ipynb", "2"));
  expect(dock.labels).toEqual([["Graph · a", "Graph · b"]]);
  expect([...dock.widgets()].map(({ title }) => title.caption)).toEqual([
    "Graph of /home/me/a.ipynb",
    "Graph of /home/me/b.ipynb",
  ]);
  dock.widgets()[0]?.close();
  second.nameTabs();
  expect(dock.labels).toEqual([["Graph"]]);
});

test("a panel that the user has dragged away stays there", () => {
  show(home("a.ipynb", "1"));
  const panel = show(home("b.ipynb", "2"));
  const widget = dock.columns[0]?.tabs[1] as FakeWidget;
  dock.remove(widget);
  dock.columns.push({ tabs: [widget], seen: widget });
  panel.join();
  expect(dock.labels).toEqual([["Graph · a"], ["Graph · b"]]);
});

test("a panel comes before one of another notebook, not before one of its own", () => {
  const [first, second] = [show(home("a.ipynb", "1")), show(home("b.ipynb", "2"))];
  expect([first.isBehindAnotherNotebook, second.isBehindAnotherNotebook]).toEqual([true, false]);
  first.comeForward();
  expect(dock.seen).toEqual(["Graph · a"]);
  show(home("a.ipynb", "1", "g"));
  expect([first.isBehindAnotherNotebook, second.isBehindAnotherNotebook]).toEqual([false, true]);
});

test("a panel never covers its own notebook: it moves out of the notebook's column of tabs", () => {
  const [shownDocument, notebook] = [{}, dock.open("a.ipynb")];
  notebook.context = shownDocument;
  const widget = new FakeWidget(dock, "Graph");
  dock.addWidget(widget, { mode: "tab-after", ref: notebook });
  dock.selectWidget(widget);
  settle(widget.node, home("a.ipynb", "1"));
  const panel = new SidePanel(widget, dock, shownDocument);
  panel.join();
  expect(dock.labels).toEqual([["a.ipynb"], ["Graph"]]);
  expect(dock.seen).toEqual(["a.ipynb", "Graph"]);
  dock.addWidget(widget, { mode: "tab-after", ref: notebook });
  panel.comeForward();
  expect(dock.seen).toEqual(["a.ipynb", "Graph"]);
});

test("a panel does not join another one that is a tab beside its notebook", () => {
  const [shownDocument, notebook] = [{}, dock.open("a.ipynb")];
  notebook.context = shownDocument;
  const first = new FakeWidget(dock, "Graph");
  dock.addWidget(first, { mode: "tab-after", ref: notebook });
  settle(first.node, home("a.ipynb", "1"));
  const second = dock.open("Graph g");
  settle(second.node, home("a.ipynb", "1", "g"));
  new SidePanel(second, dock, shownDocument).join();
  expect(dock.labels).toEqual([["a.ipynb", "Graph"], ["Graph g"]]);
});

test("a panel takes the place of one of the same graph that has lost its kernel", () => {
  show(home("a.ipynb", "1"));
  const lost = document.createElement("div");
  lost.className = "graphloupe gl-lost";
  (dock.widgets()[0] as FakeWidget).node.append(lost);
  show(home("a.ipynb", "1"));
  expect(dock.labels).toEqual([["Graph"]]);
});

test("panels of kernels that know no notebook are left open", () => {
  show(home("", "1"));
  show(home("", "2"));
  expect(dock.labels).toEqual([["Graph", "Graph"]]);
});

test("views that an earlier kernel of the notebook fed hear that it has ended, wherever they are; no others do", () => {
  const heard: string[] = [];
  const view = (name: string, at: Home): HTMLElement => {
    const place = document.createElement("div");
    const root = document.createElement("div");
    root.className = "graphloupe";
    root.addEventListener(ENDED_EVENT, () => heard.push(name));
    place.append(root);
    document.body.append(place);
    settle(place, at);
    return place;
  };
  view("forerunner", home("a.ipynb", "1", "g"));
  view("elsewhere", home("b.ipynb", "1"));
  view("nowhere", home("", "1"));
  expect(heard).toEqual([]);
  view("now", home("a.ipynb", "2"));
  view("nowhere too", home("", "2"));
  expect(heard).toEqual(["forerunner"]);
});

test("a view finds its panel through the widget that opened it; between cells it lies in none", async () => {
  const widget = dock.open("Graph");
  const view = document.createElement("div");
  expect(panelOf(view)).toBeNull();
  widget.node.append(view);
  expect(panelOf(view)).toBe(widget.node);
  const find = vi.fn(async () => ({ views: { one: Promise.resolve({ _outputView: widget }) } }));
  const manager = { get_model: find };
  expect(await SidePanel.find(view, "sidecar-1", manager)).toBeInstanceOf(SidePanel);
  expect(find).toHaveBeenCalledWith("sidecar-1");
  expect(await SidePanel.find(document.createElement("div"), "sidecar-1", manager)).toBeNull();
  expect(await SidePanel.find(view, "sidecar-2", { get_model: async () => ({}) })).toBeNull();
});

test("columns have their widths again when a new one has gone that took half of its neighbour", () => {
  // Two columns of 400 and 590 with a bar of 10: the first was halved, and all gave way to a second bar.
  const scale = 980 / 990;
  const [half, other] = [200 * scale, 590 * scale];
  const places = [half, 2 * half + 10];
  expect((places[1] as number) + 10 + other).toBeCloseTo(1000);
  expect(placesBefore(places, 1, 1000, 10)).toEqual([expect.closeTo(400)]);
  // The last of the two was halved.
  const last = [400 * scale, 400 * scale + 10 + 295 * scale];
  expect(placesBefore(last, 2, 1000, 10)).toEqual([expect.closeTo(400)]);
  expect(placesBefore([495], 1, 1000, 10)).toEqual([]);
});

test("the picture has the focus when a user goes to its panel", () => {
  const panel = dock.open("Graph");
  const canvas = document.createElement("div");
  canvas.className = "gl-canvas";
  canvas.tabIndex = 0;
  panel.node.append(canvas);
  document.body.append(panel.node);
  new SidePanel(panel, dock).join();
  expect(document.activeElement).not.toBe(canvas);
  panel.onActivateRequest?.({});
  expect(document.activeElement).toBe(canvas);
});
