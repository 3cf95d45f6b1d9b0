// Draws a laid-out scene as SVG. Elements are keyed by id and keep their identity from one scene to the next.

import { reducedMotion, s, setAttributes } from "../dom";
import {
  boxLook,
  edgeFont,
  edgeText,
  fullName,
  groupText,
  HANDLE_WIDTH,
  type Look,
  labelParts,
  shownName,
  textLimit,
} from "../scene/boxes";
import type { Colocation, LensMark, Scene, SceneEdge, SceneGroup, SceneNode } from "../scene/generated";
import { type Geometry, type Point, type Rect, type Route, routeBase, routePath, routePlaces } from "../scene/geometry";
import { type Hull, hullOf } from "../scene/hulls";
import { oneLine, textWidth } from "../scene/measure";
import { arrowPath, detailPath, outlinePath } from "../scene/shapes";
import { badge } from "./badge";
import { Drawing, markBox, markFrame, markLine } from "./drawing";
import { Obstacles } from "./obstacles";
import { boxTag, lineTag } from "./tags";

const ANIMATED_BOXES = 150;
const MOVE_MS = 260;

/** An element with its current content. */
interface Kept {
  readonly element: SVGGElement;
  signature: string;
  /** The current route of a line. */
  route?: string;
  /** The places for the tag of a line, the best first. */
  places: readonly Point[];
  place: Rect | null;
  /** The further places that tags leave free: the label of a line, the name and the left edge of a frame, the badge of a box. */
  apart: readonly Rect[];
}

function tooltip(node: SceneNode): string {
  const shape = node.lenses.shapes?.text ?? "";
  const detail = node.detail === shape ? "" : node.detail;
  const lines = [fullName(node), node.op && node.op !== fullName(node) ? node.op : "", detail, shape];
  if (node.mirrors) lines.push(`differentiates ${node.mirrors}`);
  if (node.cell) lines.push(`made by ${node.cell}`);
  if (node.together) lines.push(node.together);
  if (node.clash) lines.push(`clashes further on: ${node.clash}`);
  if (node.state === "stale") lines.push("left by a cell that failed; running it again replaces it");
  if (node.error) lines.push(`Error: ${node.error}`);
  return lines.filter(Boolean).join("\n");
}

function expandHandle(look: Look): SVGGElement {
  const x = look.width - HANDLE_WIDTH / 2 - 5;
  const y = look.height / 2 + 1;
  return s(
    "g",
    { class: "gl-handle", "data-action": "expand", transform: `translate(${x},${y})` },
    s("title", {}, "Expand"),
    s("rect", { x: -8, y: -8, width: 16, height: 16, rx: 4 }),
    s("path", { d: "M-4,0H4M0,-4V4" }),
  );
}

function drawBox(node: SceneNode): (SVGElement | null)[] {
  const look = boxLook(node);
  const details = detailPath(node.kind, look.width, look.height, node.repeat > 0);
  const texts = look.lines.map((line) =>
    s(
      "text",
      { class: line.font === "note" ? "gl-detail gl-clash-note" : `gl-${line.font}`, x: look.middle, y: line.y },
      line.text,
    ),
  );
  return [
    s("title", {}, tooltip(node)),
    s("path", { class: "gl-shape", d: outlinePath(node.kind, look.width, look.height, node.repeat > 0) }),
    s("path", { class: "gl-lens", d: outlinePath(node.kind, look.width, look.height, node.repeat > 0) }),
    details ? s("path", { class: "gl-shape-detail", d: details }) : null,
    ...texts,
    node.expandable ? expandHandle(look) : null,
    s("g", { class: "gl-mark" }),
    badge(node.state, look.width - 3),
  ];
}

function drawGroup(group: SceneGroup, rect: Rect, fixed: boolean): (SVGElement | null)[] {
  const label = groupText(group);
  const handle = s(
    "g",
    { class: "gl-handle", "data-action": "collapse", transform: "translate(16,15)" },
    s("title", {}, "Collapse"),
    s("rect", { x: -8, y: -8, width: 16, height: 16, rx: 4 }),
    s("path", { d: "M-4,0H4" }),
  );
  return [
    s("title", {}, `${shownName(group.id, group.label)}${group.count ? `\n${group.count} nodes` : ""}`),
    s("rect", { class: "gl-frame", width: rect.width, height: rect.height, rx: 10 }),
    fixed ? null : handle,
    s("text", { class: "gl-group-label", x: fixed ? 12 : 30, y: 19 }, label),
  ];
}

