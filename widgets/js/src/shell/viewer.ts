// The viewer: connects picture, inspector, outline, search and controls with its host.
import { lightDimensions } from "../canvas/dim_light";
import { Exporter } from "../canvas/exporter";
import type { Press } from "../canvas/gestures";
import { MermaidView } from "../canvas/mermaid_view";
import { Stage } from "../canvas/stage";
import { afterPaint, h, ownKeys, reason } from "../dom";
import { Superseded } from "../engines/layouter";
import { engineUrl } from "../engines/load";
import { Inspector } from "../panes/inspector";
import { Outline } from "../panes/outline";
import { Search } from "../panes/search";
import { splitter } from "../panes/splitter";
import { Status } from "../panes/status";
import { Toolbar } from "../panes/toolbar";
import type {
  FailureMessage,
  FromKernel,
  FromViewer,
  FunctionMessage,
  Inspection,
  SceneMessage,
  SceneNode,
} from "../scene/generated";
import type { Geometry } from "../scene/geometry";
import { Layouts } from "../scene/layouts";
import { ARROWS, type Direction, endOfLine, firstBox, PANS, walk } from "../scene/walk";
import type { Host, MountOptions, Overlay } from "./host";
import { Link } from "./link";
import { followTheme } from "./theme";

const DOUBLE_CLICK_MS = 350;
/** A laid-out picture that is not on the screen yet. */
interface Prepared {
  readonly place: () => Geometry;
  readonly layoutMs: number;
}

export class Viewer {
  readonly root: HTMLElement;
  readonly #link: Link;
  readonly #stage: Stage;
  readonly #mermaid: MermaidView;
  readonly #layouts: Layouts;
  readonly #status = new Status();
  readonly #toolbar: Toolbar;
  readonly #search: Search;
  readonly #inspector: Inspector;
  readonly #outline: Outline;
  readonly #exporter: Exporter;
  readonly #end = new AbortController();
  readonly #openFunction: (message: FunctionMessage) => Overlay | null;
  /** The function that lies over the picture. */
  #overlay: Overlay | null = null;
  /** The newest scene, and the one on the screen. */
  #latest: SceneMessage | null = null;
  #shown: SceneMessage | null = null;
  #lens = "";
  #selected = "";
  /** The id of the last box for which the kernel was asked. */
  #inspecting = "";
  #settling: ReturnType<typeof setTimeout> | undefined;

