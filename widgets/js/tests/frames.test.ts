import { expect, test } from "vitest";
import cases from "../../../tests/data/frame_cases.json";
import { holdLabels } from "../src/scene/frames";
import type { Geometry, Rect } from "../src/scene/geometry";
import { edge, group, node, scene } from "./support";

type Row = readonly (string | number)[];

function rectOf(row: Row): Rect {
  const [x = 0, y = 0, width = 0, height = 0] = row.slice(2).map(Number);
  return { x, y, width, height };
}

test.each(cases.map((item, index) => [index, item] as const))(
  "frames hold labels as in still pictures (case %i)",
  (_, item) => {
    const id = (row: Row): string => String(row[0]);
    const places: Geometry = {
      width: item.width,
      height: 600,
      nodes: new Map(item.nodes.map((row) => [id(row), rectOf(row)])),
      groups: new Map(item.groups.filter((row) => item.placed.includes(id(row))).map((row) => [id(row), rectOf(row)])),
      edges: new Map(
        item.edges.map((row) => {
          const label = { x: Number(row[3]), y: Number(row[4]) };
          return [id(row), { points: [], tip: { x: 0, y: 0 }, label }];
        }),
      ),
    };
    const shown = scene({
      nodes: item.nodes.map((row) => node(id(row), { group: String(row[1]) })),
      groups: item.groups.map((row) => group(id(row), { parent: String(row[1]) })),
      edges: item.edges.map((row) => ({ ...edge(String(row[1]), String(row[2])), id: id(row) })),
    });
    const { groups, edges } = holdLabels(shown, places, new Map(item.edges.map((row) => [id(row), Number(row[5])])));
    const held = item.held as { frames: Record<string, number[]>; labels: Record<string, number> };
    expect([...groups.keys()].sort()).toEqual(Object.keys(held.frames).sort());
    for (const [frame, [x = 0, width = 0]] of Object.entries(held.frames)) {
      expect(groups.get(frame)?.x, frame).toBeCloseTo(x, 6);
      expect(groups.get(frame)?.width, frame).toBeCloseTo(width, 6);
    }
    for (const [line, x] of Object.entries(held.labels)) expect(edges.get(line)?.label?.x, line).toBeCloseTo(x, 6);
  },
);