function drawEdge(edge: SceneEdge, labelled: boolean): (SVGElement | null)[] {
  const text = labelled ? edgeText(edge) : "";
  const width = textWidth(text, edgeFont(edge)) + 6;
  const title = `${edge.source} → ${edge.target}\n${edge.label}${edge.error ? `\nError: ${edge.error}` : ""}`;
  return [
    s("title", {}, title),
    s("path", { class: "gl-reach" }),
    s("path", { class: "gl-line" }),
    edge.kind === "reference" ? s("path", { class: "gl-line-core" }) : null,
    s("path", { class: "gl-arrow" }),
    text ? s("rect", { class: "gl-label-back", x: -width / 2, y: -7, width, height: 14, rx: 3 }) : null,
    text ? s("text", { class: "gl-edge-label", y: 3.5 }, ...drawLabel(edge, text)) : null,
  ];
}

/** Leads a line along a route. With each layout most lines change by fractions of a pixel: their elements stay. */
function lead(line: SVGGElement, route: Route): void {
  const path = routePath(route);
  const d = `${path}L${route.tip.x},${route.tip.y}`;
  const label = { transform: route.label && `translate(${route.label.x},${route.label.y})` };
  const places: Record<string, Parameters<typeof setAttributes>[1]> = {
    "gl-reach": { d },
    "gl-line": { d },
    "gl-line-core": { d: path },
    "gl-arrow": { d: arrowPath(routeBase(route), route.tip) },
    "gl-label-back": label,
    "gl-edge-label": label,
  };
  for (const part of line.children) setAttributes(part, places[part.getAttribute("class") ?? ""] ?? {});
}

/** The label of a line, in which those dimensions that are known only at run time stand out. */
function drawLabel(edge: SceneEdge, text: string): (SVGElement | string)[] {
  return labelParts(edge, text).map(({ text: part, key, unknown }) => {
    const classes = [key === undefined ? "" : "gl-dim", unknown ? "gl-unknown" : ""].filter(Boolean).join(" ");
    return classes ? s("tspan", { class: classes, "data-dim": key ?? null }, part) : part;
  });
}

/**
 * A hull, in the layers of shapes and of names: without a name that would cover something. Two strokes make its outline: a wide one and, over
 * it, a narrower one.
 */
function drawHull(
  group: Colocation,
  { strokes, text, name }: Hull,
  obstacles: Obstacles,
): [SVGElement, readonly SVGElement[]] {
  const paths = (className: string, more: number): SVGElement[] =>
    strokes.map(([d, width]) => s("path", { class: className, d, "stroke-width": width + more }));
  const title = (): SVGElement => s("title", {}, [group.text, ...group.reasons].join("\n"));
  const shape = s(
    "g",
    { class: "gl-hull", role: "img", "aria-label": oneLine(group.text) },
    title(),
    ...paths("gl-hull-edge", 2.4),
    ...paths("gl-hull-inside", 0),
  );
  if (obstacles.meets(name, "")) return [shape, []];
  obstacles.add(name);
  const label = s("text", { x: name.x + name.width / 2, y: name.y + 10.5 }, text);
  return [shape, [s("g", { class: "gl-hull-name" }, title(), s("rect", { ...name, rx: 7 }), label)]];
}

/** Keeps the elements of `ids`, adds missing ones, and removes the others. Returns the ids of the added ones. */
function keep(layer: SVGGElement, kept: Map<string, Kept>, ids: readonly string[]): Set<string> {
  const wanted = new Set(ids);
  for (const [id, { element }] of kept) {
    if (wanted.has(id)) continue;
    element.remove();
    kept.delete(id);
  }
  const made = new Set<string>();
  for (const id of ids) {
    if (kept.has(id)) continue;
    const element = s("g");
    layer.append(element);
    kept.set(id, { element, signature: "", places: [], place: null, apart: [] });
    made.add(id);
  }
  return made;
}

function redraw(kept: Kept, signature: string, draw: () => (SVGElement | null)[]): boolean {
  if (kept.signature === signature) return false;
  kept.signature = signature;
  kept.element.replaceChildren(...draw().filter((child) => child !== null));
  return true;
}

export class Picture extends Drawing {
  readonly world: SVGGElement;
  readonly #layers = { hulls: s("g"), edges: s("g"), groups: s("g"), names: s("g"), nodes: s("g") };
  readonly #nodes = new Map<string, Kept>();
  readonly #groups = new Map<string, Kept>();
  readonly #edges = new Map<string, Kept>();
  /** The layers of the lines, by their order from below. */
  readonly #lineLayers = new Map<number, SVGGElement>();
  readonly #fixed: boolean;

