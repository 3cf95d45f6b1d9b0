import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { edge, group, inspection, node, Page, scene } from "./support";

let page: Page;

beforeEach(() => {
  page = new Page();
});

afterEach(() => {
  page.dispose();
  vi.restoreAllMocks();
});

const small = (revision: number, extra: string[] = []) =>
  scene({
    revision,
    nodes: ["x", "y", ...extra].map((id) => node(id, { op: "Identity" })),
    edges: [edge("x", "y", "float [?,10]"), ...extra.map((id) => edge("y", id, "float [?,10]"))],
  });

test("clicking a box selects it and asks about it; the answer fills the inspector", async () => {
  await page.show(small(1));
  page.click(page.box("y"));
  expect(page.last("inspect")).toEqual({ type: "inspect", id: "y" });
  expect(page.box("y").classList).toContain("gl-selected");
  page.receive({ type: "inspection", inspection: inspection("other", { doc: "not asked for" }) });
  expect(page.one<HTMLElement>(".gl-inspector").hidden).toBe(true);
  page.receive({ type: "inspection", inspection: inspection("y", { op: "Identity", doc: "Gives what it gets." }) });
  expect(page.text(".gl-inspector")).toContain("Gives what it gets.");
  page.receive({ type: "show_pane", pane: "stepper" });
  expect(page.one<HTMLElement>(".gl-inspector").hidden, "it leaves its room to the pane").toBe(true);
});

test("clicking a line asks about the box it ends at; a line on the way of a clash leads to the box with the clash", async () => {
  const nodes = [node("W"), node("matmul"), node("add", { state: "error", error: "10 and 12 clash" }), node("y")];
  const edges = [edge("W", "matmul", "", { clash: 1 }), edge("matmul", "add", "", { clash: 1 }), edge("add", "y")];
  await page.show(scene({ nodes, edges }));
  page.click(page.one('[data-edge-id="add->y"] .gl-reach'));
  expect(page.last("inspect")?.id).toBe("y");
  page.click(page.one('[data-edge-id="W->matmul"] .gl-reach'));
  expect(page.last("inspect")?.id).toBe("add");
  expect(page.box("add").classList).toContain("gl-selected");
});

test("clicking a stub asks about what it stands for", async () => {
  await page.show(
    scene({ nodes: [node("s1", { kind: "stub", label: "x", stands_for: "x" }), node("y")], edges: [edge("s1", "y")] }),
  );
  page.click(page.box("s1"));
  expect(page.last("inspect")?.id).toBe("x");
  page.receive({ type: "inspection", inspection: inspection("x", { doc: "far away" }) });
  expect(page.text(".gl-inspector")).toContain("far away");
});

test("a double click or the + opens a closed scope, the − closes an open one", async () => {
  const nodes = [node("model/", { kind: "scope", expandable: true, count: 7 }), node("loss/sum", { group: "loss/" })];
  await page.show(scene({ nodes, edges: [edge("model/", "loss/sum")], groups: [group("loss/")] }));
  page.click(page.one('[data-node-id="model/"] [data-action="expand"]'));
  expect(page.last("expand")).toEqual({ type: "expand", id: "model/" });
  page.sent.length = 0;
  page.click(page.box("model/"), 2);
  expect(page.last("expand")).toEqual({ type: "expand", id: "model/" });
  page.click(page.one('[data-group-id="loss/"] [data-action="collapse"]'));
  expect(page.last("collapse")).toEqual({ type: "collapse", id: "loss/" });
});

test("a double click opens the box under its first press, also when the picture has moved before the second", async () => {
  const scopes = ["model/", "loss/"].map((name) => node(name, { kind: "scope", expandable: true, count: 7 }));
  await page.show(scene({ nodes: scopes, edges: [edge("model/", "loss/")] }));
  page.click(page.box("model/"));
  page.click(page.box("loss/"), 2);
  expect(page.last("expand")).toEqual({ type: "expand", id: "model/" });
  page.sent.length = 0;
  page.click(page.box("model/"));
  page.click(page.one(".gl-canvas"), 2);
  expect(page.last("expand")).toEqual({ type: "expand", id: "model/" });
});

