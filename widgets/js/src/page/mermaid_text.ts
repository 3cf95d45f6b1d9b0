// A scene as Mermaid flowchart text. Mermaid reads markup inside labels, even in its strict mode, so all but plain letters
// is escaped.
import { boxTexts, edgeText, groupText } from "../scene/boxes";
import type { NodeKind, Scene, SceneEdge, SceneGroup, SceneNode } from "../scene/generated";
import { oneLine } from "../scene/measure";
import { getOrMake } from "./order";

const MAX_LABEL = 60;
const SHAPES: Readonly<Record<NodeKind, readonly [string, string]>> = {
  op: ["(", ")"],
  constant: ["[", "]"],
  variable: ["[(", ")]"],
  placeholder: ["[/", "/]"],
  return: ["[\\", "/]"],
  control: ["{{", "}}"],
  scope: ["[[", "]]"],
  function: ["[[", "]]"],
  stub: ["([", "])"],
};
/** Styles by class; a later class overrides an earlier one. */
const STYLES: Readonly<Record<string, string>> = {
  kindOp: "fill:#ffffff,stroke:#aab6c5,color:#1b2430",
  kindConstant: "fill:#f1f3f6,stroke:#a5afbd,color:#1b2430",
  kindVariable: "fill:#e6f4f0,stroke:#3f9281,color:#0d5044",
  kindPlaceholder: "fill:#e8f1fd,stroke:#4d88d8,color:#174a8c",
  kindReturn: "fill:#e8f1fd,stroke:#4d88d8,color:#174a8c",
  kindControl: "fill:#f7f2e6,stroke:#a98e57,color:#5b4617",
  kindScope: "fill:#eef2f7,stroke:#8295ad,color:#1b2430",
  kindFunction: "fill:#fdf2e4,stroke:#c98736,color:#6d430c",
  kindStub: "fill:#f8f9fb,stroke:#7f8c9d,stroke-dasharray:2 3,color:#566171",
  roleGradient: "fill:#f7effd,stroke:#8d44c9,stroke-dasharray:5 3,color:#5f2394",
  groupForward: "fill:#eef1f5,stroke:#c3ccd7,color:#566171",
  groupGradient: "fill:#f3edf9,stroke:#c6a2e4,stroke-dasharray:5 3,color:#5f2394",
  stateNew: "stroke:#18794e,stroke-width:2px",
  stateChanged: "stroke:#8a5a00,stroke-width:2px",
  stateRemoved: "stroke:#c32222,stroke-dasharray:4 3",
  stateStale: "stroke:#5b6878",
  stateError: "fill:#fdeeee,stroke:#c32222,stroke-width:2px,color:#8d1414",
};
const LINES = { data: "-->", control: "-.->", reference: "==>" } as const;

/** The frames and boxes of a scene by the frame around them, "" at the top. */
export function nesting({ nodes, groups }: Scene): [Map<string, SceneGroup[]>, Map<string, SceneNode[]>] {
  const known = new Map(groups.map((group) => [group.id, group])); // of several with one id, which no scene of ours has, the last
  const inside = new Map<string, SceneGroup[]>();
  const members = new Map<string, SceneNode[]>();
  known.delete("");
  for (const group of known.values())
    getOrMake(inside, known.has(group.parent) ? group.parent : "", (): SceneGroup[] => []).push(group);
  for (const node of nodes)
    getOrMake(members, known.has(node.group) ? node.group : "", (): SceneNode[] => []).push(node);
  return [inside, members];
}

