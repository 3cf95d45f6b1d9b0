import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { trace } from "../src/scene/trace";
import { edge, group, inspection, node, Page, scene, until } from "./support";

let page: Page;

beforeEach(async () => {
  page = new Page();
  await page.show(shown);
});

afterEach(() => page.dispose());

const ids = ["x", "s/a", "s/b", "y", "alone"];
const shown = scene({
  nodes: ids.map((id) => node(id, { op: "Relu", group: id.startsWith("s/") ? "s/" : "" })),
  edges: [edge("x", "s/a"), edge("s/a", "s/b"), edge("s/b", "y")],
  groups: [group("s/")],
});
const selected = (): (string | undefined)[] =>
  [...page.root.querySelectorAll<SVGElement>(".gl-node.gl-selected")].map((box) => box.dataset.nodeId);
const dimmed = (): (string | undefined)[] =>
  [...page.root.querySelectorAll<SVGElement>(".gl-node.gl-off")].map((box) => box.dataset.nodeId);
const button = (label: RegExp): HTMLButtonElement => {
  const found = [...page.root.querySelectorAll("button")].find((one) =>
    label.test(one.ariaLabel ?? one.textContent ?? ""),
  );
  if (!found) throw new Error(`no button ${label}`);
  return found;
};

test("the question mark opens the list of all shortcuts, and Escape closes it", async () => {
  page.key("?");
  await vi.waitFor(() => page.one(".gl-help"));
  const help = page.one<HTMLElement>(".gl-help");
  expect(help.hidden).toBe(false);
  expect(page.text(".gl-help")).toMatch(/Home.*go to the first box.*Alt \+ ←.*back/s);
  page.key("Escape", help);
  expect(help.hidden).toBe(true);
});

test("the picture names the key of the list and does not read the whole list on each focus", () => {
  const words = page.one(".gl-canvas").getAttribute("aria-label") ?? "";
  expect(words).toBe("Graph: arrow keys walk along the lines, question mark lists all keys");
});

test("an arrow key that leads nowhere says so", () => {
  page.key("Home");
  for (let step = 0; step < 5; step++) page.key("ArrowUp");
  expect(page.text('.gl-status [role="status"]')).toBe("No box further up");
});

test("a screen reader hears what a box takes and gives", () => {
  const words = page.one('[data-node-id="y"]').getAttribute("aria-label") ?? "";
  expect(words).toMatch(/takes .*from /);
});

test("the question mark opens the list from the outline, too", async () => {
  button(/^Outline/).click();
  page.key("?", page.one(".gl-tree [role=treeitem]"));
  await vi.waitFor(() => expect(page.one<HTMLElement>(".gl-help").hidden).toBe(false));
});

test("Home and End go to the first and the last box of the flow", () => {
  page.key("End");
  expect(page.root.dataset.selected).toBe("y");
  page.key("Home");
  expect(["x", "alone"]).toContain(page.root.dataset.selected);
});

test("Shift and a click select several boxes; the inspector sums them up", () => {
  const press = (id: string) =>
    page.box(id).dispatchEvent(new MouseEvent("click", { bubbles: true, detail: 1, shiftKey: true }));
  page.click(page.box("x"));
  press("y");
  press("s/b");
  expect(selected().sort()).toEqual(["s/b", "x", "y"]);
  expect(page.text(".gl-inspector")).toMatch(/3 boxes.*Relu × 3/s);
  press("y");
  expect(selected().sort()).toEqual(["s/b", "x"]);
  page.click(page.box("alone"));
  expect(selected()).toEqual(["alone"]);
});

test("Shift and an arrow key select the next box as well", () => {
  page.click(page.box("x"));
  page.key("ArrowDown", page.one(".gl-canvas"), { shiftKey: true });
  expect(selected().sort()).toEqual(["s/a", "x"]);
});

test("u and d highlight what lies upstream and downstream, and again no longer", () => {
  page.click(page.box("s/b"));
  page.key("u");
  expect(dimmed().sort()).toEqual(["alone", "y"]);
  page.key("d");
  expect(dimmed().sort()).toEqual(["alone", "s/a", "x"]);
  page.key("d");
  expect(dimmed()).toEqual([]);
});

const repeated = (open: boolean) =>
  scene({
    nodes: [
      node("x"),
      ...(open
        ? [node("#0.a/one", { group: "#0.a/" }), node("#0.a/two", { group: "#0.a/" })]
        : [node("#0.a/", { kind: "scope", count: 12, repeat: 6, expandable: true })]),
      node("y"),
      node("alone"),
    ],
    edges: open
      ? [edge("x", "#0.a/one"), edge("#0.a/one", "#0.a/two"), edge("#0.a/two", "y")]
      : [edge("x", "#0.a/"), edge("#0.a/", "y")],
    groups: open ? [group("#0.a/", { label: "a ×6" })] : [],
    revision: open ? 2 : 1,
  });

