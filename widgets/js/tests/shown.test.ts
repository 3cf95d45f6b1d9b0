import { expect, test } from "vitest";
import CASES from "../../../tests/data/shown_cases.json";
import { h } from "../src/dom";
import { oneLine } from "../src/scene/measure";
import { shown } from "../src/scene/shown";

test.each(CASES as [string, string, string][])("%j is shown as in Python", (text, whole, line) => {
  expect(shown(text)).toBe(whole);
  expect(oneLine(text)).toBe(line);
});

test("elements show texts and read attributes with escapes, and keep others as they are", () => {
  const element = h("p", { title: "a\u202eb", "data-node-id": "a\u202eb" }, "c\u0001\ud800");
  expect(element.textContent).toBe("c\\x01\\ud800");
  expect(element.title).toBe("a\\u202eb");
  expect(element.dataset.nodeId).toBe("a\u202eb");
});
