// The data of a page that needs no kernel: packed lines of JSON.
import { reason } from "../dom";
import { unpack } from "../engines/load";
import { PAGE_FORMAT, type PageHead, type SourceRow, type SpaceColumns } from "../scene/generated";
import { checkPage, DataError, FormatError } from "./checked_data";
import { COLUMNS } from "./columns";

export interface PageData {
  readonly head: PageHead;
  readonly texts: readonly string[];
  readonly sources: readonly SourceRow[];
  readonly spaces: readonly SpaceColumns[];
  /** The reasons if there are no recorded times and values, where they may yet come. */
  readonly notes?: { readonly times: string; readonly values: string };
}

/**
 * Reads data as `pack` wrote it in Python: gzipped lines of JSON, in base64, of at most `most` bytes when unpacked.
 *
 * Rejects with a FormatError if another version wrote it, with a DataError if it is anything else.
 */
export async function unpackData(base64: string, most: number): Promise<PageData> {
  const lines = await readLines(base64, most).catch((error: unknown) => {
    throw new DataError(reason(error));
  });
  const [format, ...rest] = lines;
  if (format !== PAGE_FORMAT) throw new FormatError();
  const [head, texts, sources, ...columns] = rest as [PageHead, readonly string[], readonly SourceRow[], ...unknown[]];
  const spaces: SpaceColumns[] = [];
  for (let from = 0; from < columns.length; from += COLUMNS.length)
    spaces.push(Object.fromEntries(COLUMNS.map((name, i) => [name, columns[from + i]])) as unknown as SpaceColumns);
  const data = { head, texts, sources, spaces };
  checkPage(data);
  return data;
}

async function readLines(base64: string, most: number): Promise<unknown[]> {
  const packed = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const text = await (await unpack(new DataView(packed.buffer), most)).text();
  return text.split("\n").map((line) => JSON.parse(line));
}
