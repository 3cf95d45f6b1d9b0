// A host without a kernel, which answers from the data of a standalone page.
import type {
  Engine,
  ExportFormat,
  FromKernel,
  FromViewer,
  Inspection,
  Renderer,
  SceneMessage,
  SearchHit,
  SearchMessage,
} from "../scene/generated";
import type { Host } from "./host";

/** The data of a standalone page. Engines are gzipped scripts in base64. */
export interface StandaloneData {
  readonly message: SceneMessage;
  readonly inspections: Readonly<Record<string, Inspection>>;
  /** The names of nodes without a box of their own, by the box that contains them and by op. */
  readonly hidden?: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;
  readonly dot: string;
  readonly mermaid: string;
  readonly engine_gzip_base64: string;
  readonly mermaid_engine_gzip_base64?: string;
}

const MOST_HITS = 50;

/** Searches names, ops and cells of boxes for the query, then names and ops of the nodes in closed boxes. */
export function searchScene({ message, hidden = {} }: StandaloneData, query: string): SearchMessage {
  const wanted = query.toLowerCase();
  const hits: SearchHit[] = [];
  for (const node of message.scene.nodes) {
    if (node.kind === "stub") continue;
    const found = [node.id, node.label, node.op, node.cell].some((text) => text.toLowerCase().includes(wanted));
    if (found) hits.push({ node: node.id, name: node.id, op: node.op || node.kind });
  }
  for (const [box, ops] of Object.entries(hidden)) {
    for (const [op, names] of Object.entries(ops)) {
      const inOp = op.toLowerCase().includes(wanted);
      const found = names.filter((name) => inOp || name.toLowerCase().includes(wanted));
      hits.push(...found.map((name) => ({ node: box, name, op: `${op} inside ${box}` })));
    }
  }
  return { type: "search", query, hits: hits.slice(0, MOST_HITS), total: hits.length };
}

function bytes(base64: string): DataView {
  const text = atob(base64);
  const data = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) data[i] = text.charCodeAt(i);
  return new DataView(data.buffer);
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
    if (text) answer({ type: "export", format, name: format === "dot" ? "graph.dot" : "graph.mmd", text });
    else fail("want_export", `This page has no ${format} text`);
  };
  const inspect = (id: string): void => {
    const inspection = data.inspections[id];
    if (inspection) answer({ type: "inspection", inspection });
    else fail("inspect", `This page tells nothing about ${id}`);
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
        return answer(searchScene(data, message.query));
      case "want_export":
        return exported(message.format);
      case "renderer":
        renderer = message.renderer;
        return scene();
      case "reveal":
        return fail("reveal", `${message.name} is not in this picture`);
      case "expand":
      case "collapse":
        return fail(message.type, "Opening and closing boxes needs a kernel");
      case "lens":
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
