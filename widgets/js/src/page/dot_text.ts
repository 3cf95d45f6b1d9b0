// A scene as DOT text for other tools. Labels are never HTML-like, and no text of the graph becomes an attribute that a
// viewer would interpret (URL, image, font).
import { boxTexts, edgeText, groupText } from "../scene/boxes";
import type { NodeKind, Scene, SceneEdge, SceneGroup, SceneNode, State } from "../scene/generated";
import { oneLine } from "../scene/measure";
import { nesting } from "./mermaid_text";

type Attributes = Readonly<Record<string, string>>;

const FONT = "Helvetica,Arial,sans-serif";
const KINDS: Readonly<Record<NodeKind, Attributes>> = {
  op: { shape: "box", style: "rounded,filled", fillcolor: "#ffffff", color: "#aab6c5" },
  constant: { shape: "note", style: "filled", fillcolor: "#f1f3f6", color: "#a5afbd" },
  variable: { shape: "cylinder", style: "filled", fillcolor: "#e6f4f0", color: "#3f9281", fontcolor: "#0d5044" },
  placeholder: {
    shape: "parallelogram",
    style: "filled",
    fillcolor: "#e8f1fd",
    color: "#4d88d8",
    fontcolor: "#174a8c",
  },
  return: { shape: "invtrapezium", style: "filled", fillcolor: "#e8f1fd", color: "#4d88d8", fontcolor: "#174a8c" },
  control: { shape: "hexagon", style: "filled", fillcolor: "#f7f2e6", color: "#a98e57", fontcolor: "#5b4617" },
  scope: { shape: "folder", style: "filled", fillcolor: "#eef2f7", color: "#8295ad" },
  function: { shape: "component", style: "filled", fillcolor: "#fdf2e4", color: "#c98736", fontcolor: "#6d430c" },
  stub: { shape: "box", style: "rounded,dashed", color: "#7f8c9d", fontcolor: "#566171" },
};
const STATES: Readonly<Record<State, Attributes>> = {
  normal: {},
  new: { color: "#18794e", penwidth: "2" },
  changed: { color: "#8a5a00", penwidth: "2" },
  removed: { color: "#c32222", style: "filled,dashed" },
  stale: { color: "#5b6878" },
  error: { color: "#c32222", penwidth: "2", fillcolor: "#fdeeee", fontcolor: "#8d1414" },
};

/** The scene as DOT: nodes `n<index>`, clusters for open scopes, tooltips with full names. Labels are never HTML-like. */
export function toDot(scene: Scene): string {
  const index = new Map(scene.nodes.map(({ id }, i) => [id, `n${i}`]));
  const groups = new Map(scene.groups.map(({ id }, i) => [id, i]));
  const [inside, members] = nesting(scene);
  const lines = [
    "digraph scene {",
    `\tgraph ${list({ fontname: FONT, label: label([scene.title]), labelloc: "t", newrank: "true", rankdir: "TB" })}`,
    `\tnode ${list({ fontname: FONT, fontsize: "11", margin: "0.14,0.06" })}`,
    `\tedge ${list({ arrowsize: "0.7", color: "#7f8c9d", fontcolor: "#566171", fontname: FONT, fontsize: "9" })}`,
  ];
  const write = (key: string, indent: string): void => {
    for (const node of members.get(key) ?? [])
      lines.push(`${indent}${index.get(node.id)} ${list(nodeAttributes(node))}`);
    for (const group of inside.get(key) ?? []) {
      lines.push(
        `${indent}subgraph cluster_${groups.get(group.id)} {`,
        `${indent}\tgraph ${list(groupAttributes(group))}`,
      );
      write(group.id, `${indent}\t`);
      lines.push(`${indent}}`);
    }
  };
  write("", "\t");
  for (const edge of scene.edges) {
    const [source, target] = [index.get(edge.source), index.get(edge.target)];
    if (!source || !target) continue;
    lines.push(
      `\t${edge.reversed ? `${target} -> ${source}` : `${source} -> ${target}`} ${list(edgeAttributes(edge))}`,
    );
  }
  return `${lines.join("\n")}\n}\n`;
}

function nodeAttributes(node: SceneNode): Attributes {
  const kind = KINDS[node.kind];
  const gradient = { fillcolor: "#f7effd", color: "#8d44c9", fontcolor: "#5f2394", style: `${kind.style},dashed` };
  return {
    ...kind,
    ...(node.role === "gradient" && node.kind !== "stub" ? gradient : {}),
    ...STATES[node.state],
    label: label(boxTexts(node).map(([text]) => text)),
    tooltip: label([node.stands_for || node.id, ...node.error.split("\n").filter(Boolean)]),
  };
}

function groupAttributes(group: SceneGroup): Attributes {
  const colours =
    group.role === "gradient"
      ? { color: "#c6a2e4", bgcolor: "#f3edf9", fontcolor: "#5f2394" }
      : { color: "#c3ccd7", bgcolor: "#eef1f5" };
  return {
    ...colours,
    label: label([groupText(group)]),
    style: "rounded",
    labeljust: "l",
    fontsize: "10",
    fontname: FONT,
  };
}

function edgeAttributes(edge: SceneEdge): Attributes {
  const text = edgeText(edge);
  const red = { color: "#c32222", penwidth: "2" };
  return {
    ...(text ? { label: label([text]) } : {}),
    ...(edge.kind === "control" ? { style: "dashed", weight: "0" } : {}),
    ...(edge.kind === "reference" ? { penwidth: "2.5" } : {}),
    ...(edge.role === "gradient" ? { color: "#8d44c9" } : {}),
    ...(edge.state === "normal" ? {} : { color: STATES[edge.state].color as string }),
    ...(edge.state === "removed" ? { style: "dashed" } : {}),
    ...(edge.error ? { ...red, fontcolor: "#8d1414", tooltip: label(edge.error.split("\n")) } : {}),
    ...(edge.clash ? red : {}),
    ...(edge.clash > 1 ? { style: "dashed" } : {}),
    ...(edge.reversed ? { dir: "back" } : {}),
  };
}

/** Lines of text as a plain label: backslashes are literal. */
const label = (lines: readonly string[]): string =>
  lines.map((line) => oneLine(line).replaceAll("\\", "\\\\")).join("\\n");

const list = (attributes: Attributes): string =>
  `[${Object.entries(attributes)
    .map(([name, value]) => `${name}="${value.replaceAll('"', '\\"')}"`)
    .join(" ")}]`;
