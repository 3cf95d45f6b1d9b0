// What part of the picture is in the window, of 800 x 600 pixels, when scenes come one after the other.
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Camera } from "../src/canvas/camera";
import type { SceneNode } from "../src/scene/generated";
import { beginning } from "../src/scene/geometry";
import { edge, group, node, Page, scene, until } from "./support";

let page: Page;

beforeEach(() => {
  // jsdom's frames count from the start of its window, `performance.now()` from that of the process.
  vi.stubGlobal("requestAnimationFrame", (work: FrameRequestCallback) => setTimeout(() => work(performance.now()), 16));
  vi.stubGlobal("cancelAnimationFrame", clearTimeout);
  page = new Page();
});

afterEach(() => {
  page.dispose();
  vi.unstubAllGlobals();
});

interface View {
  readonly x: number;
  readonly y: number;
  readonly scale: number;
}

/** The numbers of a transform. */
const numbers = (transform: string | null | undefined): number[] =>
  [...(transform ?? "").matchAll(/-?[\d.]+/g)].map(Number);

function view(layer = page.one<HTMLElement>(".gl-layer"), world: Element = page.one(".gl-world")): View {
  const [x = 0, y = 0, zoomed = 1] = numbers(layer.style.transform);
  const [drawn = 0] = numbers(world.getAttribute("transform"));
  return { x, y, scale: zoomed * drawn };
}

/** Where a box begins and ends in the window, from left to right. */
function span(id: string): [number, number] {
  const left = Number(/translate\((-?[\d.]+)/.exec(page.box(id).getAttribute("transform") ?? "")?.[1]);
  const { x, scale } = view();
  return [x + left * scale, x + (left + 48) * scale];
}

/** The camera glides, and then stands still. */
async function settled(): Promise<View> {
  let last = "";
  await until(() => {
    const now = JSON.stringify(view());
    const still = now === last;
    last = now;
    return still;
  });
  await new Promise((resolve) => setTimeout(resolve, 300));
  return view();
}

/** Boxes in a row, each 48 pixels wide with 18 between them. */
const row = (count: number, fields: (index: number) => Partial<SceneNode> = () => ({})): SceneNode[] =>
  Array.from({ length: count }, (_, index) => node(`n${index}`, { op: "Op", label: "", ...fields(index) }));

async function show(revision: number, nodes: SceneNode[]): Promise<View> {
  await page.show(scene({ revision, nodes, edges: [] }));
  return settled();
}

test("a picture as a whole never has text of less than 9 pixels: a wider one is shown in part", async () => {
  const all = await show(1, row(12));
  expect(all.scale).toBeGreaterThanOrEqual(0.9);
  expect(span("n0")[0]).toBeGreaterThanOrEqual(0);
  expect(span("n11")[1]).toBeLessThanOrEqual(800);
  const part = await show(
    2,
    row(31, (index) => ({ state: index < 12 ? "normal" : "new" })),
  );
  expect(part.scale).toBe(0.9);
});

test("what is new in a large picture comes near enough to be read", async () => {
  await show(1, row(200));
  const { scale } = await show(
    2,
    row(201, (index) => ({ state: index === 200 ? "new" : "normal" })),
  );
  expect(scale).toBeGreaterThanOrEqual(0.75);
  expect(span("n200")[0]).toBeGreaterThan(0);
  expect(span("n200")[1]).toBeLessThan(800);
});

test("what a cell that failed leaves behind comes into view once, and then the picture stays where it is", async () => {
  await show(1, row(200));
  const left = row(203, (index) => ({ state: index >= 200 ? "stale" : "normal" }));
  const failed = await show(2, left);
  expect(span("n201")[0]).toBeGreaterThan(0);
  expect(span("n201")[1]).toBeLessThan(800);
  expect(await show(3, left)).toEqual(failed);
});

test("a cell that changes nothing leaves a large picture where its last news are", async () => {
  await show(1, row(200));
  const fresh = await show(
    2,
    row(201, (index) => ({ state: index === 150 ? "changed" : "normal" })),
  );
  expect(await show(3, row(201))).toEqual(fresh);
});

test("a cell that changes nothing does not stop the way to the news of the one before", async () => {
  await show(1, row(200));
  await page.show(
    scene({ revision: 2, nodes: row(201, (index) => ({ state: index === 200 ? "new" : "normal" })), edges: [] }),
  );
  await show(3, row(201));
  expect(span("n200")[0]).toBeGreaterThan(0);
  expect(span("n200")[1]).toBeLessThan(800);
});

test("another graph is shown from its upper end even where nothing of the one before is left", async () => {
  await show(1, row(3));
  const others = row(200).map((box) => ({ ...box, id: `other ${box.id}`, state: "new" as const }));
  const { scale } = await show(2, others);
  expect(scale).toBeCloseTo(0.9, 3);
  expect(span("other n100")[0]).toBeGreaterThan(0);
  expect(span("other n100")[1]).toBeLessThan(800);
});

test("a large picture is shown from where its uppermost boxes are, without empty room beside it", () => {
  const layer = document.createElement("div");
  const world = document.createElementNS("http://www.w3.org/2000/svg", "g");
  const camera = new Camera(
    layer,
    world,
    () => ({ width: 800, height: 600 }),
    () => {},
  );
  const shown = (start: number | null): number[] => {
    camera.beginning = start;
    camera.follow({ x: 0, y: 0, width: 9000, height: 5000 }, null, false);
    const { x, scale } = view(layer, world);
    return [-x / scale, (800 - x) / scale].map(Math.round);
  };
  const [left = 0, right = 0] = shown(1500);
  expect((left + right) / 2).toBeCloseTo(1500, -1);
  expect(shown(20)[0]).toBeGreaterThan(-100);
  expect(shown(8990)[1]).toBeLessThan(9100);
  expect((shown(null)[0] ?? 0) + (shown(null)[1] ?? 0)).toBeCloseTo(9000, -1);
});

test("a picture begins at the middle one of its uppermost boxes", () => {
  const box = (x: number, y: number) => ({ x, y, width: 40, height: 30 });
  const places = { a: box(100, 4), b: box(300, 0), c: box(700, 10), low: box(2000, 60) };
  const geometry = { width: 0, height: 0, groups: new Map(), edges: new Map() };
  expect(beginning({ ...geometry, nodes: new Map(Object.entries(places)) })).toBe(320);
  expect(beginning({ ...geometry, nodes: new Map() })).toBeNull();
});

test("a box that the user opens begins where it was, as far as all that is in it can be seen", async () => {
  await show(1, [...row(3), node("s/", { kind: "scope", expandable: true })]);
  for (let i = 0; i < 4; i++) page.key("ArrowUp", page.one(".gl-canvas"), { ctrlKey: true });
  await settled();
  const inside = ["s/a", "s/b", "s/c", "s/d"];
  await page.show(
    scene({
      revision: 2,
      nodes: [...row(3), ...inside.map((id) => node(id, { group: "s/" }))],
      edges: inside.slice(1).map((id, index) => edge(inside[index] ?? "", id)),
      groups: [group("s/")],
    }),
  );
  const { y, scale } = await settled();
  const top = Number(/,(-?[\d.]+)\)/.exec(page.one('[data-group-id="s/"]').getAttribute("transform") ?? "")?.[1]);
  const height = Number(page.one('[data-group-id="s/"] .gl-frame').getAttribute("height"));
  expect(height * scale).toBeGreaterThan(100);
  expect(y + (top + height) * scale).toBeLessThanOrEqual(600 - 15);
  expect(y + top * scale).toBeGreaterThan(100);
});

