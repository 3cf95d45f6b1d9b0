import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { LiveRun, RecordedSteps, StepsMessage } from "../src/scene/generated";
import { condition, isBad, Steps } from "../src/scene/steps";
import { edge, node, Page, scene, until } from "./support";

type Run = readonly [
  label: number,
  state: number,
  last: number,
  turn: number,
  value: number | null,
  takes: readonly number[],
];

/** x is fed; f calls f:g/a and f:g/b; Merge m turns twice; d is dead. */
const RUNS: readonly Run[] = [
  [0, 3, 0, -1, 1, []],
  [1, 0, 3, -1, 3, [0]],
  [2, 0, 2, -1, 2, []],
  [3, 0, 3, -1, 3, [2]],
  [4, 0, 4, 0, 5, [1]],
  [4, 0, 5, 1, 50, [4]],
  [5, 1, 6, -1, null, [5]],
  [6, 2, 6, -1, null, [5]],
];

function recorded(runs: readonly Run[] = RUNS): RecordedSteps {
  const texts = [...new Set(runs.flatMap(([, , , , value]) => (value === null ? [] : [String(value)])))];
  return {
    nodes: ["x", "f", "f:g/a", "f:g/b", "m", "d", "e"],
    ops: ["Placeholder", "g", "Exp", "Log", "Merge", "Neg", "Bad"],
    carried: [],
    loops: ["while"],
    texts,
    notes: [],
    runs: {
      labels: runs.map(([label]) => label),
      states: runs.map(([, state]) => state),
      lasts: runs.map(([, , last]) => last),
      loops: runs.map(([, , , turn]) => (turn < 0 ? -1 : 0)),
      turns: runs.map(([, , , turn]) => Math.max(0, turn)),
      texts: runs.map(([, , , , value]) => texts.indexOf(String(value))),
      lows: runs.map(([, , , , value]) => value),
      highs: runs.map(([, , , , value]) => value),
      means: runs.map(([, , , , value]) => value),
      nans: runs.map(([label]) => (label === 3 ? 1 : 0)),
      infs: runs.map(() => 0),
      counts: runs.map(([, , , , , takes]) => takes.length),
      takes: runs.flatMap(([, , , , , takes]) => [...takes]),
    },
  };
}

const BOXES: Readonly<Record<string, string>> = { x: "x", f: "f", "f:g/a": "f", "f:g/b": "f", m: "m", d: "d", e: "e" };
const steps = new Steps(recorded());
const box = (run: number): string => BOXES[steps.name(run)] ?? "";

test("stepping over a call passes what it contains", () => {
  expect([0, 1, 4, 5, 8].map((done) => steps.over(done, box))).toEqual([1, 4, 6, 6, 8]);
});

test("a closed box runs while a node within runs, and its value leaves it at its end", () => {
  const within = steps.situation(3, box);
  expect(within.running).toEqual(["f"]);
  expect(within.waiting).toEqual([]);
  const after = steps.situation(4, box);
  expect(after.waiting).toEqual([{ source: "f", target: "m", run: 1, count: 1 }]);
  expect(steps.situation(5, box).moving).toEqual([{ source: "f", target: "m", run: 1, count: 1 }]);
});

test("boxes know what became of their nodes, and going back forgets it", () => {
  expect([...steps.situation(8, box).boxes].slice(-2)).toEqual([
    ["d", "dead"],
    ["e", "failed"],
  ]);
  expect(steps.situation(6, box).boxes.has("d")).toBe(false);
});

test("a loop is a table of its iterations so far", () => {
  expect(steps.table(4)).toBeNull();
  expect(steps.table(6)).toEqual({
    title: "while",
    columns: ["m"],
    rows: [
      { turn: 0, cells: ["5"] },
      { turn: 1, cells: ["50"] },
    ],
  });
});

test("a run goes on to the next condition, or to its end", () => {
  expect(steps.runTo(0, [isBad])).toBe(4);
  expect(steps.runTo(4, [isBad])).toBe(8);
  expect(steps.runTo(0, [condition("max > 10")])).toBe(6);
  expect(steps.runTo(0, [condition("m and iteration == 1")])).toBe(6);
  expect(steps.runTo(0, [condition("dead")])).toBe(7);
  expect(steps.runTo(0, [condition("failed")])).toBe(8);
  expect(() => condition("max >")).toThrow("Required a condition such as max > 10");
});

