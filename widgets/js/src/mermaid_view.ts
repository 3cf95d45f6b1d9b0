// The second renderer: the kernel's Mermaid text drawn by the Mermaid engine, cleaned, and tied to the same scene.
import { fullName } from "./boxes";
import { s, setAttributes } from "./dom";
import type { LensMark, Scene, SceneEdge } from "./generated";
import type { Geometry, Rect } from "./geometry";
import { PLAIN_LENS } from "./legend";
import { clashClass, lensTag, NOTHING, nodeLabel, outgoingLabels, tells } from "./picture";
import { sanitizeSvg } from "./sanitize";

interface MermaidEngine {
  render(text: string): Promise<string>;
}

/** The scene's index in an element id such as `graphloupe-mermaid-1-flowchart-n12-7`. */
function indexIn(id: string, letter: "n" | "g"): number {
  const match = new RegExp(`(?:^|-)${letter}(\\d+)(?:-\\d+)?$`).exec(id);
  return match ? Number(match[1]) : -1;
}

/** The edges between each two boxes, in the order of the scene, under the id that Mermaid gives them without its number. */
function edgesByEnds({ nodes, edges }: Scene): Map<string, SceneEdge[]> {
  const index = new Map(nodes.map((node, number) => [node.id, number]));
  const byEnds = new Map<string, SceneEdge[]>();
  for (const edge of edges) {
    const key = `L_n${index.get(edge.source)}_n${index.get(edge.target)}`;
    byEnds.set(key, [...(byEnds.get(key) ?? []), edge]);
  }
  return byEnds;
}

/** What Mermaid draws a box of. */
const SHAPES = ".label-container, .label-container path, .outer-path path";

/** The words of a lens over the upper edge of a box, in the box's own coordinates. */
function tag(mark: LensMark, element: SVGGraphicsElement): SVGGElement {
  const { x, y, width } = element.getBBox?.() ?? { x: 0, y: 0, width: 100 };
  return s("g", { class: "gl-mark", transform: `translate(${x},${y})` }, ...lensTag(mark, width));
}

export class MermaidView {
  readonly world = s("g", { class: "gl-world gl-mermaid" });
  readonly #engine: () => Promise<string>;
  /** The prefix of the pattern definitions that lenses fill boxes with. */
  patterns = "";
  #nodes = new Map<string, SVGGraphicsElement>();
  #lines = new Map<string, SVGPathElement>();
  #scene: Scene | null = null;
  #lens = "";

  constructor(engine: () => Promise<string>) {
    this.#engine = engine;
  }

  nodeElement(id: string): SVGGraphicsElement | null {
    return this.#nodes.get(id) ?? null;
  }

