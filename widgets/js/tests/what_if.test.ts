import { expect, test, vi } from "vitest";
import { Inspector } from "../src/panes/inspector";
import type { Effect, WhatIf } from "../src/scene/generated";
import { HOSTILE, inspection, node } from "./support";

const DEVICES = [
  { name: "/job:worker/task:0/device:CPU:0", label: "/job:worker/task:0/device:CPU:0 (simulated)" },
  { name: "/job:worker/task:0/device:GPU:0", label: "/job:worker/task:0/device:GPU:0 (simulated)" },
];
const GPU = DEVICES[1]?.name ?? "";

const answer = (fields: Partial<WhatIf>): WhatIf => ({
  ids: ["y"],
  devices: DEVICES,
  requested: "",
  device: null,
  effect: null,
  applied: false,
  note: "",
  ...fields,
});

const effect = (fields: Partial<Effect>): Effect => ({
  error: "",
  conflict: [],
  rows: [{ what: "predicted step", before: "1.500 ms", after: "0.750 ms", change: "50 % shorter" }],
  moved: [{ text: "CPU:0 to GPU:0", node: "y", name: "y", depth: 1, source: null }],
  more: 2,
  notes: ["Times and memory: all nodes on the virtual clock of simulated devices"],
  lines: [{ source: null, code: 'with gc.device("/gpu:0"):', nodes: ["y", "z"], others: 3 }],
  ...fields,
});

function pane() {
  const [tryDevice, copy] = [vi.fn(), vi.fn()];
  const rest = {
    goTo: vi.fn(),
    openFunction: vi.fn(),
    close: vi.fn(),
    trace: vi.fn(),
    neighborhood: vi.fn(),
    paths: vi.fn(),
    values: vi.fn(),
  };
  const inspector = new Inspector({ tryDevice, copy, ...rest });
  inspector.show(inspection("y"));
  const find = (selector: string) => inspector.element.querySelector<HTMLElement>(selector);
  const open = (): void => {
    const details = find(".gl-what-if") as HTMLDetailsElement;
    details.open = true;
    details.dispatchEvent(new Event("toggle"));
  };
  const receive = (fields: Partial<WhatIf>): void => inspector.showWhatIf({ type: "what_if", what_if: answer(fields) });
  const choose = (value: string): void => {
    const select = find("select") as HTMLSelectElement;
    select.value = value;
    select.dispatchEvent(new Event("change"));
  };
  return { inspector, tryDevice, copy, find, open, receive, choose };
}

test("devices are requested when the pane is opened, and one is tried when it is chosen", () => {
  const { tryDevice, find, open, receive, choose } = pane();
  expect(tryDevice).not.toHaveBeenCalled();
  open();
  expect(tryDevice).toHaveBeenLastCalledWith(["y"], null, false);
  receive({ requested: "/gpu:1" });
  expect(find(".gl-what-if")?.textContent).toContain("Requested now: /gpu:1");
  expect(find("label select")?.textContent).toContain("GPU:0 (simulated)");
  choose(`=${GPU}`);
  expect(tryDevice).toHaveBeenLastCalledWith(["y"], GPU, false);
  receive({ device: GPU, effect: effect({}) });
  expect(find(".gl-what-if tbody tr")?.textContent).toBe("predicted step1.500 ms0.750 ms, 50 % shorter");
  expect(find(".gl-what-if-result")?.textContent).toContain("3 nodes move");
  choose("=");
  expect(tryDevice).toHaveBeenLastCalledWith(["y"], "", false);
});

test("an applied device leaves its lines for the cells, also in the picture that follows", () => {
  const { inspector, tryDevice, copy, find, open, receive, choose } = pane();
  open();
  receive({});
  choose(`=${GPU}`);
  receive({ device: GPU, effect: effect({}) });
  find("[data-apply]")?.click();
  expect(tryDevice).toHaveBeenLastCalledWith(["y"], GPU, true);
  receive({ device: GPU, effect: effect({}), applied: true, requested: GPU });
  inspector.show(inspection("y"));
  expect(tryDevice).toHaveBeenLastCalledWith(["y"], GPU, false);
  receive({ device: GPU, effect: effect({ rows: [] }), requested: GPU });
  expect(find(".gl-applied")?.textContent).toContain("Requested");
  expect(find("[data-apply]")).toBeNull();
  expect(find(".gl-request-line")?.textContent).toContain("3 other nodes too");
  find(".gl-request-line .gl-code button")?.click();
  expect(copy).toHaveBeenCalledWith('with gc.device("/gpu:0"):');
});

test("a device that breaks a constraint cannot be applied, and the nodes in conflict are links", () => {
  const { find, open, receive, choose } = pane();
  open();
  receive({});
  choose(`=${GPU}`);
  const conflict = [{ text: "MatMul /cpu:0", node: "m", name: "m", depth: 1, source: null }];
  receive({ device: GPU, effect: effect({ error: "Cannot colocate nodes", conflict }) });
  expect(find(".gl-error-text")?.textContent).toBe("Cannot colocate nodes");
  expect(find(".gl-error-box .gl-link")?.textContent).toBe("m");
  expect(find("[data-apply]")).toBeNull();
});

test("an answer for other boxes or another device is ignored, and other boxes begin anew", () => {
  const { inspector, tryDevice, find, open, receive, choose } = pane();
  open();
  receive({});
  choose(`=${GPU}`);
  receive({ ids: ["z"], device: GPU, effect: effect({}) });
  receive({ device: "", effect: effect({}) });
  expect(find(".gl-what-if table")).toBeNull();
  inspector.showMany([node("a"), node("b")]);
  expect(tryDevice).toHaveBeenLastCalledWith(["a", "b"], null, false);
  expect(find("select")).toBeNull();
  receive({ ids: ["a", "b"], note: "The body of a function runs on the device of its call" });
  expect(find(".gl-what-if")?.textContent).toContain("device of its call");
});

test("hostile names are text", () => {
  const { inspector, open, receive, choose } = pane();
  open();
  receive({ devices: HOSTILE.map((name) => ({ name, label: name })) });
  choose(`=${HOSTILE[0]}`);
  receive({
    device: HOSTILE[0] ?? "",
    effect: effect({
      notes: [...HOSTILE],
      lines: [{ source: null, code: HOSTILE[0] ?? "", nodes: [...HOSTILE], others: 0 }],
    }),
  });
  expect(inspector.element.querySelector("script, image")).toBeNull();
});
