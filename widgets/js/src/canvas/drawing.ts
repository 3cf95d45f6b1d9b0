// The common part of all drawings of a scene: marks on boxes, frames and edges, lens, selection.

import { s, setAttributes } from "../dom";
import { fullName, type Size, shownName } from "../scene/boxes";
import { deviceShortener } from "../scene/device_names";
import type { Colocation, LensMark, Scene, SceneEdge, SceneGroup, SceneNode } from "../scene/generated";
import { ellipsize, oneLine, textWidth } from "../scene/measure";
import type { Point } from "../scene/places";
import { spokenInputs } from "../scene/spoken";
import type { Traced } from "../scene/trace";
import { DEVICES_LENS, PLAIN_LENS } from "./legend";

type Words = ReadonlySet<string>;

const NOTHING: Words = new Set();
/** Marks that outlast another scene. */
const LASTING = ["gl-selected", "gl-pulse", "gl-off", "gl-touched"];

/** The text of a box for screen readers. */
export function nodeLabel(node: SceneNode): string {
  const parts = [
    node.role === "gradient" ? "gradient" : "",
    node.op || node.kind,
    fullName(node),
    node.detail,
    spokenInputs(node),
    node.lenses.shapes && node.lenses.shapes.text !== node.detail ? `gives ${node.lenses.shapes.text}` : "",
    node.count > 1 ? `${node.count} nodes` : "",
    node.state === "normal" ? "" : node.state,
    node.error,
  ];
  return oneLine(parts.filter(Boolean).join(", "));
}

/** Replaces the viewer's classes of an element; others are kept. */
function dress(element: Element, ...classes: string[]): void {
  const kept = [...element.classList].filter((name) => !name.startsWith("gl-") || LASTING.includes(name));
  setAttributes(element, { class: [...kept, ...classes.filter(Boolean)].join(" ") });
}

export function markBox(element: SVGGraphicsElement, node: SceneNode): void {
  const { kind, role, state } = node;
  dress(element, "gl-node", `gl-${kind}`, `gl-role-${role}`, `gl-state-${state}`, node.clash ? "gl-clash" : "");
  setAttributes(element, {
    "data-node-id": node.id,
    "data-mirrors": node.mirrors || null,
    "data-name": fullName(node),
    "data-state": state,
    "data-role": role,
    "data-kind": kind,
    role: "img",
    "aria-label": nodeLabel(node),
    tabindex: "-1",
  });
}

export function markFrame(element: SVGGraphicsElement, { id, kind, role, label }: SceneGroup): void {
  dress(element, "gl-group", `gl-${kind}`, `gl-role-${role}`);
  setAttributes(element, {
    "data-group-id": id,
    "data-role": role,
    role: "group",
    "aria-label": oneLine(`open ${kind} ${shownName(id, label)}`),
  });
}

/** Marks a line. Of the paths of clashing sizes, the first is solid and the others are dashed. */
export function markLine(element: SVGGraphicsElement, edge: SceneEdge): void {
  const { kind, role, error, clash } = edge;
  dress(
    element,
    "gl-edge",
    `gl-${kind}`,
    `gl-role-${role}`,
    `gl-state-${edge.state}`,
    error ? "gl-error" : "",
    clash > 0 ? "gl-chain" : "",
    clash > 1 ? "gl-chain-other" : "",
  );
  setAttributes(element, {
    "data-edge-id": edge.id,
    "data-error": error || null,
    "data-role": role,
    role: "img",
    "aria-label": oneLine(`${kind} from ${edge.source} to ${edge.target}, ${edge.label} ${error}`),
  });
}

/** The labels of the lines that leave each box. */
function outgoingLabels(scene: Scene): ReadonlyMap<string, Words> {
  const outgoing = new Map<string, Set<string>>();
  for (const { source, label } of scene.edges) outgoing.set(source, (outgoing.get(source) ?? new Set()).add(label));
  return outgoing;
}

/** True if the text of a lens is not in the picture yet. */
function hasNewText(mark: LensMark, node: SceneNode, outgoing: Words): boolean {
  return (mark.tone & 7) !== 0 && node.kind !== "stub" && mark.text !== node.detail && !outgoing.has(mark.text);
}

/** The width in pixels that the text of a tag may always have, even over a narrow box. */
const TAG_LIMIT = 60;

const MOST_ROWS = 3;
const ROW_HEIGHT = 13;

/** The rows of a tag that is too long for one: instances of a repeat, or classes with the number of their nodes first. */
function rowsOf(text: string): readonly string[] {
  const rows = text.includes("; ")
    ? text.split("; ")
    : text.split(/(?<= × [\d,]+), /).map((row) => row.replace(/^(.*) × ([\d,]+)$/, "$2 × $1"));
  return rows.length > MOST_ROWS ? [...rows.slice(0, MOST_ROWS - 1), "and more"] : rows;
}

/** A text of at most `limit` pixels: the first of its parts between commas if they fit, or else its beginning. */
function fitted(text: string, limit: number): string {
  const parts = text.split(", ");
  let shown = text;
  while (parts.length > 1 && textWidth(shown, "label") > limit) {
    parts.pop();
    shown = `${parts.join(", ")} …`;
  }
  return ellipsize(shown, "label", limit);
}

/**
 * A small tag over the upper edge of a box, with the lens's text for it; further rows are at the lower edge. `space` is that at the left
 * of the box.
 */
