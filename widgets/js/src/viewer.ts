// The viewer: takes scenes and answers from its host, and ties picture, inspector, outline, search and controls together.
import { Camera } from "./camera";
import { h, iconButton, s } from "./dom";
import { engineUrl } from "./engines/load";
import { standaloneSvg } from "./export_svg";
import { copyText, download } from "./files";
import type { ExportFormat, ExportMessage, FromKernel, FromViewer, Renderer, SceneMessage } from "./generated";
import { type Geometry, parseGeometry, type Rect, union } from "./geometry";
import { listenToGestures, type Press } from "./gestures";
import type { Handle, Host, MountOptions } from "./host";
import { ICONS } from "./icons";
import { Inspector } from "./inspector";
import { layoutDot } from "./layout_dot";
import { Layouter, Superseded } from "./layouter";
import { legendElement, PLAIN_LENS, patternDefs } from "./legend";
import { MermaidView } from "./mermaid_view";
import { Outline } from "./outline";
import { Picture } from "./picture";
import { Search } from "./search";
import { splitter } from "./splitter";
import { Status } from "./status";
import { installStyle } from "./style";
import { followTheme } from "./theme";
import { Toolbar } from "./toolbar";
import { type Direction, firstBox, walk } from "./walk";

const LAYOUT_LIMIT_MS = 6_000;
const FAST_LAYOUT_LIMIT_MS = 20_000;
const DOUBLE_CLICK_MS = 350;
const ARROWS: Readonly<Record<string, Direction>> = {
  ArrowUp: "up",
  ArrowDown: "down",
  ArrowLeft: "left",
  ArrowRight: "right",
};

let serial = 0;

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A picture ready to be put on the screen. */
interface Prepared {
  readonly geometry: () => Geometry;
  readonly layoutMs: number;
}

class Viewer {
  readonly root: HTMLElement;
  readonly #host: Host;
  readonly #offline: boolean;
  readonly #patterns: string;
  readonly #canvas: HTMLElement;
  readonly #svg: SVGSVGElement;
  readonly #defs: SVGDefsElement;
  readonly #hint: HTMLElement;
  readonly #legendPlace = h("div", { class: "gl-legend-place" });
  readonly #picture: Picture;
  readonly #mermaid: MermaidView;
  readonly #camera: Camera;
  readonly #layouter: Layouter;
  readonly #status = new Status();
  readonly #toolbar: Toolbar;
  readonly #search: Search;
  readonly #inspector: Inspector;
  readonly #outline: Outline;
  readonly #end = new AbortController();
  /** The newest scene that came, and the one that is on the screen. */
  #latest: SceneMessage | null = null;
  #shown: SceneMessage | null = null;
  #geometry: Geometry | null = null;
  #layout: { dot: string; placed: string } | null = null;
  #drawing: Renderer = "graphviz";
  #lens = "";
  #selected = "";
  #inspecting = "";
  /** Whether the user wants the legend open; null as long as the user has not said. */
  #legendOpen: boolean | null = null;
  #settling: ReturnType<typeof setTimeout> | undefined;
  #wanted: { format: ExportFormat; copy: boolean } | null = null;

