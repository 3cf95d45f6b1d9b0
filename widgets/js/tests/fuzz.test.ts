// Pictures and graphs of saved notebooks and pages, damaged at random: they end in the viewer's own errors, soon.
// GRAPHLOUPE_FUZZ_SECONDS sets how long, GRAPHLOUPE_FUZZ_SEED where it begins; an input depends on its number alone.
import { expect, test } from "vitest";
import saved from "../../../tests/data/saved_picture.json";
import { DataError, FormatError } from "../src/page/checked_data";
import { unpackData } from "../src/page/data";
import { toDot } from "../src/page/dot_text";
import { GraphPage } from "../src/page/graph_page";
import { toMermaid } from "../src/page/mermaid_text";
import { type FromViewer, type Openings, PAGE_FORMAT, type Scene } from "../src/scene/generated";
import { layoutDot } from "../src/scene/layout_dot";
import { checkedPicture } from "../src/shell/checked_picture";
import { searchBoxes } from "../src/shell/local_host";
import type { SavedPicture } from "../src/shell/saved_picture";

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

const ENV = (globalThis as unknown as { process: { env: Readonly<Record<string, string | undefined>> } }).process.env;
const SECONDS = Number(ENV.GRAPHLOUPE_FUZZ_SECONDS ?? 0);
const INPUTS = 300;
const SEED = Number(ENV.GRAPHLOUPE_FUZZ_SEED ?? 0);
/** The most milliseconds of one input, on a machine that is busy with other tests. */
const MOST_MS = 10_000;
const MOST_BYTES = 5_000_000;
const TIMEOUT = 1000 * SECONDS + 60_000;

const PICTURE = saved as unknown as SavedPicture;
const PACKED = PICTURE.graph_gzip_base64 as string;
const LINES = (await piped(bytesOf(atob(PACKED)), new DecompressionStream("gzip")).text()).split("\n");

globalThis.Blob = (await new Response().blob()).constructor as typeof Blob; // jsdom's cannot be read

/** The bytes of a text of letters up to 255. */
function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(text, (letter) => letter.charCodeAt(0));
}

function textOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
}

function piped(bytes: Uint8Array<ArrayBuffer>, through: CompressionStream | DecompressionStream): Response {
  const stream = new Response(bytes).body as ReadableStream<Uint8Array<ArrayBuffer>>;
  return new Response(stream.pipeThrough(through));
}

class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  /** A whole number below `end`. */
  below(end: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * end);
  }

  of<T>(values: readonly T[]): T {
    return values[this.below(values.length)] as T;
  }
}

function nested(depth: number): Json {
  let value: Json = [];
  for (let i = 0; i < depth; i++) value = [value];
  return value;
}

const VALUES: readonly (() => Json)[] = [
  ...[null, true, -1, 0, 1, 2, 3, 7, 8, 20, 255, 2 ** 31 - 1, 2 ** 31, 2 ** 53, -(2 ** 31), 0.5, 1e308].map(
    (value) => () => value,
  ),
  ...["", "x", "a/b", "/", "∇", "\ud800", "__proto__", "constructor", "<script>"].map((value) => () => value),
  () => [],
  () => ({}),
  () => nested(3),
  () => nested(1000),
  () => Array(50_000).fill(0),
  () => "x".repeat(50_000),
  () => Array(1000).fill("a/").join(""),
];

/** All places within a value, as their holders and keys. */
function places(value: Json): [Json[] | { [name: string]: Json }, string][] {
  const found: [Json[] | { [name: string]: Json }, string][] = [];
  const waiting: Json[] = [value];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (typeof next !== "object" || next === null) continue;
    for (const [key, inner] of Object.entries(next)) {
      found.push([next, key]);
      waiting.push(inner);
    }
  }
  return found;
}

