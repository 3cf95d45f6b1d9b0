import { expect, test, vi } from "vitest";
import { INSPECTIONS } from "../dev/sample";
import { Inspector } from "../src/panes/inspector";
import { shown } from "../src/scene/shown";
import { HOSTILE, inspection, node } from "./support";

function inspector(): { pane: Inspector; goTo: ReturnType<typeof vi.fn>; copy: ReturnType<typeof vi.fn> } {
  const [goTo, copy] = [vi.fn(), vi.fn()];
  const rest = {
    openFunction: vi.fn(),
    close: vi.fn(),
    trace: vi.fn(),
    neighborhood: vi.fn(),
    paths: vi.fn(),
    values: vi.fn(),
  };
  return { pane: new Inspector({ goTo, copy, ...rest }), goTo, copy };
}

const headings = (pane: Inspector): string[] =>
  [...pane.element.querySelectorAll("h3")].map((title) => title.textContent ?? "");

test("for a gradient node its gradient comes first: forward node, FunctionDef, instantiated body and what is left of it", () => {
  const { pane, goTo, copy } = inspector();
  pane.show(INSPECTIONS["gradients/model/Softmax_grad/SoftmaxGrad"] ?? inspection("?"));
  expect(headings(pane)[0]).toBe("Gradient");
  const codes = [...pane.element.querySelectorAll("pre")].map((code) => code.textContent ?? "");
  expect(codes[0]).toContain("y = Softmax[T=$T](x)");
  expect(codes[1]).toContain("y = Softmax[T=float](x)");
  expect(codes[2]).toBe("grad_x = Mul[T=float](n2, model/Softmax)");
  pane.element.querySelector<HTMLElement>(".gl-link")?.click();
  expect(goTo).toHaveBeenCalledWith("model/Softmax");
  pane.element.querySelector<HTMLElement>('[aria-label="Copy: Instantiated body"]')?.click();
  expect(copy).toHaveBeenCalledWith(codes[1]);
});

test("an error names the shapes that clash and the cell and line of each", () => {
  const { pane } = inspector();
  pane.show(INSPECTIONS["train/AssignSub_1"] ?? inspection("?"));
  const rows = [...pane.element.querySelectorAll(".gl-clashes tbody tr")].map((row) => row.textContent);
  expect(rows[0]).toContain("b:0[10]In [3], line 4");
  expect(rows[1]).toContain("train/mul_1:0[12]In [6], line 2");
});

test("what is known of the op stands in one line, and nowhere if nothing is", () => {
  const { pane } = inspector();
  pane.show(inspection("y", { traits: "element by element; cannot fail" }));
  expect(pane.element.querySelector(".gl-traits")?.textContent).toBe("element by element; cannot fail");
  pane.show(inspection("y"));
  expect(pane.element.querySelector(".gl-traits")).toBeNull();
});

test("inputs and outputs show type, shape and a way to the other end", () => {
  const { pane, goTo } = inspector();
  const row = { name: "a", tensor: "x:0", dtype: "float", shape: "[?,64]", node: "x", error: "", note: "fed" };
  pane.show(inspection("y", { inputs: [row], outputs: [{ ...row, node: "", error: "wants [?,63]" }] }));
  const [input, output] = [...pane.element.querySelectorAll(".gl-tensor")];
  expect(input?.textContent).toBe("afloat [?,64]x:0fed");
  input?.querySelector("button")?.click();
  expect(goTo).toHaveBeenCalledWith("x");
  expect(output?.classList).toContain("gl-bad");
  expect(output?.querySelector("button")).toBeNull();
});

test("hostile texts stay texts", () => {
  const { pane } = inspector();
  for (const text of HOSTILE) {
    pane.show(
      inspection(text, {
        name: text,
        op: text,
        doc: text,
        traits: text,
        error: text,
        node_def: text,
        attrs: [[text, text]],
        summary: text,
      }),
    );
    expect(pane.element.querySelectorAll("script, img, image, iframe")).toHaveLength(0);
    expect(pane.element.querySelector("h2")?.textContent).toBe(shown(text));
  }
});

test("the devices of a scope and the reasons for nodes to be together are in words", () => {
  const { pane } = inspector();
  const together = "together: v, more";
  const box = node("train/", {
    kind: "scope",
    together,
    lenses: { devices: { text: "/gpu:0 × 3, /cpu:0 × 2", tone: 1 } },
  });
  pane.show(inspection("train/", { kind: "scope" }), box, ["reference edge v:0 -> more:0"]);
  expect(headings(pane)).toEqual(expect.arrayContaining(["Device", "On one device"]));
  for (const words of ["/gpu:0 × 3, /cpu:0 × 2", together, "reference edge v:0 -> more:0"])
    expect(pane.element.textContent).toContain(words);
  pane.show(inspection("x"), node("x"));
  expect(headings(pane)).not.toContain("On one device");
});
