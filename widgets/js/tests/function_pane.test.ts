import { afterEach, beforeEach, expect, test } from "vitest";
import type { AttrField, FunctionMessage, Pane, PictureMessage, Scene } from "../src/scene/generated";
import { edge, HOSTILE, inspection, node, Page, scene, sceneMessage, until } from "./support";

let page: Page;

beforeEach(() => {
  page = new Page({ kind: "function" });
});

afterEach(() => {
  page.dispose();
});

function field(name: string, fields: Partial<AttrField> = {}): AttrField {
  return { name, kind: "int", value: "2", choices: [], hint: "int, at least 2", doc: "", error: "", ...fields };
}

function shown(fields: Partial<FunctionMessage> = {}): FunctionMessage {
  return {
    type: "function",
    name: "Scaled",
    crumbs: [{ label: "Scaled", detail: "N=2" }],
    definition: "Scaled[N:int](x:N*float) -> (y:float) {\n}",
    instantiated: "(x_0:float, x_1:float) -> (q:float) {\n}",
    fields: [field("N"), field("T", { kind: "type", value: "float", choices: ["float", "double"], hint: "type" })],
    uses: [],
    chosen: -1,
    derived: false,
    problem: "",
    gradient: "∇ Scaled",
    revision: 1,
    ...fields,
  };
}

function toPane(pane: Pane, message: PictureMessage): void {
  page.receive({ type: "pane", pane, message });
}

const small = (revision: number, id: string): Scene =>
  scene({ revision, nodes: [node(id), node("y")], edges: [edge(id, "y", "T")] });

const side = (name: string): HTMLElement => page.one<HTMLElement>(`[data-side="${name}"]`);
const boxes = (name: string): (string | undefined)[] =>
  [...side(name).querySelectorAll<SVGElement>("[data-node-id]")].map((box) => box.dataset.nodeId);
const input = (name: string): HTMLInputElement => page.one<HTMLInputElement>(`[data-attr="${name}"]`);

test("a function asks for itself, then each of its two pictures asks for its scene", () => {
  expect(page.sent.slice(0, 3)).toEqual([
    { type: "ready" },
    { type: "to_pane", pane: "definition", message: { type: "ready" } },
    { type: "to_pane", pane: "instance", message: { type: "ready" } },
  ]);
});

test("definition and body stand side by side, each as text and picture", async () => {
  page.receive(shown());
  toPane("definition", sceneMessage(small(1, "x")));
  toPane("instance", sceneMessage(small(2, "x_0")));
  await until(() => boxes("Definition").length > 0 && boxes("Instantiation").length > 0);
  expect(boxes("Definition")).toEqual(["x", "y"]);
  expect(boxes("Instantiation")).toEqual(["x_0", "y"]);
  expect(side("Definition").querySelector("pre")?.textContent).toContain("Scaled[N:int]");
  expect(side("Instantiation").querySelector("pre")?.textContent).toContain("(x_0:float");
});

test("what one picture asks for is marked with its side, and the answer goes there alone", async () => {
  page.receive(shown());
  toPane("instance", sceneMessage(small(1, "x_0")));
  await until(() => boxes("Instantiation").length > 0);
  page.click(page.box("x_0"));
  expect(page.last("to_pane")).toEqual({ type: "to_pane", pane: "instance", message: { type: "inspect", id: "x_0" } });
  const functions = [
    {
      place: 1,
      label: "then",
      name: "f",
      attrs: "",
      definition: "f()",
      instantiated: "",
      derived: false,
      note: "",
      opens: true,
    },
  ];
  toPane("instance", { type: "inspection", inspection: inspection("x_0", { op: "If", functions }) });
  expect(side("Definition").querySelector<HTMLElement>(".gl-inspector")?.hidden).toBe(true);
  page.click(page.one("[data-open-function]"));
  expect(page.last("to_pane")?.message).toEqual({ type: "open_function", id: "x_0", place: 1 });
});

test("a choice is sent at once, typing after a pause", async () => {
  page.receive(shown());
  const types = page.one<HTMLSelectElement>('[data-attr="T"]');
  types.value = "double";
  types.dispatchEvent(new Event("change"));
  expect(page.last("set_attr")).toEqual({ type: "set_attr", name: "T", value: "double" });
  input("N").value = "4";
  input("N").dispatchEvent(new Event("input"));
  expect(page.last("set_attr")?.name).toBe("T");
  await until(() => page.last("set_attr")?.name === "N");
  expect(page.last("set_attr")?.value).toBe("4");
});

test("a wrong value stays in its field with the reason beside it, told to screen readers too", () => {
  page.receive(shown());
  input("N").focus();
  input("N").value = "1 ";
  const error = "Value for attr 'N' of 1 must be at least minimum 2";
  page.receive(shown({ fields: [field("N", { value: "1", error })] }));
  page.receive(shown({ fields: [field("N", { value: "1", error })], revision: 3 }));
  expect(input("N").getAttribute("aria-invalid")).toBe("true");
  const told = input("N").getAttribute("aria-describedby")?.split(" ") ?? [];
  expect(told.map((id) => document.getElementById(id)?.textContent)).toContain(error);
});

