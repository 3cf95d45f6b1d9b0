// The worker of a page without a kernel, which builds scenes while the page stays responsive.
import { reason } from "../dom";
import type { FromViewer, PictureMessage } from "../scene/generated";
import { unpackData } from "./data";
import { type Beginning, GraphPage } from "./graph_page";

/** The first message: the data in base64, and what the picture begins with. */
export interface StartWorker {
  readonly data: string;
  readonly beginning: Beginning;
}

interface WorkerScope {
  onmessage: ((event: { data: StartWorker | FromViewer }) => void) | null;
  postMessage(message: PictureMessage): void;
}

const scope = globalThis as unknown as WorkerScope;
let page: Promise<GraphPage> | null = null;

async function start({ data, beginning }: StartWorker): Promise<GraphPage> {
  return new GraphPage(await unpackData(data), beginning);
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
  if ("beginning" in data) page = start(data);
  else void answer(data);
};
