// The worker of a page, which builds scenes while the page stays responsive.
import { reason } from "../dom";
import { unpack } from "../engines/load";
import type { FromViewer, GraphChange, PictureMessage } from "../scene/generated";
import { unpackData } from "./data";
import { type Beginning, GraphPage } from "./graph_page";
import { KeptData } from "./kept";

/** The most bytes of a change when unpacked: what a kernel sends to its own page. */
const MOST_CHANGE_BYTES = 2 ** 31;

/** The first message: the data in base64, the most bytes of it when unpacked, and what the picture begins with. */
export interface StartWorker {
  readonly data: string;
  readonly most: number;
  readonly beginning: Beginning;
}

/** A change of a live graph, gzipped, and what the picture begins with if it is the first. */
export interface ApplyChange {
  readonly change: DataView;
  readonly beginning: Beginning;
}

/** A change did not fit: the page needs the whole graph. */
export interface Gap {
  readonly type: "gap";
}

interface WorkerScope {
  onmessage: ((event: { data: StartWorker | ApplyChange | FromViewer }) => void) | null;
  postMessage(message: PictureMessage | Gap): void;
}

const scope = globalThis as unknown as WorkerScope;
const kept = new KeptData();
let page: Promise<GraphPage> | null = null;

async function start({ data, most, beginning }: StartWorker): Promise<GraphPage> {
  return new GraphPage(await unpackData(data, most), beginning);
}

/** The picture with a change, in which the same is open. */
async function changed(before: GraphPage | null, { change, beginning }: ApplyChange): Promise<GraphPage> {
  const text = await (await unpack(change, MOST_CHANGE_BYTES)).text();
  const data = kept.apply(JSON.parse(text) as GraphChange);
  if (data) return new GraphPage(data, before ? { ...beginning, ...before.choices } : beginning);
  scope.postMessage({ type: "gap" });
  if (!before) throw new Error("the graph is not there yet");
  return before;
}

async function answer(request: FromViewer): Promise<void> {
  try {
    const message = (await page)?.answer(request);
    if (message) scope.postMessage(message);
  } catch (error) {
    scope.postMessage({ type: "failure", request: request.type, text: reason(error) });
  }
}

scope.onmessage = ({ data }) => {
  if (!("beginning" in data)) return void answer(data);
  const before = Promise.resolve(page).catch(() => null);
  page = "change" in data ? before.then((found) => changed(found, data)) : start(data);
  page.catch(() => undefined); // each answer says the reason
};
