// A host without a kernel, which answers from the data of a standalone page.
import { reason } from "../dom";
import { unpack } from "../engines/load";
import { toDot } from "../page/dot_text";
import type { Beginning } from "../page/graph_page";
import { toMermaid } from "../page/mermaid_text";
import type { StartWorker } from "../page/worker";
import type { Engine, ExportFormat, FromKernel, FromViewer, SceneMessage, SearchMessage } from "../scene/generated";
import { matches, type Searched } from "../scene/query";
import type { Host } from "./host";

/** The data of a standalone page. Packed data is gzipped, in base64. */
export interface StandaloneData {
  /** The first picture. */
  readonly message: SceneMessage;
  readonly engine_gzip_base64: string;
  readonly mermaid_engine_gzip_base64?: string;
  /** The graph behind the picture, and the script of the worker that opens it; without them the picture stays as it is. */
  readonly graph_gzip_base64?: string;
  readonly worker_gzip_base64?: string;
}

function bytes(base64: string): DataView {
  const data = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  return new DataView(data.buffer);
}

/** Starts the worker that answers for the graph. */
async function startWorker(script: string, start: StartWorker, listen: (message: FromKernel) => void): Promise<Worker> {
  const source = await unpack(bytes(script)).blob();
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const worker = new Worker(url);
  URL.revokeObjectURL(url);
  worker.onmessage = ({ data }) => listen(data as FromKernel);
  worker.onerror = ({ message }) => listen({ type: "failure", request: "expand", text: message });
  worker.postMessage(start);
  return worker;
}

/** The boxes of a picture that match a query. */
export function searchBoxes({ scene }: SceneMessage, query: string, limit: number): SearchMessage {
  const boxes = scene.nodes
    .filter(({ kind }) => kind !== "stub")
    .map(
      ({ id, op, kind, cell }): Searched => ({
        box: id,
        name: id,
        op: op || kind,
        cell,
        dtypes: [],
        shapes: [],
        attrs: [],
      }),
    );
  const found = matches(boxes, query);
  const hits = found.slice(0, limit).map(({ box, name, op }) => ({ node: box, name, op }));
  return { type: "search", query, hits, total: found.length };
}

/** The host of a standalone page. */
export function localHost(data: StandaloneData): Host {
  const listeners = new Set<(message: FromKernel, buffers: readonly DataView[]) => void>();
  let latest = data.message;
  let worker: Promise<Worker> | undefined;

  const tell = (message: FromKernel, buffers: readonly DataView[] = []): void => {
    for (const listener of [...listeners]) listener(message, buffers);
  };
  // Answers are asynchronous, like those of a kernel.
  const answer = (message: FromKernel, buffers: readonly DataView[] = []): void => {
    queueMicrotask(() => tell(message, buffers));
  };
  const fail = (request: string, text: string): void => answer({ type: "failure", request, text });
  const show = (message: SceneMessage): void => {
    latest = { ...message, mermaid: message.renderer === "mermaid" ? toMermaid(message.scene) : "" };
    answer(latest);
  };
  const again = (change: Partial<SceneMessage>): void => {
    const { scene } = latest;
    const next = { ...latest, scene: { ...scene, revision: scene.revision + 1 }, sent_at: 0, focus: "", ...change };
    show(next);
  };
  const engine = (name: Engine): void => {
    const packed = { core: "", graphviz: data.engine_gzip_base64, mermaid: data.mermaid_engine_gzip_base64 }[name];
    if (packed) answer({ type: "engine", engine: name }, [bytes(packed)]);
    else fail("need_engine", `This page has no ${name} engine`);
  };
  const exported = (format: ExportFormat): void => {
    if (format === "svg") return fail("want_export", "This page has no svg text");
    answer({ type: "export", format, text: format === "dot" ? toDot(latest.scene) : toMermaid(latest.scene) });
  };

  const start = (): Promise<Worker> | undefined => {
    const { graph_gzip_base64: graph, worker_gzip_base64: script, message } = data;
    if (!graph || !script) return undefined;
    const { scene, lens, renderer, openings } = message;
    const beginning: Beginning = { title: scene.title, lens, renderer, openings };
    worker ??= startWorker(script, { data: graph, beginning }, (told) => {
      // The revisions are the page's: a change of the renderer makes one without the worker.
      if (told.type === "scene") show({ ...told, scene: { ...told.scene, revision: latest.scene.revision + 1 } });
      else tell(told);
    });
    return worker;
  };
  /** Hands a request to the worker; `otherwise` answers where there is none. */
  const ask = (request: FromViewer, otherwise: () => void): void => {
    const working = start();
    if (!working) return otherwise();
    working.then(
      (found) => found.postMessage(request),
      (error: unknown) => fail(request.type, reason(error)),
    );
  };

  const send = (message: FromViewer): void => {
    switch (message.type) {
      case "ready":
        return again({});
      case "need_engine":
        return engine(message.engine);
      case "want_export":
        return exported(message.format);
      case "find":
        return ask(message, () => answer(searchBoxes(latest, message.query, message.limit)));
      case "inspect":
        return ask(message, () => fail(message.type, `This page tells nothing about ${message.id}`));
      case "reveal":
        return ask(message, () => fail(message.type, `${message.name} is not in this picture`));
      case "expand":
      case "collapse":
      case "restore":
        return ask(message, () => fail(message.type, "Opening and closing boxes needs a kernel"));
      case "renderer":
        ask(message, () => {});
        return again({ renderer: message.renderer });
      case "crowded":
        return ask(message, () => {});
      case "lens":
        latest = { ...latest, lens: message.lens };
        return ask(message, () => {});
      case "drawn":
        // The first picture is there: what opens it can be made ready.
        start()?.catch((error: unknown) => fail("ready", reason(error)));
        return;
    }
  };
  return {
    send,
    onMessage: (callback) => {
      listeners.add(callback);
      return () => listeners.delete(callback);
    },
  };
}
