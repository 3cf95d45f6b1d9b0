// Texts and sizes of boxes before layout.
import type { SceneEdge, SceneGroup, SceneNode } from "./generated";
import { ellipsize, type FontName, textWidth } from "./measure";
import { STACK } from "./shapes";
import { word } from "./words";

export interface Line {
  readonly text: string;
  readonly font: FontName;
  /** The baseline, in pixels below the top of the box. */
  readonly y: number;
}

export interface Look {
  readonly width: number;
  readonly height: number;
  readonly lines: readonly Line[];
  /** The centre of the lines, in pixels from the left of the box. */
  readonly middle: number;
}

export interface Size {
  readonly width: number;
  readonly height: number;
}

const TEXT_LIMIT = 168;
/** The limit for boxes of several nodes: enough for the kind of a block, its shape and its count. */
const GROUP_LIMIT = 320;
const LINE_HEIGHT: Readonly<Record<string, number>> = { title: 15, name: 13.5, detail: 12.5, note: 12.5 };
/** The width in pixels of the + of a box that opens. */
export const HANDLE_WIDTH = 22;
/** The padding of each shape in pixels: [left and right, top, bottom]. */
const INSETS: Readonly<Record<SceneNode["kind"], readonly [number, number, number]>> = {
  op: [12, 6, 6],
  constant: [12, 6, 6],
  variable: [13, 12, 7],
  placeholder: [20, 6, 6],
  return: [20, 6, 6],
  control: [17, 6, 6],
  scope: [14, 8, 8],
  function: [18, 8, 8],
  stub: [12, 4, 4],
};