test("the keyboard walks along the lines, inspects, opens and closes", async () => {
  const nodes = [node("x"), node("s/", { kind: "scope", expandable: true }), node("f/y", { group: "f/" })];
  await page.show(scene({ nodes, edges: [edge("x", "s/"), edge("s/", "f/y")], groups: [group("f/")] }));
  page.key("ArrowDown");
  expect(page.root.dataset.selected).toBe("x");
  page.key("ArrowDown");
  expect(page.root.dataset.selected).toBe("s/");
  expect(document.activeElement).toBe(page.box("s/"));
  page.key(" ");
  expect(page.last("expand")).toEqual({ type: "expand", id: "s/" });
  page.key("Enter");
  expect(page.last("inspect")).toEqual({ type: "inspect", id: "s/" });
  page.key("ArrowDown");
  page.key(" ");
  expect(page.last("collapse")).toEqual({ type: "collapse", id: "f/" });
  page.key("ArrowUp");
  expect(page.root.dataset.selected).toBe("s/");
  page.key("Escape");
  expect(page.root.dataset.selected).toBe("");
});

test("in a cell, the element with the focus is excluded from JupyterLab's shortcuts", async () => {
  await page.show(small(1));
  page.click(page.box("y"));
  expect(document.activeElement?.hasAttribute("data-lm-suppress-shortcuts")).toBe(false);
  page.root.parentElement?.classList.add("jp-Notebook");
  page.click(page.box("x"));
  expect(document.activeElement?.getAttribute("data-lm-suppress-shortcuts")).toBe("true");
  page.key("/");
  expect(document.activeElement?.getAttribute("data-lm-suppress-shortcuts")).toBe("true");
});

test("the focus survives that the focused box goes", async () => {
  await page.show(small(1, ["z"]));
  page.click(page.box("z"));
  expect(document.activeElement).toBe(page.box("z"));
  await page.show(small(2));
  expect(document.activeElement).toBe(page.one(".gl-canvas"));
});

test("a picture that comes to a box takes the focus from nothing else on the page", async () => {
  const cell = document.createElement("input");
  document.body.append(cell);
  cell.focus();
  await page.show(small(1, ["z"]), { focus: "z" });
  expect(document.activeElement).toBe(cell);
  cell.remove();
});

test("the arrow keys reach everything in the export menu, Escape closes it and leads back", async () => {
  await page.show(small(1));
  const button = page.one<HTMLButtonElement>('[aria-label="Export the picture"]');
  button.click();
  const names = (): string =>
    document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.textContent ?? "";
  const seen = [names()];
  for (const key of ["ArrowRight", "ArrowRight", "ArrowUp", "ArrowUp", "ArrowRight", "ArrowUp"]) {
    page.key(key, document.activeElement ?? button);
    seen.push(names());
  }
  expect(seen).toEqual([
    "Download SVG picture",
    "Copy SVG picture",
    "Download PNG picture",
    "Download SVG picture",
    "Download Mermaid text",
    "Copy Mermaid text",
    "Copy DOT text",
  ]);
  page.key("Escape", document.activeElement ?? button);
  expect(document.activeElement).toBe(button);
  expect(button.getAttribute("aria-expanded")).toBe("false");
});

test("the bar before the inspector says where it stands, and moves with the arrow keys", async () => {
  await page.show(small(1));
  const bar = page.one<HTMLElement>(".gl-splitter");
  const pane = page.one<HTMLElement>(".gl-inspector");
  Object.defineProperty(pane, "offsetWidth", { configurable: true, value: 200 });
  bar.focus();
  expect(bar.getAttribute("aria-valuenow")).toBe("25");
  expect(bar.getAttribute("aria-orientation")).toBe("vertical");
  page.key("ArrowLeft", bar);
  expect(pane.style.getPropertyValue("--gl-pane-width")).toBe("224px");
});
