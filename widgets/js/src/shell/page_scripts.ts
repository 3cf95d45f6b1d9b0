// The scripts inside a standalone page.
import type { FindScript, PictureData } from "./local_host";

/** The data of a page. Scripts are gzipped, in base64. */
export interface StandaloneData extends PictureData {
  readonly engine_gzip_base64: string;
  readonly mermaid_engine_gzip_base64?: string;
  /** The script of the worker that opens the graph. */
  readonly worker_gzip_base64?: string;
}

/** Finds the scripts that a page carries. */
export function scriptsOf(data: StandaloneData): FindScript {
  return (name) => {
    const scripts = {
      core: undefined,
      graphviz: data.engine_gzip_base64,
      mermaid: data.mermaid_engine_gzip_base64,
      lower: undefined, // part of the page's own script
      page: data.worker_gzip_base64,
    };
    const base64 = scripts[name];
    if (!base64) return undefined;
    const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    return Promise.resolve(new DataView(bytes.buffer));
  };
}