test("of what is larger than the window the beginning is shown", () => {
  const layer = document.createElement("div");
  const world = document.createElementNS("http://www.w3.org/2000/svg", "g");
  const camera = new Camera(
    layer,
    world,
    () => ({ width: 800, height: 600 }),
    () => {},
  );
  camera.pan(0, 300);
  vi.stubGlobal("matchMedia", () => ({ matches: true }));
  camera.ensureVisible({ x: 0, y: 0, width: 100, height: 2000 });
  expect(view(layer, world)).toEqual({ x: 16, y: 16, scale: 1 });
});

test("a hidden window stays where it is", () => {
  const [layer, world] = [document.createElement("div"), document.createElementNS("http://www.w3.org/2000/svg", "g")];
  let size = { width: 800, height: 600 };
  const camera = new Camera(
    layer,
    world,
    () => size,
    () => {},
  );
  camera.pan(50, 50);
  const before = view(layer, world);
  size = { width: 0, height: 0 };
  vi.stubGlobal("matchMedia", () => ({ matches: true }));
  camera.ensureVisible({ x: 300, y: 200, width: 100, height: 40 });
  expect(view(layer, world)).toEqual(before);
});

test("the layer of a picture is as large as the picture at its scale", async () => {
  for (const boxes of [3, 12]) {
    const { scale } = await show(boxes, row(boxes));
    const { width, height } = page.one<HTMLElement>(".gl-layer").style;
    expect(Number.parseFloat(width) / scale).toBeCloseTo(48 * boxes + 18 * (boxes - 1), 0);
    expect(Number.parseFloat(height)).toBeGreaterThan(0);
  }
});

test("the whole picture that was asked for once does not make a later, larger one illegible", async () => {
  await show(1, row(40));
  page.key("f");
  expect((await settled()).scale).toBeLessThan(0.75);
  const larger = await show(2, row(60));
  expect(larger.scale).toBeGreaterThanOrEqual(0.75);
});
