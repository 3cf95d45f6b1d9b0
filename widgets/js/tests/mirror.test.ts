// The mirrored picture: gradients beside what they differentiate.
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Scene } from "../src/scene/generated";
import { parseGeometry } from "../src/scene/geometry";
import { layoutDot } from "../src/scene/layout_dot";

import { edge, group, node, Page, scene } from "./support";

const LENS = { name: "gradients", title: "Gradients", legend: [], note: "" };
const back = { role: "gradient" } as const;

function mirrored(): Scene {
  const nodes = [
    node("x"),
    node("y"),
    node("∇y", { ...back, mirrors: "y", group: "∇/" }),
    node("∇∇y", { ...back, mirrors: "∇y", group: "∇/" }),
  ];
  const edges = [edge("x", "y", "float [3]"), edge("x", "∇y", "float [3]", { loose: true, role: "gradient" })];
  return scene({ nodes, edges, groups: [group("∇/", back)], lenses: [LENS], mirror: true });
}

let page: Page;
beforeEach(() => {
  page = new Page();
});
afterEach(() => page.dispose());

test("each gradient is in the row of what it differentiates, and lines between the halves keep out of the ranks", () => {
  const dot = layoutDot(mirrored());
  expect(dot).toContain("{rank=same;n1->n2[style=invis]}");
  expect(dot).toContain("{rank=same;n2->n3[style=invis]}");
  expect(dot).toMatch(/n0->n2\[id="e1",constraint=false\]/);
  expect(dot.indexOf("subgraph cluster_{")).toBeLessThan(dot.indexOf("subgraph cluster_0{"));
  expect(layoutDot({ ...mirrored(), mirror: false })).not.toContain("style=invis");
});

test("the size of the picture is not that of its forward pass", () => {
  const frames = 'subgraph cluster_ {\ngraph [bb="0,0,40,30"];\n}\nsubgraph cluster_0 {\ngraph [bb="50,0,90,50"];\n}';
  const { width, height, groups } = parseGeometry(`digraph {\ngraph [bb="0,0,90,50"];\n${frames}\n}`, mirrored());
  expect([width, height]).toEqual([90, 50]);
  expect(groups.get("∇/")).toMatchObject({ x: 50, width: 40, height: 50 });
});

test("the button and the key m put gradients beside what they differentiate, and back", async () => {
  const openings = { opened: ["s"], closed: [], mode: "auto" as const, mirror: false };
  await page.show({ ...mirrored(), mirror: false }, { openings });
  const button = page.one<HTMLButtonElement>('[aria-label^="Mirror gradients"]');
  expect([button.hidden, button.getAttribute("aria-pressed")]).toEqual([false, "false"]);
  button.click();
  expect(page.last("restore")).toEqual({ type: "restore", openings: { ...openings, mirror: true } });
  await page.show({ ...mirrored(), revision: 2 }, { openings: { ...openings, mirror: true } });
  expect(button.getAttribute("aria-pressed")).toBe("true");
  page.key("m");
  expect(page.last("restore")).toEqual({ type: "restore", openings });
});

test("a graph without gradients offers no mirrored picture", async () => {
  await page.show(scene({ nodes: [node("x")], lenses: [{ ...LENS, note: "Nothing here was differentiated" }] }));
  expect(page.one<HTMLButtonElement>('[aria-label^="Mirror gradients"]').hidden).toBe(true);
});

test("the mouse and the focus light a box with what it differentiates and what differentiates it", async () => {
  await page.show(mirrored());
  const lit = (): (string | undefined)[] =>
    [...page.root.querySelectorAll<SVGElement>(".gl-node.gl-lit")].map(({ dataset }) => dataset.nodeId);
  page.box("y").dispatchEvent(new Event("pointerover", { bubbles: true }));
  expect(lit()).toEqual(["y", "∇y"]);
  page.box("∇y").dispatchEvent(new Event("focusin", { bubbles: true }));
  expect(lit()).toEqual(["y", "∇y", "∇∇y"]);
  page.box("x").dispatchEvent(new Event("pointerover", { bubbles: true }));
  expect(lit()).toEqual(["x"]);
  page.root.dispatchEvent(new Event("pointerleave"));
  expect(lit()).toEqual([]);
});
