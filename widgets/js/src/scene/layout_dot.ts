// The scene as DOT for the layout engine: numbers only, without user text.
import { boxLook, edgeLabelSize, groupLabelSize, type Size } from "./boxes";
import type { Scene, SceneEdge, SceneGroup } from "./generated";

const inches = (pixels: number): string => String(Math.round((pixels / 72) * 1000) / 1000);

/** An empty label of fixed size. */
function emptyLabel({ width, height }: Size): string {
  const size = `FIXEDSIZE="TRUE" WIDTH="${Math.round(width)}" HEIGHT="${Math.round(height)}"`;
  return `<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0" ${size}><TR><TD></TD></TR></TABLE>>`;
}

function edgeLines(
  scene: Scene,
  index: ReadonlyMap<string, number>,
  isLabelled: (edge: SceneEdge) => boolean,
): string[] {
  const lines: string[] = [];
  scene.edges.forEach((edge, number) => {
    const source = index.get(edge.source);
    const target = index.get(edge.target);
    if (source === undefined || target === undefined) return;
    const attributes = [`id="e${number}"`];
    const size = isLabelled(edge) ? edgeLabelSize(edge) : null;
    if (edge.kind === "control") attributes.push("weight=0");
    if (edge.reversed) attributes.push("dir=back");
    if (edge.loose) attributes.push("constraint=false");
    if (size) attributes.push(`label=${emptyLabel(size)}`);
    const [tail, head] = edge.reversed ? [target, source] : [source, target];
    lines.push(`n${tail}->n${head}[${attributes.join(",")}]`);
  });
  return lines;
}

/** The parent of each frame; "" where it is missing or where frames would contain themselves. */
export function frameParents(groups: readonly SceneGroup[]): Map<string, string> {
  const parents = new Map(groups.map((group) => [group.id, group.parent]));
  for (const id of parents.keys()) {
    const seen = new Set([id]);
    for (let up = parents.get(id); up; up = parents.get(up)) {
      if (!parents.has(up) || seen.has(up)) {
        parents.set(id, "");
        break;
      }
      seen.add(up);
    }
  }
  return parents;
}

/** The statements at the top; of a mirrored scene the forward pass by itself, and the rows of boxes and their gradients. */
function halves({ mirror, groups, nodes }: Scene, members: string[], index: ReadonlyMap<string, number>): string[] {
  if (!mirror) return members;
  const backward = `subgraph cluster_${groups.findIndex(({ id }) => id === "∇/")}{`;
  const rows = nodes.flatMap(({ mirrors }, number) => {
    const origin = index.get(mirrors);
    return origin === undefined ? [] : [`{rank=same;n${origin}->n${number}[style=invis]}`];
  });
  const at = members.findIndex((text) => text.startsWith(backward));
  const after = at < 0 ? [] : members.splice(at, 1);
  return ["subgraph cluster_{graph[margin=0]", ...members, "}", ...after, ...rows];
}

/** Boxes in frames that no line leads to stand beside the first box with lines, not above it: what comes before the frame is above. */
function besideFirst({ nodes, edges, groups }: Scene): string[] {
  const linked = new Set(edges.flatMap(({ source, target }) => [source, target]));
  return groups.flatMap(({ id }) => {
    const inside = nodes.flatMap((node, number) =>
      node.group === id ? [{ number, isLinked: linked.has(node.id) }] : [],
    );
    const first = inside.find(({ isLinked }) => isLinked);
    const apart = inside.filter(({ isLinked }) => !isLinked);
    return first && apart.length > 0
      ? [`{rank=same;n${first.number};${apart.map(({ number }) => `n${number}`).join(";")}}`]
      : [];
  });
}

/**
 * DOT with nodes `n<index>`, clusters `cluster_<index>` and edges with id `e<index>`, by place in the scene's lists.
 * With `fast`, lines are straight and without labels, for graphs that would take too long. With `across`, data flows to the right.
 * Without `labels` boxes are closer to one another, and only edges with an error keep theirs.
 */
export function layoutDot(scene: Scene, { fast = false, across = false, labels = true } = {}): string {
  const index = new Map(scene.nodes.map((node, number) => [node.id, number]));
  const parents = frameParents(scene.groups);
  const members = new Map<string, string[]>([["", []]]);
  for (const group of scene.groups) members.set(group.id, []);
  const put = (group: string, text: string): void => {
    (members.get(group) ?? members.get(""))?.push(text);
  };
  scene.nodes.forEach((node, number) => {
    const { width, height } = boxLook(node);
    put(node.group, `n${number}[width=${inches(width)},height=${inches(height)}]`);
  });
  // A picture with gradients below may be turned over, and the space of titles with it: the margin has space for one.
  const margin = scene.mirror && across ? 22 : 12;
  const block = (group: SceneGroup, number: number): string => {
    const inner = members.get(group.id)?.join("\n") ?? "";
    return `subgraph cluster_${number}{graph[margin=${margin},labeljust=l,label=${emptyLabel(groupLabelSize(group))}]\n${inner}}`;
  };
  // Inner frames first, so that each is complete before its parent.
  const depth = (id: string): number => (parents.get(id) ? 1 + depth(parents.get(id) ?? "") : 0);
  const inward = scene.groups.map((group, number) => ({ group, number, depth: depth(group.id) }));
  inward.sort((a, b) => b.depth - a.depth);
  for (const { group, number } of inward) {
    if (members.get(group.id)?.length) put(parents.get(group.id) ?? "", block(group, number));
  }
  const limits = fast ? ",splines=line,nslimit=2,nslimit1=2,mclimit=.3" : "";
  return [
    `digraph{graph[rankdir=${across ? "LR" : "TB"},newrank=true,nodesep=.25,ranksep=${labels ? 0.3 : 0.2},pad=0,margin=0${limits}]`,
    'node[shape=box,fixedsize=true,label=""]',
    "edge[arrowsize=.55]",
    ...halves(scene, members.get("") ?? [], index),
    ...(scene.mirror ? [] : besideFirst(scene)),
    ...edgeLines(scene, index, (edge) => !fast && !edge.loose && (labels || edge.error !== "")),
    "}",
  ].join("\n");
}
