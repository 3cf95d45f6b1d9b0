// A laid-out scene as SVG text: no script, no link, no external style. Shapes and words show the kinds without colour.
import { boxLook, edgeFont, edgeText, groupText, labelParts } from "../scene/boxes";
import type { Colocation, Scene, SceneEdge, SceneGroup, SceneNode } from "../scene/generated";
import { routeBase, routePath } from "../scene/geometry";
import { DEVICES_LENS, hullOf } from "../scene/hulls";
import { type FontName, oneLine, textWidth } from "../scene/measure";
import type { Geometry, Rect, Route } from "../scene/places";
import { arrowPath, detailPath, outlinePath } from "../scene/shapes";
import theme from "../style/theme.css";
import rules from "./still.css";

const MARGIN = 16;
const BADGES: Readonly<Record<string, string>> = {
  new: "+",
  removed: "−",
  changed: "~",
  error: "!",
  stale: "…",
};

/** The colours of a block of the viewer's style sheet. */
const coloursOf = (block = ""): ReadonlyMap<string, string> =>
  new Map([...block.matchAll(/(--gl-[\w-]+):\s*([^;}]+)/g)].map(([, name = "", value = ""]) => [name, value]));
const [LIGHT, DARK] = theme.split("[data-theme");
const COLOURED = /var\((--gl-[\w-]+)\)/g;
function coloured(text: string, block?: string): string {
  const colours = coloursOf(block);
  return text.replace(COLOURED, (_, name: string) => colours.get(name) ?? "");
}

// Without a background: boxes and labels have one of their own, and everything else is legible on light and on dark pages. An image takes on
// the colour scheme of its place in the page.
const STYLE = coloured(rules, LIGHT);
const DARK_STYLE = `@media (prefers-color-scheme:dark){${coloured(
  rules
    .replace(/[\w-]+:(?!var)[^;{}]*(;|(?=\}))/g, "") // only colours differ
    .replace(/[^{}]+\{\}/g, ""),
  DARK,
)}}`;

export interface Drawn {
  /** With the colours of dark pages, too. */
  readonly adapts: boolean;
  /** The lens; that of devices has hulls around boxes that must be on one device. */
  readonly lens: string;
}

/** The picture of a scene at these places, as SVG text. */
export function toSvg(scene: Scene, places: Geometry, { adapts, lens }: Drawn): string {
  const [width, height] = [Math.max(places.width, 8) + 2 * MARGIN, places.height + 2 * MARGIN].map(Math.round);
  const hulls = lens === DEVICES_LENS ? scene.colocations.flatMap((group) => drawHull(group, places)) : [];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">`,
    `<title>${content(scene.title)}</title><desc>${content(scene.summary)}</desc><style>${STYLE}${adapts ? DARK_STYLE : ""}</style>`,
    `<g transform="translate(${MARGIN},${MARGIN})">`,
    ...hulls.map(([shape]) => shape),
    ...frames(scene, places),
    ...lines(scene, places),
    ...hulls.map(([, name]) => name),
    ...scene.nodes.flatMap((node) => placed(node, places.nodes.get(node.id), drawBox)),
    "</g>",
    "</svg>\n",
  ].join("\n");
}

const placed = <Part, Place>(
  part: Part,
  place: Place | undefined,
  draw: (part: Part, place: Place) => string,
): string[] => (place === undefined ? [] : [draw(part, place)]);

/** The larger frames first, so that inner frames are on top. */
function frames({ groups }: Scene, places: Geometry): string[] {
  const area = ({ id }: SceneGroup): number => {
    const { width, height } = places.groups.get(id) ?? { width: 0, height: 0 };
    return width * height;
  };
  const ordered = [...groups].sort((a, b) => area(b) - area(a));
  return ordered.flatMap((group) => placed(group, places.groups.get(group.id), drawFrame));
}

/** Lines with errors come last, on top of others. */
function lines({ edges }: Scene, places: Geometry): string[] {
  const ordered = [...edges.filter(({ error }) => !error), ...edges.filter(({ error }) => error)];
  return ordered.flatMap((edge) => placed(edge, places.edges.get(edge.id), drawLine));
}