  constructor(fixed: boolean) {
    super();
    this.#fixed = fixed;
    // Frames lie over the lines, so that no line crosses a frame's name. The mouse reaches the lines through them.
    this.world = s("g", { class: "gl-world" }, ...Object.values(this.#layers));
  }

  nodeElement(id: string): SVGGElement | null {
    return this.#nodes.get(id)?.element ?? null;
  }

  protected frameElement(id: string): SVGGElement | null {
    return this.#groups.get(id)?.element ?? null;
  }

  protected lineElement(id: string): SVGGElement | null {
    return this.#edges.get(id)?.element ?? null;
  }

  protected fill(box: SVGGraphicsElement, paint: string): void {
    box.querySelector(".gl-lens")?.setAttribute("fill", paint || "none");
  }

  protected obstacles(): Obstacles {
    const obstacles = new Obstacles();
    for (const [id, { place }] of this.#nodes) if (place) obstacles.add(place, id);
    for (const kept of [this.#nodes, this.#groups, this.#edges])
      for (const [id, { apart }] of kept)
        for (const place of apart) obstacles.add(place, kept === this.#edges ? id : "");
    return obstacles;
  }

  protected tag(box: SVGGraphicsElement, { id }: SceneNode, mark: LensMark | null, obstacles: Obstacles): void {
    const place = this.#nodes.get(id)?.place;
    box.querySelector(".gl-mark")?.replaceChildren(...(mark && place ? boxTag(mark, place, id, obstacles) : []));
  }

  protected tagLine(id: string, mark: LensMark | null, obstacles: Obstacles): void {
    const kept = this.#edges.get(id);
    // Most lines have no tag, and looking for one in each takes long.
    if (!kept || (!mark && !kept.element.classList.contains("gl-tagged"))) return;
    kept.element.querySelector(":scope > .gl-mark")?.remove();
    const tag = mark ? lineTag(mark, kept.places, id, obstacles) : [];
    kept.element.classList.toggle("gl-tagged", tag.length > 0);
    if (tag.length > 0) kept.element.append(s("g", { class: "gl-mark" }, ...tag));
  }

  protected enclose(groups: readonly Colocation[], obstacles: Obstacles): void {
    const drawn = groups.flatMap((group) => {
      const hull = hullOf(group, (id) => this.#nodes.get(id)?.place);
      return hull ? [drawHull(group, hull, obstacles)] : [];
    });
    this.#layers.hulls.replaceChildren(...drawn.map(([shape]) => shape));
    this.#layers.names.replaceChildren(...drawn.flatMap(([, name]) => name));
  }

  protected empty(): void {
    this.enclose([], new Obstacles());
    for (const kept of [this.#nodes, this.#groups, this.#edges]) keep(this.world, kept, []);
  }

  /** Draws a scene at the given places. Elements that stay move there from their former places. */
  draw(scene: Scene, geometry: Geometry): void {
    const animated = scene.nodes.length <= ANIMATED_BOXES && this.#nodes.size > 0 && !reducedMotion();
    this.#drawGroups(scene, geometry, animated);
    this.#drawEdges(scene, geometry, animated);
    this.#drawNodes(scene, geometry, animated);
    this.drawn(scene);
  }

  #drawGroups(scene: Scene, geometry: Geometry, animated: boolean): void {
    const drawn = scene.groups.filter((group) => geometry.groups.has(group.id));
    const made = keep(
      this.#layers.groups,
      this.#groups,
      drawn.map((group) => group.id),
    );
    // The largest frames first, so that inner frames lie on top.
    const area = (group: SceneGroup): number => {
      const rect = geometry.groups.get(group.id);
      return rect ? rect.width * rect.height : 0;
    };
    for (const group of [...drawn].sort((a, b) => area(b) - area(a))) {
      const kept = this.#groups.get(group.id);
      const rect = geometry.groups.get(group.id);
      if (!kept || !rect) continue;
      redraw(kept, JSON.stringify([group, rect.width, rect.height]), () => drawGroup(group, rect, this.#fixed));
      markFrame(kept.element, group);
      kept.apart = framePlaces(group, rect, this.#fixed);
      this.#layers.groups.append(kept.element);
      move(kept, rect, made.has(group.id), animated);
    }
  }

  #drawEdges(scene: Scene, geometry: Geometry, animated: boolean): void {
    const drawn = scene.edges.filter((edge) => geometry.edges.has(edge.id));
    const made = keep(
      this.#layers.edges,
      this.#edges,
      drawn.map((edge) => edge.id),
    );
    for (const edge of drawn) {
      const kept = this.#edges.get(edge.id);
      const route = geometry.edges.get(edge.id);
      if (!kept || !route) continue;
      const labelled = route.label !== null;
      const places = JSON.stringify(route);
      const changed = redraw(kept, JSON.stringify([edge, labelled]), () => drawEdge(edge, labelled));
      if (changed || kept.route !== places) lead(kept.element, route);
      kept.route = places;
      kept.places = routePlaces(route);
      kept.apart = labelPlace(edge, route);
      markLine(kept.element, edge);
      const layer = this.#lineLayer(edge.error || edge.clash ? Infinity : -extent(route));
      if (kept.element.parentNode !== layer) layer.append(kept.element);
      if (animated && (changed || made.has(edge.id))) appear(kept.element, MOVE_MS * 0.6);
    }
  }

  /** The layer of the lines of an order: long lines lie under short ones, whose labels they would cross out, and errors on top. */
  #lineLayer(order: number): SVGGElement {
    const known = this.#lineLayers.get(order);
    if (known) return known;
    const layer = s("g");
    const above = [...this.#lineLayers.keys()].filter((other) => other > order);
    this.#layers.edges.insertBefore(layer, this.#lineLayers.get(Math.min(...above)) ?? null);
    this.#lineLayers.set(order, layer);
    return layer;
  }

  #drawNodes(scene: Scene, geometry: Geometry, animated: boolean): void {
    const drawn = scene.nodes.filter((node) => geometry.nodes.has(node.id));
    const made = keep(
      this.#layers.nodes,
      this.#nodes,
      drawn.map((node) => node.id),
    );
    for (const node of drawn) {
      const kept = this.#nodes.get(node.id);
      const rect = geometry.nodes.get(node.id);
      if (!kept || !rect) continue;
      redraw(kept, JSON.stringify([{ ...node, lenses: node.lenses.shapes, group: "" }, textLimit(node)]), () =>
        drawBox(node),
      );
      markBox(kept.element, node);
      kept.apart = badgePlace(node, rect);
      move(kept, rect, made.has(node.id), animated);
    }
  }
}

function labelPlace(edge: SceneEdge, { label }: Route): readonly Rect[] {
  const width = label ? textWidth(edgeText(edge), edgeFont(edge)) + 6 : 0;
  return label ? [{ x: label.x - width / 2, y: label.y - 7, width, height: 14 }] : [];
}

function framePlaces(group: SceneGroup, { x, y, height }: Rect, fixed: boolean): readonly Rect[] {
  const width = textWidth(groupText(group), "group") + (fixed ? 6 : 26);
  return [
    { x: x + 6, y: y + 6, width, height: 17 },
    { x: x - 1, y, width: 2, height },
  ];
}

function badgePlace({ state }: SceneNode, { x, y, width }: Rect): readonly Rect[] {
  return state === "normal" ? [] : [{ x: x + width - 11, y: y - 8, width: 16, height: 16 }];
}

/** The order of magnitude of the distance between the ends of a line. Rounding of places rarely changes it. */
function extent(route: Route | undefined): number {
  const start = route?.points[0];
  const distance = route && start ? Math.abs(route.tip.x - start.x) + Math.abs(route.tip.y - start.y) : 0;
  return Math.round(2 * Math.log2(1 + distance));
}

function appear(element: SVGElement, delay = 0): void {
  element.animate?.([{ opacity: 0 }, { opacity: 1 }], {
    duration: MOVE_MS,
    delay,
    fill: "backwards",
    easing: "ease-out",
  });
}

/** Moves an element to its place. Animated, it starts from its former place (FLIP), or fades in if it is new. */
function move(kept: Kept, to: Rect, isNew: boolean, animated: boolean): void {
  const from = kept.place;
  kept.place = to;
  kept.element.setAttribute("transform", `translate(${to.x},${to.y})`);
  if (!animated) return;
  if (isNew || !from) return appear(kept.element);
  if (Math.abs(from.x - to.x) + Math.abs(from.y - to.y) < 0.5) return;
  const at = (rect: Rect): Keyframe => ({ transform: `translate(${rect.x}px,${rect.y}px)` });
  kept.element.animate?.([at(from), at(to)], { duration: MOVE_MS, easing: "cubic-bezier(.2,.7,.3,1)" });
}
