// The worker of a page, which builds scenes while the page stays responsive.
import { reason } from "../dom";
import { unpack } from "../engines/load";
import type { ChangeMessage, FromViewer, GraphChange, PictureMessage } from "../scene/generated";
import { unpackData } from "./data";
import { type Beginning, GraphPage } from "./graph_page";
import { type Ask, LivePage, type Told } from "./live_page";

/** The most bytes of a change when unpacked: what a kernel sends to its own page. */
const MOST_CHANGE_BYTES = 2 ** 31;

/** The first message without a kernel: the data in base64, the most bytes of it when unpacked, and what the picture begins with. */
export interface StartWorker {
  readonly data: string;
  readonly most: number;
  readonly beginning: Beginning;
}

/** A change of a graph that lives in a kernel, gzipped. */
export interface ApplyChange {
  readonly change: DataView;
  readonly message: ChangeMessage;
}

/** A message of the kernel that names nodes. */
export interface PlaceNodes {
  readonly told: Told;
}

export type ToWorker = StartWorker | ApplyChange | PlaceNodes | FromViewer;
export type FromWorker = PictureMessage | Ask;

interface WorkerScope {
  onmessage: ((event: { data: ToWorker }) => void) | null;
  postMessage(message: FromWorker): void;
}

const scope = globalThis as unknown as WorkerScope;
const live = new LivePage();
let page: GraphPage | null = null;

async function answers(message: ToWorker): Promise<readonly (FromWorker | null)[]> {
  if ("data" in message) {
    page = new GraphPage(await unpackData(message.data, message.most), message.beginning);
    return [];
  }
  if ("change" in message) {
    const text = await (await unpack(message.change, MOST_CHANGE_BYTES)).text();
    return [live.change(JSON.parse(text) as GraphChange, message.message)];
  }
  if ("told" in message) return [live.place(message.told)];
  return page ? [page.answer(message)] : live.answer(message);
}

let failure: unknown = null;

async function work(message: ToWorker): Promise<void> {
  const isRequest = "type" in message;
  try {
    if (isRequest && failure !== null) throw failure;
    for (const answer of await answers(message)) if (answer) scope.postMessage(answer);
    if (!isRequest) failure = null;
  } catch (error) {
    if ("data" in message)
      failure = error; // each request says the reason
    else scope.postMessage({ type: "failure", request: isRequest ? message.type : "ready", text: reason(error) });
  }
}

// One after the other, in the order in which they came.
let last = Promise.resolve();
scope.onmessage = ({ data }) => {
  last = last.then(() => work(data));
};
