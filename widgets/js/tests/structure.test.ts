// The structure of graphs is the one that Python finds (`tests/support/tools/structure_cases.py`).
import { describe, expect, test } from "vitest";
import { at, Counter } from "../src/page/order";
import { arrange, type Bunch, cycles, type Dims, type GraphNode, makeItems, type Op } from "../src/page/structure";
import { differences } from "../src/page/structure/alike";
import { elements, evaluationOrder, Order, spanOf } from "../src/page/structure/decompose";
import { tellingLayers } from "../src/page/structure/evidence";
import { joined, loops } from "../src/page/structure/items";
import { commonName, isTelling, kindName, opsName, shapeWords, sharedWords } from "../src/page/structure/naming";
import { type Element, findRuns, type Run } from "../src/page/structure/repeats";
import { hosts, servingNodes } from "../src/page/structure/serving";
import type { Layer, NodeRole } from "../src/scene/generated";

type OpRow = [
  name: string,
  layer: Layer,
  role: NodeRole,
  memory: string,
  elementwise: boolean,
  needsOnlyShapes: boolean,
];
type NodeRow = [
  id: number,
  name: string,
  op: number,
  inputs: [number, number][],
  controls: number[],
  outputs: [Dims, boolean][],
  isGradient: boolean,
  strides: number[],
  isPadded: boolean,
  callees: [string, string][],
  hasHub: boolean,
];
type Pairs = [string, number][];
type RunRow = [instances: [number, number][], spare: [number, number]];
type KernelRow = [string, boolean | null, number[], number | null, boolean];
type ElementRow = [symbol: number, ops: Pairs, shape: Dims, kernels: KernelRow[]];

interface BunchRow extends Omit<Bunch, "output" | "instances"> {
  readonly output: [number, number] | null;
  readonly instances: readonly BunchRow[];
}

interface ArrangementRow {
  readonly members: number[][];
  readonly backward: number[];
  readonly inputs: number[][];
  readonly awaited: number[][];
  readonly outputs: number[][];
  readonly cycles: number[][];
  readonly loops: number[][];
  readonly contents: number[][];
  readonly serving: number[];
  readonly order: number[];
  readonly hosts: number[];
  readonly elements: [number, number][][];
  readonly layers: Pairs[];
  readonly units: [number[], number[], string][];
  readonly bunches: BunchRow[];
}

interface Case {
  readonly name: string;
  readonly own: number;
  readonly ops: OpRow[];
  readonly nodes: NodeRow[];
  readonly arrangements: ArrangementRow[];
}

interface NameRow {
  readonly names: string[];
  readonly within: string[];
  readonly common: string;
  readonly shared: string[];
  readonly telling: boolean[];
  readonly instances: Pairs[];
  readonly differences: string;
  readonly kind: string;
  readonly ops: string;
  readonly isNormalised: boolean;
  readonly dims: Dims;
  readonly shape: string;
}

interface Cases {
  readonly ops: OpRow[];
  readonly sequences: [ElementRow[], RunRow[]][];
  readonly names: NameRow[];
  readonly cases: Case[];
}

interface Process {
  readonly env: Record<string, string | undefined>;
  getBuiltinModule(name: string): { readFileSync(path: string): Uint8Array<ArrayBuffer> };
}

const { process } = globalThis as unknown as { process: Process };
const FILE = process.env.STRUCTURE_CASES ?? "../../tests/data/structure_cases.json.gz";

async function read(): Promise<Cases> {
  const packed = new Response(process.getBuiltinModule("node:fs").readFileSync(FILE)).body;
  const unpacked = (packed as ReadableStream<Uint8Array<ArrayBuffer>>).pipeThrough(new DecompressionStream("gzip"));
  return new Response(unpacked).json();
}

function opOf([name, layer, role, memory, elementwise, needsOnlyShapes]: OpRow): Op {
  return { name, label: name, layer, role, memory, elementwise, needsOnlyShapes };
}

function nodesOf({ own, ops: opRows, nodes: rows }: Case): GraphNode[] {
  const ops = opRows.map(opOf);
  const nodes = rows.map(([id, name, op, , , outputs, isGradient, strides, isPadded, callees, hasHub]) => ({
    id,
    name,
    op: at(ops, op),
    inputs: [] as { node: GraphNode; index: number }[],
    controlInputs: [] as GraphNode[],
    outputs: outputs.map(([dims, isResource]) => ({ dims, isResource })),
    consumers: [] as GraphNode[],
    controlOutputs: [] as GraphNode[],
    isGradient,
    strides,
    isPadded,
    callees: callees.map(([label, title]) => ({ label, title })),
    hasHub,
  }));
  for (const [place, [, , , inputs, controls]] of rows.entries()) {
    const node = at(nodes, place);
    for (const [producer, index] of inputs) {
      node.inputs.push({ node: at(nodes, producer), index });
      if (place < own) at(nodes, producer).consumers.push(node);
    }
    for (const producer of controls) {
      node.controlInputs.push(at(nodes, producer));
      if (place < own) at(nodes, producer).controlOutputs.push(node);
    }
  }
  return nodes;
}

