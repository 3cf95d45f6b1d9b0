import { Graphviz } from "@hpcc-js/wasm-graphviz";
import { expect, test } from "vitest";
import type { Scene } from "../src/generated";
import { type Geometry, parseGeometry } from "../src/geometry";
import { layoutDot } from "../src/layout_dot";
import { edge, group, node, SAMPLE, scene } from "./support";

async function layOut(shown: Scene): Promise<Geometry> {
  const graphviz = await Graphviz.load();
  return parseGeometry(graphviz.layout(layoutDot(shown), "dot", "dot"), shown);
}

test("every box, line and frame of a scene gets a place", async () => {
  const geometry = await layOut(SAMPLE);
  expect([...geometry.nodes.keys()].sort()).toEqual(SAMPLE.nodes.map(({ id }) => id).sort());
  expect([...geometry.edges.keys()].sort()).toEqual(SAMPLE.edges.map(({ id }) => id).sort());
  expect([...geometry.groups.keys()].sort()).toEqual(SAMPLE.groups.map(({ id }) => id).sort());
});

test("boxes do not overlap, and lie inside their frames", async () => {
  const geometry = await layOut(SAMPLE);
  const places = [...geometry.nodes.values()];
  const overlap = places.flatMap((a, i) =>
    places.slice(i + 1).filter((b) => {
      const apart = a.x + a.width <= b.x || b.x + b.width <= a.x || a.y + a.height <= b.y || b.y + b.height <= a.y;
      return !apart;
    }),
  );
  expect(overlap).toEqual([]);
  for (const { id, group: frame } of SAMPLE.nodes) {
    const [inner, outer] = [geometry.nodes.get(id), geometry.groups.get(frame)];
    if (!inner || !outer) continue;
    expect(inner.x).toBeGreaterThanOrEqual(outer.x);
    expect(inner.y + inner.height).toBeLessThanOrEqual(outer.y + outer.height);
  }
});

test("data flows downwards, and a reversed edge upwards with its arrow still at the target", async () => {
  const nodes = [node("a"), node("b"), node("c")];
  const geometry = await layOut(scene({ nodes, edges: [edge("a", "b"), edge("b", "c", "", { reversed: true })] }));
  const y = (id: string): number => geometry.nodes.get(id)?.y ?? Number.NaN;
  expect(y("a")).toBeLessThan(y("b"));
  expect(y("c")).toBeLessThan(y("b"));
  const up = geometry.edges.get("b->c");
  expect(up?.tip.y).toBeLessThan(up?.base.y ?? 0);
  expect(up?.tip.y).toBeCloseTo(y("c") + (geometry.nodes.get("c")?.height ?? 0), 0);
});

test("several lines between the same boxes keep their own places and labels", async () => {
  const lines = [edge("a", "b", "float [2]", { id: "one" }), edge("a", "b", "int32 []", { id: "two" })];
  const geometry = await layOut(scene({ nodes: [node("a"), node("b")], edges: lines }));
  expect(geometry.edges.get("one")?.label).not.toEqual(geometry.edges.get("two")?.label);
});

test("a frame without boxes is not drawn", async () => {
  const geometry = await layOut(scene({ nodes: [node("a")], groups: [group("empty")] }));
  expect(geometry.groups.size).toBe(0);
});

test("an answer that is no layout is refused", () => {
  expect(() => parseGeometry("digraph { n0; }", scene())).toThrow("bounding box");
});
