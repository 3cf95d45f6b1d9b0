// Long pictures in panels of several shapes.
import { Graphviz } from "@hpcc-js/wasm-graphviz";
import { expect, test } from "vitest";
import { fittingScale, fold } from "../src/scene/fold";
import type { Scene } from "../src/scene/generated";
import { parseGeometry } from "../src/scene/geometry";
import { layoutDot } from "../src/scene/layout_dot";
import type { Geometry, Rect } from "../src/scene/places";
import { edge, group, node, scene } from "./support";

const PANEL = { width: 1_300, height: 640 };

async function layOut(shown: Scene, across = false): Promise<Geometry> {
  const graphviz = await Graphviz.load();
  return parseGeometry(graphviz.layout(layoutDot(shown, { across }), "dot", "dot"), shown);
}

/** A chain of boxes with a line past each third one; with a frame, the first and the last are outside. */
function chain(count: number, frame = ""): Scene {
  const inside = (at: number): string => (at > 0 && at < count - 1 ? frame : "");
  const nodes = Array.from({ length: count }, (_, at) => node(`n${at}`, { op: "Op", group: inside(at) }));
  const edges = nodes.slice(1).map(({ id }, at) => edge(`n${at}`, id, "float [2]"));
  for (let at = 0; at + 3 < count; at += 3) edges.push(edge(`n${at}`, `n${at + 3}`, "", { id: `past ${at}` }));
  return scene({ nodes, edges, groups: frame ? [group(frame)] : [] });
}

const apart = (a: Rect, b: Rect): boolean =>
  a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;

test.each([
  [false, ""],
  [true, ""],
  [false, "f/"],
  [true, "f/"],
])("a long chain is folded until it is legible (across: %s, frame: '%s')", async (across, frame) => {
  const shown = chain(30, frame);
  const before = await layOut(shown, across);
  const after = fold(before, PANEL, across);
  expect(fittingScale(before, PANEL)).toBeLessThan(0.5);
  expect(fittingScale(after, PANEL)).toBeGreaterThanOrEqual(0.9);
  expect([...after.nodes.keys()]).toEqual([...before.nodes.keys()]);
  expect([...after.edges.keys()]).toEqual([...before.edges.keys()]);

  const rects = [...after.nodes.values()];
  expect(rects.flatMap((a, at) => rects.slice(at + 1).filter((b) => !apart(a, b)))).toEqual([]);
  for (const { x, y, width, height } of [...rects, ...after.groups.values()]) {
    expect(Math.min(x, y)).toBeGreaterThanOrEqual(0);
    expect(x + width).toBeLessThan(after.width + 0.01);
    expect(y + height).toBeLessThan(after.height + 0.01);
  }
  const outer = after.groups.get(frame);
  for (const [id, rect] of after.nodes) {
    if (!outer) continue;
    const inside = rect.x >= outer.x && rect.y >= outer.y && !apart(rect, outer);
    expect(inside, id).toBe(shown.nodes.find((box) => box.id === id)?.group === frame);
  }
});

test("the lines of a folded picture still lead from box to box, without a gap", async () => {
  const shown = chain(30);
  const { nodes, edges } = fold(await layOut(shown), PANEL);
  const near = ({ x, y, width, height }: Rect, point: { x: number; y: number }): boolean =>
    point.x > x - 8 && point.x < x + width + 8 && point.y > y - 8 && point.y < y + height + 8;
  for (const { id, source, target } of shown.edges) {
    const [route, from, to] = [edges.get(id), nodes.get(source), nodes.get(target)];
    const [first] = route?.points ?? [];
    if (!route || !from || !to || !first) throw new Error(`${id} has no places`);
    expect(route.points.length % 3, id).toBe(1);
    expect(near(from, first), id).toBe(true);
    expect(near(to, route.tip), id).toBe(true);
  }
});

test("a picture that fits is not folded", async () => {
  const places = await layOut(chain(4));
  expect(fold(places, PANEL)).toBe(places);
});

test("a few boxes and the circle of a loop are never torn apart", async () => {
  const tall = { width: 500, height: 200 };
  const few = await layOut(chain(5));
  expect(fold(few, tall)).toBe(few);

  const loop = chain(30);
  const back = edge("n24", "n6", "float [2]", { reversed: true });
  const shown = { ...loop, edges: [...loop.edges, back] };
  const places = await layOut(shown);
  const after = fold(places, PANEL, false, new Map(), [back.id]);
  const order = (id: string): number => (after.nodes.get(id) as Rect).y;
  const inside = Array.from({ length: 19 }, (_, at) => order(`n${at + 6}`));
  expect(inside).toEqual([...inside].sort((a, b) => a - b));
});
