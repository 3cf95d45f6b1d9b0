import { expect, test } from "vitest";
import { Obstacles } from "../src/canvas/obstacles";
import { boxTag } from "../src/canvas/tags";

test("the tag of a lens is whole over a narrow box, and leaves the corner with the badge free", () => {
  const box = { x: 0, y: 20, width: 48, height: 30 };
  const wide = boxTag({ text: "float_ref [64,10]", tone: 1 }, { ...box, x: 94 }, "a", new Obstacles());
  expect(wide.at(-1)?.textContent, "there is space at the left").toBe("float_ref [64,10]");
  const [rect, text] = boxTag({ text: "forward", tone: 1 }, box, "a", new Obstacles());
  expect(text?.textContent).toBe("forward");
  expect(Number(rect?.getAttribute("x")) + Number(rect?.getAttribute("width"))).toBeLessThanOrEqual(48 - 12);
});

test("the tag of a lens covers no label and no other tag: it moves, gets shorter, or is not there", () => {
  const [box, mark] = [
    { x: 100, y: 100, width: 60, height: 30 },
    { text: "float_ref [64,10]", tone: 1 },
  ];
  const obstacles = new Obstacles();
  obstacles.add(box, "a");
  obstacles.add({ x: 0, y: 90, width: 70, height: 14 });
  const [above, text] = boxTag(mark, box, "a", obstacles);
  expect(text?.textContent, "a label is at its left").toContain("…");
  expect(Number(above?.getAttribute("y"))).toBeLessThan(0);
  const [below] = boxTag(mark, box, "a", obstacles);
  expect(Number(below?.getAttribute("y")), "there is a tag already").toBeGreaterThan(20);
  const [further] = boxTag(mark, box, "a", obstacles);
  expect(Number(further?.getAttribute("y")), "there are two tags already").toBeGreaterThan(30);
  obstacles.add({ x: 0, y: 80, width: 300, height: 100 });
  expect(boxTag(mark, box, "a", obstacles)).toEqual([]);
});
