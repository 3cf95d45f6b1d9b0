import { afterEach, beforeEach, expect, test } from "vitest";
import { edge, node, Page, scene, until } from "./support";

let page: Page;

beforeEach(() => {
  page = new Page();
});

afterEach(() => page.dispose());

const small = (revision: number, extra: string[] = []) =>
  scene({ revision, nodes: ["x", ...extra].map((id) => node(id)), edges: extra.map((id) => edge("x", id)) });

const hits = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ node: `x${i}`, name: `x${i}`, op: "Identity" }));

/** The search field with a query and its answer. */
async function searched(shown: number, total: number): Promise<HTMLInputElement> {
  await page.show(small(1));
  const field = page.one<HTMLInputElement>(".gl-search-field");
  field.focus();
  field.value = "x";
  page.receive({ type: "search", query: "x", hits: hits(shown), total });
  return field;
}

test("buttons beside the list of hits are reached by Tab, named, and keep the hits open", async () => {
  const field = await searched(50, 60);
  const buttons = [...page.root.querySelectorAll<HTMLButtonElement>(".gl-hits button")];
  expect(buttons.map(({ textContent }) => textContent)).toEqual(["Show more", "Highlight all (Shift+Enter)"]);
  for (const button of buttons) {
    expect(button.closest('[role="listbox"], [aria-hidden="true"]')).toBeNull();
    expect(button.tabIndex).toBe(0);
  }
  const [more, all] = buttons as [HTMLButtonElement, HTMLButtonElement];
  more.focus();
  expect(page.one<HTMLElement>(".gl-hits").hidden).toBe(false);
  more.click();
  expect(page.last("find")).toEqual({ type: "find", query: "x", limit: 250 });
  page.receive({ type: "search", query: "x", hits: hits(60), total: 60 });
  expect(page.text('.gl-hits [role="status"]')).toBe("60 hits");
  expect(more.hidden).toBe(true);
  expect(document.activeElement).toBe(all);
  field.focus();
  expect(page.root.querySelectorAll(".gl-hits [role=option]")).toHaveLength(60);
  all.focus();
  all.click();
  expect(page.last("filter")).toEqual({ type: "filter", query: "x" });
  expect(page.one<HTMLElement>(".gl-hits").hidden).toBe(true);
});

test("Escape on a button of the search closes the hits, and so does the focus that goes elsewhere", async () => {
  const field = await searched(1, 1);
  page.one<HTMLButtonElement>(".gl-hits button:not([hidden])").focus();
  page.key("Escape", document.activeElement as Element);
  expect(page.one<HTMLElement>(".gl-hits").hidden).toBe(true);
  expect(field.value).toBe("");
  await searched(1, 1);
  page.one<HTMLElement>(".gl-canvas").focus();
  expect(page.one<HTMLElement>(".gl-hits").hidden).toBe(true);
});

test("hits that are not shown are counted, and shown when they are asked for", async () => {
  const field = await searched(50, 1234);
  expect(page.text(".gl-hit-note")).toContain("50 of 1,234 hits");
  page.one<HTMLButtonElement>(".gl-hit-note button").click();
  expect(page.last("find")).toEqual({ type: "find", query: "x", limit: 250 });
  page.receive({ type: "search", query: "x", hits: hits(250), total: 1234 });
  expect(page.root.querySelectorAll(".gl-hits [role=option]")).toHaveLength(250);
  for (let i = 0; i < 250; i++) page.key("ArrowDown", field);
  expect(page.last("find")).toEqual({ type: "find", query: "x", limit: 450 });
});

test("slash goes to the search field; choosing a hidden hit asks the kernel to reveal it", async () => {
  await page.show(small(1));
  page.key("/");
  const field = page.one<HTMLInputElement>(".gl-search-field");
  expect(document.activeElement).toBe(field);
  field.value = "MatM";
  field.dispatchEvent(new Event("input"));
  await until(() => page.last("find") !== undefined);
  expect(page.last("find")).toEqual({ type: "find", query: "MatM", limit: 50 });
  const hits = [{ node: "deep/MatMul", name: "deep/MatMul", op: "MatMul" }];
  page.receive({ type: "search", query: "Mat", hits: [], total: 0 });
  expect(page.one<HTMLElement>(".gl-hits").hidden).toBe(true);
  page.receive({ type: "search", query: "MatM", hits, total: 4 });
  expect(page.text(".gl-hits")).toContain("1 of 4 hits");
  page.key("Enter", field);
  expect(page.last("reveal")).toEqual({ type: "reveal", name: "deep/MatMul", quiet: false });
  expect(document.activeElement).toBe(page.one(".gl-canvas"));
  await page.show(small(2, ["deep/MatMul"]), { focus: "deep/MatMul" });
  expect(document.activeElement).toBe(page.box("deep/MatMul"));
});
