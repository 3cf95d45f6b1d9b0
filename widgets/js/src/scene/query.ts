// The query language of the search, as in `widgets/scene/query.py`: words, and terms (`op:MatMul`).

import type { HighlightMessage } from "./generated";

/** The facts of one node that a query can ask for, and the box that it is in. */
export interface Searched {
  readonly box: string;
  readonly name: string;
  readonly op: string;
  readonly cell: string;
  readonly device: string;
  readonly dtypes: readonly string[];
  readonly shapes: readonly string[];
  readonly attrs: readonly (readonly [string, string])[];
}

/** The rank of a node for one part of a query, 0 the best; null if it does not match. */
type Test = (node: Searched) => number | null;

const PART = /(?:"[^"]*"?|[^\s"])+/g;
const FIELD = /^(op|attr|shape|dtype|cell|device):(.+)$/s;
const ATTR = /^([a-z_]\w*)=(.*)$/s;

const unless = (matches: boolean, rank = 0): number | null => (matches ? rank : null);

function attrTest(name: string, value: string): Test {
  const fits = ([key, text]: readonly [string, string]): boolean =>
    key.toLowerCase() === name && text.toLowerCase().includes(value);
  return ({ attrs }) => unless(attrs.some(fits));
}

/** True if a shape has the dimension, or contains the part of a shape, of a query. */
function fits(shape: string, wanted: string): boolean {
  return /[[\],]/.test(wanted) ? shape.includes(wanted) : shape.split(/[[\],]/).includes(wanted);
}

function fieldTest(field: string, wanted: string): Test {
  switch (field) {
    case "op":
      return ({ op }) => unless(op.toLowerCase().includes(wanted));
    case "dtype":
      return ({ dtypes }) => unless(dtypes.some((dtype) => dtype.startsWith(wanted)));
    case "device":
      return ({ device }) => unless(device.toLowerCase().includes(wanted));
    case "cell":
      return ({ cell }) =>
        unless(/^\d+$/.test(wanted) ? cell.includes(`[${wanted}]`) : cell.toLowerCase().includes(wanted));
    case "shape":
      return ({ shapes }) => unless(shapes.some((shape) => fits(shape.toLowerCase(), wanted)));
    default: {
      const [name = "", ...value] = wanted.split("=");
      return attrTest(name, value.join("="));
    }
  }
}

function wordTest(word: string): Test {
  return ({ name: whole, op, cell }) => {
    const name = whole.toLowerCase();
    if (name.includes(word)) {
      const last = name.slice(name.lastIndexOf("/") + 1);
      return word === name || word === last ? 0 : last.startsWith(word) ? 1 : 2;
    }
    if (op.toLowerCase().includes(word)) return 3;
    return unless(cell.toLowerCase().includes(word), 4);
  };
}

function testOf(part: string): Test {
  const [, field, wanted] = FIELD.exec(part) ?? [];
  if (field && wanted) return fieldTest(field, wanted);
  const [, name, value = ""] = ATTR.exec(part) ?? [];
  return name ? attrTest(name, value) : wordTest(part);
}

/** The nodes that match a query, the best first. A node matches if each word and term does, whatever the case. */
export function matches<Node extends Searched>(nodes: readonly Node[], query: string): readonly Node[] {
  const parts = [...query.toLowerCase().matchAll(PART)].map(([part]) => part.replaceAll('"', "")).filter(Boolean);
  if (parts.length === 0) return [];
  const tests = parts.map(testOf);
  const found: { readonly rank: number; readonly node: Node }[] = [];
  for (const node of nodes) {
    let rank: number | null = 0;
    for (const test of tests) {
      const more = test(node);
      if (more === null) {
        rank = null;
        break;
      }
      rank += more;
    }
    if (rank !== null) found.push({ rank, node });
  }
  found.sort((a, b) => a.rank - b.rank || a.node.name.length - b.node.name.length);
  return found.map(({ node }) => node);
}

/** Names in words the boxes with nodes that match a query; `places` are the boxes of the nodes, "" for hidden ones. */
export function highlighted(query: string, places: readonly string[]): HighlightMessage {
  return lit(places, `for ${query}`);
}

/** Names in words the boxes with nodes; `what` is what the nodes have in common, after their number. */
export function lit(places: readonly string[], what: string): HighlightMessage {
  const boxes = [...new Set(places)].filter(Boolean);
  const counted = (count: number, one: string, more: string): string =>
    count === 1 ? `1 ${one}` : `${count.toLocaleString("en")} ${more}`;
  const text = `${counted(places.length, "node", "nodes")} ${what}, in ${counted(boxes.length, "box", "boxes")}`;
  return { type: "highlight", boxes, text };
}
