import { expect, test } from "vitest";
import type { Geometry, Rect } from "../src/geometry";
import { firstBox, walk } from "../src/walk";
import { edge, node, scene } from "./support";

const at = (x: number, y: number): Rect => ({ x, y, width: 40, height: 20 });
const places = new Map([
  ["a", at(0, 0)],
  ["b", at(100, 0)],
  ["c", at(0, 100)],
  ["d", at(200, 100)],
  ["e", at(90, 200)],
  ["lonely", at(400, 100)],
]);
const geometry: Geometry = { width: 500, height: 300, nodes: places, groups: new Map(), edges: new Map() };
const shown = scene({
  nodes: [...places.keys()].map((id) => node(id)),
  edges: [edge("a", "c"), edge("b", "d"), edge("c", "e"), edge("d", "e"), edge("e", "b", "", { reversed: true })],
});

test.each([
  ["down", "a", "c"],
  ["down", "c", "e"],
  ["up", "e", "b"],
  ["up", "c", "a"],
  ["right", "c", "d"],
  ["right", "d", "lonely"],
  ["left", "d", "c"],
  ["left", "a", null],
  ["down", "e", null],
  ["up", "lonely", null],
] as const)("%s from %s leads to %s", (direction, from, to) => {
  expect(walk(direction, from, shown, geometry)).toBe(to);
});

test("the walk starts at the upper left, also from a box that has gone", () => {
  expect(firstBox(geometry)).toBe("a");
  expect(walk("down", "gone", shown, geometry)).toBe("a");
});
