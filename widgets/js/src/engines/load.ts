// Engines are loaded once a page, from the first host that needs one, and kept on globalThis.
import type { Engine } from "../scene/generated";
import type { Host } from "../shell/host";

declare const ENGINE_VERSIONS: Readonly<Record<Engine, string>>;

const WAIT_MS = 20_000;

interface PageCache {
  readonly urls: Map<string, Promise<string>>;
}

function pageCache(): PageCache {
  const page = globalThis as { graphloupeEngines?: PageCache };
  page.graphloupeEngines ??= { urls: new Map() };
  return page.graphloupeEngines;
}

/** Unpacks gzipped data. */
export function unpack(packed: DataView): Response {
  const bytes = new Uint8Array(packed.buffer as ArrayBuffer, packed.byteOffset, packed.byteLength);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
}

/** A URL of a gzipped script. */
async function scriptUrl(packed: DataView): Promise<string> {
  const script = await unpack(packed).blob();
  return URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
}

function ask(engine: Engine, host: Host): Promise<DataView> {
  return new Promise((resolve, reject) => {
    const stop = host.onMessage((message, buffers) => {
      const [packed] = buffers;
      if (message.type !== "engine" || message.engine !== engine || !packed) return;
      clearTimeout(timer);
      stop();
      resolve(packed);
    });
    const timer = setTimeout(() => {
      stop();
      reject(new Error(`the ${engine} engine did not come within ${WAIT_MS / 1000} s`));
    }, WAIT_MS);
    host.send({ type: "need_engine", engine });
  });
}

/** The URL of an engine's script. After a failure, the next call requests it again. */
export function engineUrl(engine: Engine, host: Host): Promise<string> {
  const { urls } = pageCache();
  const key = `${engine}@${ENGINE_VERSIONS[engine]}`;
  const known = urls.get(key);
  if (known) return known;
  const coming = ask(engine, host).then(scriptUrl);
  coming.catch(() => urls.delete(key));
  urls.set(key, coming);
  return coming;
}