test("the text under the user's fingers is not taken away by an older answer", () => {
  page.receive(shown());
  input("N").focus();
  input("N").value = "12";
  page.receive(
    shown({
      revision: 2,
      fields: [
        field("N", { value: "1" }),
        field("T", { kind: "type", value: "float", choices: ["float", "double"], hint: "type" }),
      ],
    }),
  );
  expect(input("N").value).toBe("12");
  input("N").blur();
  page.receive(
    shown({
      revision: 3,
      fields: [
        field("N", { value: "12" }),
        field("T", { kind: "type", value: "float", choices: ["float", "double"], hint: "type" }),
      ],
    }),
  );
  expect(input("N").value).toBe("12");
});

test("crumbs lead back, by mouse and by keyboard, but not while somebody types", () => {
  const crumbs = ["graph", "layer", "squash"].map((label) => ({ label, detail: "" }));
  page.receive(shown({ crumbs }));
  expect(page.one('[aria-current="page"]').textContent).toBe("squash");
  page.click(page.one('[data-crumb="0"]'));
  expect(page.last("back")).toEqual({ type: "back", crumb: 0 });
  page.sent.length = 0;
  page.key("Backspace", input("N"));
  expect(page.last("back")).toBeUndefined();
  page.key("Backspace", page.one('[aria-current="page"]'));
  expect(page.last("back")).toEqual({ type: "back", crumb: 1 });
  page.key("ArrowLeft", page.one(".gl-fn"), { altKey: true });
  expect(page.sent.filter((message) => message.type === "back")).toHaveLength(2);
});

test("the first function of all has nothing to go back to", () => {
  page.receive(shown());
  page.key("Backspace", page.one(".gl-fn"));
  expect(page.last("back")).toBeUndefined();
});

test("uses are a list to choose from, the gradient a button", () => {
  const uses = [
    { label: "layer", detail: "float" },
    { label: "call a", detail: "float [2]" },
  ];
  page.receive(shown({ uses, chosen: 0 }));
  const list = page.one<HTMLSelectElement>(".gl-uses");
  expect([...list.options].map((option) => option.textContent)).toEqual(["layer: float", "call a: float [2]"]);
  list.value = "1";
  list.dispatchEvent(new Event("change"));
  expect(page.last("choose_use")).toEqual({ type: "choose_use", place: 1 });
  page.click(page.one("[data-differentiate]"));
  expect(page.last("differentiate")).toEqual({ type: "differentiate" });
  page.receive(shown({ gradient: "" }));
  expect(page.one<HTMLElement>("[data-differentiate]").hidden).toBe(true);
});

test("why there is no body is said above the last one", () => {
  page.receive(shown({ problem: "Attr T is\n\tnot found" }));
  const problem = page.one<HTMLElement>(".gl-fn-problem");
  expect(problem.hidden).toBe(false);
  expect(problem.textContent).toBe("Attr T is not found What is shown is the last body that could be had.");
});

test("texts of a function are text and nothing else", () => {
  const [text = ""] = HOSTILE;
  const fields = [field(text, { value: text, error: text, hint: text, doc: text, choices: [text] })];
  const crumbs = [
    { label: text, detail: text },
    { label: text, detail: text },
  ];
  page.receive(
    shown({
      name: text,
      crumbs,
      definition: text,
      instantiated: text,
      fields,
      uses: [{ label: text, detail: text }],
      problem: text,
    }),
  );
  expect(page.root.querySelectorAll("script, image, iframe, img")).toHaveLength(0);
  expect("harmed" in globalThis).toBe(false);
  expect(side("Definition").querySelector("pre")?.textContent).toContain("<script>");
});

test("over the picture of a graph a function covers it until it is closed", async () => {
  const graph = new Page();
  await graph.show(scene({ nodes: [node("call", { kind: "function", op: "f" })] }));
  graph.click(graph.box("call"));
  graph.key("o", graph.box("call"));
  expect(graph.last("open_function")).toEqual({ type: "open_function", id: "call", place: 0 });
  graph.receive(shown({ crumbs: ["graph", "f"].map((label) => ({ label, detail: "" })) }));
  expect(graph.root.classList).toContain("gl-covered");
  expect(graph.last("to_pane")?.message).toEqual({ type: "ready" });
  expect(document.activeElement?.getAttribute("aria-current")).toBe("page");
  graph.key("Backspace", graph.one('[aria-current="page"]'));
  expect(graph.last("back")).toEqual({ type: "back", crumb: 0 });
  graph.receive({ type: "function_closed" });
  expect(graph.root.querySelector(".gl-fn")).toBeNull();
  expect(document.activeElement).toBe(graph.box("call"));
  const { listening } = graph;
  expect(listening).toBe(1);
  graph.dispose();
});

test("a function that is disposed leaves nothing behind", () => {
  page.receive(shown());
  page.dispose();
  expect(page.listening).toBe(0);
  expect(document.querySelector(".gl-fn")).toBeNull();
});

test("a choice after the kernel was restarted is answered with why nothing happens", () => {
  page.receive(shown());
  page.cut = true;
  page.click(page.one("[data-differentiate]"));
  const last = [...page.root.querySelectorAll(".gl-status-text")].pop();
  expect(last?.textContent).toBe("The kernel of this picture has ended: run its cell again");
});