/** The name of a box or frame: of a group, whose id only programs read, its label. */
export function shownName(id: string, label: string): string {
  return (/(^|\/)#\d+\./.test(id) && label) || id.replace(/\/$/, "");
}

/** The full name of a box, as shown to users. */
export function fullName(node: SceneNode): string {
  return shownName(node.stands_for || node.id, node.label);
}

function counted(what: string, count: number): string {
  return word(count === 1 ? "{what} · 1 node" : "{what} · {count} nodes", {
    what: word(what),
    count: count.toLocaleString("en"),
  });
}

/** The lines of a box: its kind or op, its name, and one detail. The kind is legible without shape and colour. */
export function boxTexts(node: SceneNode): readonly (readonly [string, FontName])[] {
  if (node.kind === "stub") return [[`${node.state === "error" ? "✕" : "↗"} ${node.label || fullName(node)}`, "name"]];
  return node.clash ? [...ownTexts(node), [`✕ ${node.clash}`, "note"]] : ownTexts(node);
}

function ownTexts(node: SceneNode): readonly (readonly [string, FontName])[] {
  const title = (node.op || node.label || node.id) + (node.repeat ? ` ×${node.repeat}` : "");
  const texts: [string, FontName][] = [[node.role === "gradient" ? `∇ ${title}` : title, "title"]];
  if (node.kind === "scope" || (node.kind === "function" && !node.op)) {
    const details = node.detail.split("; ").filter((line) => line);
    return [
      ...texts,
      [counted(node.repeat ? "repeat" : node.kind, node.count), "name"],
      ...details.map((line): [string, FontName] => [line, "detail"]),
    ];
  }
  if (node.label && node.label !== title) texts.push([node.label, "name"]);
  if (node.detail) texts.push([node.detail, "detail"]);
  return texts;
}

/** The limits of boxes whose texts would otherwise look like those of other boxes. */
const limits = new WeakMap<SceneNode, number>();

/** The width in pixels to which the texts of a box are shortened. */
export function textLimit(node: SceneNode): number {
  return limits.get(node) ?? (node.kind === "scope" ? GROUP_LIMIT : TEXT_LIMIT);
}

/** Widens the boxes of a picture whose shortened texts are alike though their texts differ. */
export function distinguish(nodes: readonly SceneNode[]): void {
  const long = nodes.filter((node) => boxTexts(node).some(([text, font]) => textWidth(text, font) > textLimit(node)));
  for (const times of [2, 4, 8]) {
    const whole = new Map<string, string>();
    const alike = new Set<string>();
    const looks = long.map((node) => {
      const shown = boxLook(node)
        .lines.map(({ text }) => text)
        .join("\n");
      const full = boxTexts(node).join("\n");
      if ((whole.get(shown) ?? full) !== full) alike.add(shown);
      whole.set(shown, full);
      return { node, shown };
    });
    if (alike.size === 0) return;
    for (const { node, shown } of looks) if (alike.has(shown)) limits.set(node, times * TEXT_LIMIT);
  }
}

/** Text and size of one box. */
export function boxLook(node: SceneNode): Look {
  const [side, top, bottom] = INSETS[node.kind];
  const lines: Line[] = [];
  let y = top + (node.repeat ? STACK : 0);
  let widest = 0;
  for (const [raw, font] of boxTexts(node)) {
    const text = ellipsize(raw, font, textLimit(node), font === "name" || font === "title");
    const height = LINE_HEIGHT[font] ?? 13;
    lines.push({ text, font, y: y + height * 0.76 });
    widest = Math.max(widest, textWidth(text, font));
    y += height;
  }
  const handle = node.expandable ? HANDLE_WIDTH : 0;
  const width = Math.max(Math.ceil(widest) + 2 * side, 48) + handle;
  return { width, height: Math.ceil(y + bottom), lines, middle: (width - handle) / 2 };
}

/** True if a size is a number; `?` and names are sizes that are known only when the graph runs. */
export function isKnown(size: string): boolean {
  return /^\d+$/.test(size);
}

/** The font of a line's label: bold for errors and for names of unknown sizes. */
export function edgeFont({ error, dims }: SceneEdge): FontName {
  return error || dims.some(({ text }) => text.length > 1 && !isKnown(text)) ? "note" : "label";
}

/** The label of a line between boxes. */
export function edgeText(edge: SceneEdge): string {
  const count = edge.count > 1 ? `${edge.count} × ` : "";
  const label = edge.label ? `${count}${edge.label}` : edge.count > 1 ? `${edge.count} tensors` : "";
  return ellipsize(edge.error ? `✕ ${label}` : label, edgeFont(edge), 150);
}

/** A part of a line's label. Dimensions have a key; those known only at run time are unknown, and stand out. */
export interface LabelPart {
  readonly text: string;
  readonly key?: string;
  readonly unknown?: boolean;
}

/** The label of a line, split into dimensions. */
export function labelParts({ dims }: SceneEdge, text: string): LabelPart[] {
  const open = text.lastIndexOf("[");
  if (dims.length === 0 || open < 0 || !text.endsWith("]"))
    return text.endsWith(" ?") ? [{ text: text.slice(0, -1) }, { text: "?", unknown: true }] : [{ text }];
  const parts = dims.flatMap(({ text: size, key }, place) => [
    { text: place > 0 ? "," : "" },
    { text: size, key, unknown: !isKnown(size) },
  ]);
  return [{ text: text.slice(0, open + 1) }, ...parts, { text: "]" }];
}

export function edgeLabelSize(edge: SceneEdge): Size | null {
  const text = edgeText(edge);
  return text ? { width: Math.ceil(textWidth(text, edgeFont(edge))) + 8, height: 13 } : null;
}

export function groupText(group: SceneGroup): string {
  const mark = group.kind === "function" ? "ƒ " : group.role === "gradient" ? "∇ " : "";
  return ellipsize(mark + (group.label || group.id), "group", 220, true);
}

/** The size of a frame's header: its name, and the − that closes it. */
export function groupLabelSize(group: SceneGroup): Size {
  return { width: Math.ceil(textWidth(groupText(group), "group")) + 34, height: 16 };
}
