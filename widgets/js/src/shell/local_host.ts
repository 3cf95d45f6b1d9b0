// A host without a kernel, which answers from the data of a standalone page or a saved notebook.
import { reason } from "../dom";
import { scriptUrl } from "../engines/load";
import type { Beginning } from "../page/graph_page";
import type { StartWorker } from "../page/worker";
import type {
  Engine,
  FromKernel,
  FromViewer,
  HighlightMessage,
  RecordedSteps,
  SceneMessage,
  SearchMessage,
  StepTimeline,
} from "../scene/generated";
import { highlighted, matches, type Searched } from "../scene/query";
import type { Host, StatesOfDifference } from "./host";
import type { Twins } from "./side";

/** A picture that needs no kernel. */
export interface PictureData {
  /** The first picture. */
  readonly message: SceneMessage;
  /** The graph behind the picture, gzipped, in base64; without it the picture stays as it is. */
  readonly graph_gzip_base64?: string;
  /** The language of words; English by default. */
  readonly language?: string;
  readonly timelines?: readonly StepTimeline[];
  readonly steps?: RecordedSteps;
  /** Both states of the difference that the picture shows. */
  readonly states?: BothStates | null;
}

/** Both states of a difference, as `widgets.render.both_states` writes them. */
export interface BothStates {
  readonly titles: readonly [string, string];
  readonly words: string;
  readonly pictures: readonly [PictureData, PictureData];
  readonly twins: readonly [Twins, Twins];
}

/** The gzipped script of an engine, or of the worker that opens graphs; undefined if the page lacks it. */
export type FindScript = (name: Engine | "page") => Promise<DataView> | undefined;

/** Starts the worker that answers for the graph. */
async function startWorker(
  script: Promise<DataView>,
  start: StartWorker,
  listen: (message: FromKernel) => void,
): Promise<Worker> {
  const url = await scriptUrl(await script);
  const worker = new Worker(url);
  URL.revokeObjectURL(url);
  worker.onmessage = ({ data }) => listen(data as FromKernel);
  worker.onerror = ({ message }) => listen({ type: "failure", request: "expand", text: message });
  worker.postMessage(start);
  return worker;
}

/** The boxes of a picture that match a query. */
function matchingBoxes({ scene }: SceneMessage, query: string): readonly Searched[] {
  const none = { device: "", dtypes: [], shapes: [], attrs: [] };
  const boxes = scene.nodes
    .filter(({ kind }) => kind !== "stub")
    .map(({ id, op, kind, cell }): Searched => ({ ...none, box: id, name: id, op: op || kind, cell }));
  return matches(boxes, query);
}

/** The answer to a search for boxes of a picture. */
export function searchBoxes(message: SceneMessage, query: string, limit: number): SearchMessage {
  const found = matchingBoxes(message, query);
  const hits = found.slice(0, limit).map(({ box, name, op }) => ({ node: box, name, op }));
  return { type: "search", query, hits, total: found.length };
}

function filterBoxes(message: SceneMessage, query: string): HighlightMessage {
  return highlighted(
    query,
    matchingBoxes(message, query).map(({ box }) => box),
  );
}

/** The most bytes of the graph of a standalone page when unpacked. */
export const MOST_PAGE_BYTES = 500_000_000;

/** The option for the states of a difference, none for other pictures. The arguments are those of `localHost`. */
export function statesOf(
  { states }: PictureData,
  findScript: FindScript,
  most: number,
): { readonly states?: StatesOfDifference } {
  if (!states) return {};
  const [before, after] = states.pictures;
  return { states: { ...states, hosts: [localHost(before, findScript, most), localHost(after, findScript, most)] } };
}

/** The host of a picture without a kernel, whose graph has at most `most` bytes when unpacked. */
export function localHost(data: PictureData, findScript: FindScript, most: number): Host {
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
    latest = message;
    answer(latest);
  };
  const again = (change: Partial<SceneMessage>): void => {
    const { scene } = latest;
    const next = { ...latest, scene: { ...scene, revision: scene.revision + 1 }, sent_at: 0, focus: "", ...change };
    show(next);
  };
  const engine = (name: Engine): void => {
    const packed = findScript(name);
    if (!packed) return fail("need_engine", `This page has no ${name} engine`);
    packed.then(
      (script) => tell({ type: "engine", engine: name }, [script]),
      (error: unknown) => fail("need_engine", reason(error)),
    );
  };

  const start = (): Promise<Worker> | undefined => {
    const { graph_gzip_base64: graph, message } = data;
    const script = graph && !worker ? findScript("page") : undefined;
    if (!graph || !script) return worker;
    const { scene, lens, renderer, openings } = message;
    const beginning: Beginning = {
      title: scene.title,
      lens,
      renderer,
      openings,
      timelines: data.timelines,
      steps: data.steps,
    };
    worker = startWorker(script, { data: graph, most, beginning }, (told) => {
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
      case "find":
        return ask(message, () => answer(searchBoxes(latest, message.query, message.limit)));
      case "filter":
        return ask(message, () => answer(filterBoxes(latest, message.query)));
      case "inspect":
        return ask(message, () => fail(message.type, `This page tells nothing about ${message.id}`));
      case "values":
        return fail(message.type, "The values of a node need a kernel");
      case "want_timelines": {
        const boxes = Object.fromEntries(latest.scene.nodes.map(({ id }) => [id, id]));
        const { timelines = [] } = data;
        return ask(message, () => answer({ type: "timelines", key: "page", timelines, boxes }));
      }
      case "want_health":
        return ask(message, () => fail(message.type, "This picture carries no values"));
      case "want_steps": {
        const boxes = Object.fromEntries(latest.scene.nodes.map(({ id }) => [id, id]));
        return ask(message, () =>
          answer({ type: "steps", key: "page", run: "page", live: null, steps: data.steps ?? null, boxes }),
        );
      }
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
