// A host without a kernel, which answers from the data of a standalone page.
import { reason } from "../dom";
import { unpack } from "../engines/load";
import type {
  Engine,
  ExportFormat,
  FromKernel,
  FromViewer,
  Inspection,
  Renderer,
  SceneMessage,
  SearchIndex,
  SearchMessage,
} from "../scene/generated";
import { matches, type Searched } from "../scene/query";
import type { Host } from "./host";

/** The data of a standalone page. Engines are gzipped scripts in base64. */
export interface StandaloneData {
  readonly message: SceneMessage;
  readonly inspections: Readonly<Record<string, Inspection>>;
  /** The facts of all nodes as gzipped JSON in base64: a `SearchIndex`; "" where only boxes are known. */
  readonly index_gzip_base64?: string;
  readonly dot: string;
  readonly mermaid: string;
  readonly engine_gzip_base64: string;
  readonly mermaid_engine_gzip_base64?: string;
}

/** Everything in the page that can be found: the boxes of the scene, and the nodes in closed boxes. */
export function searchedNodes({ message, inspections }: StandaloneData, index: SearchIndex | null): Searched[] {
  const rows: Searched[] = [];
  const text = (place: number | undefined): string => index?.texts[place ?? -1] ?? "";
  for (const [i, name] of (index?.names ?? []).entries()) {
    const outputs = text(index?.outputs[i]).split("\n");
    rows.push({
      box: text(index?.boxes[i]),
      name,
      op: text(index?.ops[i]),
      cell: text(index?.cells[i]),
      dtypes: outputs.map((line) => line.slice(0, line.indexOf(" "))),
      shapes: outputs.map((line) => line.slice(line.indexOf(" ") + 1)),
      attrs: text(index?.attrs[i])
        .split("\n")
        .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)] as const),
    });
  }
  const known = new Set(index?.names);
  for (const { id, op, kind, cell } of message.scene.nodes) {
    if (kind === "stub" || known.has(id)) continue;
    const { attrs = [], outputs = [] } = inspections[id] ?? {};
    const [dtypes, shapes] = [outputs.map(({ dtype }) => dtype), outputs.map(({ shape }) => shape)];
    rows.push({ box: id, name: id, op: op || kind, cell, dtypes, shapes, attrs });
  }
  return rows;
}

/** The best hits among the nodes of the page; of one in a closed box it says where. */
export function search(nodes: readonly Searched[], query: string, limit: number): SearchMessage {
  const found = matches(nodes, query);
  const hits = found.slice(0, limit).map(({ box, name, op }) => {
    const inside = box !== name && box !== `${name}/`;
    return { node: box, name, op: inside ? `${op} inside ${box}` : op };
  });
  return { type: "search", query, hits, total: found.length };
}

function bytes(base64: string): DataView {
  const text = atob(base64);
  const data = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) data[i] = text.charCodeAt(i);
  return new DataView(data.buffer);
}

async function unpackIndex(packed: string | undefined): Promise<SearchIndex | null> {
  return packed ? ((await unpack(bytes(packed)).json()) as SearchIndex) : null;
}

/** The host of a standalone page. */
export function localHost(data: StandaloneData): Host {
  const listeners = new Set<(message: FromKernel, buffers: readonly DataView[]) => void>();
  let renderer: Renderer = data.message.renderer;
  let revision = data.message.scene.revision;

  // Answers are asynchronous, like those of a kernel.
  const answer = (message: FromKernel, buffers: readonly DataView[] = []): void => {
    queueMicrotask(() => {
      for (const listener of [...listeners]) listener(message, buffers);
    });
  };
  const fail = (request: string, text: string): void => answer({ type: "failure", request, text });
  const scene = (): void => {
    const { message, mermaid } = data;
    revision += 1;
    answer({
      ...message,
      scene: { ...message.scene, revision },
      mermaid: message.mermaid || mermaid,
      renderer,
      sent_at: 0,
    });
  };
  const engine = (name: Engine): void => {
    const packed = { core: "", graphviz: data.engine_gzip_base64, mermaid: data.mermaid_engine_gzip_base64 }[name];
    if (packed) answer({ type: "engine", engine: name }, [bytes(packed)]);
    else fail("need_engine", `This page has no ${name} engine`);
  };
  const exported = (format: ExportFormat): void => {
    const text = format === "dot" ? data.dot : data.mermaid;
    if (text) answer({ type: "export", format, text });
    else fail("want_export", `This page has no ${format} text`);
  };
  const inspect = (id: string): void => {
    const inspection = data.inspections[id];
    if (inspection) answer({ type: "inspection", inspection });
    else fail("inspect", `This page tells nothing about ${id}`);
  };

  let searched: Promise<Searched[]> | undefined;
  const find = (query: string, limit: number): void => {
    searched ??= unpackIndex(data.index_gzip_base64).then((index) => searchedNodes(data, index));
    searched.then(
      (nodes) => answer(search(nodes, query, limit)),
      (error: unknown) => fail("find", reason(error)),
    );
  };

  const send = (message: FromViewer): void => {
    switch (message.type) {
      case "ready":
        return scene();
      case "need_engine":
        return engine(message.engine);
      case "inspect":
        return inspect(message.id);
      case "find":
        return find(message.query, message.limit);
      case "want_export":
        return exported(message.format);
      case "renderer":
        renderer = message.renderer;
        return scene();
      case "reveal":
        return fail("reveal", `${message.name} is not in this picture`);
      case "expand":
      case "collapse":
      case "restore":
        return fail(message.type, "Opening and closing boxes needs a kernel");
      case "lens":
      case "look":
      case "drawn":
      case "closed":
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
