// Edges across the whole picture are cut; all others are unchanged.
import { expect, test } from "vitest";
import { estimateRanks } from "../src/page/ranks";
import { cutLongEdges } from "../src/page/stubs";
import type { SceneEdge, SceneNode } from "../src/scene/generated";
import { edge, node } from "./support";

const box = (id: string): SceneNode => node(id, { op: "Add" });
const line = (source: string, target: string): SceneEdge => edge(source, target, "float [3]");

function chain(length: number): [SceneNode[], SceneEdge[]] {
  const ids = Array.from({ length }, (_, i) => `n${i}`);
  return [ids.map(box), ids.slice(1).map((id, i) => line(`n${i}`, id))];
}

const ranked = (boxes: string, arrows: string, loose = ""): Record<string, number> => {
  const pairs = (text: string) =>
    text ? text.split(" ").map((pair) => [pair.charAt(0), pair.charAt(1)] as const) : [];
  return Object.fromEntries(estimateRanks([...boxes], pairs(arrows), pairs(loose)));
};

test("ranks grow along every arrow", () => {
  expect(ranked("abcd", "ab bc ac cd")).toEqual({ a: 0, b: 1, c: 2, d: 3 });
});

test("what only feeds a deep box stands right above it", () => {
  expect(ranked("abcdwz", "ab bc cd zw wd")).toMatchObject({ d: 3, w: 2, z: 1 });
});

test("a cycle of closed scopes has ranks too", () => {
  expect(Object.values(ranked("abc", "ab bc ca")).sort()).toEqual([0, 1, 2]);
});

test("control lines do not pull", () => {
  expect(ranked("abcwi", "ab bc wc", "wi")).toMatchObject({ w: 1, i: 2 });
});

test("a short picture keeps all its lines", () => {
  const [nodes, edges] = chain(12);
  edges.push(line("n0", "n11"));
  expect(cutLongEdges(nodes, edges, false)).toEqual([nodes, edges]);
});

test("the longest lines of a long picture end in stubs", () => {
  const [nodes, edges] = chain(100);
  for (let i = 0; i < 50; i += 10) edges.push(line(`n${i}`, `n${i + 40}`));
  edges.push(line("n0", "n3"));
  const [cutNodes, cutEdges] = cutLongEdges(nodes, edges, false);
  const stubs = cutNodes.filter(({ kind }) => kind === "stub");
  expect(stubs.length).toBeGreaterThan(0);
  for (const { id, stands_for } of stubs) expect(id).toBe(`stub:${stands_for}:n${Number(stands_for.slice(1)) + 40}`);
  expect(cutEdges.length).toBe(edges.length);
  expect(cutEdges.filter(({ source }) => source === "n0").map(({ target }) => target)).toContain("n3");
});

test("many far producers share one stub", () => {
  const [nodes, edges] = chain(100);
  for (let i = 0; i < 40; i += 4) edges.push(line(`n${i}`, "n99"));
  const [cutNodes, cutEdges] = cutLongEdges(nodes, edges, false);
  const [crowd, ...more] = cutNodes.filter(({ kind }) => kind === "stub");
  expect(more).toEqual([]);
  const far = Number(crowd?.label.split(" ")[0]);
  expect(far).toBeGreaterThan(6);
  expect(crowd?.label).toBe(`${far} boxes far above`);
  const lines = cutEdges.filter(({ source }) => source === crowd?.id);
  expect(lines).toMatchObject([{ target: "n99", count: far, label: "float [3]" }]);
  expect(cutEdges.length).toBe(edges.length - far + 1);
});
