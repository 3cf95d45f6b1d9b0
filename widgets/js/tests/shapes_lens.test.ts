import { afterEach, beforeEach, expect, test } from "vitest";
import { MermaidView } from "../src/canvas/mermaid_view";
import type { Dim, Why } from "../src/scene/generated";
import { edge, group, inspection, node, Page, scene } from "./support";

let page: Page;

beforeEach(() => {
  page = new Page();
});

afterEach(() => {
  page.dispose();
});

const dims = (...items: readonly (readonly [string, string])[]): Dim[] => items.map(([text, key]) => ({ text, key }));
const point = (target: Element): boolean => target.dispatchEvent(new Event("pointerover", { bubbles: true }));
const lit = (): (string | undefined)[] =>
  [...page.root.querySelectorAll<SVGElement>(".gl-edge.gl-lit")].map((line) => line.dataset.edgeId);

const shared = scene({
  nodes: ["x", "W", "m", "y"].map((id) => node(id)),
  edges: [
    edge("x", "m", "float [?,64]", { dims: dims(["?", "#0"], ["64", "#1"]) }),
    edge("W", "m", "float [64,10]", { dims: dims(["64", "#1"], ["10", "#2"]) }),
    edge("m", "y", "float [?,10]", { dims: dims(["?", "#0"], ["10", "#2"]) }),
  ],
});

test("every dimension on a line stands by itself, the unknown ones apart", async () => {
  await page.show(shared);
  const label = page.one('[data-edge-id="x->m"] .gl-edge-label');
  expect(label.textContent).toBe("float [?,64]");
  const places = [...label.querySelectorAll<SVGElement>("[data-dim]")];
  expect(places.map((place) => [place.textContent, place.dataset.dim])).toEqual([
    ["?", "#0"],
    ["64", "#1"],
  ]);
  expect(places.map((place) => place.classList.contains("gl-unknown"))).toEqual([true, false]);
});

test("a dimension under the mouse lights every line that carries the same number", async () => {
  await page.show(shared);
  point(page.one('[data-edge-id="x->m"] [data-dim="#1"]'));
  expect(lit()).toEqual(["x->m", "W->m"]);
  expect(page.text(".gl-status-text")).toBe("The same number on 2 lines");
  point(page.one('[data-edge-id="m->y"] [data-dim="#0"]'));
  expect(lit()).toEqual(["x->m", "m->y"]);
  point(page.one(".gl-canvas"));
  expect(lit()).toEqual([]);
  expect(page.text(".gl-status-text")).not.toContain("same number");
});

test("a dimension is lit again after the next picture", async () => {
  await page.show(shared);
  point(page.one('[data-edge-id="x->m"] [data-dim="#1"]'));
  const edges = shared.edges.map((line) => ({ ...line, label: line.label.replace("float", "double") }));
  await page.show({ ...shared, revision: shared.revision + 1, edges });
  point(page.one('[data-edge-id="x->m"] [data-dim="#1"]'));
  expect(lit()).toEqual(["x->m", "W->m"]);
  expect(page.text(".gl-status-text")).toBe("The same number on 2 lines");
  point(page.one(".gl-canvas"));
  expect(lit()).toEqual([]);
});

test("a line of several tensors or of unknown rank has no dimensions to point at", async () => {
  await page.show(scene({ nodes: [node("a"), node("b")], edges: [edge("a", "b", "float ?")] }));
  expect(page.one(".gl-edge-label").textContent).toBe("float ?");
  expect(page.one(".gl-edge-label .gl-unknown").textContent).toBe("?");
  expect(page.root.querySelector("[data-dim]")).toBeNull();
});

const why: Why = {
  what: "dimension 1",
  size: "10",
  key: "#2",
  steps: [
    { text: "is dimension 1 of `W:0`", node: "m", name: "m", depth: 0, source: null },
    {
      text: "is a literal of `W`",
      node: "W",
      name: "W",
      depth: 0,
      source: { cell: "In [2]", line: 3, text: "W = ...", file: "", cell_id: "third" },
    },
  ],
};

test("the inspector says why a dimension is what it is, and its summary lights the lines too", async () => {
  await page.show(shared);
  page.click(page.box("m"));
  page.receive({ type: "inspection", inspection: inspection("m", { why: [why] }) });
  const summary = page.one<HTMLElement>(".gl-why summary");
  expect(summary.textContent).toBe("dimension 1 = 10");
  expect(page.text(".gl-steps")).toContain("In [2], line 3");
  summary.dispatchEvent(new Event("focusin", { bubbles: true }));
  expect(lit()).toEqual(["W->m", "m->y"]);
  page.click(page.one(".gl-steps .gl-link"));
  expect(page.root.dataset.selected).toBe("W");
});

