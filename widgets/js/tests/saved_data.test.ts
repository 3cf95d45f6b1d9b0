// What a notebook from a stranger holds: packed data that is a bomb, and pictures that are none.
import { expect, test } from "vitest";
import { unpack } from "../src/engines/load";
import { unpackData } from "../src/page/data";
import { toDot } from "../src/page/dot_text";
import { toMermaid } from "../src/page/mermaid_text";
import type { SceneGroup, SceneMessage } from "../src/scene/generated";
import { checkedPicture } from "../src/shell/checked_picture";
import { group, SAMPLE, sceneMessage } from "./support";

async function packed(bytes: number, stated = bytes): Promise<DataView> {
  const stream = new Response(new Uint8Array(bytes).fill(32)).body as ReadableStream<Uint8Array<ArrayBuffer>>;
  const view = new DataView(await new Response(stream.pipeThrough(new CompressionStream("gzip"))).arrayBuffer());
  view.setUint32(view.byteLength - 4, stated, true);
  return view;
}

const base64 = (view: DataView): string => btoa(String.fromCharCode(...new Uint8Array(view.buffer)));

test("packed data of the size that it says is unpacked", async () => {
  expect((await unpack(await packed(5000), 5000)).size).toBe(5000);
});

test("packed data that says it is too large is refused before it is unpacked", async () => {
  await expect(unpack(await packed(10, 2 ** 31), 1_000_000)).rejects.toThrow(
    "the packed data has 2147483648 bytes, more than 1000000",
  );
});

test("unpacking stops where there is more than the data says", async () => {
  await expect(unpack(await packed(50_000_000, 1000), 1_000_000)).rejects.toThrow(
    "more than the 1000 bytes that it says",
  );
});

test("a graph is unpacked up to the limit of its place", async () => {
  await expect(unpackData(base64(await packed(2000)), 1000)).rejects.toThrow("more than 1000");
  await expect(unpackData("", 1000)).rejects.toThrow();
});

const saved = () => structuredClone({ message: sceneMessage(SAMPLE), model: "m", graph_gzip_base64: "H4s=" });

test("a saved picture is taken as it is, without anything beside it", () => {
  expect(checkedPicture(saved())).toEqual(saved());
  expect(checkedPicture({ ...saved(), _esm: "alert(1)", _css: "*{}" })).toEqual(saved());
});

test.each<[string, (picture: ReturnType<typeof saved>) => unknown]>([
  ["nothing", () => undefined],
  ["a text", () => "picture"],
  ["a list", () => []],
  ["another message", (picture) => ({ ...picture, message: { type: "engine", engine: "core" } })],
  ["a scene without nodes", ({ message, ...rest }) => ({ ...rest, message: { ...message, scene: {} } })],
  ["a graph that is no text", (picture) => ({ ...picture, graph_gzip_base64: { length: 1e9 } })],
  ["values of a run", (picture) => ({ ...picture, steps: {} })],
  [
    "a name that is no text",
    changed(({ scene }) => ({ ...scene, nodes: [{ ...scene.nodes[0], id: { toString: 1 } }] })),
  ],
  ["an unknown kind of box", changed(({ scene }) => ({ ...scene, nodes: [{ ...scene.nodes[0], kind: "script" }] }))],
  ["a count that is no number", changed(({ scene }) => ({ ...scene, nodes: [{ ...scene.nodes[0], count: NaN }] }))],
  ["a million boxes", changed(({ scene }) => ({ ...scene, nodes: Array(1e6).fill(scene.nodes[0]) }))],
  ["frames within each other", changed(({ scene }) => ({ ...scene, groups: frames(["a", "b"], ["b", "a"]) }))],
  [
    "a thousand frames, each within the one before",
    changed(({ scene }) => ({
      ...scene,
      groups: frames(...Array.from({ length: 1000 }, (_, i): [string, string] => [`${i}`, `${i - 1}`])),
    })),
  ],
])("a picture is refused that is %s or has it", (_, change) => {
  expect(checkedPicture(change(saved()))).toBeNull();
});

function changed(change: (message: SceneMessage) => unknown) {
  return (picture: ReturnType<typeof saved>) => ({
    ...picture,
    message: { ...picture.message, scene: change(picture.message) },
  });
}

/** Frames as pairs of an id and that of the frame around it. */
function frames(...pairs: readonly (readonly [string, string])[]): SceneGroup[] {
  return pairs.map(([id, parent]) => group(id, { parent }));
}

test("frames that have one id are written once, and not once for each way to them", () => {
  const ids = Array.from({ length: 60 }, (_, i) => [`f${i}`, i ? `f${i - 1}` : ""] as const);
  const scene = { ...SAMPLE, groups: frames(...ids, ...ids, ["", ""]) };
  for (const write of [toDot, toMermaid]) expect(write(scene).split("subgraph").length - 1).toBe(60);
});
