import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { HealthMessage, RunHealth } from "../src/scene/generated";
import { node, Page, scene } from "./support";

let page: Page;

beforeEach(() => {
  page = new Page();
});

afterEach(() => {
  page.dispose();
  vi.restoreAllMocks();
});

const faulty: HealthMessage = {
  type: "health",
  note: "",
  boxes: { "layer/log": "layer/", x: "x" },
  health: {
    summary: "The first NaN or Inf: layer/log:0: 1 Inf. 2 nodes with NaN or Inf",
    first: { node: "layer/log", text: "layer/log:0: 1 Inf" },
    inputs: [{ node: "x", text: "x:0: 0 to 1" }],
    bad: [{ node: "layer/log", text: "1 Inf" }],
    zeros: [{ node: "dead", text: "all 0" }],
    more_bad: 7,
    more_zeros: 0,
    magnitudes: [
      { node: "x", depth: 0, text: "1e-09", level: -9, bad: false, weight: false },
      { node: "layer/log", depth: 1, text: "0", level: null, bad: false, weight: true },
      { node: "last", depth: 2, text: "1", level: 0, bad: false, weight: false },
    ],
  },
};

async function opened(message = faulty): Promise<void> {
  await page.show(scene({ revision: 1, nodes: [node("layer/", { kind: "scope", expandable: true }), node("x")] }));
  page.root.dispatchEvent(new KeyboardEvent("keydown", { key: "v", bubbles: true, cancelable: true }));
  await vi.waitFor(() => page.one(".gl-health"));
  page.receive(message);
}

const text = (): string => page.one(".gl-health").textContent ?? "";

test("v opens the values, which are requested", async () => {
  await opened();
  expect(page.last("want_health")).toEqual({ type: "want_health" });
  expect(page.one('[role="tab"][aria-selected="true"]').textContent).toBe("Values");
});

test("the first bad node and its inputs are named, and a click leads there", async () => {
  await opened();
  expect(text()).toContain("The first NaN or Inf");
  expect(text()).toContain("and 7 more");
  page.one<HTMLButtonElement>('.gl-health li[data-node="layer/log"] button').click();
  expect(page.last("reveal")).toEqual({ type: "reveal", name: "layer/log", quiet: false });
  page.one<HTMLButtonElement>('.gl-health li[data-node="x"] button').click();
  expect(page.root.dataset.selected).toBe("x");
  expect(page.one('.gl-health li[data-node="x"]').classList.contains("gl-lit")).toBe(true);
});

test("gradients are a plot that says in words that they vanish, and a table", async () => {
  await opened();
  expect(page.one(".gl-magnitudes svg").getAttribute("aria-label")).toContain("vanishing");
  expect(page.root.querySelectorAll(".gl-point")).toHaveLength(3);
  expect(page.root.querySelectorAll(".gl-point.gl-zero")).toHaveLength(1);
  expect(page.root.querySelectorAll(".gl-point rect")).toHaveLength(1);
  expect(page.one(".gl-magnitudes svg").textContent).toContain("last");
  expect(text()).toContain("Squares are variables, constants and nodes computed from them alone");
});

test("without recorded values the pane says how to record them", async () => {
  await opened({ type: "health", health: null, boxes: {}, note: "use %graph values" });
  expect(text()).toBe("use %graph values");
});

const course = (levels: (number | null)[]): HealthMessage => ({
  ...faulty,
  health: {
    ...(faulty.health as RunHealth),
    magnitudes: levels.map((level, depth) => ({
      node: `h${depth}`,
      depth,
      text: "",
      level,
      bad: false,
      weight: false,
    })),
  },
});

test.each([
  [
    "fall 17,000-fold over 12 layers",
    Array.from({ length: 12 }, (_, i) => -1 - 4.23 * (1 - i / 11)),
    "17,000-fold from the loss to the first layer: vanishing",
  ],
  [
    "grow 2,000-fold over 12 layers",
    Array.from({ length: 12 }, (_, i) => -6 + 3.3 * (1 - i / 11)),
    "fold from the loss to the first layer: exploding",
  ],
  ["fall at once by the mean over a batch", [-3.1, -3, -3.05, -3, -3.1, -3, -3, 0], "They are between 1e-3 and 1e0"],
  ["stay alike", [-1.2, -1, -1.1, -0.9, -1], "They stay in a usual range"],
  ["are few", [-2, -1, 0], "They stay in a usual range"],
])("gradients that %s are judged by their course along the depth", async (_, levels, words) => {
  await opened(course(levels));
  expect(page.one(".gl-magnitudes svg").getAttribute("aria-label")).toContain(words);
});
