// The compiler of scenes gives the stored ones, as the kernel's does (`tests/widgets/test_stored_scenes.py`).
import { expect, test } from "vitest";
import { checkPage } from "../src/page/checked_data";
import type { PageData } from "../src/page/data";
import { GraphPage } from "../src/page/graph_page";
import type { FromViewer, Openings, PictureMessage, Scene } from "../src/scene/generated";

/** Lists of places in `Stored.items` instead of the lists of a scene. */
type Lists = Readonly<Record<"nodes" | "edges" | "groups" | "lenses", readonly number[]>>;

interface Answer {
  readonly scene: Omit<Scene, keyof Lists> & Lists;
  readonly openings: Openings;
}

interface Walk {
  readonly requests: readonly FromViewer[];
  readonly answers: readonly Answer[];
}

/** A file, as `tests/golden/scenes.py` writes it. */
interface Stored {
  readonly data: PageData;
  readonly walks: readonly Walk[];
  readonly items: readonly unknown[];
}

interface Files {
  readdirSync(folder: string): string[];
  readFileSync(path: string): Uint8Array<ArrayBuffer>;
}

const FOLDER = "../../tests/data/scenes";
const { getBuiltinModule } = (globalThis as unknown as { process: { getBuiltinModule(name: string): Files } }).process;
const files = getBuiltinModule("node:fs");

async function read(name: string): Promise<Stored> {
  const packed = new Response(files.readFileSync(`${FOLDER}/${name}`)).body as ReadableStream<Uint8Array<ArrayBuffer>>;
  return new Response(packed.pipeThrough(new DecompressionStream("gzip"))).json();
}

function whole({ scene, openings }: Answer, items: readonly unknown[]): unknown {
  const lists = (["nodes", "edges", "groups", "lenses"] as const).map(
    (name) => [name, scene[name].map((place) => items[place])] as const,
  );
  return { scene: { ...scene, ...Object.fromEntries(lists) }, openings };
}

/** The answer without the number of its scene, with the keys of its dimensions numbered in their order. */
function comparable(message: PictureMessage | null): unknown {
  if (message?.type !== "scene") return message;
  const { scene, openings } = message;
  const numbers = new Map<string, string>();
  const number = (key: string): string => {
    if (!numbers.has(key)) numbers.set(key, String(numbers.size));
    return numbers.get(key) as string;
  };
  const edges = scene.edges.map((edge) => ({
    ...edge,
    dims: edge.dims.map(({ text, key }) => ({ text, key: number(key) })),
  }));
  return { scene: { ...scene, edges, revision: 0 }, openings };
}

test.each(files.readdirSync(FOLDER))("the scenes of %s are the stored ones", async (name) => {
  const { data, walks, items } = await read(name);
  checkPage(data);
  const openings: Openings = { opened: [], closed: [], mode: "auto", mirror: false };
  for (const { requests, answers } of walks) {
    const page = new GraphPage(data, { title: "graph", lens: "structure", renderer: "graphviz", openings });
    for (const [i, request] of requests.entries()) {
      const expected = whole(answers[i] as Answer, items);
      expect(comparable(page.answer(request)), JSON.stringify(request)).toEqual(expected);
    }
  }
});
