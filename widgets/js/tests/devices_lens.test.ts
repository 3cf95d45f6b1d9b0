// @vitest-environment jsdom
// The devices lens: hulls of colocation groups, tags and legend.
import { expect, it } from "vitest";
import { Obstacles } from "../src/canvas/obstacles";
import { boxTag } from "../src/canvas/tags";
import { deviceShortener } from "../src/scene/device_names";
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

it("tags devices with the parts of their names that tell them apart", () => {
  const worker = "/job:worker/replica:0/task:0/device";
  const one = deviceShortener([`${worker}:GPU:0 (simulated) × 3, ${worker}:CPU:0 × 2`, "requested /device:GPU:7"]);
  expect(one(`${worker}:GPU:0 (simulated) (requested /device:GPU:7)`)).toBe("GPU:0 sim. (requested GPU:7)");
  const other = "/job:ps/replica:0/task:1/device";
  const several = deviceShortener([`${worker}:GPU:0`, `${other}:GPU:0`]);
  expect(several(`${worker}:GPU:0 × 3, ${other}:GPU:0 × 2`)).toBe("worker task 0 GPU:0 × 3, ps task 1 GPU:0 × 2");
});

it("has a row for each class in a tag too long for its box, with the number of its nodes first", () => {
  const rows = (text: string, width: number) =>
    boxTag({ text, tone: 1 }, { x: 0, y: 20, width, height: 40 }, "a", new Obstacles()).flatMap(
      ({ tagName, textContent }) => (tagName === "text" ? [textContent] : []),
    );
  expect(rows("GPU:0 × 3, CPU:0 × 2", 300)).toEqual(["GPU:0 × 3, CPU:0 × 2"]);
  expect(rows("GPU:0 × 3,000, CPU:0 × 2", 115)).toEqual(["3,000 × GPU:0", "2 × CPU:0"]);
  expect(rows("number 4: A × 3, B × 2; others: A", 160)).toEqual(["number 4: A × 3, B × 2", "others: A"]);
  expect(rows("In [1] × 12, In [2] × 10, In [3] × 9, In [4] × 1, …", 90)).toEqual([
    "12 × In [1]",
    "10 × In [2]",
    "and more",
  ]);
});

it("tells requested from assigned devices in its legend, and explains copies and hulls", async () => {
  const marked = (id: string, text: string) => node(id, { lenses: { devices: { text, tone: 1 } } });
  const lens = { name: "devices", title: "Devices", legend: [], note: "" };
  const copied = edge("a", "b", "", { lenses: { devices: { text: "2.0 kB", tone: 6 } } });
  const page = new Page();
  await page.show(scene({ nodes: [marked("a", "/device:CPU:0")], lenses: [lens] }), { lens: "devices" });
  expect(page.text(".gl-legend ul")).toBe("");
  const nodes = [marked("a", "requested /device:GPU:0"), marked("b", "/device:CPU:0 (requested /device:GPU:0)")];
  const colocations = [{ nodes: ["a", "b"], text: "together: a, b", reasons: [] }];
  await page.show(scene({ revision: 2, nodes, edges: [copied], lenses: [lens], colocations }), { lens: "devices" });
  expect([...page.root.querySelectorAll(".gl-legend li")].map((row) => row.textContent)).toEqual([
    "requested …: not placed yet",
    "(requested …): placed elsewhere than requested",
    "bytes copied to another device",
    "together: must be on one device",
  ]);
  page.dispose();
});