  /** Draws Mermaid text to clean SVG, not yet in the page. */
  async render(text: string): Promise<SVGSVGElement> {
    if (!text) throw new Error("the kernel sent no Mermaid text");
    const engine = (await import(/* @vite-ignore */ await this.#engine())) as MermaidEngine;
    return sanitizeSvg(await engine.render(text));
  }

  /** Puts a drawing into the world, marks its boxes with the ids of the scene, and tells where they are. */
  show(svg: SVGSVGElement, scene: Scene): Geometry {
    const [, , width = 100, height = 100] = (svg.getAttribute("viewBox") ?? "").split(/[\s,]+/).map(Number);
    setAttributes(svg, { width, height, style: null });
    this.world.replaceChildren(svg);
    this.#nodes = new Map();
    this.#lines = new Map();
    this.#scene = scene;
    const nodes = new Map<string, Rect>();
    const groups = new Map<string, Rect>();
    for (const element of svg.querySelectorAll<SVGGraphicsElement>("g.node")) {
      const node = scene.nodes[indexIn(element.id, "n")];
      if (!node) continue;
      element.classList.add("gl-node", `gl-${node.kind}`, `gl-role-${node.role}`, `gl-state-${node.state}`);
      if (node.clash) element.classList.add("gl-clash");
      setAttributes(element, {
        "data-node-id": node.id,
        "data-name": fullName(node),
        "data-state": node.state,
        "data-role": node.role,
        "data-kind": node.kind,
        role: "img",
        "aria-label": nodeLabel(node),
        tabindex: "-1",
      });
      this.#nodes.set(node.id, element);
      nodes.set(node.id, this.#place(element, svg));
    }
    for (const element of svg.querySelectorAll<SVGGraphicsElement>("g.cluster")) {
      const group = scene.groups[indexIn(element.id, "g")];
      if (!group) continue;
      element.classList.add("gl-group", `gl-role-${group.role}`);
      setAttributes(element, { "data-group-id": group.id, "data-role": group.role });
      groups.set(group.id, this.#place(element, svg));
    }
    this.#markEdges(svg, scene);
    this.#applyLens();
    return { width, height, nodes, groups, edges: new Map() };
  }

  #markEdges(svg: SVGSVGElement, scene: Scene): void {
    const byEnds = edgesByEnds(scene);
    for (const path of svg.querySelectorAll<SVGPathElement>("path.flowchart-link")) {
      const key = /(L_n\d+_n\d+)_\d+$/.exec(path.dataset.id ?? path.id)?.[1];
      const edge = byEnds.get(key ?? "")?.shift();
      if (!edge) continue;
      path.classList.add("gl-link-line", `gl-${edge.kind}`, `gl-role-${edge.role}`);
      if (edge.error) path.classList.add("gl-error");
      path.classList.add(...clashClass(edge.clash).split(" ").filter(Boolean));
      this.#lines.set(edge.id, path);
      setAttributes(path, { "data-edge-id": edge.id, "data-error": edge.error || null, "data-role": edge.role });
    }
  }

  /** Looks through another lens: the same marks as in the other drawing. */
  setLens(lens: string): void {
    this.#lens = lens;
    this.#applyLens();
  }

  #applyLens(): void {
    const marks = this.#lens !== PLAIN_LENS;
    const outgoing = outgoingLabels(this.#scene);
    for (const node of this.#scene?.nodes ?? []) {
      const element = this.#nodes.get(node.id);
      const mark = marks ? node.lenses[this.#lens] : undefined;
      if (!element) continue;
      const tone = (mark?.tone ?? 0) & 7;
      setAttributes(element, { "data-tone": tone || null, "data-lens-text": mark?.text || null });
      for (const shape of element.querySelectorAll<SVGElement>(SHAPES)) {
        shape.style.fill = tone ? `url(#${this.patterns}-${tone})` : "";
      }
      element.querySelector(":scope > .gl-mark")?.remove();
      if (mark && tells(mark, node, outgoing.get(node.id) ?? NOTHING)) element.append(tag(mark, element));
    }
    for (const edge of this.#scene?.edges ?? []) {
      const mark = marks ? edge.lenses[this.#lens] : undefined;
      const line = this.#lines.get(edge.id);
      if (line)
        setAttributes(line, { "data-tone": (mark?.tone ?? 0) & 7 || null, "data-lens-text": mark?.text || null });
    }
  }

  select(id: string): void {
    for (const [key, element] of this.#nodes) element.classList.toggle("gl-selected", key === id);
  }

  pulse(id: string): void {
    const element = this.nodeElement(id);
    element?.classList.remove("gl-pulse");
    element?.getBoundingClientRect();
    element?.classList.add("gl-pulse");
  }

  clear(): void {
    this.#nodes = new Map();
    this.#lines = new Map();
    this.#scene = null;
    this.world.replaceChildren();
  }

  /** Where an element is, in the coordinates of the drawing with its upper left corner at 0,0. */
  #place(element: SVGGraphicsElement, svg: SVGSVGElement): Rect {
    const outer = svg.getBoundingClientRect();
    const inner = element.getBoundingClientRect();
    const scale = (Number(svg.getAttribute("width")) || 1) / (outer.width || 1);
    return {
      x: (inner.left - outer.left) * scale,
      y: (inner.top - outer.top) * scale,
      width: inner.width * scale,
      height: inner.height * scale,
    };
  }
}