test("what is unfolded stays unfolded when the picture is renewed", async () => {
  await page.show(shared);
  page.click(page.box("m"));
  const told = { type: "inspection", inspection: inspection("m", { why: [why] }) } as const;
  page.receive(told);
  const details = page.one<HTMLDetailsElement>(".gl-why");
  details.open = true;
  details.dispatchEvent(new Event("toggle"));
  page.receive(told);
  expect(page.one<HTMLDetailsElement>(".gl-why").open).toBe(true);
});

test("a clash draws both ways in red, the second dashed, and names both cells", async () => {
  const nodes = [
    node("W", { clash: "12 from In [5], line 1" }),
    node("b", { clash: "10 from In [3], line 1" }),
    node("add"),
  ];
  const edges = [edge("W", "add", "float [12]", { clash: 1 }), edge("b", "add", "float [10]", { clash: 2 })];
  await page.show(scene({ nodes, edges }));
  const [first, second] = [page.one('[data-edge-id="W->add"]'), page.one('[data-edge-id="b->add"]')];
  expect(first.classList.contains("gl-chain") && !first.classList.contains("gl-chain-other")).toBe(true);
  expect(second.classList).toContain("gl-chain-other");
  expect(page.box("W").querySelector(".gl-clash-note")?.textContent).toBe("✕ 12 from In [5], line 1");
  page.click(page.box("add"));
  page.receive({ type: "inspection", inspection: inspection("add", { error: "12 and 10", chains: [why] }) });
  expect(page.text(".gl-chain-text")).toContain("10 is dimension 1");
});

/** What Mermaid draws of two boxes in a frame and the line between them, as far as the view reads it. */
function mermaidDrawing(): { svg: SVGSVGElement; one: (selector: string) => SVGElement } {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const box = (index: number): string =>
    `<g class="node default" id="flowchart-n${index}-${index}"><rect class="label-container"/></g>`;
  svg.innerHTML = `<g class="cluster default" id="g0"><rect/></g>${box(0)}${box(1)}<path class="flowchart-link" id="L_n0_n1_0"/>`;
  const one = (selector: string): SVGElement => {
    const found = svg.querySelector<SVGElement>(selector);
    if (!found) throw new Error(`nothing matches ${selector}`);
    return found;
  };
  return { svg, one };
}

test("a lens marks the boxes of a Mermaid drawing as it marks the others", () => {
  const view = new MermaidView(async () => "");
  view.patterns = "p";
  const { svg, one } = mermaidDrawing();
  const lenses = { devices: { text: "/gpu:0", tone: 2 } };
  view.show(svg, scene({ nodes: [node("a", { lenses })] }));
  const [box, shape] = [one("#flowchart-n0-0"), one("#flowchart-n0-0 .label-container")];
  expect(box.dataset.tone).toBeUndefined();
  view.setLens("devices");
  expect(box.dataset).toMatchObject({ tone: "2", lensText: "/gpu:0" });
  expect(shape.style.fill).toContain("#p-2");
  expect(box.querySelector(".gl-mark")?.textContent).toBe("/gpu:0");
  view.setLens("structure");
  expect(box.dataset.tone).toBeUndefined();
  expect(shape.style.fill).toBe("");
  expect(box.querySelector(".gl-mark")).toBeNull();
});

test("what is selected stands out in a Mermaid drawing with its lines, and frames can be selected", () => {
  const view = new MermaidView(async () => "");
  const { svg, one } = mermaidDrawing();
  view.show(
    svg,
    scene({
      nodes: [node("s/a", { group: "s/" }), node("s/b", { group: "s/" })],
      edges: [edge("s/a", "s/b", "float [2]")],
      groups: [group("s/")],
    }),
  );
  const [frame, a, b, line] = [one(".cluster"), one("#flowchart-n0-0"), one("#flowchart-n1-1"), one("path")];
  expect(line.getAttribute("aria-label")).toBe("data from s/a to s/b, float [2]");
  view.select(new Set(["s/a"]));
  expect(a.getAttribute("aria-current")).toBe("true");
  expect([a, b, line, frame].map((element) => element.classList.contains("gl-selected"))).toEqual([
    true,
    false,
    false,
    false,
  ]);
  expect(line.classList).toContain("gl-touched");
  view.select(new Set(["s/"]));
  expect(frame.classList).toContain("gl-selected");
  expect(a.classList).not.toContain("gl-selected");
  expect(line.classList).not.toContain("gl-touched");
  expect(a.getAttribute("class")).toContain("node default");
});
