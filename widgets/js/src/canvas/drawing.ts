// The common part of all drawings of a scene: marks on boxes, frames and edges, lens, selection.

import { setAttributes } from "../dom";
import { fullName, shownName } from "../scene/boxes";
import { deviceShortener } from "../scene/device_names";
import type { Colocation, LensMark, Scene, SceneEdge, SceneGroup, SceneNode } from "../scene/generated";
import { DEVICES_LENS } from "../scene/hulls";
import { oneLine } from "../scene/measure";
import { spokenInputs } from "../scene/spoken";
import type { Traced } from "../scene/trace";
import { PLAIN_LENS } from "./legend";
import { Obstacles } from "./obstacles";

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
  /** The places that tags must leave free. */
  protected abstract obstacles(): Obstacles;
  /** Shows a lens's tag over a box, where it covers no obstacle, and makes it one; null removes it. */
  protected abstract tag(box: SVGGraphicsElement, node: SceneNode, mark: LensMark | null, obstacles: Obstacles): void;
  /** Shows a lens's tag on a line in place of its label, as `tag` does; null removes it. */
  protected abstract tagLine(id: string, mark: LensMark | null, obstacles: Obstacles): void;
  /** Draws hulls around the boxes of these groups, in place of all others; their names become obstacles. */
  protected abstract enclose(groups: readonly Colocation[], obstacles: Obstacles): void;
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
    const obstacles = lens ? this.obstacles() : new Obstacles();
    this.enclose(lens === DEVICES_LENS ? scene.colocations : [], obstacles);
    for (const edge of scene.edges) {
      const element = this.lineElement(edge.id);
      const mark = edge.lenses[lens];
      if (!element) continue;
      setAttributes(element, { "data-tone": (mark?.tone ?? 0) & 7 || null, "data-lens-text": mark?.text || null });
      this.tagLine(edge.id, lens === DEVICES_LENS && mark ? mark : null, obstacles);
    }
    for (const node of scene.nodes) {
      const element = this.nodeElement(node.id);
      if (!element) continue;
      const mark = node.lenses[lens] ?? null;
      const tone = (mark?.tone ?? 0) & 7;
      setAttributes(element, { "data-tone": tone || null, "data-lens-text": mark?.text || null });
      this.fill(element, tone ? `url(#${this.patterns}-${tone})` : "");
      const tagged = mark && hasNewText(mark, node, outgoing.get(node.id) ?? NOTHING);
      this.tag(element, node, tagged ? { ...mark, text: short(mark.text) } : null, obstacles);
    }
  }
}
