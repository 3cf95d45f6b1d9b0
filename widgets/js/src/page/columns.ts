// The columns of the data of nodes.
import type { SpaceColumns } from "../scene/generated";

/** The columns of a number for each node that points into the table of texts. */
export const COLUMNS_OF_TEXTS = [
  "ops",
  "kinds",
  "details",
  "cells",
  "devices",
  "requests",
  "functions",
  "definitions",
] as const satisfies readonly (keyof SpaceColumns)[];

/** The columns of another number for each node. */
export const COLUMNS_OF_NUMBERS = [
  "slot_names",
  "registered",
  "sources",
  "flags",
] as const satisfies readonly (keyof SpaceColumns)[];

/** The columns of a space in the order of their lines, as `SpaceColumns` in Python. */
export const COLUMNS = [
  "scopes",
  "names",
  ...COLUMNS_OF_TEXTS,
  ...COLUMNS_OF_NUMBERS,
  "arities",
  "producers",
  "slots",
  "waits",
  "awaited",
  "signatures",
  "dims",
] as const satisfies readonly (keyof SpaceColumns)[];
