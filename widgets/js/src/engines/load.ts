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

/** The most bytes of an unpacked script. */
const MOST_SCRIPT_BYTES = 16 * 2 ** 20;

/**
 * Unpacks gzipped data.
 *
 * Its last four bytes say how many bytes it has when unpacked. Rejects with an Error if these are more than `most`, and as soon as there
 * are more than it says: some kilobytes may stand for gigabytes.
 */
export async function unpack(packed: DataView, most: number, type = ""): Promise<Blob> {
  const stated = packed.byteLength < 4 ? 0 : packed.getUint32(packed.byteLength - 4, true);
  if (stated > most) throw new Error(`the packed data has ${stated} bytes, more than ${most}`);
  const bytes = new Uint8Array(packed.buffer as ArrayBuffer, packed.byteOffset, packed.byteLength);
  const stream = new Response(bytes).body as ReadableStream<Uint8Array<ArrayBuffer>>;
  const reader = stream.pipeThrough(new DecompressionStream("gzip")).getReader();
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    size += part.value.byteLength;
    if (size > stated) {
      await reader.cancel();
      throw new Error(`the packed data has more than the ${stated} bytes that it says`);
    }
    parts.push(part.value);
  }
  return new Blob(parts, { type });
}

/** A URL of a gzipped script. */
export async function scriptUrl(packed: DataView): Promise<string> {
  return URL.createObjectURL(await unpack(packed, MOST_SCRIPT_BYTES, "text/javascript"));
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

/** The URL of an engine's script. After a failure, the next call requests it again, and so do those that wait for the request of another host. */
export function engineUrl(engine: Engine, host: Host): Promise<string> {
  const { urls } = pageCache();
  const key = `${engine}@${ENGINE_VERSIONS[engine]}`;
  const known = urls.get(key);
  if (known) return known.catch(() => engineUrl(engine, host));
  const coming = ask(engine, host).then(scriptUrl);
  coming.catch(() => urls.delete(key));
  urls.set(key, coming);
  return coming;
}