test("a moment among 50,000 runs has only the values that wait then", () => {
  const runs = Array.from({ length: 50_000 }, (_, run): Run => [run % 7, 0, run, -1, null, run ? [run - 1] : []]);
  const many = new Steps(recorded(runs));
  const found = many.situation(25_005, (run) => BOXES[many.name(run)] ?? "");
  expect([found.running, found.waiting.length]).toEqual([["x"], 1]);
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

const answer = (fields: Partial<StepsMessage> = {}): StepsMessage => ({
  type: "steps",
  key: "k",
  run: "r",
  steps: recorded(),
  boxes: { ...BOXES },
  live: null,
  ...fields,
});
const said = (): string => page.text(".gl-step-said");

async function opened(message = answer()): Promise<void> {
  const nodes = ["x", "f", "m", "d", "e"].map((id) => node(id));
  await page.show(scene({ revision: 1, nodes, edges: [edge("x", "f"), edge("f", "m"), edge("m", "d")] }));
  page.key("s");
  await until(() => page.root.querySelector(".gl-step-said") !== null);
  page.receive(message);
}

test("keys step, mark boxes and say what happened", async () => {
  await opened();
  expect(page.last("want_steps")).toEqual({ type: "want_steps", known: "" });
  expect(said()).toBe("Step 0 of 8: the run begins");
  page.key(".");
  page.key(".");
  expect(said()).toBe("Step 2 of 8: f runs");
  expect(page.box("f").classList).toContain("gl-step-now");
  expect(page.text(".gl-step-taken")).toBe("took x 1");
  page.key("x");
  expect(said()).toBe("Step 4 of 8: f:g/b ran: 3");
  page.key(",");
  expect(said()).toContain("Step 3 of 8");
  page.key("r");
  expect(said()).toContain("Step 8 of 8: e failed");
  expect(page.box("d").classList).toContain("gl-step-dead");
  expect([...page.root.querySelectorAll(".gl-step-tag")].map(({ textContent }) => textContent)).toContain("dead");
  page.key("s");
  expect(page.root.querySelector(".gl-step-dead, .gl-steps")).toBeNull();
});

test("stepping in opens what hides the next node", async () => {
  await opened();
  page.key(".");
  page.key(".");
  page.key("i");
  expect(page.last("reveal")).toEqual({ type: "reveal", name: "f:g/a", quiet: true });
});

test("a breakpoint stops at a selected box, and the checkbox at NaN", async () => {
  await opened();
  page.click(page.box("m"));
  page.key("b");
  expect(page.text(".gl-step-breaks")).toBe("or at m");
  page.key("r");
  expect(said()).toContain("Step 5 of 8: m ran in while, iteration 0");
  const slider = page.one<HTMLInputElement>(".gl-step-slider");
  slider.value = "0";
  slider.dispatchEvent(new Event("input"));
  page.one<HTMLInputElement>(".gl-step-stops input[type=checkbox]").checked = true;
  page.key("r");
  expect(said()).toContain("Step 4 of 8");
});

test("playing goes on by itself until it is paused", async () => {
  await opened();
  vi.useFakeTimers();
  page.key("y");
  vi.advanceTimersByTime(1500);
  expect(said()).toContain("Step 3 of 8");
  page.key("y");
  vi.advanceTimersByTime(1500);
  vi.useRealTimers();
  expect(said()).toContain("Step 3 of 8");
});

test("without a recorded run the pane says how to record one", async () => {
  await opened(answer({ steps: null }));
  expect(said()).toContain("session.run(…, options=gc.RunOptions(values=True))");
});

// ---- a run that goes on --------------------------------------------------------------------------------------------

const waits = (fields: Partial<LiveRun> = {}): LiveRun => ({
  state: "waits",
  next: "f",
  row: 0,
  is_on_way: false,
  waiting: [[0, "f"]],
  error: "",
  ...fields,
});
const liveAnswer = (count: number, live: LiveRun): StepsMessage =>
  answer({ key: `k${count}`, steps: recorded(RUNS.slice(0, count)), live });

test("a run that waits goes on by requests, and going back does not change it", async () => {
  await opened(liveAnswer(1, waits()));
  expect(said()).toBe("Step 1, live: x was fed: 1. Next: f");
  page.key(".");
  expect(page.last("live_step")).toEqual({ type: "live_step", way: "step", stops: [], on_bad: false, where: [] });
  page.receive(liveAnswer(4, waits({ next: "m", row: 1, waiting: [[1, "m"]] })));
  expect(said()).toBe("Step 4, live: f ran: 3. Next: m");
  const asked = page.sent.length;
  page.key(",");
  expect(said()).toBe("Step 3, live at 4: f:g/a ran: 2");
  page.key(".");
  expect(said()).toContain("Step 4, live");
  expect(page.sent.length).toBe(asked);
  page.key("x");
  expect(page.last("live_step")).toMatchObject({ way: "over" });
  page.receive(liveAnswer(8, waits({ state: "over", next: "", row: 7, waiting: [], error: "no such value" })));
  expect(said()).toBe("Step 8 of 8: e failed. The run has failed: no such value");
});

test("a run goes on to a breakpoint, however long that takes, unless it is paused", async () => {
  await opened(liveAnswer(1, waits()));
  page.one<HTMLInputElement>(".gl-step-stops input[type=text]").value = "max > 10 and m";
  page.key("r");
  const where = [
    { quantity: "max", operator: ">", number: 10, text: "" },
    { quantity: "name", operator: "", number: 0, text: "m" },
  ];
  const count = (): number => page.sent.filter(({ type }) => type === "live_step").length;
  expect(page.last("live_step")).toMatchObject({ way: "run", where });
  page.receive(liveAnswer(2, waits({ state: "runs", is_on_way: true })));
  expect(count()).toBe(1);
  page.receive(liveAnswer(3, waits({ is_on_way: true })));
  expect(count()).toBe(2);
  page.key("y");
  page.receive(liveAnswer(4, waits({ is_on_way: true })));
  expect(count()).toBe(2);
  page.key("r");
  page.receive(liveAnswer(6, waits({ row: 5, next: "d" })));
  expect([count(), said()]).toEqual([3, "Step 6, live: m ran in while, iteration 1: 50. Next: d"]);
});

test("a condition that held among the steps so far stops there, without a request", async () => {
  await opened(liveAnswer(6, waits({ row: 5 })));
  const slider = page.one<HTMLInputElement>(".gl-step-slider");
  slider.value = "0";
  slider.dispatchEvent(new Event("input"));
  page.one<HTMLInputElement>(".gl-step-stops input[type=text]").value = "max > 10";
  page.key("r");
  expect(said()).toContain("Step 6");
  expect(page.last("live_step")).toBeUndefined();
});

// ---- predicting ----------------------------------------------------------------------------------------------------

function fill(name: string, value: string): void {
  page.one<HTMLInputElement>("[aria-label='The node that runs next']").value = name;
  page.one<HTMLInputElement>("[aria-label='Its value']").value = value;
}

async function predicting(message = answer()): Promise<void> {
  await opened(message);
  const box = page.one<HTMLInputElement>(".gl-predict input[type=checkbox]");
  box.checked = true;
  box.dispatchEvent(new Event("change"));
}

test("a step waits for a prediction, which is compared with what runs, and counted", async () => {
  await predicting();
  page.key(".");
  expect(said()).toContain("Step 0 of 8");
  expect(page.text(".gl-verdict")).toBe("Say first which node runs next");
  fill("x", "1");
  page.key(".");
  expect(said()).toContain("Step 1 of 8");
  expect(page.text(".gl-verdict")).toBe("Right: x ran, with the value 1");
  expect(page.text(".gl-score")).toBe("right 2, wrong 0");
  fill("m", "");
  page.key(".");
  expect(page.text(".gl-verdict")).toBe("m cannot run yet, or has run: f ran. Its value: 3");
  fill("f", "3");
  page.key(".");
  expect(page.text(".gl-score")).toBe("right 3, wrong 2"); // the box f contains the node that ran, whose value is 2
});

test("a wrong value is counted apart from the right node", async () => {
  await predicting();
  fill("x", "7");
  page.key(".");
  expect(page.text(".gl-verdict")).toBe("Right: x ran, but its value is 1");
  expect(page.text(".gl-score")).toBe("right 1, wrong 1");
  expect(page.root.querySelector(".gl-verdict.gl-is-wrong")).not.toBeNull();
});

test("a click on a box fills in the prediction, and a live run hides what comes next", async () => {
  const live: LiveRun = { state: "waits", next: "f", row: 0, is_on_way: false, waiting: [], error: "" };
  await predicting(answer({ steps: recorded(RUNS.slice(0, 1)), live }));
  expect(said()).not.toContain("Next");
  page.click(page.box("f"));
  expect(page.one<HTMLInputElement>("[aria-label='The node that runs next']").value).toBe("f");
  page.key(".");
  expect(page.last("live_step")).toMatchObject({ way: "step" });
  page.receive(answer({ key: "k2", steps: recorded(RUNS.slice(0, 2)), live: { ...live, next: "m", row: 1 } }));
  expect(page.text(".gl-verdict")).toContain("Right: f ran");
});