export function lensTag(
  { text }: LensMark,
  { width: boxWidth, height: boxHeight }: Size,
  space: () => number = () => 0,
): SVGElement[] {
  const least = Math.max(boxWidth - 30, TAG_LIMIT);
  const long = textWidth(text, "label") > least;
  const limit = long ? Math.max(least, boxWidth - 24 + space()) : least;
  const rows = textWidth(text, "label") > limit ? rowsOf(text) : [text];
  return rows.flatMap((row, i) => {
    const shown = fitted(row, limit);
    if (!shown) return [];
    const width = textWidth(shown, "label") + 10;
    // The tag of a narrow box stands out at its left: the badge is at the right.
    const x = Math.min(6, boxWidth - 14 - width);
    const y = i > 0 ? boxHeight + 5 + ROW_HEIGHT * (i - 1) : 0;
    return [
      s("rect", { x, y: y - 9, width, height: ROW_HEIGHT, rx: 6.5 }),
      s("text", { x: x + width / 2, y: y + 1 }, shown),
    ];
  });
}

/** A small tag on a line, with the lens's text for it. */
export function lineTag({ text: full }: LensMark, { x, y }: Point): SVGElement[] {
  const text = oneLine(full);
  const width = textWidth(text, "label") + 10;
  return [s("rect", { x: x - width / 2, y: y - 7, width, height: 14, rx: 7 }), s("text", { x, y: y + 3.5 }, text)];
}

export abstract class Drawing {
  abstract readonly world: SVGGElement;
  /** The prefix of the ids of the pattern definitions with which lenses fill boxes. */
  patterns = "";
  #scene: Scene | null = null;
  #lens = "";

  /** The element of a box, for focus and tests. */
  abstract nodeElement(id: string): SVGGraphicsElement | null;
  protected abstract frameElement(id: string): SVGGraphicsElement | null;
  protected abstract lineElement(id: string): SVGGraphicsElement | null;
  /** Fills a box; "" restores its fill without a lens. */
  protected abstract fill(box: SVGGraphicsElement, paint: string): void;
  /** Shows a lens's tag over a box; null removes it. */
  protected abstract tag(box: SVGGraphicsElement, node: SceneNode, mark: LensMark | null): void;
  /** Shows a lens's tag on a line in place of its label; null removes it. */
  protected abstract tagLine(id: string, mark: LensMark | null): void;
  /** Draws hulls around the boxes of these groups, in place of all others. */
  protected abstract enclose(groups: readonly Colocation[]): void;
  protected abstract empty(): void;

  /** Called by subclasses once the elements of `scene` are at their places. */
  protected drawn(scene: Scene): void {
    this.#scene = scene;
    this.#applyLens();
  }

  clear(): void {
    this.#scene = null;
    this.empty();
  }

  /** Changes the lens; nothing moves. */
  setLens(lens: string): void {
    this.#lens = lens;
    this.#applyLens();
  }

  /** Marks the selected boxes and frames and the lines that touch them. */
  select(ids: ReadonlySet<string>): void {
    for (const { id } of this.#scene?.nodes ?? []) {
      const element = this.nodeElement(id);
      element?.classList.toggle("gl-selected", ids.has(id));
      if (element) setAttributes(element, { "aria-current": ids.has(id) ? "true" : null });
    }
    for (const { id } of this.#scene?.groups ?? []) {
      this.frameElement(id)?.classList.toggle("gl-selected", ids.has(id));
    }
    for (const { id: line, source, target } of this.#scene?.edges ?? []) {
      this.lineElement(line)?.classList.toggle("gl-touched", ids.has(source) || ids.has(target));
    }
  }

  /** Dims everything that was not traced; null dims nothing. */
  highlight(traced: Traced | null): void {
    for (const { id } of this.#scene?.nodes ?? []) {
      this.nodeElement(id)?.classList.toggle("gl-off", traced !== null && !traced.boxes.has(id));
    }
    for (const { id } of this.#scene?.edges ?? []) {
      this.lineElement(id)?.classList.toggle("gl-off", traced !== null && !traced.lines.has(id));
    }
  }

  /** Draws attention to a box for a moment. */
  pulse(id: string): void {
    const element = this.nodeElement(id) ?? this.frameElement(id);
    element?.classList.remove("gl-pulse");
    element?.getBoundingClientRect();
    element?.classList.add("gl-pulse");
  }

  /** Boxes of tone 0 are unmarked and have their text in the tooltip only. */
  #applyLens(): void {
    const scene = this.#scene;
    if (!scene) return;
    const lens = this.#lens === PLAIN_LENS ? "" : this.#lens;
    const outgoing = outgoingLabels(scene);
    const marks = scene.nodes.flatMap(({ lenses }) => lenses[lens]?.text ?? []);
    const short =
      lens === DEVICES_LENS ? deviceShortener(marks) : (text: string) => text.replace(/ % of the [^,]+/, " %");
    for (const node of scene.nodes) {
      const element = this.nodeElement(node.id);
      if (!element) continue;
      const mark = node.lenses[lens] ?? null;
      const tone = (mark?.tone ?? 0) & 7;
      setAttributes(element, { "data-tone": tone || null, "data-lens-text": mark?.text || null });
      this.fill(element, tone ? `url(#${this.patterns}-${tone})` : "");
      const tagged = mark && hasNewText(mark, node, outgoing.get(node.id) ?? NOTHING);
      this.tag(element, node, tagged ? { ...mark, text: short(mark.text) } : null);
    }
    for (const edge of scene.edges) {
      const element = this.lineElement(edge.id);
      const mark = edge.lenses[lens];
      if (!element) continue;
      setAttributes(element, { "data-tone": (mark?.tone ?? 0) & 7 || null, "data-lens-text": mark?.text || null });
      this.tagLine(edge.id, lens === DEVICES_LENS && mark ? mark : null);
    }
    this.enclose(lens === DEVICES_LENS ? scene.colocations : []);
  }
}