  /** `openFunction` creates the view of a function, which listens to the host itself. */
  constructor(
    host: Host,
    { offline = false, renderers = ["graphviz", "mermaid"], height, bare = false }: MountOptions,
    openFunction: (message: FunctionMessage) => Overlay | null = () => null,
  ) {
    this.#link = new Link(host, (text) => this.#lose(text));
    this.#openFunction = openFunction;
    this.#mermaid = new MermaidView(() => engineUrl("mermaid", host));
    this.#layouts = new Layouts(
      () => engineUrl("graphviz", host),
      () => this.#status.say("This graph is hard to lay out: taking shortcuts…"),
    );
    this.#stage = new Stage({
      offline,
      mermaid: this.#mermaid,
      press: (press) => this.#press(press),
      key: (event) => this.#key(event),
      signal: this.#end.signal,
    });
    this.#search = new Search(
      (query) => this.#send({ type: "find", query }),
      (hit) => this.#reveal(hit.node, hit.name),
      () => this.#stage.focus(),
    );
    const inspector = {
      goTo: (id: string) => this.#reveal(id, id),
      openFunction: (id: string, place: number) => this.#send({ type: "open_function", id, place }),
      close: () => this.#closeInspector(),
      copy: (text: string) => this.#exporter.copy(text),
    };
    this.#inspector = new Inspector(inspector, offline);
    this.#exporter = new Exporter({
      svgText: () => this.#svgText(),
      ask: (format) => this.#send({ type: "want_export", format }),
      say: (text) => this.#status.say(text),
      fail: (text) => this.#status.fail(text),
    });
    this.#outline = new Outline({
      select: (id) => this.#goTo(id, false),
      expand: (id) => this.#send({ type: "expand", id }),
      collapse: (id) => this.#send({ type: "collapse", id }),
    });
    this.#toolbar = new Toolbar(this.#search.element, this.#actions(), renderers, offline);
    this.root = h(
      "div",
      { class: "graphloupe", "data-busy": "true", "data-renderer": "graphviz" },
      bare ? null : this.#toolbar.element,
      h(
        "div",
        { class: "gl-body" },
        this.#outline.element,
        this.#stage.element,
        splitter(this.#inspector.element),
        this.#inspector.element,
      ),
      this.#status.element,
    );
    if (height) this.root.style.setProperty("--gl-height", height === "fill" ? "100%" : height);
    this.root.addEventListener("keydown", (event) => this.#rootKey(event));
    ownKeys(this.root);
    followTheme(this.root, this.#end.signal);
    lightDimensions(this.root, (lines) => this.#tellLit(lines), this.#end.signal);
    this.#watchSize();
  }

  start(): void {
    this.#link.listen((message) => this.#guard(() => this.#receive(message)), this.root, this.#end.signal);
    this.#send({ type: "ready" });
    // A page that is closed does not dispose of its views.
    window.addEventListener("pagehide", () => this.#send({ type: "closed" }), { signal: this.#end.signal });
    this.#warmUp();
  }

  dispose(): void {
    this.#send({ type: "closed" });
    clearTimeout(this.#settling);
    this.#end.abort();
    this.#layouts.cancel();
    this.#overlay?.dispose();
    this.root.remove();
  }

  /** Runs `work`; errors are shown in the status line. */
  #guard(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#status.fail(reason(error));
    }
  }

  #send(message: FromViewer): void {
    this.#guard(() => this.#link.send(message));
  }

  /** Handles the end of the kernel: the picture stays, and the status line says why it no longer changes. */
  #lose(text: string): void {
    this.root.classList.add("gl-lost");
    this.#status.fail(text);
  }

  #warmUp(): void {
    this.#layouts.warmUp().catch((error: unknown) => this.#status.fail(reason(error)));
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
      export: (format, copy) => this.#guard(() => this.#exporter.start(format, copy)),
    };
  }

  // ---- messages ----------------------------------------------------------------------------------------------------

  #receive(message: FromKernel): void {
    switch (message.type) {
      case "scene":
        if (this.#latest && message.scene.revision < this.#latest.scene.revision) return;
        // A lens that was sent before the kernel knew of the user's choice must not undo that choice.
        if (message.lens !== this.#latest?.lens) this.#lens = message.lens;
        this.#latest = message;
        void this.#present(message);
        return;
      case "inspection":
        if (message.inspection.id === this.#inspecting) this.#showInspection(message.inspection);
        return;
      case "search":
        this.#search.show(message);
        return;
      case "export":
        this.#exporter.receive(message);
        return;
      case "failure":
        this.#failed(message);
        return;
      case "function":
        this.#showFunction(message);
        return;
      case "function_closed":
        this.#closeFunction();
        return;
    }
  }

  #showFunction(message: FunctionMessage): void {
    if (this.#overlay) return;
    this.#overlay = this.#openFunction(message);
    if (!this.#overlay) return;
    this.root.append(this.#overlay.root);
    this.root.classList.add("gl-covered");
    this.#overlay.start();
  }

  #closeFunction(): void {
    this.#overlay?.dispose();
    this.#overlay?.root.remove();
    this.#overlay = null;
    this.root.classList.remove("gl-covered");
    this.#stage.focus(this.#selected);
  }

  #failed({ request, text }: FailureMessage): void {
    // Not the user's error: the last cell removed the inspected box.
    if (request !== "inspect" || this.#inspector.shown !== this.#inspecting) return this.#status.fail(text);
    this.#closeInspector();
    this.#status.say(text);
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

  async #prepare({ scene, renderer, mermaid }: SceneMessage): Promise<Prepared> {
    const start = performance.now();
    if (renderer === "mermaid") {
      this.#layouts.cancel();
      const svg = await this.#mermaid.render(mermaid);
      return { place: () => this.#mermaid.show(svg, scene), layoutMs: performance.now() - start };
    }
    const geometry = await this.#layouts.place(scene);
    return { place: () => geometry, layoutMs: performance.now() - start };
  }

  #draw(message: SceneMessage, { place, layoutMs }: Prepared): void {
    const { scene, renderer, focus } = message;
    this.#shown = message;
    this.#stage.show(scene, renderer, place, this.#selected);
    this.#applyLens();
    this.#outline.update(scene);
    if (this.#selected) this.#mark(this.#selected);
    this.#status.describe(scene);
    if (focus) this.#goTo(focus, true);
    else if (this.#inspector.shown) this.#inspect(this.#inspector.shown);
    afterPaint(() => this.#report(message, layoutMs));
  }

  /** Reports the duration of the picture after the browser has painted it. */
  #report(message: SceneMessage, layoutMs: number): void {
    if (this.#end.signal.aborted || message !== this.#shown) return;
    const { renderer, sent_at: sentAt } = message;
    const { revision } = message.scene;
    const delay = sentAt > 0 ? Date.now() - sentAt : 0;
    Object.assign(this.root.dataset, {
      revision,
      delayMs: delay.toFixed(1),
      layoutMs: layoutMs.toFixed(1),
      renderer,
      busy: message !== this.#latest,
    });
    this.#status.drawn(message, sentAt > 0 ? delay : null);
    this.#send({ type: "drawn", revision, delay_ms: delay, layout_ms: layoutMs, renderer });
    this.#warmUp();
  }

  #watchSize(): void {
    const { canvas, camera } = this.#stage;
    let known = "";
    const observer = new ResizeObserver(() => {
      const { clientWidth: across, clientHeight: down } = this.root;
      this.root.classList.toggle("gl-narrow", across < 640 || (across < 900 && across < down));
      const size = `${canvas.clientWidth}x${canvas.clientHeight}`;
      if (size === known || canvas.clientWidth < 10) return;
      const appeared = known === "";
      known = size;
      // When the inspector opens, the picture stays for now: it must not move during a double click.
      if (appeared && camera.following) camera.follow(this.#stage.bounds(), null, false);
      else if (!this.#inspector.shown) camera.resettle(this.#stage.bounds(), false);
      const chosen = this.#stage.rectOf(this.#selected);
      if (chosen && !camera.following) camera.ensureVisible(chosen);
    });
    observer.observe(canvas);
    observer.observe(this.root);
    this.#end.signal.addEventListener("abort", () => observer.disconnect());
  }

  // ---- choosing ----------------------------------------------------------------------------------------------------

  #node(id: string): SceneNode | undefined {
    return this.#shown?.scene.nodes.find((node) => node.id === id);
  }

  #press({ target, double }: Press): void {
    const near = (name: string) => target.closest(`[data-${name}]`)?.getAttribute(`data-${name}`);
    const action = near("action");
    const line = near("edge-id");
    const end = line && this.#shown && endOfLine(line, this.#shown.scene);
    const id = near("node-id") ?? near("group-id") ?? end;
    if (!id) {
      this.#stage.focus();
      return this.#unselect();
    }
    if (action === "expand" || action === "collapse") return this.#send({ type: action, id });
    if (double && !line) return this.#toggle(id);
    this.#choose(id, true);
  }

  #choose(id: string, inspect: boolean): void {
    this.#mark(id);
    this.#stage.focus(id);
    if (inspect) this.#inspect(this.#node(id)?.stands_for || id);
  }

  #inspect(id: string): void {
    this.#inspecting = id;
    this.#send({ type: "inspect", id });
  }

  #mark(id: string): void {
    this.#selected = id;
    this.root.dataset.selected = id;
    this.#stage.select(id);
    this.#outline.select(id);
  }

  #unselect(): void {
    this.#mark("");
    this.#closeInspector();
  }

  #closeInspector(): void {
    this.#inspecting = "";
    this.#inspector.close();
    this.root.classList.remove("gl-inspecting");
  }

  #showInspection(inspection: Inspection): void {
    const { camera } = this.#stage;
    this.#inspector.show(inspection);
    this.root.classList.add("gl-inspecting");
    const rect = this.#stage.rectOf(inspection.id) ?? this.#stage.rectOf(this.#selected);
    // Delayed, so that the second press of a double click meets the same box.
    clearTimeout(this.#settling);
    this.#settling = setTimeout(() => {
      if (camera.following && camera.refit(this.#stage.bounds())) return;
      if (rect) camera.ensureVisible(rect);
    }, DOUBLE_CLICK_MS);
  }

  /** Opens a closed scope, closes an open frame, and follows a stub to its box. */
  #toggle(id: string): void {
    const node = this.#node(id);
    if (node?.kind === "stub") return this.#reveal(node.stands_for, node.stands_for);
    if (node?.expandable) return this.#send({ type: "expand", id });
    if (!node && this.#shown?.scene.groups.some((group) => group.id === id)) this.#send({ type: "collapse", id });
  }

  /** Brings a box into view; if it is hidden, asks the kernel to open the boxes around it. */
  #reveal(id: string, name: string): void {
    if (this.#stage.rectOf(id)) return this.#goTo(id, true);
    this.#send({ type: "reveal", name });
  }

  #goTo(id: string, pulse: boolean): void {
    const rect = this.#stage.rectOf(id);
    if (!rect) return;
    this.#mark(id);
    this.#stage.camera.focus(rect);
    if (pulse) this.#stage.pulse(id);
    // The clicked link disappears with the inspector's former content. A focus outside the viewer stays.
    if (pulse && this.root.contains(document.activeElement)) this.#stage.focus(id);
    this.#inspect(id);
  }

  // ---- keyboard ----------------------------------------------------------------------------------------------------

  #rootKey(event: KeyboardEvent): void {
    const typing = event.target instanceof Element && event.target.matches("input, select, textarea");
    if (this.#overlay || event.defaultPrevented || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") {
      event.preventDefault();
      this.#search.focus();
    }
    if (event.key === "Escape") {
      this.#unselect();
      this.#stage.focus();
    }
  }

  #key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { camera } = this.#stage;
    const direction = ARROWS[event.key];
    const keys: Readonly<Record<string, () => void>> = {
      Enter: () => this.#enter(),
      " ": () => this.#space(),
      f: () => this.#stage.fit(),
      o: () => this.#openSelected(),
      "0": () => this.#stage.fit(),
      "+": () => camera.zoom(1.3),
      "=": () => camera.zoom(1.3),
      "-": () => camera.zoom(1 / 1.3),
    };
    const step = direction && (() => (event.shiftKey ? camera.pan(...PANS[direction]) : this.#step(direction)));
    const work = step ?? keys[event.key];
    if (!work) return;
    event.preventDefault();
    work();
  }

  #openSelected(): void {
    const id = this.#selected;
    const chosen = this.#node(id) ?? this.#shown?.scene.groups.find((group) => group.id === id);
    if (chosen?.kind === "function") this.#send({ type: "open_function", id, place: 0 });
  }

  #enter(): void {
    if (!this.#selected) return this.#step("down");
    if (this.#inspector.shown === this.#selected) return this.#toggle(this.#selected);
    this.#choose(this.#selected, true);
  }

  /** Toggles the box; for a box that does not open, closes the frame around it. */
  #space(): void {
    const node = this.#node(this.#selected);
    const closes = node && !node.expandable && node.kind !== "stub" && node.group;
    this.#toggle(closes || this.#selected);
  }

  #step(direction: Direction): void {
    const { geometry, camera } = this.#stage;
    const scene = this.#shown?.scene;
    if (!geometry || !scene) return;
    const next = this.#selected ? walk(direction, this.#selected, scene, geometry) : firstBox(geometry);
    const rect = next && this.#stage.rectOf(next);
    if (!rect) return;
    this.#choose(next, Boolean(this.#inspector.shown));
    camera.ensureVisible(rect);
  }

  // ---- lens --------------------------------------------------------------------------------------------------------

  #chooseLens(name: string): void {
    this.#lens = name;
    this.#applyLens();
    this.#send({ type: "lens", lens: name });
  }

  #applyLens(): void {
    if (!this.#shown) return;
    const name = this.#stage.look(this.#lens);
    this.root.dataset.lens = name;
    this.#toolbar.update(this.#shown.scene.lenses, name, this.#shown.renderer);
  }

  #tellLit(lines: number | null): void {
    const scene = this.#shown?.scene;
    if (lines !== null) this.#status.say(`The same number on ${lines} ${lines === 1 ? "line" : "lines"}`);
    else if (scene) this.#status.describe(scene);
  }

  #svgText(): string | null {
    const chosen = this.#selected;
    this.#mark("");
    const text = this.#stage.svgText();
    this.#mark(chosen);
    return text;
  }
}
