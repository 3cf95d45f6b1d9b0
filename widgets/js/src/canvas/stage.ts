// The window onto the picture: canvas, camera, the two renderers' drawings, legend and hint.

import { focusedIn, h, iconButton, s } from "../dom";
import type { Renderer, Scene } from "../scene/generated";
import { beginning, type Geometry, type Rect, union } from "../scene/geometry";
import type { Size } from "../scene/places";
import type { Traced } from "../scene/trace";
import { ICONS } from "../style/icons";
import { Camera, type View } from "./camera";
import type { Drawing } from "./drawing";
import { standaloneSvg } from "./export_svg";
import { listenToGestures, type Press } from "./gestures";
import { legendElement, PLAIN_LENS, patternDefs } from "./legend";
import type { MermaidView } from "./mermaid_view";
import { Minimap } from "./minimap";
import { Picture } from "./picture";

/** The frames of boxes that were closed before. */
const openedIn = (before: Geometry | null, after: Geometry): readonly string[] =>
  [...(before?.nodes.keys() ?? [])].filter((id) => after.groups.has(id));

let serial = 0;

export interface StageOptions {
  readonly fixed: boolean;
  readonly mermaid: MermaidView;
  press(press: Press): void;
  /** The user drew a rectangle around these boxes. */
  surround(ids: readonly string[]): void;
  /** The camera moved. */
  moved(): void;
  readonly signal: AbortSignal;
}

export class Stage {
  readonly element: HTMLElement;
  readonly canvas: HTMLElement;
  readonly camera: Camera;
  readonly minimap: Minimap;
  /** Called after the user has asked for the whole picture. */
  fitted: () => void = () => {};
  readonly #svg: SVGSVGElement;
  readonly #defs: SVGDefsElement;
  readonly #hint = h("div", { class: "gl-hint" }, h("p", {}, "Waiting for the graph…"));
  readonly #legendPlace = h("div");
  readonly #patterns: string;
  readonly #picture: Picture;
  readonly #mermaid: MermaidView;
  #drawing: Renderer = "graphviz";
  #scene: Scene | null = null;
  #geometry: Geometry | null = null;
  /** The size of the window while a scene is drawn: the browser would lay out the unfinished page to tell it. */
  #size: Size | null = null;
  /** True if the user opened the legend, false if they closed it, null before that. */
  #legendOpen: boolean | null = null;
  #legend: HTMLDetailsElement | null = null;

