// The data of a page that needs no kernel: packed lines of JSON.
import { unpack } from "../engines/load";
import type { PageHead, SourceRow, SpaceColumns } from "../scene/generated";

/** The columns of a space in the order of their lines, as `SpaceColumns` in Python. */
const COLUMNS = [
  "scopes",
  "names",
  "ops",
  "kinds",
  "details",
  "cells",
  "devices",
  "requests",
  "functions",
  "definitions",
  "slot_names",
  "registered",
  "sources",
  "flags",
  "arities",
  "producers",
  "slots",
  "waits",
  "awaited",
  "signatures",
  "dims",
  "tree",
] as const satisfies readonly (keyof SpaceColumns)[];

export interface PageData {
  readonly head: PageHead;
  readonly texts: readonly string[];
  readonly sources: readonly SourceRow[];
  readonly spaces: readonly SpaceColumns[];
}

/** Reads data as `pack` wrote it in Python: gzipped lines of JSON, in base64, of at most `most` bytes when unpacked. */
export async function unpackData(base64: string, most: number): Promise<PageData> {
  const packed = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const lines = (await (await unpack(new DataView(packed.buffer), most)).text()).split("\n");
  const [head, texts, sources, ...columns] = lines.map((line) => JSON.parse(line)) as [
    PageHead,
    readonly string[],
    readonly SourceRow[],
    ...unknown[],
  ];
  const spaces = head.spaces.map((_, place) => {
    const from = place * COLUMNS.length;
    return Object.fromEntries(COLUMNS.map((name, i) => [name, columns[from + i]])) as unknown as SpaceColumns;
  });
  return { head, texts, sources, spaces };
}
