import { expect, test, vi } from "vitest";
import { ValuesPane } from "../src/panes/values";
import type { Values } from "../src/scene/generated";
import { HOSTILE } from "./support";

const values = (fields: Partial<Values>): Values => ({
  note: "",
  dtype: "float",
  shape: "[64,2]",
  statistics: [
    ["min", "-1"],
    ["max", "2"],
  ],
  bins: [1, 4, 2],
  rows: [{ index: "[0, 0]", cells: ["-1", "0.5"] }],
  first: 0,
  total: 64,
  page: 20,
  picture: [],
  pictures: 0,
  ...fields,
});

const press = (pane: ValuesPane, title: string): void =>
  pane.element.querySelector<HTMLButtonElement>(`[title="${title}"]`)?.click();

test("values are shown with statistics and a histogram that names its ends", () => {
  const pane = new ValuesPane(vi.fn());
  pane.show("W", values({ note: "The value in the session made in cell In [3], line 1" }));
  expect(pane.element.querySelector(".gl-note")?.textContent).toContain("In [3]");
  expect(pane.element.querySelector(".gl-facts")?.textContent).toBe("min -1max 2");
  expect(pane.element.querySelectorAll(".gl-histogram rect")).toHaveLength(3);
  expect(pane.element.querySelector("svg")?.getAttribute("aria-label")).toBe("Histogram of the values from -1 to 2");
  expect(pane.element.querySelector("tr")?.textContent).toBe("[0, 0]-10.5");
});

test("further rows are requested one page at a time, or by their number", () => {
  const ask = vi.fn();
  const pane = new ValuesPane(ask);
  pane.show("W", values({}));
  press(pane, "Previous rows");
  expect(ask).not.toHaveBeenCalled();
  press(pane, "Next rows");
  expect(ask).toHaveBeenLastCalledWith("W", 20);
  pane.receive("W", values({ first: 20, rows: [{ index: "[20, 0]", cells: ["7"] }] }));
  expect(pane.element.querySelector("tr")?.textContent).toBe("[20, 0]7");
  const field = pane.element.querySelector("input") as HTMLInputElement;
  field.value = "900";
  field.dispatchEvent(new Event("change"));
  expect(ask).toHaveBeenLastCalledWith("W", 63);
});

test("after a cell the page that was open is requested again, and a page of another node is ignored", () => {
  const ask = vi.fn();
  const pane = new ValuesPane(ask);
  pane.show("W", values({}));
  pane.receive("b", values({ rows: [{ index: "", cells: ["of another node"] }] }));
  expect(pane.element.textContent).not.toContain("another");
  pane.receive("W", values({ first: 40 }));
  pane.show("W", values({}));
  expect(ask).toHaveBeenLastCalledWith("W", 40);
  pane.show("b", values({}));
  expect(ask).toHaveBeenCalledTimes(1);
});

test("a few values have no pages, and none only a note", () => {
  const pane = new ValuesPane(vi.fn());
  pane.show("b", values({ total: 1 }));
  expect(pane.element.querySelector(".gl-pager")).toBeNull();
  pane.show("b", values({ note: "Not initialised", statistics: [], bins: [], rows: [], total: 0 }));
  expect(pane.element.textContent).toBe("Not initialised");
});

test("hostile values stay texts", () => {
  const pane = new ValuesPane(vi.fn());
  pane.show("s", values({ rows: [{ index: "[0]", cells: [...HOSTILE] }] }));
  expect(pane.element.querySelectorAll("td")).toHaveLength(HOSTILE.length);
  expect(pane.element.querySelectorAll("script, img, image, iframe")).toHaveLength(0);
});