  constructor(host: Host, options: MountOptions) {
    serial += 1;
    this.#host = host;
    this.#offline = options.offline ?? false;
    this.#patterns = `gl-pattern-${serial}`;
    this.#picture = new Picture(this.#offline, this.#patterns);
    this.#mermaid = new MermaidView(() => engineUrl("mermaid", host));
    this.#layouter = new Layouter(() => engineUrl("graphviz", host));
    this.#search = new Search(
      (query) => this.#send({ type: "find", query }),
      (hit) => this.#reveal(hit.node, hit.name),
      () => this.#canvas.focus(),
    );
    this.#inspector = new Inspector({
      goTo: (id) => this.#reveal(id, id),
      close: () => this.#closeInspector(),
      copy: (text) => void this.#copy(text),
    });
    this.#outline = new Outline({
      select: (id) => this.#goTo(id, false),
      expand: (id) => this.#send({ type: "expand", id }),
      collapse: (id) => this.#send({ type: "collapse", id }),
    });
    this.#toolbar = new Toolbar(
      this.#search.element,
      this.#actions(),
      options.renderers ?? ["graphviz", "mermaid"],
      this.#offline,
    );
    this.#defs = patternDefs(this.#patterns);
    this.#svg = s("svg", { class: "gl-svg" }, this.#defs, this.#picture.world);
    this.#hint = h("div", { class: "gl-hint" }, h("p", {}, "Waiting for the graph…"));
    const zoom = h(
      "div",
      { class: "gl-zoom" },
      iconButton(ICONS.plus, "Zoom in (+)", () => this.#camera.zoom(1.3)),
      iconButton(ICONS.minus, "Zoom out (-)", () => this.#camera.zoom(1 / 1.3)),
      iconButton(ICONS.fit, "Fit the whole graph (f)", () => this.#fit()),
    );
    this.#canvas = h(
      "div",
      {
        class: "gl-canvas",
        tabindex: "0",
        role: "application",
        "aria-roledescription": "dataflow graph",
        "aria-label":
          "Graph. Arrow keys walk along the lines, Enter inspects, Space expands or collapses, f fits, slash searches.",
        keydown: (event: KeyboardEvent) => this.#key(event),
      },
      this.#svg,
      this.#hint,
      this.#legendPlace,
    );
    const stage = h("div", { class: "gl-stage" }, this.#canvas, zoom);
    const body = h(
      "div",
      { class: "gl-body" },
      this.#outline.element,
      stage,
      splitter(this.#inspector.element),
      this.#inspector.element,
    );
    this.root = h(
      "div",
      { class: "graphloupe", "data-busy": "true", "data-renderer": "graphviz" },
      this.#toolbar.element,
      body,
      this.#status.element,
    );
    this.root.addEventListener("keydown", (event) => this.#rootKey(event));
    // Keys belong to the viewer while the focus is inside: JupyterLab's shortcuts (`d d` deletes a cell) match the focused
    // element itself, so the mark that keeps them off must stand on that very element.
    this.root.addEventListener("focusin", ({ target }) => {
      if (target instanceof Element) target.setAttribute("data-lm-suppress-shortcuts", "true");
    });
    if (options.height) this.root.style.setProperty("--gl-height", options.height === "fill" ? "100%" : options.height);
    this.#camera = new Camera(
      this.#picture.world,
      () => ({ width: this.#canvas.clientWidth, height: this.#canvas.clientHeight }),
      (scale) => this.#canvas.classList.toggle("gl-far", scale < 0.4),
    );
    listenToGestures(this.#canvas, this.#camera, (press) => this.#press(press), this.#end.signal);
    followTheme(this.root, this.#end.signal);
    this.#watchSize();
  }

  start(): void {
    const stop = this.#host.onMessage((message) => this.#guard(() => this.#receive(message)));
    this.#end.signal.addEventListener("abort", stop);
    this.#send({ type: "ready" });
    // A page that goes away takes its views along without disposing of them.
    window.addEventListener("pagehide", () => this.#send({ type: "closed" }), { signal: this.#end.signal });
    this.#layouter.warmUp().catch((error: unknown) => this.#status.fail(reason(error)));
  }

  dispose(): void {
    this.#send({ type: "closed" });
    this.#end.abort();
    this.#layouter.cancel();
    this.root.remove();
  }

  /** Whatever goes wrong in the viewer ends up in its status line, never in the page. */
  #guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#status.fail(reason(error));
    }
  }

  #send(message: FromViewer): void {
    this.#guard(() => this.#host.send(message));
  }

  #actions(): ConstructorParameters<typeof Toolbar>[1] {
    return {
      lens: (name) => this.#chooseLens(name),
      renderer: (renderer) => this.#send({ type: "renderer", renderer }),
      expandAll: () => this.#send({ type: "expand", id: "*" }),
      collapseAll: () => this.#send({ type: "collapse", id: "*" }),
      outline: () => {
        this.#outline.toggle();
        this.#toolbar.outlineOpen(this.#outline.open);
      },
      export: (format, copy) => void this.#export(format, copy),
    };
  }

  // ---- messages ----------------------------------------------------------------------------------------------------

  #receive(message: FromKernel): void {
    switch (message.type) {
      case "scene":
        if (this.#latest && message.scene.revision < this.#latest.scene.revision) return;
        if (message.lens !== this.#latest?.lens) this.#lens = message.lens;
        this.#latest = message;
        void this.#present(message);
        return;
      case "inspection":
        if (message.inspection.id === this.#inspecting) this.#showInspection(message);
        return;
      case "search":
        this.#search.show(message);
        return;
      case "export":
        void this.#exported(message);
        return;
      case "failure":
        this.#status.fail(message.text);
        return;
      case "engine":
        return;
    }
  }

  async #present(message: SceneMessage): Promise<void> {
    this.root.dataset.busy = "true";
    try {
      const prepared = await this.#prepare(message);
      if (message !== this.#latest || this.#end.signal.aborted) return;
      this.#draw(message, prepared);
    } catch (error) {
      if (error instanceof Superseded || message !== this.#latest) return;
      this.root.dataset.busy = "false";
      this.#status.fail(reason(error));
    }
  }

  async #prepare(message: SceneMessage): Promise<Prepared> {
    const { scene } = message;
    const start = performance.now();
    if (message.renderer === "mermaid") {
      this.#layouter.cancel();
      const svg = await this.#mermaid.render(message.mermaid);
      return { geometry: () => this.#mermaid.show(svg, scene), layoutMs: performance.now() - start };
    }
    const placed = scene.nodes.length === 0 ? null : await this.#layoutText(message);
    const geometry = placed === null ? EMPTY : parseGeometry(placed, scene);
    return { geometry: () => geometry, layoutMs: performance.now() - start };
  }

  async #layoutText({ scene }: SceneMessage): Promise<string> {
    const dot = layoutDot(scene);
    if (this.#layout?.dot === dot) {
      this.#layouter.cancel();
      return this.#layout.placed;
    }
    const placed = await this.#layouter.layout(dot, LAYOUT_LIMIT_MS).catch((error: unknown) => {
      if (error instanceof Superseded) throw error;
      this.#status.say("This graph is hard to lay out: taking shortcuts…");
      return this.#layouter.layout(layoutDot(scene, true), FAST_LAYOUT_LIMIT_MS);
    });
    this.#layout = { dot, placed };
    return placed;
  }

  #draw(message: SceneMessage, { geometry: place, layoutMs }: Prepared): void {
    const { scene, renderer, focus } = message;
    const before = this.#geometry;
    const first = this.#shown === null;
    const hadFocus = this.#svg.contains(document.activeElement);
    const sameRenderer = this.#drawing === renderer;
    this.#useRenderer(renderer);
    const geometry = place();
    this.#geometry = geometry;
    this.#shown = message;
    if (renderer === "graphviz") this.#picture.draw(scene, geometry);
    this.#hint.hidden = scene.nodes.length > 0;
    if (scene.nodes.length === 0) this.#emptyHint();
    this.#applyLens();
    this.#outline.update(scene);
    if (this.#selected) this.#mark(this.#selected);
    if (first || !sameRenderer) this.#camera.follow(this.#bounds(), null, false);
    else if (this.#camera.following) this.#camera.follow(this.#bounds(), this.#news(), true);
    else if (before) this.#holdView(before, geometry);
    if (hadFocus && !this.#svg.contains(document.activeElement)) this.#canvas.focus({ preventScroll: true });
    this.#status.say(scene.title ? `${scene.title}${scene.summary ? ` · ${scene.summary}` : ""}` : scene.summary);
    if (focus) this.#goTo(focus, true);
    else if (this.#inspector.shown) this.#inspect(this.#inspector.shown);
    this.#report(message, layoutMs);
  }

  /** Tells, once the browser has painted, how long the picture took. */
  #report(message: SceneMessage, layoutMs: number): void {
    const tell = (): void => {
      if (this.#end.signal.aborted || message !== this.#shown) return;
      const delay = message.sent_at > 0 ? Date.now() - message.sent_at : 0;
      const { revision } = message.scene;
      const { dataset } = this.root;
      dataset.revision = String(revision);
      dataset.delayMs = delay.toFixed(1);
      dataset.layoutMs = layoutMs.toFixed(1);
      dataset.renderer = message.renderer;
      if (message === this.#latest) dataset.busy = "false";
      this.#status.drawn(message, message.sent_at > 0 ? delay : null);
      this.#send({ type: "drawn", revision, delay_ms: delay, layout_ms: layoutMs, renderer: message.renderer });
      this.#layouter.warmUp().catch((error: unknown) => this.#status.fail(reason(error)));
    };
    afterPaint(tell);
  }

  #useRenderer(renderer: Renderer): void {
    if (renderer === this.#drawing) return;
    this.#drawing = renderer;
    const [comes, goes] = renderer === "mermaid" ? [this.#mermaid, this.#picture] : [this.#picture, this.#mermaid];
    goes.clear();
    goes.world.replaceWith(comes.world);
    this.#camera.attach(comes.world);
  }

  #emptyHint(): void {
    this.#hint.replaceChildren(
      h("p", { class: "gl-hint-title" }, "The graph is empty"),
      h("p", {}, "Add a node in a cell, for example"),
      h("code", {}, 'x = gc.placeholder(gc.float32, [None, 64], name="x")'),
      h("p", {}, "and it appears here."),
    );
  }

  // ---- window ------------------------------------------------------------------------------------------------------

  #bounds(): Rect | null {
    const geometry = this.#geometry;
    if (!geometry) return null;
    return geometry.nodes.size > 0 ? { x: 0, y: 0, width: geometry.width, height: geometry.height } : null;
  }

  /** Where boxes are new, changed or in error, if that is not everywhere. */
  #news(): Rect | null {
    const scene = this.#shown?.scene;
    const news = (scene?.nodes ?? []).filter(({ state }) => state !== "normal" && state !== "stale");
    if (!scene || news.length === scene.nodes.length) return null;
    return union(news.flatMap(({ id }) => this.#rectOf(id) ?? []));
  }

  #fit(): void {
    this.#camera.fit(this.#bounds());
  }

  /** The user looks at a place of their own: the box they chose, or the one in the middle, stays where it is. */
  #holdView(before: Geometry, after: Geometry): void {
    const kept =
      after.nodes.has(this.#selected) && before.nodes.has(this.#selected)
        ? this.#selected
        : this.#middleBox(before, after);
    const [from, to] = [before.nodes.get(kept), after.nodes.get(kept)];
    if (from && to) this.#camera.hold(from, to);
  }

  #middleBox(before: Geometry, after: Geometry): string {
    const middle = this.#camera.middle();
    let best = "";
    let lowest = Infinity;
    for (const [id, rect] of before.nodes) {
      if (!after.nodes.has(id)) continue;
      const distance = Math.hypot(rect.x + rect.width / 2 - middle.x, rect.y + rect.height / 2 - middle.y);
      if (distance < lowest) [best, lowest] = [id, distance];
    }
    return best;
  }

  #watchSize(): void {
    let known = "";
    const observer = new ResizeObserver(() => {
      const { clientWidth: width, clientHeight: height } = this.#canvas;
      const { clientWidth: across, clientHeight: down } = this.root;
      const narrow = across < 640 || (across < 900 && across < down);
      this.root.classList.toggle("gl-narrow", narrow);
      const size = `${width}x${height}`;
      if (size === known || width < 10) return;
      const appeared = known === "";
      known = size;
      // With the inspector open the picture first stays put: it must not slide away under a double click.
      if (this.#camera.following && (appeared || !this.#inspector.shown)) {
        this.#camera.follow(this.#bounds(), null, false);
      }
      const chosen = this.#rectOf(this.#selected);
      if (chosen && !this.#camera.following) this.#camera.ensureVisible(chosen);
    });
    observer.observe(this.#canvas);
    observer.observe(this.root);
    this.#end.signal.addEventListener("abort", () => observer.disconnect());
  }

  // ---- choosing ----------------------------------------------------------------------------------------------------

  #press({ target, double }: Press): void {
    const box = target.closest<SVGElement>("[data-node-id]");
    const frame = target.closest<SVGElement>("[data-group-id]");
    const action = target.closest("[data-action]")?.getAttribute("data-action");
    const id = box?.dataset.nodeId ?? frame?.dataset.groupId;
    if (!id) {
      this.#canvas.focus({ preventScroll: true });
      return this.#unselect();
    }
    if (action === "expand") return this.#send({ type: "expand", id });
    if (action === "collapse") return this.#send({ type: "collapse", id });
    if (double) return this.#toggle(id);
    this.#choose(id, true);
  }

  #choose(id: string, inspect: boolean): void {
    const node = this.#shown?.scene.nodes.find((other) => other.id === id);
    this.#mark(id);
    this.#element(id)?.focus({ preventScroll: true });
    if (inspect) this.#inspect(node?.stands_for || id);
  }

  #inspect(id: string): void {
    this.#inspecting = id;
    this.#send({ type: "inspect", id });
  }

  #element(id: string): SVGGraphicsElement | null {
    return this.#drawing === "mermaid" ? this.#mermaid.nodeElement(id) : this.#picture.nodeElement(id);
  }

  #mark(id: string): void {
    this.#selected = id;
    this.root.dataset.selected = id;
    this.#picture.select(id);
    this.#mermaid.select(id);
    this.#outline.select(id);
  }

  #unselect(): void {
    this.#mark("");
    this.#closeInspector();
  }

  #closeInspector(): void {
    this.#inspector.close();
    this.root.classList.remove("gl-inspecting");
  }

  #showInspection({ inspection }: { inspection: Parameters<Inspector["show"]>[0] }): void {
    this.#inspector.show(inspection);
    this.root.classList.add("gl-inspecting");
    const rect = this.#rectOf(inspection.id) ?? this.#rectOf(this.#selected);
    // Later, so that the second press of a double click still meets the same box.
    clearTimeout(this.#settling);
    this.#settling = setTimeout(() => {
      if (this.#camera.following && this.#camera.refit(this.#bounds())) return;
      if (rect) this.#camera.ensureVisible(rect);
    }, DOUBLE_CLICK_MS);
  }

  #rectOf(id: string): Rect | null {
    return this.#geometry?.nodes.get(id) ?? this.#geometry?.groups.get(id) ?? null;
  }

  /** Opens or closes a box: a closed scope opens, an open frame closes, a node closes the frame around it. */
  #toggle(id: string): void {
    const scene = this.#shown?.scene;
    if (!scene) return;
    const node = scene.nodes.find((other) => other.id === id);
    if (node?.kind === "stub") return this.#reveal(node.stands_for, node.stands_for);
    if (node?.expandable) return this.#send({ type: "expand", id });
    if (!node && scene.groups.some((group) => group.id === id)) this.#send({ type: "collapse", id });
  }

  /** Brings a box of this picture into view, or asks the kernel to open what hides it. */
  #reveal(id: string, name: string): void {
    if (this.#rectOf(id)) return this.#goTo(id, true);
    this.#send({ type: "reveal", name });
  }

  #goTo(id: string, pulse: boolean): void {
    const rect = this.#rectOf(id);
    if (!rect) return;
    this.#mark(id);
    this.#camera.focus(rect);
    if (pulse) (this.#drawing === "mermaid" ? this.#mermaid : this.#picture).pulse(id);
    this.#inspect(id);
  }

  // ---- keyboard ----------------------------------------------------------------------------------------------------

  #rootKey(event: KeyboardEvent): void {
    const typing = event.target instanceof Element && event.target.matches("input, select, textarea");
    if (event.defaultPrevented || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") {
      event.preventDefault();
      this.#search.focus();
    }
    if (event.key === "Escape") {
      this.#unselect();
      this.#canvas.focus({ preventScroll: true });
    }
  }

  #key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const direction = ARROWS[event.key];
    const keys: Readonly<Record<string, () => void>> = {
      Enter: () => this.#enter(),
      " ": () => this.#space(),
      f: () => this.#fit(),
      "0": () => this.#fit(),
      "+": () => this.#camera.zoom(1.3),
      "=": () => this.#camera.zoom(1.3),
      "-": () => this.#camera.zoom(1 / 1.3),
    };
    const work = direction ? () => this.#step(direction, event.shiftKey) : keys[event.key];
    if (!work) return;
    event.preventDefault();
    work();
  }

  #enter(): void {
    if (!this.#selected) return this.#step("down", false);
    if (this.#inspector.shown === this.#selected) return this.#toggle(this.#selected);
    this.#choose(this.#selected, true);
  }

  #space(): void {
    const node = this.#shown?.scene.nodes.find((other) => other.id === this.#selected);
    if (node && !node.expandable && node.group) return this.#toggle(node.group);
    this.#toggle(this.#selected);
  }

  #step(direction: Direction, pan: boolean): void {
    if (pan) {
      const step = 60;
      const dx = direction === "left" ? step : direction === "right" ? -step : 0;
      const dy = direction === "up" ? step : direction === "down" ? -step : 0;
      return this.#camera.pan(dx, dy);
    }
    const geometry = this.#geometry;
    const scene = this.#shown?.scene;
    if (!geometry || !scene) return;
    const next = this.#selected ? walk(direction, this.#selected, scene, geometry) : firstBox(geometry);
    if (!next) return;
    this.#choose(next, Boolean(this.#inspector.shown));
    const rect = this.#rectOf(next);
    if (rect) this.#camera.ensureVisible(rect);
  }

  // ---- lens and export ---------------------------------------------------------------------------------------------

  #chooseLens(name: string): void {
    this.#lens = name;
    this.#applyLens();
    this.#send({ type: "lens", lens: name });
  }

  #applyLens(): void {
    const scene = this.#shown?.scene;
    if (!scene || !this.#shown) return;
    const lens = scene.lenses.find(({ name }) => name === this.#lens) ?? scene.lenses[0];
    const name = lens?.name ?? "";
    this.root.dataset.lens = name;
    this.#picture.setLens(name);
    const open = this.#legendOpen ?? (name !== PLAIN_LENS && this.#drawing === "graphviz");
    const seen = this.#drawing === "graphviz" ? lens : undefined;
    const legend = legendElement(scene, seen, this.#patterns, open, (now) => {
      if (now !== open) this.#legendOpen = now;
      this.#camera.covered = legend.offsetHeight;
      if (this.#camera.following) this.#camera.follow(this.#bounds(), null, true);
    });
    this.#legendPlace.replaceChildren(legend);
    this.#camera.covered = legend.offsetHeight;
    this.#toolbar.update(scene.lenses, name, this.#shown.renderer);
  }

  async #export(format: ExportFormat, copy: boolean): Promise<void> {
    this.#wanted = { format, copy };
    if (format !== "svg") return this.#send({ type: "want_export", format });
    const bounds = this.#bounds();
    const world = this.#drawing === "mermaid" ? this.#mermaid.world : this.#picture.world;
    if (!bounds) return this.#status.fail("There is no picture to export yet");
    const chosen = this.#selected;
    this.#mark("");
    const text = standaloneSvg(world, this.#defs, bounds, getComputedStyle(this.#canvas).backgroundColor);
    this.#mark(chosen);
    await this.#exported({ type: "export", format, name: "graph.svg", text });
  }

  async #exported({ format, name, text }: ExportMessage): Promise<void> {
    const wanted = this.#wanted;
    if (wanted?.format !== format) return;
    this.#wanted = null;
    if (wanted.copy) return this.#copy(text);
    download(name || `graph.${format}`, text, format === "svg" ? "image/svg+xml" : "text/plain");
    this.#status.say(`Saved ${name}`);
  }

  async #copy(text: string): Promise<void> {
    try {
      await copyText(text);
      this.#status.say("Copied");
    } catch (error) {
      this.#status.fail(reason(error));
    }
  }
}

const EMPTY: Geometry = { width: 0, height: 0, nodes: new Map(), groups: new Map(), edges: new Map() };

/** Runs once the browser has painted; a page that does not paint now is not waited for. */
function afterPaint(work: () => void): void {
  let done = false;
  const once = (): void => {
    if (done) return;
    done = true;
    work();
  };
  requestAnimationFrame(() => requestAnimationFrame(once));
  setTimeout(once, 400);
}

/** Puts a viewer into an element. */
export function mount(element: HTMLElement, host: Host, options: MountOptions = {}): Handle {
  installStyle(element);
  const viewer = new Viewer(host, options);
  element.append(viewer.root);
  viewer.start();
  return { dispose: () => viewer.dispose() };
}
