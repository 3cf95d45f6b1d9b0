// The worker of a page without a kernel, which builds scenes while the page stays responsive.
import { reason } from "../dom";
import type { FromViewer, PictureMessage } from "../scene/generated";
import { unpackData } from "./data";
import { type Beginning, GraphPage } from "./graph_page";

/** The first message: the data in base64, the most bytes of it when unpacked, and what the picture begins with. */
export interface StartWorker {
  readonly data: string;
  readonly most: number;
  readonly beginning: Beginning;
}

interface WorkerScope {
  onmessage: ((event: { data: StartWorker | FromViewer }) => void) | null;
  postMessage(message: PictureMessage): void;
}

const scope = globalThis as unknown as WorkerScope;
let page: Promise<GraphPage> | null = null;

async function start({ data, most, beginning }: StartWorker): Promise<GraphPage> {
  return new GraphPage(await unpackData(data, most), beginning);
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
  page = start(data);
  page.catch(() => undefined); // each answer says the reason
};