function checkArrangement(nodes: readonly GraphNode[], row: ArrangementRow): void {
  const place = new Map(nodes.map((node, i) => [node, i]));
  const members = row.members.map((each) => each.map((i) => at(nodes, i)));
  const backward = row.backward.map(Boolean);
  const items = makeItems(members, backward);
  expect(items.inputs).toEqual(row.inputs);
  expect(items.awaited).toEqual(row.awaited);
  expect(items.outputs).toEqual(row.outputs);
  expect(cycles(items)).toEqual(row.cycles);
  expect(loops(items)).toEqual(row.loops);
  const { items: whole, contents } = joined(items, loops(items));
  expect(contents).toEqual(row.contents);
  const serving = servingNodes(whole.members.flat());
  expect(row.members.flat().filter((i) => serving.has(at(nodes, i).name))).toEqual(row.serving);
  const serves = whole.members.map((each) => each.every((node) => serving.has(node.name)));
  const order = evaluationOrder(whole);
  expect(order).toEqual(row.order);
  expect(hosts(whole, order, serves)).toEqual(row.hosts);
  const ordered = new Order(whole, order, serves);
  const found = (
    [
      [false, 1],
      [true, 1],
      [false, 2],
    ] as const
  ).map(([fine, most]) =>
    elements(ordered, spanOf(0, order.length), fine, most).map(({ start, stop }) => [start, stop]),
  );
  expect(found).toEqual(row.elements);
  const layers = members.map((each) => [...tellingLayers(each, serving).counts].sort());
  expect(layers).toEqual(row.layers);

  const rowOf = ({ output, instances, ...rest }: Bunch): BunchRow => ({
    ...rest,
    output: output === null ? null : [place.get(output.node) ?? -1, output.index],
    instances: instances.map(rowOf),
  });
  const arranged = arrange(members, backward);
  expect(arranged.units.map(({ parts, helpers, label }) => [parts, helpers, label])).toEqual(row.units);
  expect(arranged.bunches.map(rowOf)).toEqual(row.bunches);
}

const rowOfRun = ({ instances, spare }: Run): RunRow => [
  instances.map(({ start, stop }) => [start, stop]),
  [spare.start, spare.stop],
];

const { ops: opRows, sequences, names, cases } = await read();
const opByName = new Map(opRows.map((row) => [row[0], opOf(row)]));
const op = (name: string): Op => opByName.get(name) as Op;

function counterOf(pairs: Pairs): Counter<Op> {
  const counter = new Counter<Op>();
  for (const [name, count] of pairs) counter.add(op(name), count);
  return counter;
}

function elementOf([symbol, ops, shape, kernels]: ElementRow): Element {
  return {
    symbol,
    ops: counterOf(ops),
    total: ops.reduce((total, [, count]) => total + count, 0),
    shape,
    kernels: kernels.map(([name, isPointwise, strides, width, isPadded]) => ({
      op: op(name),
      isPointwise,
      strides,
      width,
      isPadded,
    })),
  };
}

test.each(cases)("the structure of $name is Python's", (each) => {
  const nodes = nodesOf(each);
  expect(each.arrangements.length).toBeGreaterThan(0);
  for (const row of each.arrangements) checkArrangement(nodes, row);
});

test("the repeats of sequences are Python's", () => {
  expect(sequences.length).toBeGreaterThan(0);
  for (const [rows, runs] of sequences) expect(findRuns(rows.map(elementOf)).map(rowOfRun)).toEqual(runs);
});

describe("names", () => {
  test.each(names)("from $names are Python's", (row) => {
    expect(commonName(row.names, row.within)).toBe(row.common);
    expect(sharedWords(row.names)).toEqual(row.shared);
    expect(row.names.map(isTelling)).toEqual(row.telling);
    const instances = row.instances.map(counterOf);
    expect(differences(instances)).toBe(row.differences);
    const first = at(instances, 0);
    const layers = new Counter<Layer>();
    for (const [each, count] of first.counts) layers.counts.set(each.layer, count);
    expect(kindName(first, layers)).toBe(row.kind);
    expect(opsName(first, row.isNormalised)).toBe(row.ops);
    expect(shapeWords(row.dims)).toBe(row.shape);
  });
});
