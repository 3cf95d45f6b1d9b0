// The second renderer: the scene as Mermaid text, drawn by the Mermaid engine, and sanitized.
import { s, setAttributes } from "../dom";
import { sanitizeSvg } from "../engines/sanitize";
import { toMermaid } from "../page/mermaid_text";
import type { LensMark, Scene, SceneEdge, SceneMessage, SceneNode } from "../scene/generated";
import type { Geometry, Rect } from "../scene/geometry";
import { installStyle } from "../style/style";
import { Drawing, markBox, markFrame, markLine } from "./drawing";
import { Obstacles } from "./obstacles";
import { boxTag } from "./tags";

interface MermaidEngine {
  /** The style sheet of its drawings. */
  readonly css: string;
  render(text: string): Promise<string>;
}

/** The index in the scene that an element id contains, such as 12 in `graphloupe-mermaid-1-flowchart-n12-7`. */
function indexIn(id: string, letter: "n" | "g"): number {
  const match = new RegExp(`(?:^|-)${letter}(\\d+)(?:-\\d+)?$`).exec(id);
  return match ? Number(match[1]) : -1;
}

/** The edges of each pair of boxes, in scene order, by Mermaid's id for them without its final number. */
function edgesByEnds({ nodes, edges }: Scene): Map<string, SceneEdge[]> {
  const index = new Map(nodes.map((node, number) => [node.id, number]));
  const byEnds = new Map<string, SceneEdge[]>();
  for (const edge of edges) {
    const key = `L_n${index.get(edge.source)}_n${index.get(edge.target)}`;
    byEnds.set(key, [...(byEnds.get(key) ?? []), edge]);
  }
  return byEnds;
}

/** Moves the title of a frame to its corner: lines enter in the middle, and frames in it begin 15 pixels below. */
function moveTitle(frame: Element): void {
  const [x, y] = ["x", "y"].map((name) => Number(frame.querySelector("rect")?.getAttribute(name)));
  const title = frame.querySelector(".cluster-label");
  if (title && x !== undefined && y !== undefined) setAttributes(title, { transform: `translate(${x + 8},${y})` });
}

/** The elements that form a box in Mermaid's drawing. */
const SHAPES = ".label-container, .label-container path, .outer-path path";

/** The most boxes that Mermaid draws: it takes a second for every 50, in which the page stands still. */
const MERMAID_BOXES = 150;

/** A message with a renderer that can draw its picture. */
export function drawable(message: SceneMessage): SceneMessage {
  const tooMany = message.renderer === "mermaid" && message.scene.nodes.length > MERMAID_BOXES;
  return tooMany ? { ...message, renderer: "graphviz" } : message;
}

/** The reason why Graphviz draws a scene although Mermaid was chosen. */
export function tooManyForMermaid({ nodes }: Scene): string {
  return `Mermaid draws up to ${MERMAID_BOXES} boxes. Graphviz draws these ${nodes.length}; close some for Mermaid`;
}

export class MermaidView extends Drawing {
  readonly world = s("g", { class: "gl-world gl-mermaid" });
  readonly #engine: () => Promise<string>;
  #nodes = new Map<string, SVGGraphicsElement>();
  #frames = new Map<string, SVGGraphicsElement>();
  /** The places of the boxes, and those of the labels of lines and frames. */
  #places: ReadonlyMap<string, Rect> = new Map();
  #labels: readonly Rect[] = [];
  #lines = new Map<string, SVGPathElement>();

  constructor(engine: () => Promise<string>) {
    super();
    this.#engine = engine;
  }

  nodeElement(id: string): SVGGraphicsElement | null {
    return this.#nodes.get(id) ?? null;
  }

  protected frameElement(id: string): SVGGraphicsElement | null {
    return this.#frames.get(id) ?? null;
  }

  protected lineElement(id: string): SVGGraphicsElement | null {
    return this.#lines.get(id) ?? null;
  }

  protected fill(box: SVGGraphicsElement, paint: string): void {
    for (const shape of box.querySelectorAll<SVGElement>(SHAPES)) shape.style.fill = paint;
  }

  /** The boxes of a group name it in their tooltips and in the inspector only. */
  protected enclose(): void {}

  /** Lines have the text of a lens in their tooltips only. */
  protected tagLine(): void {}

  protected obstacles(): Obstacles {
    const obstacles = new Obstacles();
    for (const [id, place] of this.#places) obstacles.add(place, id);
    for (const place of this.#labels) obstacles.add(place);
    return obstacles;
  }

  protected tag(box: SVGGraphicsElement, { id }: SceneNode, mark: LensMark | null, obstacles: Obstacles): void {
    box.querySelector(":scope > .gl-mark")?.remove();
    const place = this.#places.get(id);
    if (!mark || !place) return;
    const { x, y } = box.getBBox?.() ?? { x: 0, y: 0 };
    box.append(s("g", { class: "gl-mark", transform: `translate(${x},${y})` }, ...boxTag(mark, place, id, obstacles)));
  }

  protected empty(): void {
    this.#nodes = new Map();
    this.#places = new Map();
    this.#labels = [];
    this.#frames = new Map();
    this.#lines = new Map();
    this.world.replaceChildren();
  }

  /** Draws a scene to clean SVG, not yet in the page. */
  async render(scene: Scene): Promise<SVGSVGElement> {
    const engine = (await import(/* @vite-ignore */ await this.#engine())) as MermaidEngine;
    installStyle(this.world, engine.css);
    return sanitizeSvg(await engine.render(toMermaid(scene)));
  }

  /** Shows a drawing and gives its boxes the ids of the scene. Returns their places. */
  show(svg: SVGSVGElement, scene: Scene): Geometry {
    const [, , width = 100, height = 100] = (svg.getAttribute("viewBox") ?? "").split(/[\s,]+/).map(Number);
    setAttributes(svg, { width, height, style: null });
    this.empty();
    this.world.append(svg);
    const nodes = new Map<string, Rect>();
    const groups = new Map<string, Rect>();
    for (const element of svg.querySelectorAll<SVGGraphicsElement>("g.node")) {
      const node = scene.nodes[indexIn(element.id, "n")];
      if (!node) continue;
      markBox(element, node);
      this.#nodes.set(node.id, element);
      nodes.set(node.id, this.#place(element, svg));
    }
    for (const element of svg.querySelectorAll<SVGGraphicsElement>("g.cluster")) {
      const group = scene.groups[indexIn(element.id, "g")];
      if (!group) continue;
      markFrame(element, group);
      moveTitle(element);
      this.#frames.set(group.id, element);
      groups.set(group.id, this.#place(element, svg));
    }
    this.#markEdges(svg, scene);
    this.#places = nodes;
    const labels = svg.querySelectorAll<SVGGraphicsElement>(".edgeLabel > .label, .cluster-label");
    this.#labels = [...labels].map((label) => this.#place(label, svg)).filter(({ width }) => width > 0);
    this.drawn(scene);
    return { width, height, nodes, groups, edges: new Map() };
  }

  #markEdges(svg: SVGSVGElement, scene: Scene): void {
    const byEnds = edgesByEnds(scene);
    for (const path of svg.querySelectorAll<SVGPathElement>("path.flowchart-link")) {
      const key = /(L_n\d+_n\d+)_\d+$/.exec(path.dataset.id ?? path.id)?.[1];
      const edge = byEnds.get(key ?? "")?.shift();
      if (!edge) continue;
      markLine(path, edge);
      this.#lines.set(edge.id, path);
    }
  }

  /** The place of an element, in coordinates of the drawing with its upper left corner at 0,0. */
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
