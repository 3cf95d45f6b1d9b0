// Stubs: small boxes beside a consumer that stand for a far-away producer.
import type { SceneEdge, SceneNode } from "../scene/generated";
import { getOrMake } from "./order";
import { estimateRanks } from "./ranks";
import { MOST_ORDERS } from "./visible";

/** Layers that a line from the forward into the backward pass may span. */
const FAR = 7;
/**
 * Layers that all lines together may span before the longest are cut: Graphviz's time grows steeply with them
 * (160 boxes: 1.7 s with 1,500 layers, 0.13 s with 300).
 */
const LONG_TOTAL = 300;
/** Shorter lines are never cut for the sake of the total. */
const VERY_FAR = 5;
/** More far producers than this of one box share one stub. */
const MANY = 6;

/** The beginning of the ids of boxes of nodes that could not be made. */
export const REFUSED = "refused:";

export const PLAIN: Omit<SceneNode, "id" | "label" | "kind"> = {
  op: "",
  detail: "",
  group: "",
  role: "forward",
  state: "normal",
  error: "",
  clash: "",
  count: 1,
  repeat: 0,
  expandable: false,
  mirrors: "",
  stands_for: "",
  cell: "",
  together: "",
  lenses: {},
};

/** Replaces long edges by stubs. With `mirror` each gradient is in the row of its origin. Returns the nodes with stubs, and the edges re-attached. */
export function cutLongEdges(nodes: SceneNode[], edges: SceneEdge[], mirror: boolean): [SceneNode[], SceneEdge[]] {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const rows = mirror ? rowsOf(byId) : new Map<string, string>();
  const row = (id: string): string => rows.get(id) ?? id;
  const ends = ({ source, target, reversed }: SceneEdge): readonly [string, string] =>
    reversed ? [row(target), row(source)] : [row(source), row(target)];
  const firm = edges.filter(({ kind, loose }) => kind !== "control" && !loose).map(ends);
  const waits = edges.filter(({ kind, reversed }) => kind === "control" && !reversed).map(ends);
  const ranked = estimateRanks([...new Set(nodes.map(({ id }) => row(id)))], firm, waits);
  const ranks = new Map(nodes.map(({ id }) => [id, ranked.get(row(id)) ?? 0]));
  const cut = chosen(edges, byId, ranks);
  if (cut.size === 0) return [nodes, edges];
  const perTarget = new Map<string, SceneEdge[]>();
  for (const edge of edges)
    if (cut.has(edge.id)) getOrMake(perTarget, `${edge.kind} ${edge.target}`, (): SceneEdge[] => []).push(edge);
  const stubs = new Map<string, SceneNode>();
  const result = edges.filter(({ id }) => !cut.has(id));
  for (const far of perTarget.values()) {
    const target = byId.get(far[0]?.target ?? "") as SceneNode;
    if (far.length > MANY) {
      const stub = crowd(far, target);
      stubs.set(stub.id, stub);
      result.push(bundled(far, stub));
      continue;
    }
    for (const edge of far) {
      const stub = stubFor(byId.get(edge.source) as SceneNode, target);
      stubs.set(stub.id, stub);
      result.push({ ...edge, source: stub.id, reversed: false, loose: false });
    }
  }
  return [[...nodes, ...stubs.values()], result];
}

/** For each box the forward box in whose row it is. */
function rowsOf(byId: ReadonlyMap<string, SceneNode>): Map<string, string> {
  return new Map(
    [...byId.keys()].map((id) => {
      let row = id;
      for (let steps = 0; steps < MOST_ORDERS; steps++) {
        const origin = byId.get(row)?.mirrors ?? "";
        if (!byId.has(origin)) break;
        row = origin;
      }
      return [id, row];
    }),
  );
}

function chosen(
  edges: readonly SceneEdge[],
  byId: ReadonlyMap<string, SceneNode>,
  ranks: ReadonlyMap<string, number>,
): ReadonlySet<string> {
  const spans = new Map(
    edges.map(({ id, source, target }) => [id, Math.abs((ranks.get(target) ?? 0) - (ranks.get(source) ?? 0))]),
  );
  const cut = new Set(
    edges
      .filter(({ id }) => (spans.get(id) ?? 0) > FAR)
      .filter(({ source, target }) => byId.get(target)?.role === "gradient" && byId.get(source)?.role === "forward")
      .map(({ id }) => id),
  );
  let total = [...spans].reduce((sum, [id, span]) => (cut.has(id) ? sum : sum + span), 0);
  for (const [id, span] of [...spans].sort((a, b) => b[1] - a[1])) {
    if (total <= LONG_TOTAL || span <= VERY_FAR) break;
    if (cut.has(id)) continue;
    cut.add(id);
    total -= span;
  }
  return cut;
}

/** One stub for many far producers; a row of stubs would be wider than the picture. */
function crowd(far: readonly SceneEdge[], target: SceneNode): SceneNode {
  const sources = far.map(({ source }) => source);
  return {
    ...PLAIN,
    id: `stub:*${far[0]?.kind}:${target.id}`,
    label: `${new Set(sources).size} boxes far above`,
    kind: "stub",
    detail: sources.join(", "),
    group: target.group,
    count: 0,
  };
}

function bundled(far: readonly SceneEdge[], stub: SceneNode): SceneEdge {
  const [{ kind, target, role }] = far as [SceneEdge];
  const labels = new Set(far.map(({ label }) => label));
  const [state = "normal", ...others] = new Set(far.map((edge) => edge.state));
  return {
    id: `${stub.id}->${target}`,
    source: stub.id,
    target,
    kind,
    label: labels.size === 1 ? ([...labels][0] as string) : "",
    count: kind === "control" ? 1 : far.reduce((sum, { count }) => sum + count, 0),
    dims: [],
    error: far
      .map(({ error }) => error)
      .filter(Boolean)
      .join("\n"),
    clash: 0,
    reversed: false,
    loose: false,
    role,
    state: others.length > 0 ? "normal" : state,
    lenses: {},
  };
}

function stubFor(source: SceneNode, target: SceneNode): SceneNode {
  const { label, op, detail, role, cell, lenses } = source;
  return {
    ...PLAIN,
    id: `stub:${source.id}:${target.id}`,
    label,
    kind: "stub",
    op,
    detail,
    group: target.group,
    role,
    state: source.state === "error" ? "error" : "normal",
    count: 0,
    stands_for: source.id,
    cell,
    lenses,
  };
}
