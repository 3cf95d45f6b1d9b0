import { beforeEach, expect, test } from "vitest";
import { bringToFront, closeForerunners, panelOf } from "../src/side_panel";

const closed: string[] = [];

function panel(id: string): HTMLElement {
  const element = document.createElement("div");
  element.id = id;
  element.className = "jupyterlab-sidecar";
  const tab = document.createElement("li");
  tab.dataset.id = id;
  const icon = document.createElement("div");
  icon.className = "lm-TabBar-tabCloseIcon";
  let pressed = false;
  icon.addEventListener("pointerdown", () => {
    pressed = true;
  });
  icon.addEventListener("pointerup", () => {
    if (pressed) closed.push(id);
  });
  tab.append(icon);
  document.body.append(element, tab);
  return element;
}

beforeEach(() => {
  closed.length = 0;
  document.body.replaceChildren();
  // jsdom has mouse events only; a pointer event is one with more to tell.
  globalThis.PointerEvent ??= MouseEvent as unknown as typeof PointerEvent;
});

test("a panel that an earlier kernel of the notebook left behind is closed", () => {
  closeForerunners(panel("old"), { notebook: "a.ipynb", kernel: "1", title: "graph" });
  closeForerunners(panel("new"), { notebook: "a.ipynb", kernel: "2", title: "graph" });
  expect(closed).toEqual(["old"]);
});

test("panels of other notebooks, other graphs and the same kernel stay", () => {
  closeForerunners(panel("elsewhere"), { notebook: "b.ipynb", kernel: "1", title: "graph" });
  closeForerunners(panel("another graph"), { notebook: "a.ipynb", kernel: "1", title: "g" });
  closeForerunners(panel("same"), { notebook: "a.ipynb", kernel: "2", title: "graph" });
  closeForerunners(panel("new"), { notebook: "a.ipynb", kernel: "2", title: "graph" });
  expect(closed).toEqual([]);
});

test("a kernel that knows no notebook closes nothing", () => {
  closeForerunners(panel("old"), { notebook: "", kernel: "1", title: "graph" });
  closeForerunners(panel("new"), { notebook: "", kernel: "2", title: "graph" });
  expect(closed).toEqual([]);
});

test("a panel that another one covers is brought to the front; one that is to be seen is left alone", () => {
  const pressed: string[] = [];
  for (const id of ["covered", "seen"]) {
    panel(id);
    const tab = document.querySelector<HTMLElement>(`[data-id="${id}"]`);
    tab?.classList.toggle("lm-mod-current", id === "seen");
    tab?.addEventListener("pointerdown", () => pressed.push(id));
    bringToFront(document.getElementById(id) as HTMLElement);
  }
  expect(pressed).toEqual(["covered"]);
});

test("a view between cells lies in no panel", () => {
  const view = document.createElement("div");
  document.body.append(view);
  expect(panelOf(view)).toBeNull();
  const side = panel("side");
  side.append(view);
  expect(panelOf(view)).toBe(side);
});
