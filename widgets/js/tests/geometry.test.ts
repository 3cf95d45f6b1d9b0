import { Graphviz } from "@hpcc-js/wasm-graphviz";
import { expect, test } from "vitest";
import { edgeLabelSize } from "../src/scene/boxes";
import { holdLabels } from "../src/scene/frames";
import type { Scene } from "../src/scene/generated";
import { type Geometry, parseGeometry, routeBase } from "../src/scene/geometry";
import { layoutDot } from "../src/scene/layout_dot";
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
  expect(up?.tip.y).toBeLessThan(up ? routeBase(up).y : 0);
  expect(up?.tip.y).toBeCloseTo(y("c") + (geometry.nodes.get("c")?.height ?? 0), 0);
});

test("several lines between the same boxes keep their own places and labels", async () => {
  const lines = [edge("a", "b", "float [2]", { id: "one" }), edge("a", "b", "int32 []", { id: "two" })];
  const geometry = await layOut(scene({ nodes: [node("a"), node("b")], edges: lines }));
  expect(geometry.edges.get("one")?.label).not.toEqual(geometry.edges.get("two")?.label);
});

test("the labels of lines inside a frame lie inside it, those of lines that go back too, and frames keep apart", async () => {
  // A loop as it stands in an opened call: what its body gives goes back up, past everything else in the frame.
  const inner = ["cond", "body"].flatMap((part) =>
    ["in", "op", "out"].map((name) => node(`f/${part}/${name}`, { op: `${name} of ${part}`, group: `f/${part}/` })),
  );
  const nodes = [node("f/call", { op: "While", group: "f/" }), ...inner, node("beside")];
  const lines = ["cond", "body"].flatMap((part) => [
    edge("f/call", `f/${part}/in`, "float [?,10]"),
    edge(`f/${part}/in`, `f/${part}/op`, "float [?,10]"),
    edge(`f/${part}/op`, `f/${part}/out`, "float [?,10]"),
    edge(`f/${part}/out`, "f/call", "float [batch,channels,10]", { reversed: true }),
  ]);
  const shown = scene({
    nodes,
    edges: [...lines, edge("f/call", "beside")],
    groups: [group("f/"), group("f/cond/", { parent: "f/" }), group("f/body/", { parent: "f/" })],
  });
  const { groups, edges, width } = await layOut(shown);
  const frame = groups.get("f/");
  const back = ["cond", "body"].map((part) => edges.get(`f/${part}/out->f/call`)?.label?.x ?? Number.NaN);
  const half = (edgeLabelSize(edge("a", "b", "float [batch,channels,10]"))?.width ?? 0) / 2;
  expect(Math.min(...back) - half).toBeGreaterThan(frame?.x ?? Infinity);
  expect(Math.max(...back) + half).toBeLessThan((frame?.x ?? 0) + (frame?.width ?? 0));
  expect((frame?.x ?? 0) + (frame?.width ?? 0)).toBeLessThanOrEqual(width);
  const [left, right] = ["f/cond/", "f/body/"].map((id) => groups.get(id)).sort((a, b) => (a?.x ?? 0) - (b?.x ?? 0));
  expect((left?.x ?? 0) + (left?.width ?? 0)).toBeLessThan(right?.x ?? 0);
});

test("a label for which there is no room beside its frame moves into it", () => {
  const places: Geometry = {
    width: 300,
    height: 100,
    nodes: new Map([
      ["f/a", { x: 100, y: 10, width: 100, height: 20 }],
      ["f/b", { x: 100, y: 60, width: 100, height: 20 }],
      ["c", { x: 215, y: 30, width: 60, height: 20 }],
    ]),
    groups: new Map([["f/", { x: 90, y: 0, width: 120, height: 90 }]]),
    edges: new Map([["f/a->f/b", { points: [], tip: { x: 0, y: 0 }, label: { x: 240, y: 40 } }]]),
  };
  const nodes = [node("f/a", { group: "f/" }), node("f/b", { group: "f/" }), node("c")];
  const shown = scene({ nodes, edges: [edge("f/a", "f/b", "float [2]")], groups: [group("f/")] });
  const { groups, edges } = holdLabels(shown, places);
  expect(groups.get("f/")).toEqual({ x: 90, y: 0, width: 121, height: 90 });
  const half = (edgeLabelSize(edge("a", "b", "float [2]"))?.width ?? 0) / 2;
  expect((edges.get("f/a->f/b")?.label?.x ?? 0) + half).toBeLessThanOrEqual(211);
});

test("a frame without boxes is not drawn", async () => {
  const geometry = await layOut(scene({ nodes: [node("a")], groups: [group("empty")] }));
  expect(geometry.groups.size).toBe(0);
});

test("an answer that is no layout is refused", () => {
  expect(() => parseGeometry("digraph { n0; }", scene())).toThrow("bounding box");
});
