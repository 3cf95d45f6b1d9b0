import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { barsOf, bytes, duration, moved, rowsOf, ticks, totals, zoomed } from "../src/scene/bars";
import type { StepTimeline, TimelinesMessage } from "../src/scene/generated";
import { aliveAt, areaPath, columnsOf, curvesOf } from "../src/scene/memory";
import { node, Page, scene } from "./support";

type Span = readonly [lane: number, label: number, start: number, lasting: number];

/** A timeline of labels a, b, c on a device and a link. */
function timeline(spans: readonly Span[], length = 1000): StepTimeline {
  return {
    title: "Recorded run",
    clock: "Recorded by the virtual clock of simulated devices",
    notes: [],
    length,
    lanes: [
      { name: "/device:GPU:0 (simulated)", text: "gpu:0 (simulated)", link: false, busy: 500, peak: 4000 },
      { name: "/device:CPU:0 -> /device:GPU:0", text: "cpu:0 → gpu:0 (simulated)", link: true, busy: 100, peak: -1 },
    ],
    labels: ["scope/a", "scope/b", "c:0"],
    nodes: ["scope/a", "scope/b", "c"],
    spans: {
      lanes: spans.map(([lane]) => lane),
      labels: spans.map(([, label]) => label),
      starts: spans.map(([, , start]) => start),
      lasting: spans.map(([, , , lasting]) => lasting),
      sizes: spans.map(() => 400),
      iterations: spans.map(() => -1),
    },
    memory: {
      lanes: [0, 0, 0],
      labels: [0, 1, 0],
      starts: [100, 300, 300],
      lasting: [400, 100, 100],
      sizes: [1000, 2000, 1000],
    },
  };
}

const FEW: readonly Span[] = [
  [1, 2, 0, 100],
  [0, 0, 100, 400],
  [0, 1, 600, 300],
];
const nothing = (): boolean => false;

test("spans that overlap have rows of their own, and later ones use rows that are free again", () => {
  const overlapping = timeline([
    [0, 0, 0, 100],
    [0, 1, 0, 50],
    [0, 2, 60, 20],
    [0, 0, 100, 10],
  ]);
  const { of, counts } = rowsOf(overlapping);
  expect([...of]).toEqual([0, 1, 1, 0]);
  expect(counts).toEqual([2, 1]);
});

test("bars have the place and width of their spans in the window", () => {
  const shown = timeline(FEW);
  const whole = barsOf(shown, rowsOf(shown), { from: 0, to: 1000 }, 500, nothing);
  expect(whole.map(({ lane, x, width }) => [lane, x, width])).toEqual([
    [1, 0, 50],
    [0, 50, 200],
    [0, 300, 150],
  ]);
  const part = barsOf(shown, rowsOf(shown), { from: 600, to: 700 }, 500, nothing);
  expect(part.map(({ first }) => first)).toEqual([2]);
});

test("100,000 spans are drawn as at most one bar for every two pixels of a row", () => {
  const many = timeline(
    Array.from({ length: 100_000 }, (_, i): Span => [0, i % 2, i * 10, 9]),
    1_000_000,
  );
  const rows = rowsOf(many);
  const whole = barsOf(many, rows, { from: 0, to: 1_000_000 }, 800, nothing);
  expect(whole.length).toBeLessThanOrEqual(800);
  expect(whole.reduce((sum, { count }) => sum + count, 0)).toBe(100_000);
  const near = barsOf(many, rows, { from: 500_000, to: 500_100 }, 800, nothing);
  expect(near.every(({ count }) => count === 1)).toBe(true);
});

test("the memory of a lane has its peak, and names what is alive at a moment, the largest first", () => {
  const shown = timeline(FEW);
  const [curve, link] = curvesOf(shown);
  expect(link).toBeNull();
  expect([curve?.peak, curve?.peakAt]).toEqual([4000, 300]);
  expect(curve?.bytes.at(-1)).toBe(0);
  const alive = aliveAt(shown, 0, 300);
  expect(alive.map(({ label, bytes: size, count }) => [label, size, count])).toEqual([
    [0, 2000, 2],
    [1, 2000, 1],
  ]);
  expect(aliveAt(shown, 0, 450).map(({ label }) => label)).toEqual([0]);
  expect(aliveAt(shown, 1, 300)).toEqual([]);
});

test("the area of the memory shows the most of each pixel, however short it was", () => {
  const shown = timeline(FEW);
  const [curve] = curvesOf({ ...shown, memory: { ...shown.memory, lasting: [400, 1, 1] } });
  if (!curve) throw new Error("no memory");
  const columns = columnsOf(curve, { from: 0, to: 1000 }, 10);
  expect([...columns]).toEqual([0, 1000, 1000, 4000, 1000, 1000, 0, 0, 0, 0]);
  expect(areaPath(columns, curve.peak, 40, 50)).toBe("M0 50H0V50.0H1V40.0H3V10.0H4V40.0H6V50.0H10V50Z");
});