/** The scene as a flowchart: nodes `n<index>`, subgraphs `g<index>`, by place in the scene's lists. */
export function toMermaid(scene: Scene): string {
  const index = new Map(scene.nodes.map(({ id }, i) => [id, `n${i}`]));
  const groups = new Map(scene.groups.map(({ id }, i) => [id, `g${i}`]));
  const [inside, members] = nesting(scene);
  const lines = ["flowchart TB"];
  const write = (group: string, depth: number): void => {
    const indent = "  ".repeat(depth);
    for (const node of members.get(group) ?? []) lines.push(`${indent}${box(index.get(node.id) ?? "", node)}`);
    for (const inner of inside.get(group) ?? []) {
      lines.push(`${indent}subgraph ${groups.get(inner.id)}["${safe(groupText(inner))}"]`);
      write(inner.id, depth + 1);
      lines.push(`${indent}end`);
    }
  };
  write("", 1);
  const drawn = scene.edges.filter(({ source, target }) => index.has(source) && index.has(target));
  for (const edge of drawn) lines.push(`  ${arrow(edge, index)}`);
  const red = "stroke:#c32222,stroke-width:2px";
  styleLinks(lines, "stroke:#8d44c9", drawn, ({ role, error, clash }) => role === "gradient" && !error && !clash);
  styleLinks(lines, "stroke:#18794e,stroke-width:2px", drawn, ({ state }) => state === "new");
  styleLinks(lines, "stroke:#c32222,stroke-dasharray:4 3", drawn, ({ state }) => state === "removed");
  styleLinks(lines, red, drawn, ({ error, clash }) => Boolean(error) || clash === 1);
  styleLinks(lines, `${red},stroke-dasharray:7 3`, drawn, ({ error, clash }) => clash > 1 && !error);
  lines.push(...classLines(scene, index, groups));
  return `${lines.join("\n")}\n`;
}

function styleLinks(
  lines: string[],
  style: string,
  edges: readonly SceneEdge[],
  fits: (edge: SceneEdge) => boolean,
): void {
  const numbers = edges.flatMap((edge, i) => (fits(edge) ? [i] : []));
  if (numbers.length > 0) lines.push(`  linkStyle ${numbers.join(",")} ${style}`);
}

/** Letters, digits, single spaces of ASCII, and signs without meaning in quotes; else `#NN;`. Cut off when long. */
function safe(text: string): string {
  const letters = [...oneLine(text)];
  const kept = letters.length > MAX_LABEL ? [...letters.slice(0, MAX_LABEL - 1), "…"] : letters;
  return kept
    .map((letter) => (/^[A-Za-z0-9 _[\],.?+\-/]$/.test(letter) ? letter : `#${letter.codePointAt(0)};`))
    .join("");
}

function box(key: string, node: SceneNode): string {
  const [opening, closing] = SHAPES[node.kind];
  const label = boxTexts(node)
    .map(([text]) => safe(text))
    .join("<br/>");
  return `${key}${opening}"${label || " "}"${closing}`;
}

function arrow(edge: SceneEdge, index: ReadonlyMap<string, string>): string {
  const text = safe(edgeText(edge));
  return `${index.get(edge.source)} ${LINES[edge.kind]}${text ? `|"${text}"|` : ""} ${index.get(edge.target)}`;
}

const capital = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);

/** Definitions of the classes in use, and their nodes. */
function classLines(scene: Scene, index: ReadonlyMap<string, string>, groups: ReadonlyMap<string, string>): string[] {
  const members = new Map<string, string[]>(Object.keys(STYLES).map((name) => [name, []]));
  const add = (name: string, key: string | undefined): unknown => key && members.get(name)?.push(key);
  for (const { id, kind, role, state } of scene.nodes) {
    add(`kind${capital(kind)}`, index.get(id));
    if (role === "gradient" && kind !== "stub") add("roleGradient", index.get(id));
    if (state !== "normal") add(`state${capital(state)}`, index.get(id));
  }
  for (const { id, role } of scene.groups) add(`group${capital(role)}`, groups.get(id));
  const used = [...members].filter(([, ids]) => ids.length > 0);
  return [
    ...used.map(([name]) => `  classDef ${name} ${STYLES[name]}`),
    ...used.map(([name, ids]) => `  class ${ids.join(",")} ${name}`),
  ];
}
