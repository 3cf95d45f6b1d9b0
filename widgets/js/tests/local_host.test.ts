import { expect, test } from "vitest";
import CASES from "../../../tests/data/search_cases.json";
import type { FromKernel, FromViewer } from "../src/scene/generated";
import { matches } from "../src/scene/query";
import { localHost, MOST_PAGE_BYTES, searchBoxes } from "../src/shell/local_host";
import { scriptsOf } from "../src/shell/page_scripts";
import { SAMPLE, sceneMessage } from "./support";

const data = {
  message: sceneMessage(SAMPLE),
  engine_gzip_base64: btoa("packed"),
};

async function answer(message: FromViewer): Promise<{ message: FromKernel; buffers: readonly DataView[] }> {
  const host = localHost(data, scriptsOf(data), MOST_PAGE_BYTES);
  const coming = new Promise<{ message: FromKernel; buffers: readonly DataView[] }>((resolve) => {
    host.onMessage((answered, buffers) => resolve({ message: answered, buffers }));
  });
  host.send(message);
  return coming;
}

test("a standalone page answers from its own data", async () => {
  expect((await answer({ type: "ready" })).message).toMatchObject({ type: "scene", scene: { title: SAMPLE.title } });
  expect((await answer({ type: "renderer", renderer: "mermaid" })).message).toMatchObject({
    renderer: "mermaid",
  });
  const { message, buffers } = await answer({ type: "need_engine", engine: "graphviz" });
  expect(message).toEqual({ type: "engine", engine: "graphviz" });
  expect(buffers[0]?.byteLength).toBe("packed".length);
});

test.each([
  { type: "inspect", id: "W" },
  { type: "expand", id: "model/" },
  { type: "reveal", name: "gone", quiet: false },
  { type: "need_engine", engine: "mermaid" },
] as const)("what it cannot do it says: $type", async (message) => {
  expect((await answer(message)).message.type).toBe("failure");
});

test("each scene it gives is newer than the one before", async () => {
  const host = localHost(data, scriptsOf(data), MOST_PAGE_BYTES);
  const revisions: number[] = [];
  host.onMessage((message) => message.type === "scene" && revisions.push(message.scene.revision));
  host.send({ type: "ready" });
  host.send({ type: "renderer", renderer: "mermaid" });
  await Promise.resolve();
  expect(revisions[1]).toBeGreaterThan(revisions[0] ?? Infinity);
});

test("without a graph, search finds boxes by name, op and cell, whatever the case, and never stubs", () => {
  const found = (query: string) => searchBoxes(data.message, query, 50);
  expect(found("MATMUL").hits.map((hit) => hit.name)).toEqual(["model/MatMul", "gradients/model/MatMul_grad/MatMul_1"]);
  expect(found("assignsub").total).toBe(2);
  expect(found("in [6]").total).toBeGreaterThan(3);
  expect(found("stub").total).toBe(0);
});

test("without a graph, boxes are filtered by their cell", async () => {
  const here = data.message.scene.nodes.filter(({ cell, kind }) => cell === "In [6]" && kind !== "stub");
  const { message } = await answer({ type: "filter", query: "cell:6" });
  expect(here.length).toBeGreaterThan(3);
  expect(message.type === "highlight" && [...message.boxes].sort()).toEqual(here.map(({ id }) => id).sort());
  expect((await answer({ type: "filter", query: "cell:60" })).message).toMatchObject({ boxes: [] });
});

test.each(CASES.cases)("a query finds what matches all its words and terms: $query", ({ query, found: expected }) => {
  const nodes = CASES.nodes.map((node) => ({ ...node, box: node.name, attrs: Object.entries<string>(node.attrs) }));
  expect(matches(nodes, query).map(({ name }) => name)).toEqual(expected);
});