test("marked spans are not drawn together with others", () => {
  const many = timeline(Array.from({ length: 1000 }, (_, i): Span => [0, i === 500 ? 1 : 0, i, 1]));
  const bars = barsOf(many, rowsOf(many), { from: 0, to: 1000 }, 100, (label) => label === 1);
  expect(bars.filter(({ lit }) => lit).map(({ first, count }) => [first, count])).toEqual([[500, 1]]);
});

test("zooming keeps the point under the pointer, and stays within the whole", () => {
  expect(zoomed({ from: 0, to: 1000 }, 2, 500, 1000)).toEqual({ from: 250, to: 750 });
  expect(zoomed({ from: 0, to: 500 }, 0.25, 100, 1000)).toEqual({ from: 0, to: 1000 });
  expect(moved({ from: 250, to: 750 }, 900, 1000)).toEqual({ from: 500, to: 1000 });
});

test("times and sizes are in words, and ticks are round", () => {
  expect([duration(0), duration(1500), duration(2_500_000)]).toEqual(["0 ns", "1.5 µs", "2.5 ms"]);
  expect([bytes(400), bytes(1_200_000)]).toEqual(["400 bytes", "1.2 MB"]);
  expect(ticks({ from: 0, to: 1000 }, 500)).toEqual([0, 200, 400, 600, 800, 1000]);
});

test("totals count the runs of a node, the longest first", () => {
  const found = totals(timeline([...FEW, [0, 1, 900, 200]]));
  expect(found.map(({ label, runs, ns }) => [label, runs, ns])).toEqual([
    [1, 2, 500],
    [0, 1, 400],
    [2, 1, 100],
  ]);
});

// ---- the pane ------------------------------------------------------------------------------------------------------

let page: Page;

beforeEach(() => {
  page = new Page();
});

afterEach(() => {
  page.dispose();
  vi.restoreAllMocks();
});

const answer = (fields: Partial<TimelinesMessage> = {}): TimelinesMessage => ({
  type: "timelines",
  key: "k",
  timelines: [timeline(FEW)],
  boxes: { "scope/a": "scope/", "scope/b": "scope/", c: "c" },
  ...fields,
});

/** A picture with the timeline below it. */
async function opened(): Promise<void> {
  await page.show(scene({ revision: 1, nodes: [node("scope/", { kind: "scope", expandable: true }), node("c")] }));
  page.one<HTMLButtonElement>('[aria-label^="Timeline:"]').click();
  await vi.waitFor(() => page.one(".gl-lower"));
  page.receive(answer());
}

const all = (selector: string): SVGElement[] => [...page.root.querySelectorAll<SVGElement>(selector)];
const plot = (): HTMLElement => page.one<HTMLElement>(".gl-plot");
const press = (key: string): boolean =>
  plot().dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
const said = (): string => page.one(".gl-timeline-said").textContent ?? "";

test("the timeline is requested when it opens, and again with each picture", async () => {
  await page.show(scene({ revision: 1, nodes: [node("c")] }));
  expect(page.last("want_timelines")).toBeUndefined();
  await opened();
  expect(page.last("want_timelines")).toEqual({ type: "want_timelines", known: "" });
  await page.show(scene({ revision: 2, nodes: [node("c")] }));
  expect(page.last("want_timelines")).toEqual({ type: "want_timelines", known: "k" });
});

test("lanes say that they are simulated, how busy they are, and the peak of memory", async () => {
  await opened();
  const lanes = [...page.root.querySelectorAll(".gl-lane")].map(({ textContent }) => textContent);
  expect(lanes).toEqual(["gpu:0 (simulated)busy 50 %, peak 4 kB", "cpu:0 → gpu:0 (simulated)busy 10 %"]);
  expect(page.one(".gl-timeline-clock").textContent).toContain("virtual clock of simulated devices");
});

test("the arrow keys go from bar to bar, and Enter asks for the node in a folded box", async () => {
  await opened();
  press("End");
  expect(said()).toContain("scope/b: 300 ns from 600 ns on");
  press("ArrowLeft");
  expect(said()).toContain("scope/a");
  press("ArrowDown");
  expect(said()).toContain("c:0: 100 ns from 0 ns on, 400 bytes, cpu:0 → gpu:0 (simulated)");
  press("ArrowUp");
  press("Enter");
  expect(page.last("reveal")).toEqual({ type: "reveal", name: "scope/a", quiet: false });
});