/** A hull and its name. Two strokes make its outline: a wide one and, over it, a narrower one. */
function drawHull(group: Colocation, places: Geometry): [shape: string, name: string][] {
  const hull = hullOf(group, (id) => places.nodes.get(id));
  if (!hull) return [];
  const { strokes, text, name } = hull;
  const title = `<title>${content([group.text, ...group.reasons].join("\n"))}</title>`;
  const paths = (className: string, more: number): string[] =>
    strokes.map(([d, width]) => `<path class="${className}" d="${d}" stroke-width="${width + more}"/>`);
  const { x, y, width, height } = name;
  const size = `x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}"`;
  const words = `<text x="${short(x + width / 2)}" y="${short(y + 10.5)}"${asWide(text, "label")}>${content(text)}</text>`;
  return [
    [
      `<g class="hull">${title}${[...paths("edge", 2.4), ...paths("inside", 0)].join("")}</g>`,
      `<g class="hull">${title}<rect ${size} rx="7"/>${words}</g>`,
    ],
  ];
}

function drawFrame(group: SceneGroup, { x, y, width, height }: Rect): string {
  const text = groupText(group);
  const classes = group.kind === "function" ? `${group.role} body` : group.role;
  return [
    `<g class="${classes}" transform="translate(${short(x)},${short(y)})"><title>${content(group.id)}</title>`,
    `<rect class="frame" width="${short(width)}" height="${short(height)}" rx="10"/>`,
    `<text class="group" x="12" y="18"${asWide(text, "group")}>${content(text)}</text></g>`,
  ].join("");
}

function drawLine(edge: SceneEdge, route: Route): string {
  const state = edge.state === "normal" ? "" : ` ${edge.state}`;
  const clash = edge.clash ? ` clash${Math.min(edge.clash, 2)}` : "";
  const tooltip = [`${edge.source} → ${edge.target}`, edge.label, edge.error].filter(Boolean).join("\n");
  const path = routePath(route);
  const parts = [
    `<g class="${edge.kind} ${edge.role}${state}${edge.error ? " error" : ""}${clash}"><title>${content(tooltip)}</title>`,
    `<path class="line" d="${path}L${route.tip.x},${route.tip.y}"/>`,
    edge.kind === "reference" ? `<path class="core" d="${path}"/>` : "",
    `<path class="head" d="${arrowPath(routeBase(route), route.tip)}"/>`,
  ];
  const text = edgeText(edge);
  if (route.label && text) {
    const font = edgeFont(edge);
    const { x, y } = route.label;
    const width = textWidth(text, font) + 6;
    const label = labelParts(edge, text).map((part) =>
      part.unknown ? `<tspan class="unknown">${content(part.text)}</tspan>` : escaped(part.text),
    );
    parts.push(
      `<rect class="paper" x="${short(x - width / 2)}" y="${short(y - 7)}" width="${short(width)}" height="14" rx="3"/>`,
      `<text class="label" x="${short(x)}" y="${short(y + 3.5)}"${asWide(text, font)}>${label.join("")}</text>`,
    );
  }
  return `${parts.join("")}</g>`;
}

function drawBox(node: SceneNode, { x, y }: Rect): string {
  const { width, height, lines: texts, middle } = boxLook(node);
  const kind = node.kind === "control" ? "controlbox" : node.kind; // "control" is a kind of line
  const state = node.state === "normal" ? "" : ` ${node.state}`;
  const tooltip = [node.stands_for || node.id, node.op, node.detail, node.error].filter(Boolean).join("\n");
  const mark = detailPath(node.kind, width, height, node.repeat > 0);
  const sign = BADGES[node.state];
  return [
    `<g class="${kind} ${node.role}${state}${node.clash ? " clash" : ""}" transform="translate(${short(x)},${short(y)})">`,
    `<title>${content(tooltip)}</title><path class="box" d="${outlinePath(node.kind, width, height, node.repeat > 0)}"/>`,
    mark && `<path class="mark" d="${mark}"/>`,
    ...texts.map((line) => {
      const classes = line.font === "note" ? "detail note" : line.font;
      return `<text class="${classes}" x="${short(middle)}" y="${short(line.y)}"${asWide(line.text, line.font)}>${content(line.text)}</text>`;
    }),
    sign
      ? `<circle class="badge" cx="${width - 3}" r="7"/><text class="sign" x="${width - 3}" y="3.6">${sign}</text>`
      : "",
    "</g>",
  ].join("");
}

/** Fits a text to its measured width in any font. */
const asWide = (text: string, font: FontName): string =>
  text ? ` textLength="${short(textWidth(text, font))}" lengthAdjust="spacingAndGlyphs"` : "";

const short = (value: number): string => (Number.isFinite(value) ? String(Math.round(value * 10) / 10) : "0");

const ESCAPES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };
const escaped = (text: string): string => text.replace(/[&<>]/g, (letter) => ESCAPES[letter] ?? "");

/** Text content: escaped, without the characters that XML forbids. */
const content = (text: string): string =>
  escaped(
    text
      .split(/\r\n|[\n\r]/)
      .map(oneLine)
      .join("\n"),
  );