test.each([false, true])("buttons highlight what lies upstream and downstream of a repeat (open: %s)", async (open) => {
  await page.show(repeated(open));
  page.click(open ? page.one('[data-group-id="#0.a/"] .gl-group-label') : page.box("#0.a/"));
  page.receive({ type: "inspection", inspection: inspection("#0.a/", { kind: "scope", summary: "12 nodes" }) });
  button(/^Upstream/).click();
  expect(dimmed().sort()).toEqual(["alone", "y"]);
  expect(page.text(".gl-status-text")).toBe("1 box upstream");
  expect(page.one('[data-way="upstream"]').getAttribute("aria-pressed")).toBe("true");
  button(/^Downstream/).click();
  expect(dimmed().sort()).toEqual(["alone", "x"]);
  button(/^Downstream/).click();
  expect(dimmed()).toEqual([]);
});

test("a trace goes on behind a stub to the box that it stands for", () => {
  const cut = scene({
    nodes: [node("w"), node("stub:w:y", { kind: "stub", stands_for: "w" }), node("y"), node("v")],
    edges: [edge("v", "w"), edge("stub:w:y", "y")],
  });
  expect([...trace(cut, ["y"], "upstream").boxes].sort()).toEqual(["stub:w:y", "v", "w", "y"]);
  expect([...trace(cut, ["v"], "downstream").boxes].sort()).toEqual(["stub:w:y", "v", "w", "y"]);
});

test("breadcrumbs say where the selected box is, and lead to the frames around it", () => {
  page.click(page.box("alone"));
  expect(page.one<HTMLElement>(".gl-way").hidden).toBe(true);
  page.click(page.box("s/a"));
  expect([...page.root.querySelectorAll(".gl-way li")].map((item) => item.textContent)).toEqual([
    shown.title || "graph",
    "s/",
    "a",
  ]);
  page.one<HTMLButtonElement>(".gl-way li:nth-child(2) button").click();
  expect(page.root.dataset.selected).toBe("s/");
});

test("back and forward lead through what was selected and opened", async () => {
  const back = button(/^Back/);
  expect(back.disabled).toBe(true);
  await until(() => page.last("drawn") !== undefined);
  await new Promise((resolve) => setTimeout(resolve, 350));
  page.click(page.box("x"));
  await until(() => page.last("look")?.look.selection[0] === "x");
  expect(back.disabled).toBe(false);
  const closed = { opened: [], closed: ["s"], mode: "auto" as const, mirror: false };
  await page.show(
    scene({
      revision: 2,
      nodes: [node("x"), node("s/", { kind: "scope", expandable: true })],
      edges: [edge("x", "s/")],
    }),
    { openings: closed },
  );
  page.key("ArrowLeft", page.one(".gl-canvas"), { altKey: true });
  expect(page.last("restore")).toEqual({
    type: "restore",
    openings: { opened: [], closed: [], mode: "auto", mirror: false },
  });
  await page.show({ ...shown, revision: 3 });
  expect(selected()).toEqual(["x"]);
  await new Promise((resolve) => setTimeout(resolve, 350));
  page.key("ArrowLeft", page.one(".gl-canvas"), { altKey: true });
  expect(selected()).toEqual([]);
  await new Promise((resolve) => setTimeout(resolve, 350));
  page.key("ArrowRight", page.one(".gl-canvas"), { altKey: true });
  expect(selected()).toEqual(["x"]);
});

test("a view that was stored is restored with the scene that comes", async () => {
  await page.show({ ...shown, revision: 2 }, { look: { camera: { x: 40, y: 50, scale: 0.5 }, selection: ["y"] } });
  expect(selected()).toEqual(["y"]);
  await until(() => page.last("look")?.look.camera?.scale === 0.5);
  expect(page.last("look")?.look).toMatchObject({ camera: { x: 40, y: 50 }, selection: ["y"] });
});

test("the tooltip of a box says its name, op and shape", async () => {
  const lenses = { shapes: { text: "float [?,10]", tone: 1 } };
  await page.show(scene({ revision: 2, nodes: [node("deep/layer/x", { op: "Relu", label: "x", lenses })] }));
  expect(page.box("deep/layer/x").querySelector("title")?.textContent).toBe("deep/layer/x\nRelu\nfloat [?,10]");
});
