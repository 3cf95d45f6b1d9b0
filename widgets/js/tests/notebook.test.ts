import { afterEach, expect, test, vi } from "vitest";
import { type Manager, Notebook } from "../src/shell/notebook";
import { inspection, node, Page, scene, until } from "./support";

class Signal<Value> {
  readonly slots = new Set<(sender: unknown, value: Value) => void>();
  connect(slot: (sender: unknown, value: Value) => void): void {
    this.slots.add(slot);
  }
  disconnect(slot: (sender: unknown, value: Value) => void): void {
    this.slots.delete(slot);
  }
  emit(value: Value): void {
    for (const slot of this.slots) slot(this, value);
  }
}

const ran: string[] = [];

class CodeCell {
  static status = "ok";
  readonly ready = Promise.resolve();
  readonly model: { id: string };
  readonly selected = vi.fn();
  readonly editor: object;

  static async execute(cell: CodeCell): Promise<object> {
    ran.push(cell.model.id);
    return { content: { status: CodeCell.status } };
  }

  constructor(id: string, lines: readonly string[]) {
    this.model = { id };
    this.editor = {
      lineCount: lines.length,
      getLine: (line: number) => lines[line],
      setSelection: this.selected,
      revealSelection: vi.fn(),
      focus: vi.fn(),
    };
  }
}

/** JupyterLab with a notebook of two cells, and a view in a panel beside it. */
function lab() {
  ran.length = 0;
  CodeCell.status = "ok";
  const requestExecute = vi.fn(({ code }: { code: string }) => {
    ran.push(code);
    return { done: Promise.resolve() };
  });
  const sessionContext = {
    statusChanged: new Signal<string>(),
    kernelChanged: new Signal<unknown>(),
    session: { kernel: { status: "idle", requestExecute } },
    restartKernel: vi.fn(),
  };
  const context = { sessionContext };
  const cells = [new CodeCell("first", ["%graph"]), new CodeCell("third", ["x = 1", "y = f(x)"])];
  const dock = { parent: null, widgets: () => [panel], activateWidget: vi.fn() };
  const content = {
    widgets: cells,
    activeCellIndex: 0,
    mode: "command",
    deselectAll: vi.fn(),
    scrollToItem: vi.fn(() => Promise.resolve()),
  };
  const panel = { parent: dock, context, content };
  const view = { luminoWidget: { parent: { parent: dock } } };
  const manager = {
    context,
    get_model: async (id: string) => ({ views: id === "model" ? { one: Promise.resolve(view) } : {} }),
  };
  const notebook = new Notebook(manager as unknown as Manager, "model", "first");
  return { notebook, sessionContext, cells, content, dock, panel };
}

let page: Page;
afterEach(() => page.dispose());

const MADE = { cell: "In [3]", line: 2, text: "y = f(x)", file: "", cell_id: "third" };

async function inspected(source: typeof MADE, notebook?: Notebook): Promise<Page> {
  page = new Page({}, notebook);
  await page.show(scene({ nodes: [node("y", { op: "Neg" })] }));
  page.click(page.box("y"));
  page.receive({ type: "inspection", inspection: inspection("y", { source }) });
  return page;
}

test("the place that made a node is a link that shows its cell and selects its line", async () => {
  const { notebook, cells, content, dock, panel } = lab();
  await inspected(MADE, notebook);
  const link = page.one<HTMLButtonElement>("button.gl-place");
  expect(link.textContent).toBe("In [3], line 2");
  link.click();
  await until(() => (cells[1]?.selected.mock.calls.length ?? 0) > 0);
  const range = { start: { line: 1, column: 0 }, end: { line: 1, column: 8 } };
  expect(cells[1]?.selected).toHaveBeenCalledWith(range);
  expect(content).toMatchObject({ activeCellIndex: 1, mode: "edit" });
  expect(dock.activateWidget).toHaveBeenCalledWith(panel);
});

test("a cell that was deleted is missed in words", async () => {
  await inspected({ ...MADE, cell_id: "gone" }, lab().notebook);
  page.one<HTMLButtonElement>("button.gl-place").click();
  await until(() => page.text(".gl-status-text").includes("no longer in the notebook"));
});

test("the place is text where there is no notebook, and for a line of a file", async () => {
  await inspected(MADE);
  expect(page.one(".gl-place").tagName).toBe("SPAN");
  page.dispose();
  await inspected({ ...MADE, cell_id: "" }, lab().notebook);
  expect(page.one(".gl-place").tagName).toBe("SPAN");
});

test.each(["restarting", "autorestarting", "dead", "terminating"])(
  "a kernel that is %s is announced at once; the picture stays and nothing more is sent",
  async (status) => {
    const { notebook, sessionContext } = lab();
    await inspected(MADE, notebook);
    sessionContext.statusChanged.emit("busy");
    expect(page.root.classList).not.toContain("gl-lost");
    sessionContext.statusChanged.emit(status);
    expect(page.root.classList).toContain("gl-lost");
    expect(page.text(".gl-status-text")).toBe("The kernel of this picture has ended: run its cell again");
    expect(page.box("y")).toBeTruthy();
    const sent = page.sent.length;
    page.click(page.box("y"));
    expect(page.sent).toHaveLength(sent);
    page.dispose();
    expect(sessionContext.statusChanged.slots.size).toBe(0);
  },
);

test("one click runs the view's cell in the new kernel, with the extension loaded before", async () => {
  const { notebook, sessionContext } = lab();
  await inspected(MADE, notebook);
  const reconnect = page.one<HTMLButtonElement>(".gl-status .gl-text-button");
  expect(reconnect.hidden).toBe(true);
  sessionContext.statusChanged.emit("restarting");
  expect(reconnect.hidden).toBe(false);
  reconnect.click();
  await until(() => ran.length === 2);
  expect(ran).toEqual(["%load_ext kernelext", "first"]);
});

test("a cell that fails on its own says that those above it are needed", async () => {
  const { notebook, sessionContext } = lab();
  CodeCell.status = "error";
  await inspected(MADE, notebook);
  sessionContext.statusChanged.emit("restarting");
  page.one<HTMLButtonElement>(".gl-status .gl-text-button").click();
  await until(() => page.text(".gl-status-text").includes("run the cells above it first"));
});

test("a request that is handled without an answer shows that the comm is lost", async () => {
  await inspected(MADE, lab().notebook);
  page.handle();
  await new Promise((resolve) => setTimeout(resolve, 600));
  expect(page.root.classList).not.toContain("gl-lost");
  page.click(page.box("y"));
  page.key("Enter");
  page.handle();
  await until(() => page.root.classList.contains("gl-lost"));
  expect(page.text(".gl-status-text")).toBe("The kernel no longer knows this picture: run its cell again");
  expect(page.one<HTMLButtonElement>(".gl-status .gl-text-button").hidden).toBe(false);
});