  constructor({ fixed, mermaid, press, surround, moved, signal }: StageOptions) {
    serial += 1;
    this.#patterns = `gl-pattern-${serial}`;
    this.#picture = new Picture(fixed);
    this.#mermaid = mermaid;
    for (const drawing of [this.#picture, mermaid]) drawing.patterns = this.#patterns;
    this.#defs = patternDefs(this.#patterns);
    this.#svg = s("svg", { class: "gl-svg" }, this.#defs, this.#picture.world);
    const canvas = { class: "gl-canvas", tabindex: "0", role: "application", "aria-roledescription": "dataflow graph" };
    const layer = h("div", { class: "gl-layer" }, this.#svg);
    this.canvas = h("div", canvas, layer, this.#hint);
    this.camera = new Camera(
      layer,
      this.#picture.world,
      () => this.#size ?? this.#measure(),
      (view) => {
        this.#showSeen(view);
        moved();
      },
    );
    this.minimap = new Minimap((x, y) => this.camera.centreOn(x, y));
    const zoom = h(
      "div",
      { class: "gl-zoom" },
      iconButton(ICONS.plus, "Zoom in (+)", () => this.camera.zoom(1.3)),
      iconButton(ICONS.minus, "Zoom out (-)", () => this.camera.zoom(1 / 1.3)),
      iconButton(ICONS.fit, "Fit the whole graph (f)", () => this.fit()),
    );
    this.camera.covers = () => this.#covers();
    this.element = h("div", { class: "gl-stage" }, this.canvas, this.minimap.element, this.#legendPlace, zoom);
    listenToGestures(this.canvas, this.camera, press, (rect) => surround(this.#boxesIn(rect)), signal);
  }

  /** The places of the controls over the window. An open legend has room of its own. */
  #covers(): readonly Rect[] {
    const { left, top } = this.canvas.getBoundingClientRect();
    const controls = [...this.element.children].filter((child) => child !== this.canvas);
    const shown = controls.flatMap((child) => (child.classList.length ? [child] : [...child.children]));
    return shown.flatMap((child) => {
      const { x, y, width, height } = child.getBoundingClientRect();
      return width > 0 && height > 0 ? [{ x: x - left, y: y - top, width, height }] : [];
    });
  }

  get geometry(): Geometry | null {
    return this.#geometry;
  }

  /** Draws a scene. `place` adds it to the page and returns its geometry; `chosen` is the id of the selected box. */
  show(scene: Scene, renderer: Renderer, place: () => Geometry, chosen: string): void {
    const before = this.#geometry;
    this.#size = this.#measure();
    const news = this.#news(scene);
    const hadFocus = this.#svg.contains(focusedIn(this.#svg));
    const fresh = this.#scene === null || this.#drawing !== renderer;
    this.#use(renderer);
    const geometry = place();
    this.#geometry = geometry;
    this.#scene = scene;
    this.camera.size = geometry;
    this.camera.beginning = beginning(geometry);
    this.minimap.draw(geometry);
    if (renderer === "graphviz") this.#picture.draw(scene, geometry);
    this.#hint.hidden = scene.nodes.length > 0;
    if (scene.nodes.length === 0) this.#emptyHint();
    const follows = this.camera.following && (news.length > 0 || this.camera.showsAll(this.bounds()));
    if (fresh) this.camera.follow(this.bounds(), null, false);
    else if (follows || !this.#holdView(before, geometry, chosen))
      this.#follow([...news, ...openedIn(before, geometry)]);
    this.#size = null;
    if (hadFocus && !this.#svg.contains(focusedIn(this.#svg))) this.focus();
  }

  /** Applies a lens of the scene with its legend. Returns the name of the lens in effect. */
  look(name: string): string {
    const scene = this.#scene;
    if (!scene) return "";
    const lens = scene.lenses.find((other) => other.name === name) ?? scene.lenses[0];
    this.#view.setLens(lens?.name ?? "");
    const open = this.#legendOpen ?? (lens !== undefined && lens.name !== PLAIN_LENS);
    const legend = legendElement(scene, lens, this.#patterns, open, (now) => {
      if (now !== open) this.#legendOpen = now;
      this.#uncover();
      this.camera.resettle(this.bounds(), true);
    });
    this.#legend = legend;
    this.#legendPlace.replaceChildren(legend);
    const { covered } = this.camera;
    this.#uncover();
    if (this.camera.covered !== covered) this.camera.resettle(this.bounds(), false);
    return lens?.name ?? "";
  }

  /** Adapts to a window of another size, in which the legend has another height, too. `appeared` if there was no window before. */
  resize(appeared: boolean): void {
    this.#uncover();
    if (appeared && this.camera.following) this.camera.follow(this.bounds(), null, false);
    else this.camera.resettle(this.bounds(), false);
  }

  /** Leaves room for an open legend. */
  #uncover(): void {
    this.camera.covered = this.#legend?.open ? this.#legend.offsetHeight : 0;
  }

  select(ids: ReadonlySet<string>): void {
    this.#view.select(ids);
  }

  /** Dims everything that was not traced; null dims nothing. */
  highlight(traced: Traced | null): void {
    this.#view.highlight(traced);
  }

  pulse(id: string): void {
    this.#view.pulse(id);
  }

  /** Puts the keyboard focus on a box, or on the whole canvas. */
  focus(id = ""): void {
    (this.#view.nodeElement(id) ?? this.canvas).focus({ preventScroll: true });
  }

  /** The place of a box or frame in the picture. */
  rectOf(id: string): Rect | null {
    return this.#geometry?.nodes.get(id) ?? this.#geometry?.groups.get(id) ?? null;
  }

  bounds(): Rect | null {
    const geometry = this.#geometry;
    return geometry?.nodes.size ? { x: 0, y: 0, width: geometry.width, height: geometry.height } : null;
  }

  fit(): void {
    this.camera.fit(this.bounds());
    this.fitted();
  }

  /** The picture as an SVG file; null if there is no picture. */
  svgText(): string | null {
    const bounds = this.bounds();
    if (!bounds) return null;
    return standaloneSvg(this.#view.world, this.#defs, bounds, getComputedStyle(this.canvas).backgroundColor);
  }

  #measure(): Size {
    return { width: this.canvas.clientWidth, height: this.canvas.clientHeight };
  }

  #showSeen({ x, y, scale }: View): void {
    const { width, height } = this.#size ?? this.#measure();
    const seen = { x: -x / scale, y: -y / scale, width: width / scale, height: height / scale };
    if (this.#geometry) this.minimap.show(seen, this.#geometry, { width, height });
  }

  #boxesIn({ x, y, width, height }: Rect): readonly string[] {
    const inside = (rect: Rect): boolean =>
      rect.x < x + width && rect.x + rect.width > x && rect.y < y + height && rect.y + rect.height > y;
    return [...(this.#geometry?.nodes ?? [])].filter(([, rect]) => inside(rect)).map(([id]) => id);
  }

  get #view(): Drawing {
    return this.#drawing === "mermaid" ? this.#mermaid : this.#picture;
  }

  #use(renderer: Renderer): void {
    if (renderer === this.#drawing) return;
    const goes = this.#view;
    this.#drawing = renderer;
    goes.clear();
    goes.world.replaceWith(this.#view.world);
    this.camera.attach(this.#view.world);
  }

  #emptyHint(): void {
    this.#hint.replaceChildren(
      h("p", { class: "gl-hint-title" }, "The graph is empty"),
      h("p", {}, "Add a node in a cell, for example"),
      h("code", {}, 'x = gc.placeholder(gc.float32, [None, 64], name="x")'),
      h("p", {}, "and it appears here."),
    );
  }

  /** The boxes that are new, changed or erroneous in this scene; none if all of them are. */
  #news({ nodes }: Scene): readonly string[] {
    const before = new Map(this.#scene?.nodes.map(({ id, state }) => [id, state]));
    const news = nodes.filter(({ id, state }) => state !== "normal" && before.get(id) !== state);
    return news.length === nodes.length ? [] : news.map(({ id }) => id);
  }

  #follow(news: readonly string[]): void {
    if (!this.camera.following) return;
    this.camera.follow(this.bounds(), union(news.flatMap((id) => this.rectOf(id) ?? [])), true);
  }

  /** Keeps the opened or selected box, or the one in the middle, at its place on the screen. False if none of them is left. */
  #holdView(before: Geometry | null, after: Geometry, chosen: string): boolean {
    if (!before) return false;
    const [opened = "", another] = [...before.nodes.keys()].filter((id) => after.groups.has(id));
    const [box, frame] = [before.nodes.get(opened), after.groups.get(opened)];
    if (box && frame && !another) {
      this.camera.hold(box, frame);
      this.camera.ensureVisible(frame);
      return true;
    }
    const stays = (id: string): boolean => before.nodes.has(id) && after.nodes.has(id);
    const kept = stays(chosen) ? chosen : this.#middleBox(before, stays);
    const [from, to] = [before.nodes.get(kept), after.nodes.get(kept)];
    if (from && to) this.camera.hold(from, to);
    return Boolean(from && to);
  }

  #middleBox(before: Geometry, stays: (id: string) => boolean): string {
    const middle = this.camera.middle();
    let best = "";
    let lowest = Infinity;
    for (const [id, rect] of before.nodes) {
      if (!stays(id)) continue;
      const distance = Math.hypot(rect.x + rect.width / 2 - middle.x, rect.y + rect.height / 2 - middle.y);
      if (distance < lowest) [best, lowest] = [id, distance];
    }
    return best;
  }
}
