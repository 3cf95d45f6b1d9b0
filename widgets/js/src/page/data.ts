// The data of a page that needs no kernel: packed lines of JSON.
import { reason } from "../dom";
import { unpack } from "../engines/load";
import { PAGE_FORMAT, type PageHead, type SourceRow, type SpaceColumns } from "../scene/generated";
import { checkPage, DataError, FormatError } from "./checked_data";
import { COLUMNS } from "./columns";

/** The reasons if there are no recorded times and values, where they may yet come. */
export interface Notes {
  readonly times: string;
  readonly values: string;
}

export interface PageData {
  readonly head: PageHead;
  readonly texts: readonly string[];
  readonly sources: readonly SourceRow[];
  readonly spaces: readonly SpaceColumns[];
  readonly notes?: Notes;
}

/**
 * Reads data as `pack` wrote it in Python: gzipped lines of JSON, in base64, of at most `most` bytes when unpacked.
 *
 * Rejects with a FormatError if another version wrote it, with a DataError if it is anything else.
 */
export async function unpackData(base64: string, most: number): Promise<PageData> {
  let data: PageData;
  try {
    const packed = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    data = readLines(await (await unpack(new DataView(packed.buffer), most)).text());
  } catch (error: unknown) {
    if (error instanceof FormatError) throw error;
    throw new DataError(reason(error));
  }
  checkPage(data);
  return data;
}

/** Reads data that is not packed, without a check. Throws a FormatError if another version wrote it. */
export function readLines(text: string): PageData {
  const [format, ...rest] = text.split("\n").map((line) => JSON.parse(line) as unknown);
  if (format !== PAGE_FORMAT) throw new FormatError();
  const [head, texts, sources, ...columns] = rest as [PageHead, readonly string[], readonly SourceRow[], ...unknown[]];
  const spaces: SpaceColumns[] = [];
  for (let from = 0; from < columns.length; from += COLUMNS.length)
    spaces.push(Object.fromEntries(COLUMNS.map((name, i) => [name, columns[from + i]])) as unknown as SpaceColumns);
  return { head, texts, sources, spaces };
}
