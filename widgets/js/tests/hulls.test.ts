// @vitest-environment jsdom
// Hulls of colocation groups under the devices lens.
import { expect, it } from "vitest";
import { hullOf } from "../src/scene/hulls";
import { edge, node, Page, scene } from "./support";

const GROUP = {
  nodes: ["v", "far", "near"],
  text: "together: v, far, near",
  reasons: ["reference edge v:0 -> near:0"],
};
const PLACES = new Map([
  ["v", { x: 0, y: 0, width: 100, height: 20 }],
  ["near", { x: 0, y: 50, width: 100, height: 20 }],
  ["far", { x: 0, y: 500, width: 100, height: 20 }],
]);

it("joins each box to the nearest one", () => {
  const hull = hullOf(GROUP, (id) => PLACES.get(id));
  expect(hull?.strokes[0]?.[0]).toBe("M50,10L50,60M50,60L50,510");
  expect(hull?.strokes[1]?.[0].match(/z/g)).toHaveLength(3);
});

it("draws no hull around a single box", () => {
  expect(hullOf({ ...GROUP, nodes: ["v", "gone"] }, (id) => PLACES.get(id))).toBeNull();
});

const GRAPH = scene({
  nodes: [node("v", { together: GROUP.text }), node("near"), node("x")],
  edges: [edge("v", "near"), edge("x", "near")],
  colocations: [{ ...GROUP, nodes: ["v", "near"] }],
  lenses: [
    { name: "structure", title: "Structure", legend: [], note: "" },
    { name: "devices", title: "Devices", legend: [], note: "" },
  ],
});

it("is drawn with its reasons under the devices lens only", async () => {
  const page = new Page();
  await page.show(GRAPH, { lens: "structure" });
  const hulls = () => page.root.querySelectorAll(".gl-hull");
  expect(hulls()).toHaveLength(0);
  expect(page.box("v").querySelector("title")?.textContent).toContain(GROUP.text);
  const choice = page.one<HTMLSelectElement>(".gl-lenses");
  choice.value = "devices";
  choice.dispatchEvent(new Event("change", { bubbles: true }));
  expect(hulls()).toHaveLength(1);
  expect(page.text(".gl-hull title")).toBe(`${GROUP.text}\n${GROUP.reasons[0]}`);
  expect(page.text(".gl-hull-name text")).toContain("together");
  choice.value = "structure";
  choice.dispatchEvent(new Event("change", { bubbles: true }));
  expect(hulls()).toHaveLength(0);
  page.dispose();
});
