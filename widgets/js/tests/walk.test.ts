import { expect, test } from "vitest";
import type { Geometry, Rect } from "../src/scene/geometry";
import { endOfLine, firstBox, walk } from "../src/scene/walk";
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

test("a line leads to the box it ends at, a line on the way of a clash to the box with the clash", () => {
  const red = { clash: 1 };
  const clashing = scene({
    nodes: [node("W"), node("matmul"), node("add", { state: "error" }), node("b"), node("y")],
    edges: [
      edge("W", "matmul", "", red),
      edge("matmul", "add", "", red),
      edge("b", "add", "", { clash: 2 }),
      edge("add", "y"),
    ],
  });
  const [first, , second, usual] = clashing.edges.map(({ id }) => id);
  expect(endOfLine(first ?? "", clashing)).toBe("add");
  expect(endOfLine(second ?? "", clashing)).toBe("add");
  expect(endOfLine(usual ?? "", clashing)).toBe("y");
  expect(endOfLine("gone", clashing)).toBeNull();
});