function damaged(text: string, random: Random): string {
  const whole: Json = [JSON.parse(text)];
  for (let i = random.of([1, 1, 1, 2, 4]); i > 0; i--) {
    const all = places(whole);
    if (all.length === 0) break;
    const [holder, key] = random.of(all) as [{ [name: string]: Json }, string];
    const [there, other] = random.of(all) as [{ [name: string]: Json }, string];
    const value = holder[key] as Json;
    switch (random.below(6)) {
      case 0:
      case 1:
        holder[key] = random.of(VALUES)();
        break;
      case 2:
        if (typeof value === "number") holder[key] = value + random.of([-8, -1, 1, 8, 2 ** 20]);
        break;
      case 3:
        holder[key] = JSON.parse(JSON.stringify(there[other] ?? null)) as Json;
        break;
      case 4:
        if (Array.isArray(holder)) holder.splice(Number(key), random.below(3));
        else delete holder[key];
        break;
      default:
        if (Array.isArray(holder)) holder.splice(Number(key), 0, ...Array(random.of([1, 2, 100])).fill(value));
        else holder[random.of(["", "0", "-1", "name", "__proto__"])] = value;
    }
  }
  return JSON.stringify((whole as Json[])[0] ?? null);
}

function damagedBytes(text: string, random: Random): string {
  const found = bytesOf(text);
  for (let i = random.of([1, 1, 2, 5]); i > 0; i--) found[random.below(found.length)] = random.below(256);
  return textOf(random.below(3) ? found : found.subarray(0, random.below(found.length)));
}

async function packedLines(lines: readonly string[]): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = new TextEncoder().encode(lines.join("\n"));
  return new Uint8Array(await piped(bytes, new CompressionStream("gzip")).arrayBuffer());
}

async function damagedData(random: Random): Promise<string> {
  const kind = random.below(20);
  if (kind === 0) return damagedBytes(PACKED, random);
  if (kind === 1) return btoa(damagedBytes(atob(PACKED), random));
  const lines = [...LINES];
  if (kind === 2) lines.splice(random.below(lines.length), random.of([1, 2, 21]));
  else if (kind === 3)
    lines.splice(random.below(lines.length), 0, ...Array(random.of([1, 2, 21])).fill(random.of(lines)));
  else if (kind === 4) lines[random.below(lines.length)] = "[".repeat(random.of([1, 10, 100_000]));
  else {
    const line = random.below(3) ? random.below(lines.length) : 0;
    lines[line] = damaged(lines[line] as string, random);
  }
  const packed = await packedLines(lines);
  if (kind === 5)
    new DataView(packed.buffer).setUint32(packed.length - 4, random.of([0, 1, 2 ** 31, 2 ** 32 - 1]), true);
  return btoa(textOf(packed));
}

/** Runs some inputs, each in a bounded time. */
async function fuzz(check: (random: Random) => Promise<void> | void): Promise<number> {
  const end = performance.now() + 1000 * SECONDS;
  let count = 0;
  for (; SECONDS ? performance.now() < end : count < INPUTS; count++) {
    const begin = performance.now();
    try {
      await check(new Random(SEED + count));
    } catch (error) {
      throw new Error(`input ${SEED + count} (GRAPHLOUPE_FUZZ_SEED): ${error}`, { cause: error });
    }
    if (performance.now() - begin > MOST_MS) throw new Error(`input ${SEED + count} took more than ${MOST_MS} ms`);
  }
  return count;
}

const EVERYTHING: Openings = { opened: [], closed: [], mode: "all", mirror: true };

function requests(scene: Scene, random: Random): FromViewer[] {
  const id = random.of(scene.nodes)?.id ?? "";
  return [
    { type: "inspect", id },
    { type: "expand", id },
    { type: "reveal", name: random.of(["x", "loss", "layer_0/w", "", id]), quiet: false },
    { type: "expand", id: "*" },
    { type: "find", query: random.of(["layer", "op:Tanh", "shape:[?,3]", "has:error"]), limit: 20 },
    { type: "filter", query: "dtype:float" },
    { type: "want_timelines", known: "" },
    { type: "want_health" },
    { type: "restore", openings: EVERYTHING },
    { type: "collapse", id: "*" },
  ];
}

