// The sides of a mirrored picture.
import { expect, test } from "vitest";
import { inOrder } from "../src/engines/sides";

const DOT =
  "digraph{graph[rankdir=TB]\nn0[width=.5,height=.5]\nn1[width=.25,height=.5]\n{rank=same;n0->n1[style=invis]}}";
const ANSWER = `digraph {
	graph [bb="0,0,150,80"];
	subgraph cluster_ {
		graph [bb="60,0,150,80"];
		n0	[pos="80,25"];
	}
	subgraph cluster_0 {
		graph [bb="10,-5,30,45",
			lp="15,40"];
		n1	[height=0.5,
			pos="20,25",
			width=0.25];
	}
	n0 -> n1	[id=e0,
		pos="e,30,25 70,25 60,25 \\
50,26 40,25"];
	n0 -> n1	[pos="80,25 140,25 150,70 40,70",
		style=invis];
}`;

test("a gradient that comes out on the left is turned over to the right, with its frame, lines and labels", () => {
  const turned = inOrder(DOT, ANSWER);
  expect(turned).toContain('n0	[pos="18,30"]');
  expect(turned).toContain('pos="78,30"');
  expect(turned).toContain('bb="68,0,88,50"');
  expect(turned).toContain('lp="83,45"');
  expect(turned).toContain('pos="e,68,30 28,30 38,30 48,31 58,30"');
});

test("the picture is as large as what is seen in it", () => {
  expect(inOrder(DOT, ANSWER)).toContain('graph [bb="0,0,88,50"];');
});

test("a picture that is right stays as it is, and so does one without gradients", () => {
  const turned = inOrder(DOT, ANSWER);
  expect(inOrder(DOT, turned)).toBe(turned);
  expect(inOrder("digraph{n0->n1}", ANSWER)).toBe(ANSWER);
});

test("JSON is turned over as DOT is; where data flows across, gradients come below", () => {
  const json = '{"bb": "0,0,100,50", "objects": [{"name": "n0", "pos": "18,18"}, {"name": "n1", "pos": "18,60"}]}';
  const turned = JSON.parse(inOrder(DOT.replace("TB", "LR"), json));
  expect(turned.objects.map(({ pos }: { pos: string }) => pos)).toEqual(["18,60", "18,18"]);
  expect(turned.bb).toBe("0,0,36,78");
});
