import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { fileStem } from "../src/canvas/exporter";
import { edge, group, HOSTILE, node, Page, SAMPLE, scene, sceneMessage, until } from "./support";

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

test("a new viewer says that it is ready, and after a scene that it is drawn", async () => {
  expect(page.sent[0]).toEqual({ type: "ready" });
  await page.show(small(3), { sent_at: Date.now() });
  const report = page.last("drawn");
  expect(report).toMatchObject({ revision: 3, renderer: "graphviz" });
  expect(report?.delay_ms).toBeGreaterThanOrEqual(0);
  expect(page.root.dataset).toMatchObject({ revision: "3", renderer: "graphviz", busy: "false" });
});

test("the delay of a picture stays when it is drawn again", async () => {
  await page.show(small(3), { sent_at: Date.now() - 5000 });
  const first = page.last("drawn")?.delay_ms;
  const count = page.sent.filter(({ type }) => type === "drawn").length;
  vi.spyOn(Date, "now").mockReturnValue(Date.now() + 60_000);
  page.receive(sceneMessage(small(3, ["z"]), { sent_at: Date.now() - 65_000 }));
  await until(() => page.sent.filter(({ type }) => type === "drawn").length > count);
  expect(page.last("drawn")?.delay_ms).toBe(first);
});

test("boxes carry their id, name, state and role, lines theirs", async () => {
  await page.show(SAMPLE);
  expect(page.box("train/AssignSub_1").dataset).toMatchObject({
    nodeId: "train/AssignSub_1",
    name: "train/AssignSub_1",
    state: "error",
    role: "forward",
  });
  expect(page.box("gradients/loss/Neg_grad/Neg").dataset.role).toBe("gradient");
  expect(page.one('[data-edge-id="x->model/MatMul"] .gl-edge-label').textContent).toBe("float [?,64]");
  const failed = page.one<SVGElement>('[data-edge-id="train/mul_1->train/AssignSub_1"]');
  expect(failed.dataset.error).toContain("does not fit");
  expect(failed.querySelector(".gl-edge-label")?.textContent).toBe("✕ float [12]");
});

test("what stays in the picture stays the same element", async () => {
  await page.show(small(1));
  const before = page.box("x");
  const line = page.one('[data-edge-id="x->y"]');
  await page.show(small(2, ["z"]));
  expect(page.box("x")).toBe(before);
  expect(page.one('[data-edge-id="x->y"]')).toBe(line);
  expect(page.box("z")).toBeTruthy();
  await page.show(small(3));
  expect(page.box("x")).toBe(before);
  expect(page.root.querySelector('[data-node-id="z"]')).toBeNull();
});

test("names that look like markup are drawn as text and nothing else", async () => {
  const nodes = HOSTILE.map((text, i) =>
    node(`${i}${text}`, { label: text, op: text, detail: text, error: text, state: "error" }),
  );
  const edges = nodes
    .slice(1)
    .map((other, i) => edge(nodes[i]?.id ?? "", other.id, HOSTILE[i] ?? "", { error: HOSTILE[i] ?? "" }));
  await page.show(scene({ title: HOSTILE[0] ?? "", summary: HOSTILE[2] ?? "", nodes, edges }));
  expect(page.root.querySelectorAll("[data-node-id]")).toHaveLength(HOSTILE.length);
  expect(page.root.querySelectorAll("script, image, foreignObject, iframe, img, a")).toHaveLength(0);
  expect("harmed" in globalThis).toBe(false);
  expect(page.box(nodes[0]?.id ?? "").textContent).toContain("<script>");
});

test("a very long name is cut short in the box and whole in the tooltip", async () => {
  const name = "layer/".repeat(400);
  await page.show(scene({ nodes: [node(name, { label: name, op: "MatMul" })] }));
  const box = page.box(name);
  expect(box.querySelector(".gl-name")?.textContent?.length).toBeLessThan(60);
  expect(box.querySelector(".gl-name")?.textContent).toContain("…");
  expect(box.querySelector("title")?.textContent).toContain(name.slice(0, -1));
});

