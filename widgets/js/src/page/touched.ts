// The nodes that are different in the graph of a difference.
import type { DifferenceRecord } from "../scene/generated";

/** The kinds of difference of nodes that are different themselves. */
export const TOUCHED: ReadonlySet<string | undefined> = new Set(["added", "removed", "changed", "renamed"]);

/** The kind of difference of a node, undefined for an unchanged one. */
export const kindOf = ({ nodes }: DifferenceRecord, node: number): string | undefined => nodes[node]?.[0];

/** True if a node is different itself, not only moved with its scope or because of a change before it. */
export const isTouched = (marks: DifferenceRecord, node: number): boolean => TOUCHED.has(kindOf(marks, node));
