import { afterEach, expect, test, vi } from "vitest";
import { engineUrl } from "../src/engines/load";
import type { FromKernel } from "../src/scene/generated";
import type { Host } from "../src/shell/host";

const stream = new Response("export const answer = 42;").body as ReadableStream<Uint8Array<ArrayBuffer>>;
const BYTES = new DataView(await new Response(stream.pipeThrough(new CompressionStream("gzip"))).arrayBuffer());

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
  (globalThis as { graphloupeEngines?: unknown }).graphloupeEngines = undefined;
});

/** A host whose kernel answers or never does. */
function hostThat(answers: boolean): Host & { asked: number } {
  const listeners = new Set<(message: FromKernel, buffers: readonly DataView[]) => void>();
  const host = {
    asked: 0,
    send: () => {
      host.asked += 1;
      if (!answers) return;
      for (const listen of [...listeners]) listen({ type: "engine", engine: "lower" } as FromKernel, [BYTES]);
    },
    onMessage: (callback: (message: FromKernel, buffers: readonly DataView[]) => void) => {
      listeners.add(callback);
      return () => listeners.delete(callback);
    },
  };
  return host as unknown as Host & { asked: number };
}

test("a view whose neighbour never gets an engine asks for it itself", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  vi.stubGlobal("URL", Object.assign(URL, { createObjectURL: () => "blob:engine" }));
  const [silent, lively] = [hostThat(false), hostThat(true)];
  const lost = engineUrl("lower", silent);
  const found = engineUrl("lower", lively);
  const refused = expect(lost).rejects.toThrow("did not come within 20 s");
  await vi.advanceTimersByTimeAsync(20_000);
  await refused;
  expect(await found).toBe("blob:engine");
  expect([silent.asked, lively.asked]).toEqual([1, 1]);
  expect(await engineUrl("lower", silent)).toBe("blob:engine");
  expect(silent.asked).toBe(1);
});
