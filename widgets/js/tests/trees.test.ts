// The parts formed from the nodes of a page's data are those that Python forms of the graph.
import { expect, test } from "vitest";
import type { PageData } from "../src/page/data";
import { keysAround } from "../src/page/graph_page";
import { Instance, type Part } from "../src/page/parts";
import { CALL, GROUP, NODE, SCOPE } from "../src/page/space";
import { ScopeTree, SpaceGraph } from "../src/page/tree";

/** A file, as `tests/golden/scenes.py` writes it. */
interface Stored {
  readonly data: PageData;
  readonly tree: { readonly parts: readonly unknown[]; readonly opened_first: readonly string[] };
}

interface Files {
  readdirSync(folder: string): string[];
  readFileSync(path: string): Uint8Array<ArrayBuffer>;
}

const FOLDER = "../../tests/data/scenes";
const { getBuiltinModule } = (globalThis as unknown as { process: { getBuiltinModule(name: string): Files } }).process;
const files = getBuiltinModule("node:fs");
const KINDS = ["Node", "Thing", "Call", "Group", "Scope"];

async function read(name: string): Promise<Stored> {
  const packed = new Response(files.readFileSync(`${FOLDER}/${name}`)).body as ReadableStream<Uint8Array<ArrayBuffer>>;
  return new Response(packed.pipeThrough(new DecompressionStream("gzip"))).json();
}

function written(part: Part): unknown {
  if (part.kind === NODE) return part.key;
  return {
    kind: KINDS[part.kind],
    key: part.key,
    total: part.total,
    ...(part.kind === GROUP && { label: part.label, differences: part.differences, repeat: part.repeat }),
    ...(part.kind === SCOPE && { label: part.label }),
    ...(part.kind === CALL && { bodies: part.bodies().map(({ root }) => root.parts().map(written)) }),
    parts: part.beside().map(written),
  };
}

/** All parts at any depth, with the keys around each. */
function* within(parts: readonly Part[], around: readonly string[]): Generator<readonly [Part, readonly string[]]> {
  for (const part of parts) {
    yield [part, around];
    if (part.kind === NODE) continue;
    const inside = [...around, part.key];
    yield* within(part.beside(), inside);
    const bodies = part.kind === CALL ? part.bodies() : [];
    for (const { root } of bodies) yield* within(root.parts(), root.isBody ? [...inside, root.key] : inside);
  }
}

test.each(files.readdirSync(FOLDER))("the parts of %s are those of the kernel", async (name) => {
  const { data, tree: expected } = await read(name);
  const graph = SpaceGraph.first(data);
  const tree = new ScopeTree(graph, graph);
  const { root } = new Instance(graph, tree.scopes);
  expect(root.parts().map(written)).toEqual(expected.parts);
  expect([...tree.openedFirst].sort()).toEqual(expected.opened_first);
  for (const [part, around] of within(root.parts(), [])) {
    expect(keysAround(part)).toEqual(around);
    const isMain = part.kind === NODE && part.around?.node === part.node; // it is its thing that is found
    if (part.node >= 0 && !isMain) expect(part.instance.partOf(part.node)).toBe(part);
  }
});