function write(scene: Scene): void {
  expect(toDot(scene).length + toMermaid(scene).length + layoutDot(scene).length).toBeLessThan(MOST_BYTES);
}

// `python -m tests.support.tools.page_sample` writes the picture anew when pages have other fields.
test("a whole graph is read", async () => {
  const page = new GraphPage(await unpackData(PACKED, MOST_BYTES), { ...beginning(), openings: EVERYTHING });
  const shown = page.answer({ type: "ready" });
  expect(shown?.type === "scene" && shown.scene.nodes.length).toBeGreaterThan(10);
  expect(checkedPicture(PICTURE)).not.toBeNull();
});

/** The place of a column of the graph in the lines. */
const [NAMES, KINDS, ARITIES, PRODUCERS] = [5, 7, 18, 19] as const;

test.each<[string, number, (column: unknown[]) => void]>([
  ["has a node twice", NAMES, (column) => column.fill("x")],
  ["beyond the graph", PRODUCERS, (column) => column.fill(1e6)],
  ["counts other inputs", ARITIES, (column) => column.fill(0)],
  ["has an unknown kind", KINDS, (column) => column.fill(0)],
  ["no list of texts", NAMES, (column) => column.fill(7, 0, 1)],
])("the data of a graph is refused whose column %s", async (words, place, change) => {
  const column = JSON.parse(LINES[place] as string) as unknown[];
  change(column);
  const lines = LINES.map((line, i) => (i === place ? JSON.stringify(column) : line));
  const data = btoa(textOf(await packedLines(lines)));
  await expect(unpackData(data, MOST_BYTES)).rejects.toThrow(words);
});

test.each([
  ["one without a number", LINES.slice(1)],
  ["the one before", [String(PAGE_FORMAT - 1), ...LINES.slice(1)]],
  ["a later one", [String(PAGE_FORMAT + 1), ...LINES.slice(1), "{}"]],
])("a graph of another format is refused with that reason: %s", async (_, lines) => {
  const data = btoa(textOf(await packedLines(lines)));
  await expect(unpackData(data, MOST_BYTES)).rejects.toThrow(
    "saved by another version of Graphloupe: run the notebook again",
  );
});

const beginning = () => ({ title: "", lens: "", renderer: "graphviz" as const, openings: PICTURE.message.openings });

test(
  "a damaged graph is refused or shown",
  async () => {
    let [refused, shown] = [0, 0];
    const count = await fuzz(async (random) => {
      try {
        const page = new GraphPage(await unpackData(await damagedData(random), MOST_BYTES), beginning());
        const first = page.answer({ type: "ready" });
        if (first?.type !== "scene") throw new Error("no scene");
        write(first.scene);
        for (const request of requests(first.scene, random)) {
          const answer = page.answer(request);
          if (answer?.type === "scene") write(answer.scene);
        }
        shown += 1;
      } catch (error) {
        if (!(error instanceof DataError || error instanceof FormatError)) throw error;
        refused += 1;
      }
    });
    expect(refused + shown).toBe(count);
    expect(Math.min(refused, shown)).toBeGreaterThan(0);
  },
  TIMEOUT,
);

test(
  "a damaged picture is refused or shown",
  async () => {
    let [refused, shown] = [0, 0];
    const count = await fuzz((random) => {
      const picture = checkedPicture(
        JSON.parse(damaged(JSON.stringify({ ...PICTURE, graph_gzip_base64: "" }), random)),
      );
      if (!picture) {
        refused += 1;
        return;
      }
      write(picture.message.scene);
      searchBoxes(picture.message, random.of(["layer", "op:Tanh"]), 20);
      shown += 1;
    });
    expect(refused + shown).toBe(count);
    expect(Math.min(refused, shown)).toBeGreaterThan(0);
  },
  TIMEOUT,
);
