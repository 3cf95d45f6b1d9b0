import { afterEach, beforeEach, expect, test } from "vitest";
import { between, nearby } from "../src/scene/nearby";
import { edge, node, Page, scene } from "./support";

const ids = ["x", "left", "right", "sum", "y", "alone"];
const shown = scene({
  nodes: ids.map((id) => node(id, { op: "Relu" })),
  edges: [edge("x", "left"), edge("x", "right"), edge("left", "sum"), edge("right", "sum"), edge("sum", "y")],
});

let page: Page;

beforeEach(async () => {
  page = new Page();
  await page.show(shown);
});

afterEach(() => page.dispose());

const dimmed = (): (string | undefined)[] =>
  [...page.root.querySelectorAll<SVGElement>(".gl-node.gl-off")].map((box) => box.dataset.nodeId);
const choose = (id: string, more = false): void => {
  const target = page.one(`[data-node-id="${id}"]`);
  const press = { bubbles: true, button: 0, shiftKey: more, pointerId: 1 };
  target.dispatchEvent(new MouseEvent("pointerdown", press));
  target.dispatchEvent(new MouseEvent("pointerup", press));
  target.dispatchEvent(new MouseEvent("click", press));
};

test("a neighborhood grows by a step in both directions", () => {
  expect([...nearby(shown, ["left"], 0).boxes]).toEqual(["left"]);
  expect(nearby(shown, ["left"], 1).boxes).toEqual(new Set(["left", "x", "sum"]));
  expect(nearby(shown, ["left"], 2).boxes).toEqual(new Set(["left", "x", "sum", "right", "y"]));
});

test("all ways between two boxes are found, in either order", () => {
  const ways = new Set(["x", "left", "right", "sum"]);
  expect(between(shown, "x", "sum").boxes).toEqual(ways);
  expect(between(shown, "sum", "x").boxes).toEqual(ways);
  expect(between(shown, "x", "alone").boxes.size).toBe(0);
});

test("n highlights the neighborhood of the selection, a step further each time, and Escape ends it", () => {
  choose("left");
  page.key("n");
  expect(dimmed()).toEqual(["right", "y", "alone"]);
  expect(page.text(".gl-status")).toContain("2 boxes within 1 step");
  page.key("n");
  expect(dimmed()).toEqual(["alone"]);
  page.key("Escape");
  expect(dimmed()).toEqual([]);
});

test("p highlights the ways between two selected boxes", () => {
  choose("x");
  page.key("p");
  expect(page.text(".gl-status")).toContain("Select two boxes");
  choose("sum", true);
  page.key("p");
  expect(dimmed()).toEqual(["y", "alone"]);
});

test("boxes that the kernel highlights stay lit in the next picture", async () => {
  page.receive({ type: "highlight", boxes: ["x", "left"], text: "2 nodes match op:Relu, in 2 boxes" });
  expect(dimmed()).toEqual(["right", "sum", "y", "alone"]);
  expect(page.text(".gl-status")).toContain("2 nodes match op:Relu");
  await page.show(shown);
  expect(dimmed()).toEqual(["right", "sum", "y", "alone"]);
});