test("of scenes that come at once only the newest is drawn", async () => {
  for (const revision of [1, 2, 3]) page.receive(sceneMessage(small(revision, [`only${revision}`])));
  await page.drawn(3);
  expect(page.sent.filter((message) => message.type === "drawn")).toHaveLength(1);
  expect(page.root.querySelector('[data-node-id="only1"]')).toBeNull();
});

test("a scene older than the one shown is dropped", async () => {
  await page.show(small(5));
  page.receive(sceneMessage(small(4, ["old"])));
  await new Promise((resolve) => setTimeout(resolve, 60));
  expect(page.root.dataset.revision).toBe("5");
  expect(page.root.querySelector('[data-node-id="old"]')).toBeNull();
});

test("boxes whose names differ never show the same shortened name", async () => {
  const names = [1, 2].map((block) => `resnet50/conv3_block${block}_with_a_very_long_name_indeed/ReadVariableOp`);
  await page.show(scene({ nodes: names.map((name) => node(name, { op: "ReadVariableOp", label: name })) }));
  const shown = names.map((name) => page.box(name).querySelector(".gl-name")?.textContent ?? "");
  expect(shown[0]).not.toBe(shown[1]);
  const long = "layer/".repeat(40);
  await page.show(scene({ revision: 2, nodes: [node(long, { op: "Neg", label: long }), node("b")] }));
  expect(page.box(long).querySelector(".gl-name")?.textContent).toContain("…");
});

test("the legend says what the stack of a repeat means", async () => {
  await page.show(scene({ nodes: [node("block", { kind: "scope", repeat: 6, expandable: true, count: 60 })] }));
  expect(page.text(".gl-legend")).toContain("a structure that occurs n times");
});

test("a scene with a focus selects that box and asks about it", async () => {
  await page.show(small(1, ["z"]), { focus: "z" });
  expect(page.root.dataset.selected).toBe("z");
  expect(page.last("inspect")).toEqual({ type: "inspect", id: "z" });
  expect(page.box("z").classList).toContain("gl-pulse");
});

