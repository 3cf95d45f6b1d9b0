// Boxes under the controls over the picture.
import { expect, test } from "vitest";
import { uncovered } from "../src/canvas/covers";

const WINDOW = { width: 500, height: 400 };
const ZOOM = { x: 460, y: 300, width: 30, height: 90 };
const LEGEND = { x: 10, y: 370, width: 80, height: 26 };

test("a box that nothing covers stays", () => {
  expect(uncovered({ x: 100, y: 100, width: 80, height: 40 }, [ZOOM, LEGEND], WINDOW, 16)).toEqual({ x: 0, y: 0 });
});

test("a box under a control moves the shortest way to where nothing covers it", () => {
  expect(uncovered({ x: 400, y: 310, width: 80, height: 40 }, [ZOOM, LEGEND], WINDOW, 16)).toEqual({ x: -26, y: 0 });
  expect(uncovered({ x: 30, y: 340, width: 80, height: 40 }, [ZOOM, LEGEND], WINDOW, 16)).toEqual({ x: 0, y: -16 });
});

test("a box that is free nowhere stays where it is", () => {
  const all = { x: 0, y: 0, width: 500, height: 400 };
  expect(uncovered({ x: 30, y: 40, width: 80, height: 40 }, [all], WINDOW, 16)).toEqual({ x: 0, y: 0 });
});
