import { expect, test } from "vitest";
import { layoutDot } from "../src/scene/layout_dot";
import { edge, group, HOSTILE, node, scene } from "./support";

/** All that layout DOT may consist of. */
const WORDS = new RegExp(
  "digraph|subgraph|cluster_|graph|nodesep|node|edge|rankdir|TB|newrank|ranksep|pad|margin|labeljust|label|width|height|shape|box|" +
    "fixedsize|true|arrowsize|weight|dir|back|id|TABLE|BORDER|CELLBORDER|CELLSPACING|CELLPADDING|FIXEDSIZE|TRUE|WIDTH|HEIGHT|" +
    "TR|TD|splines|line|nslimit1?|mclimit|[ne]\\d+|[lL]",
  "g",
);

function foreignText(dot: string): string {
  return dot.replace(WORDS, "").replace(/[\d\s{}[\]=,.;"<>/_-]/g, "");
}

test("the layout engine sees numbers only, whatever users call their nodes", () => {
  const nodes = HOSTILE.map((text, i) =>
    node(`${text}${i}`, { label: text, op: text, detail: text, group: HOSTILE[0] ?? "" }),
  );
  const edges = nodes.slice(1).map((other, i) => edge(nodes[i]?.id ?? "", other.id, HOSTILE[i] ?? ""));
  const dot = layoutDot(scene({ nodes, edges, groups: [group(HOSTILE[0] ?? "", { label: HOSTILE[1] ?? "" })] }));
  expect(foreignText(dot)).toBe("");
  expect(dot.match(/n\d+\[width/g)).toHaveLength(HOSTILE.length);
});

test("a reversed edge is given from target to source, so that its target ranks first", () => {
  const nodes = [node("a"), node("b")];
  const dot = layoutDot(scene({ nodes, edges: [edge("a", "b", "", { reversed: true })] }));
  expect(dot).toContain('n1->n0[id="e0",dir=back]');
});

test("a control edge does not pull its ends together", () => {
  const dot = layoutDot(scene({ nodes: [node("a"), node("b")], edges: [edge("a", "b", "", { kind: "control" })] }));
  expect(dot).toContain('n0->n1[id="e0",weight=0]');
});

test("an edge with an error keeps its label in a picture without labels", () => {
  const nodes = [node("a"), node("b"), node("c")];
  const edges = [edge("a", "b", "float [3]"), edge("b", "c", "float [4]", { error: "[4] does not fit [5]" })];
  const dot = layoutDot(scene({ nodes, edges }), { labels: false });
  expect(dot).toContain('n0->n1[id="e0"]');
  expect(dot).toContain('n1->n2[id="e1",label=');
});

test("an edge to a box that is not there is left out", () => {
  expect(layoutDot(scene({ nodes: [node("a")], edges: [edge("a", "gone")] }))).not.toContain("->");
});

test("a box in a frame that no line leads to stands beside the first one with lines, so that the frame begins there", () => {
  const nodes = [node("x"), node("apart", { group: "f" }), node("a", { group: "f" }), node("b", { group: "f" })];
  const edges = [edge("x", "a"), edge("a", "b")];
  expect(layoutDot(scene({ nodes, edges, groups: [group("f")] }))).toContain("{rank=same;n2;n1}");
  expect(layoutDot(scene({ nodes, edges: [], groups: [group("f")] }))).not.toContain("rank=same");
});

test("frames that contain each other do not hang the layout", () => {
  const groups = [group("p", { parent: "q" }), group("q", { parent: "p" }), group("r", { parent: "nowhere" })];
  const nodes = [
    node("a", { group: "p" }),
    node("b", { group: "q" }),
    node("c", { group: "r" }),
    node("d", { group: "s" }),
  ];
  const dot = layoutDot(scene({ nodes, groups }));
  for (const name of ["n0[", "n1[", "n2[", "n3["]) expect(dot.split(name)).toHaveLength(2);
});

test("inner frames lie inside their parents", () => {
  const groups = [group("inner", { parent: "outer" }), group("outer")];
  const dot = layoutDot(scene({ nodes: [node("a", { group: "inner" })], groups }));
  expect(dot.indexOf("cluster_1")).toBeLessThan(dot.indexOf("cluster_0"));
  expect(dot.indexOf("cluster_0")).toBeLessThan(dot.indexOf("n0["));
});