test("another lens marks boxes in words, colours and patterns without a new layout", async () => {
  await page.show(SAMPLE, { lens: "structure" });
  const place = page.box("W").getAttribute("transform");
  const lenses = page.one<HTMLSelectElement>(".gl-lenses");
  lenses.value = "devices";
  lenses.dispatchEvent(new Event("change"));
  expect(page.last("lens")).toEqual({ type: "lens", lens: "devices" });
  expect(page.box("W").dataset.lensText).toBe("/gpu:0");
  expect(page.box("W").querySelector(".gl-mark text")?.textContent).toBe("/gpu:0");
  expect(page.box("W").querySelector(".gl-lens")?.getAttribute("fill")).toMatch(/^url\(#gl-pattern-\d+-2\)$/);
  expect(page.text(".gl-legend")).toContain("/gpu:0 (simulated)");
  expect(page.box("W").getAttribute("transform")).toBe(place);
});

test("a line keeps its elements when its route changes, and one with an error lies over the others", async () => {
  const nodes = [node("a"), node("b"), node("c")];
  const wrong = edge("a", "b", "float [2]", { error: "too short" });
  await page.show(scene({ nodes, edges: [wrong, edge("b", "c", "float [4]")] }));
  const line = page.one('[data-edge-id="b->c"] .gl-line');
  const before = line.getAttribute("d");
  await page.show(
    scene({ revision: 2, nodes: [node("much longer"), ...nodes], edges: [wrong, edge("b", "c", "float [4]")] }),
  );
  expect(page.one('[data-edge-id="b->c"] .gl-line')).toBe(line);
  expect(line.getAttribute("d")).not.toBe(before);
  const order = page.one('[data-edge-id="a->b"]').compareDocumentPosition(line);
  expect(order & Node.DOCUMENT_POSITION_PRECEDING).toBeTruthy();
});

test("a lens whose legend covers a part of the window does not lay out the picture again", async () => {
  const lenses = ["structure", "shapes"].map((name) => ({ name, title: name, legend: [], note: "" }));
  await page.show(scene({ nodes: [node("a"), node("b")], edges: [edge("a", "b")], lenses }));
  const height = vi.spyOn(HTMLElement.prototype, "offsetHeight", "get").mockReturnValue(200);
  const choice = page.one<HTMLSelectElement>(".gl-lenses");
  choice.value = "shapes";
  choice.dispatchEvent(new Event("change"));
  height.mockRestore();
  expect(page.root.dataset).toMatchObject({ lens: "shapes", busy: "false" });
});

test("a lens that has nothing special to say of a box, or says what stands there already, adds no tag", async () => {
  const mark = (text: string, tone: number) => ({ lenses: { l: { text, tone } } });
  const nodes = [node("plain", mark("usual", 0)), node("known", mark("float [2]", 3)), node("told", mark("rare", 2))];
  const lenses = [{ name: "l", title: "L", legend: [], note: "" }];
  await page.show(scene({ nodes, edges: [edge("known", "told", "float [2]")], lenses }), { lens: "l" });
  expect(nodes.map(({ id }) => page.box(id).querySelector(".gl-mark")?.textContent)).toEqual(["", "", "rare"]);
  expect(nodes.map(({ id }) => page.box(id).dataset.tone)).toEqual([undefined, "3", "2"]);
});

test("the devices lens writes the copied bytes on lines, other lenses do not", async () => {
  const marks = { devices: { text: "2.0 kB", tone: 6 }, shapes: { text: "2 tensors", tone: 2 } };
  const lenses = ["structure", "shapes", "devices"].map((name) => ({ name, title: name, legend: [], note: "" }));
  const picture = scene({ nodes: [node("a"), node("b")], edges: [edge("a", "b", "", { lenses: marks })], lenses });
  const tags = () => [...page.root.querySelectorAll(".gl-edge .gl-mark text")].map(({ textContent }) => textContent);
  for (const [lens, expected] of [
    ["structure", []],
    ["devices", ["2.0 kB"]],
    ["shapes", []],
  ] as const) {
    await page.show(picture, { lens });
    expect(tags()).toEqual(expected);
  }
});

test("the structure lens explains shapes and lines that occur", async () => {
  await page.show(SAMPLE, { lens: "structure" });
  const legend = page.text(".gl-legend");
  for (const word of ["variable", "input", "gradient", "closed scope", "reference"]) expect(legend).toContain(word);
  await page.show(small(2));
  expect(page.text(".gl-legend")).not.toContain("variable");
});

test("an empty graph shows a hint, and the hint goes with the first node", async () => {
  await page.show(scene({ revision: 1 }));
  expect(page.one<HTMLElement>(".gl-hint").hidden).toBe(false);
  expect(page.text(".gl-hint")).toContain("The graph is empty");
  await page.show(small(2));
  expect(page.one<HTMLElement>(".gl-hint").hidden).toBe(true);
});

test("failures end up in the status line", async () => {
  page.receive({ type: "failure", request: "expand", text: "There is no scope called model" });
  expect(page.text(".gl-status-text")).toBe("There is no scope called model");
  expect(page.one(".gl-status").classList).toContain("gl-failed");
  await page.show(small(2));
  expect(page.one(".gl-status").classList).not.toContain("gl-failed");
});

test("screen readers hear what a new picture adds", async () => {
  await page.show(small(1));
  expect(page.text("[aria-live]")).toBe("Picture of 2 nodes");
  await page.show(small(2, ["a", "b", "c"]));
  expect(page.text("[aria-live]")).toBe("Picture updated: 3 nodes added");
});

test("the outline lists frames and boxes and is in step with the picture", async () => {
  const nodes = [
    node("x"),
    node("m/y", { group: "m/" }),
    node("m/n/", { kind: "scope", expandable: true, group: "m/" }),
  ];
  await page.show(scene({ nodes, edges: [edge("x", "m/y")], groups: [group("m/", { label: "m" })] }));
  page.click(page.one('[aria-label^="Outline"]'));
  const rows = [...page.root.querySelectorAll<HTMLElement>('[role="treeitem"]')];
  expect(
    rows.map((row) => [row.dataset.id, row.getAttribute("aria-level"), row.getAttribute("aria-expanded")]),
  ).toEqual([
    ["m/", "1", "true"],
    ["m/y", "2", null],
    ["m/n/", "2", "false"],
    ["x", "1", null],
  ]);
  page.click(page.box("m/y"));
  expect(page.one('[role="treeitem"][aria-selected="true"]').getAttribute("data-id")).toBe("m/y");
  page.key("ArrowRight", rows[2]);
  rows[2]?.focus();
  page.key("ArrowRight", rows[2]);
  expect(page.last("expand")).toEqual({ type: "expand", id: "m/n/" });
});

test("the picture is offered as a file of DOT, of Mermaid, and of SVG", async () => {
  const saved: string[] = [];
  const texts: Blob[] = [];
  vi.spyOn(HTMLAnchorElement.prototype, "click").mockImplementation(function (this: HTMLAnchorElement) {
    saved.push(this.download);
  });
  URL.createObjectURL = (blob: Blob) => {
    texts.push(blob);
    return "blob:x";
  };
  URL.revokeObjectURL = () => {};
  await page.show(small(1));
  for (const format of ["dot", "mermaid", "svg"]) page.click(page.one(`[data-export="${format}"]`));
  await until(() => saved.length === 3);
  expect(saved.map((name) => name.split(".").at(-1))).toEqual(["dot", "mmd", "svg"]);
  const text = (blob: Blob | undefined): Promise<unknown> =>
    new Promise((resolve) => {
      const reader = new FileReader();
      reader.onload = () => resolve(reader.result);
      reader.readAsText(blob as Blob);
    });
  expect(await text(texts[0])).toMatch(/^digraph scene \{\n.*n0 \[shape=".*\}\n$/s);
  expect(await text(texts[1])).toMatch(/^flowchart TB\n {2}n0/);
});

test("a viewer that is disposed leaves nothing behind", async () => {
  await page.show(small(1));
  page.dispose();
  expect(page.listening).toBe(0);
  expect(document.querySelector(".graphloupe")).toBeNull();
});

test("opening and closing is not offered in a fixed picture", async () => {
  const fixed = new Page({ offline: true, fixed: true });
  await fixed.show(scene({ nodes: [node("m/y", { group: "m/" })], groups: [group("m/")] }));
  expect(fixed.root.querySelector('[aria-label="Expand all"], [data-action="collapse"]')).toBeNull();
  fixed.dispose();
});

test("when the kernel has been restarted the picture stays, and whoever asks for more is told", async () => {
  await page.show(SAMPLE);
  const boxes = page.root.querySelectorAll("[data-node-id]").length;
  page.cut = true;
  page.one<HTMLSelectElement>("select").value = "cells";
  page.one("select").dispatchEvent(new Event("change", { bubbles: true }));
  expect(page.root.dataset.lens).toBe("cells");
  expect(page.root.classList).not.toContain("gl-lost");
  page.click(page.box("train/AssignSub_1"));
  expect(page.text(".gl-status-text")).toBe("The kernel of this picture has ended: run its cell again");
  expect(page.root.classList).toContain("gl-lost");
  expect(page.root.querySelectorAll("[data-node-id]").length).toBe(boxes);
});

test("a file is named after the model and the lens, whatever the name of the model", () => {
  expect(fileStem("resnet50.pb", "structure")).toBe("resnet50");
  expect(fileStem("resnet50.pb", "shapes")).toBe("resnet50-shapes");
  expect(fileStem("my model / 数据", "")).toBe("my-model-数据");
  expect(fileStem("graph", "shapes", "/home/me/00 quickstart.ipynb")).toBe("00-quickstart-shapes");
  expect(fileStem("encoder", "", "/home/me/notebook.ipynb")).toBe("encoder");
  for (const name of ["", "../..", "...", "///", "<script>alert(1)</script>", "a\u0000b\n", "x".repeat(3000)]) {
    expect(fileStem(name, "")).toMatch(/^[\p{L}\p{N}_][\p{L}\p{N}._-]{0,79}$/u);
  }
});

test("a lens that marks nothing says why, in the legend and in the status line", async () => {
  const lenses = [{ name: "devices", title: "Devices", legend: [], note: "No node asks for a device" }];
  await page.show(scene({ nodes: [node("x")], lenses }), { lens: "devices" });
  expect(page.text(".gl-legend")).toContain("No node asks for a device");
});

test("a click on the legend leaves the selection", async () => {
  await page.show(small(1));
  page.click(page.box("x"));
  page.click(page.one(".gl-legend summary"));
  expect(page.root.dataset.selected).toBe("x");
});

test("what a difference has removed has a sign and a dashed line, and the legend says so", async () => {
  const nodes = [node("x"), node("y", { state: "removed" })];
  const lenses = [{ name: "structure", title: "Structure", legend: [], note: "" }];
  const edges = [edge("x", "y", "− float", { state: "removed" })];
  await page.show(scene({ nodes, edges, lenses, since: "" }), { lens: "structure" });
  expect(page.text(".gl-legend")).toMatch(/−removed\s*$/);
  expect(page.text('[data-node-id="y"] .gl-badge')).toBe("−");
  expect(page.one(".gl-edge").classList).toContain("gl-state-removed");
});

test("the legend explains the badges that occur", async () => {
  const lenses = [{ name: "structure", title: "Structure", legend: [], note: "" }];
  const nodes = [node("x", { state: "new" }), node("y", { state: "error" }), node("z", { state: "changed" })];
  await page.show(scene({ nodes, lenses }), { lens: "structure" });
  expect(page.text(".gl-legend")).toMatch(/\+new with the last cell.*~changed.*!has an error/s);
  expect(page.text(".gl-legend")).not.toContain("failed");
});

test("opening a scope is not told as nodes added", async () => {
  await page.show(small(1));
  await page.show(small(2, ["z"]), { openings: { opened: ["s"], closed: [], mode: "auto", mirror: false } });
  expect(page.text(".gl-status [role=status]")).toBe("3 boxes shown");
  await page.show(small(3, ["z", "w"]), { openings: { opened: ["s"], closed: [], mode: "auto", mirror: false } });
  expect(page.text(".gl-status [role=status]")).toBe("Picture updated: 1 node added");
});

test("expand all says how much is shown when something stays closed, and why", async () => {
  await page.show(small(1));
  page.one<HTMLButtonElement>('[aria-label="Expand all"]').click();
  const nodes = [node("x"), node("s/", { kind: "scope", count: 1040, expandable: true })];
  await page.show(scene({ revision: 2, nodes, total_nodes: 1041 }));
  expect(page.text(".gl-status-text")).toBe(
    "1 of 1,041 nodes are shown: Expand all stops at 300 boxes, 1 box is still closed",
  );
});

test("a picture with too many boxes for Mermaid is drawn by Graphviz, in words", async () => {
  const many = small(
    1,
    Array.from({ length: 150 }, (_, i) => `n${i}`),
  );
  page.receive(sceneMessage(many, { renderer: "mermaid" }));
  await page.drawn(1);
  expect(page.root.dataset.renderer).toBe("graphviz");
  expect(page.text(".gl-status")).toContain("Mermaid draws up to 150 boxes. Graphviz draws these 152");
});
