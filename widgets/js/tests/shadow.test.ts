import { expect, test } from "vitest";
import { focusedIn } from "../src/dom";

test("the focus is found inside a shadow tree, and in the document", () => {
  const host = document.createElement("div");
  const [inside, outside] = [document.createElement("input"), document.createElement("input")];
  document.body.append(host, outside);
  host.attachShadow({ mode: "open" }).append(inside);
  inside.focus();
  expect(focusedIn(inside)).toBe(inside);
  outside.focus();
  expect(focusedIn(outside)).toBe(outside);
  expect(focusedIn(inside)).not.toBe(inside);
});
