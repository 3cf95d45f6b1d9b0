import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { LayoutRequest } from "../src/engines/graphviz";

/** A worker that answers when the test says so. */
class FakeWorker {
  static all: FakeWorker[] = [];
  static forbidden = false;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onerror: ((event: { message: string; preventDefault(): void }) => void) | null = null;
  ended = false;
  asked: LayoutRequest | null = null;

  constructor() {
    if (FakeWorker.forbidden) throw new Error("workers are forbidden here");
    FakeWorker.all.push(this);
  }

  postMessage(request: LayoutRequest): void {
    this.asked = request;
  }

  terminate(): void {
    this.ended = true;
  }

  answer(text: string): void {
    this.onmessage?.({ data: { id: this.asked?.id, text } });
  }
}

async function settle(): Promise<void> {
  for (let i = 0; i < 10; i++) await Promise.resolve();
}

beforeEach(() => {
  vi.resetModules();
  FakeWorker.all = [];
  FakeWorker.forbidden = false;
  vi.stubGlobal("Worker", FakeWorker);
});

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

async function layouter() {
  const { Layouter, Superseded } = await import("../src/engines/layouter");
  return { Superseded, layouter: new Layouter(async () => "blob:engine") };
}

test("a newer layout ends the worker of the older one and takes the spare", async () => {
  const { layouter: layouts, Superseded } = await layouter();
  const old = layouts.layout("old", 1000);
  const superseded = expect(old).rejects.toBeInstanceOf(Superseded);
  await settle();
  await layouts.warmUp();
  const [first, spare] = FakeWorker.all;
  const now = layouts.layout("new", 1000);
  await settle();
  expect(first?.ended).toBe(true);
  expect(spare?.asked?.dot).toBe("new");
  spare?.answer("placed");
  expect(await now).toBe("placed");
  await superseded;
  expect(FakeWorker.all).toHaveLength(2);
});

test("a worker that is done serves the next layout, of another view too", async () => {
  const { layouter: layouts } = await layouter();
  const first = layouts.layout("one", 1000);
  await settle();
  FakeWorker.all[0]?.answer("placed");
  await first;
  const second = layouts.layout("two", 1000);
  await settle();
  FakeWorker.all[0]?.answer("placed again");
  expect(await second).toBe("placed again");
  expect(FakeWorker.all).toHaveLength(1);
});

test("a layout that takes too long is ended and told", async () => {
  vi.useFakeTimers();
  const { layouter: layouts } = await layouter();
  const late = expect(layouts.layout("slow", 50)).rejects.toThrow("longer than 50 ms");
  await settle();
  vi.advanceTimersByTime(60);
  await late;
  expect(FakeWorker.all[0]?.ended).toBe(true);
});

test("an answer to a layout that was given up is not taken for the new one", async () => {
  const { layouter: layouts } = await layouter();
  layouts.layout("old", 1000).catch(() => {});
  await settle();
  const stale = FakeWorker.all[0]?.onmessage;
  const oldId = FakeWorker.all[0]?.asked?.id;
  const now = layouts.layout("new", 1000);
  await settle();
  stale?.({ data: { id: oldId, text: "old places" } });
  FakeWorker.all[1]?.answer("new places");
  expect(await now).toBe("new places");
});

test("where workers are forbidden the page itself lays out", async () => {
  FakeWorker.forbidden = true;
  vi.stubGlobal("graphloupeGraphviz", { layout: async (dot: string) => `${dot} placed` });
  const { layouter: layouts } = await layouter();
  expect(await layouts.layout("dot", 1000)).toBe("dot placed");
});