test("Enter on a bar of a visible box selects it, and its bars are marked in words too", async () => {
  await opened();
  press("Home");
  press("Enter");
  expect(page.root.dataset.selected).toBe("c");
  expect(said()).toContain("selected in the picture");
  expect(all(".gl-bar.gl-lit").map(({ dataset }) => dataset.node)).toEqual(["c"]);
});

test("a selected folded box marks the bars of all nodes in it", async () => {
  await opened();
  page.click(page.box("scope/"));
  expect(all(".gl-bar.gl-lit").map(({ dataset }) => dataset.node)).toEqual(["scope/a", "scope/b"]);
});

test("plus enlarges, zero shows the whole time again", async () => {
  await opened();
  press("End");
  press("+");
  expect(all(".gl-bar").length).toBeLessThan(3);
  press("0");
  expect(all(".gl-bar")).toHaveLength(3);
});

test("a table says the same, and leads to the nodes", async () => {
  await opened();
  const details = page.one<HTMLDetailsElement>(".gl-timeline-table");
  details.open = true;
  details.dispatchEvent(new Event("toggle"));
  const cells = [...details.querySelectorAll("tbody tr")].map((row) =>
    [...row.children].map(({ textContent }) => textContent),
  );
  expect(cells[0]).toEqual(["scope/a", "gpu:0 (simulated)", "1", "400 ns", "400 bytes"]);
  details.querySelector<HTMLButtonElement>("tbody button")?.click();
  expect(page.last("reveal")).toEqual({ type: "reveal", name: "scope/a", quiet: false });
});

test("the tensors at the peak of the memory are named, and lead to their nodes; other moments by mouse and keyboard", async () => {
  await opened();
  const details = page.one<HTMLDetailsElement>(".gl-memory-table");
  const words = (): string => details.querySelector("summary")?.textContent ?? "";
  expect(words()).toBe("Memory at the peak: 4 kB alive at 300 ns on gpu:0 (simulated): scope/a 2 kB, scope/b 2 kB");
  const rows = [...details.querySelectorAll("tbody tr")].map((row) =>
    [...row.children].map(({ textContent }) => textContent),
  );
  expect(rows[0]).toEqual(["scope/a × 2", "2 kB", "50 %", "100 ns to 500 ns"]);
  details.querySelector<HTMLButtonElement>("tbody button")?.click();
  expect(page.last("reveal")).toEqual({ type: "reveal", name: "scope/a", quiet: false });

  const moment = details.querySelector<HTMLInputElement>("input[type=range]") as HTMLInputElement;
  moment.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft", bubbles: true, cancelable: true }));
  expect(words()).toBe("Memory: 1 kB alive at 100 ns on gpu:0 (simulated): scope/a 1 kB");
  expect(moment.getAttribute("aria-valuetext")).toContain("1 kB alive at 100 ns");
  press("m");
  expect(said()).toContain("4 kB alive at 300 ns");
  expect(words()).toContain("at the peak");
  expect(all(".gl-memory-moment")).toHaveLength(1);
  vi.spyOn(plot(), "getBoundingClientRect").mockReturnValue(new DOMRect(0, 0, 80, 200));
  const base = Number(/^M0 ([\d.]+)/.exec(all(".gl-memory path")[0]?.getAttribute("d") ?? "")?.[1]);
  for (const kind of ["pointermove", "pointerdown", "pointerup"])
    plot().dispatchEvent(new MouseEvent(kind, { bubbles: true, clientX: 360, clientY: base - 2, button: 0 }));
  expect(words()).toContain("alive at 450 ns");
});

test("without a recorded run the prediction is there alone, and an empty one gives its reason", async () => {
  await opened();
  const empty = { ...timeline([]), title: "Prediction", clock: "Not predicted", notes: ["the step has 30,000 nodes"] };
  page.receive(answer({ timelines: [empty] }));
  expect(page.one(".gl-lower-pane").textContent).toContain("30,000 nodes");
  expect(all(".gl-plot")).toHaveLength(0);
});

test("the host opens the panel, and Escape closes it", async () => {
  await page.show(scene({ revision: 1, nodes: [node("c")] }));
  page.receive({ type: "show_pane", pane: "timeline" });
  await vi.waitFor(() => page.one(".gl-lower"));
  const tab = page.one('[role="tab"]');
  expect(tab.getAttribute("aria-selected")).toBe("true");
  expect(page.one('[role="tabpanel"]').getAttribute("aria-labelledby")).toBe(tab.id);
  tab.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true, cancelable: true }));
  expect(page.one<HTMLElement>(".gl-lower").hidden).toBe(true);
});
