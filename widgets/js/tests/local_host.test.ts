import { expect, test } from "vitest";
import CASES from "../../../tests/data/search_cases.json";
import { INSPECTIONS } from "../dev/sample";
import type { FromKernel, FromViewer, SearchIndex } from "../src/scene/generated";
import { localHost, search, searchedNodes } from "../src/shell/local_host";
import { SAMPLE, sceneMessage } from "./support";

const data = {
  message: sceneMessage(SAMPLE),
  inspections: INSPECTIONS,
  dot: "digraph {}",
  mermaid: "flowchart TB",
  engine_gzip_base64: btoa("packed"),
};

async function answer(message: FromViewer): Promise<{ message: FromKernel; buffers: readonly DataView[] }> {
  const host = localHost(data);
  const coming = new Promise<{ message: FromKernel; buffers: readonly DataView[] }>((resolve) => {
    host.onMessage((answered, buffers) => resolve({ message: answered, buffers }));
  });
  host.send(message);
  return coming;
}

test("a standalone page answers from its own data", async () => {
  expect((await answer({ type: "ready" })).message).toMatchObject({ type: "scene", mermaid: "flowchart TB" });
  expect((await answer({ type: "inspect", id: "W" })).message).toMatchObject({
    type: "inspection",
    inspection: { id: "W" },
  });
  expect((await answer({ type: "want_export", format: "dot" })).message).toMatchObject({
    text: "digraph {}",
  });
  const { message, buffers } = await answer({ type: "need_engine", engine: "graphviz" });
  expect(message).toEqual({ type: "engine", engine: "graphviz" });
  expect(buffers[0]?.byteLength).toBe("packed".length);
});

test.each([
  { type: "inspect", id: "gone" },
  { type: "expand", id: "model/" },
  { type: "reveal", name: "gone" },
  { type: "need_engine", engine: "mermaid" },
] as const)("what it cannot do it says: $type", async (message) => {
  expect((await answer(message)).message.type).toBe("failure");
});

test("each scene it gives is newer than the one before", async () => {
  const host = localHost(data);
  const revisions: number[] = [];
  host.onMessage((message) => message.type === "scene" && revisions.push(message.scene.revision));
  host.send({ type: "ready" });
  host.send({ type: "renderer", renderer: "mermaid" });
  await Promise.resolve();
  expect(revisions[1]).toBeGreaterThan(revisions[0] ?? Infinity);
});

const found = (query: string, index: SearchIndex | null = null) => search(searchedNodes(data, index), query, 50);

test("search finds by name, op and cell, whatever the case, and never stubs", () => {
  expect(found("MATMUL").hits.map((hit) => hit.name)).toEqual(["model/MatMul", "gradients/model/MatMul_grad/MatMul_1"]);
  expect(found("assignsub").total).toBe(2);
  expect(found("in [6]").total).toBeGreaterThan(3);
  expect(found("stub").total).toBe(0);
});

test("search finds what closed boxes hold, behind what is to be seen, and says where it is", () => {
  const closed = {
    texts: ["model/", "MatMul", "Tanh", "", "float [?,7]", "T=float\ntranspose_a=true"],
    names: ["model/inner/product", "model/inner/tanh"],
    boxes: [0, 0],
    ops: [1, 2],
    cells: [3, 3],
    outputs: [4, 3],
    attrs: [5, 3],
  };
  expect(found("inner/tanh", closed).hits).toEqual([
    { node: "model/", name: "model/inner/tanh", op: "Tanh inside model/" },
  ]);
  expect(found("MATMUL", closed).hits.map((hit) => hit.name)).toEqual([
    "model/MatMul",
    "gradients/model/MatMul_grad/MatMul_1",
    "model/inner/product",
  ]);
  expect(found("transpose_a=true shape:7 dtype:float", closed).hits[0]?.name).toBe("model/inner/product");
  expect(found("nowhere", closed).total).toBe(0);
});

test.each(CASES.cases)("a query finds what matches all its words and terms: $query", ({ query, found: expected }) => {
  const nodes = CASES.nodes.map((node) => ({ ...node, box: node.name, attrs: Object.entries<string>(node.attrs) }));
  expect(search(nodes, query, 50).hits.map(({ name }) => name)).toEqual(expected);
});
