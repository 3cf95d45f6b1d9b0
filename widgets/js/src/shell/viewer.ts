// The viewer: connects picture, inspector, outline, search and controls with its host.
import { lightDimensions } from "../canvas/dim_light";
import { Exporter } from "../canvas/exporter";
import { drawable, MermaidView, tooManyForMermaid } from "../canvas/mermaid_view";
import { Stage } from "../canvas/stage";
import { afterPaint, h, ownKeys, reason } from "../dom";
import { Layouter, Superseded } from "../engines/layouter";
import { engineUrl } from "../engines/load";
import { Breadcrumbs } from "../panes/breadcrumbs";
import { Inspector } from "../panes/inspector";
import { LowerPlace, type LowerScript } from "../panes/lower/place";
import { Outline } from "../panes/outline";
import { Search } from "../panes/search";
import { splitter } from "../panes/splitter";
import { Status } from "../panes/status";
import { Toolbar } from "../panes/toolbar";
import { distinguish } from "../scene/boxes";
import { isDifference } from "../scene/differences";
import type { FailureMessage, FromKernel, FromViewer, SceneMessage } from "../scene/generated";
import type { Geometry } from "../scene/geometry";
import { FEW_BOXES, isOneFrame, Layouts } from "../scene/layouts";
import type { Size } from "../scene/places";
import { noteInputs } from "../scene/spoken";
import type { Way } from "../scene/trace";
import { Choice } from "./choice";
import { Cover, type Covers } from "./cover";
import { Crowding } from "./crowding";
import type { Host, MountOptions } from "./host";
import { Keyboard } from "./keyboard";
import { Link } from "./link";
import { followTheme } from "./theme";
import { type DifferenceWay, WaysBar } from "./ways";

/** The least change of a panel, in pixels, after which the picture is laid out for its new shape. */
const RESHAPE = 24;

/** The milliseconds for which a picture that is too large waits for one of fewer boxes. */
const ANSWER_MS = 400;

/** A picture ready to be put on the screen. */
interface Prepared {
  readonly place: () => Geometry;
  /** Its places, where they are known before it is on the screen. */
  readonly geometry?: Geometry;
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
  readonly #lower: LowerPlace;
  readonly #exporter: Exporter;
  readonly #end = new AbortController();
  readonly #covers: Covers;
  readonly #cover = new Cover(() => this.root);
  readonly #ways = new WaysBar((way) => this.#chooseWay(way));
  /** The way in which both states of a difference are asked for. */
  #way: DifferenceWay = "beside";
  /** The newest scene, and the one on the screen. */
  #latest: SceneMessage | null = null;
  /** The renderer that was chosen: Graphviz draws what is too much for Mermaid. */
  #chosen: SceneMessage["renderer"] = "graphviz";
  #shown: SceneMessage | null = null;
  #delay: readonly [revision: number, ms: number] = [-1, 0]; // of the last picture, which may be drawn again
  #lens = "";
  /** The panel for which the last picture was laid out. */
  #panel: Size | null = null;
  readonly #crowding: Crowding;
  /** The picture that was asked for is that of everything opened. */
  #expandsAll = false;
  readonly #choice: Choice;
  readonly #keyboard: Keyboard;

  constructor(
    host: Host,
    {
      offline = false,
      fixed = false,
      renderers = ["graphviz", "mermaid"],
      height,
      bare = false,
      complete = false,
      lower,
      side,
    }: MountOptions,
    covers: Covers = {},
  ) {
    this.#link = new Link(host, (text) => {
      // The picture stays, and the status line says why it no longer changes.
      this.root.classList.add("gl-lost");
      this.#status.lose(text, host.notebook);
    });
    this.#covers = covers;
    this.#status.isOfPage = offline || side !== undefined;
    this.#crowding = new Crowding((message) => this.#send(message), complete);
    this.#mermaid = new MermaidView(() => engineUrl("mermaid", host));
    this.#layouts = new Layouts(new Layouter(() => engineUrl("graphviz", host)), () =>
      this.#status.say("This graph is hard to lay out: taking shortcuts…"),
    );
    this.#stage = new Stage({
      fixed,
      mermaid: this.#mermaid,
      press: (press) => this.#choice.press(press),
      surround: (ids) => this.#choice.add(ids),
      moved: () => this.#choice?.history.touch(),
      signal: this.#end.signal,
    });
    this.#search = new Search(
      (query, limit) => this.#send({ type: "find", query, limit }),
      (hit) => this.#choice.reveal(hit.node, hit.name),
      (query) => this.#send({ type: "filter", query }),
      () => this.#stage.focus(),
    );
    const inspector = {
      goTo: (id: string) => this.#choice.reveal(id, id),
      openFunction: (id: string, place: number) => this.#send({ type: "open_function", id, place }),
      close: () => this.#choice.closeInspector(),
      trace: (way: Way) => this.#choice.trace(way),
      neighborhood: () => this.#choice.neighborhood(),
      paths: () => this.#choice.paths(),
      copy: (text: string) => this.#exporter.copy(text),
      values: (name: string, first: number) => this.#send({ type: "values", name, first }),
      tryDevice:
        offline || bare
          ? undefined
          : (ids: readonly string[], device: string | null, apply: boolean) =>
              this.#send({ type: "try_device", ids: [...ids], device, apply }),
      showLine: host.notebook?.isKnown ? (id: string, line: number) => void this.#showLine(host, id, line) : undefined,
    };
    this.#inspector = new Inspector(inspector, offline);
    const load = lower ?? (async () => (await import(await engineUrl("lower", host))) as LowerScript);
    this.#exporter = new Exporter({
      raster: load,
      svgText: () => this.#choice.unmarked(() => this.#stage.svgText()),
      shown: () =>
        this.#shown && {
          scene: this.#shown.scene,
          lens: this.root.dataset.lens ?? "",
          notebook: host.notebookPath ?? "",
        },
      say: (text) => this.#status.say(text),
      fail: (text) => this.#status.fail(text),
    });
    this.#outline = new Outline({
      select: (id) => this.#choice.goTo(id, false),
      expand: (id) => this.#send({ type: "expand", id }),
      collapse: (id) => this.#send({ type: "collapse", id }),
    });
    this.#lower = new LowerPlace(load, {
      stage: this.#stage,
      send: (message) => this.#send(message),
      choose: (node, box) => this.#choice.reveal(fixed ? box : node, node),
      say: (text) => this.#status.say(text),
      scene: () => this.#shown?.scene ?? null,
      close: () => this.#lower.close(),
      toggled: (pane) => {
        this.#toolbar.lowerOpen(pane !== "");
        if (!pane) this.#stage.focus(this.#choice.selected);
      },
      failed: (error) => this.#status.fail(reason(error)),
    });
    this.#toolbar = new Toolbar(this.#search.element, this.#actions(), renderers, fixed);
    this.root = h(
      "div",
      { class: "graphloupe", "data-busy": "true", "data-renderer": "graphviz" },
      this.#ways.element,
      bare ? null : this.#toolbar.element,
      h(
        "div",
        { class: "gl-body" },
        this.#outline.element,
        this.#stage.element,
        splitter(this.#inspector.element),
        this.#inspector.element,
      ),
      this.#lower.element,
      this.#status.element,
    );
    const breadcrumbs = new Breadcrumbs((id) => (id ? this.#choice.goTo(id, true) : this.#choice.unselect()));
    this.#stage.element.append(breadcrumbs.element);
    const view = {
      root: this.root,
      stage: this.#stage,
      outline: this.#outline,
      inspector: this.#inspector,
      search: this.#search,
      status: this.#status,
      breadcrumbs,
      message: () => this.#shown,
      send: (message: FromViewer) => this.#send(message),
      tellScene: () => this.#tellLit(null),
      canGo: (back: boolean, forward: boolean) => this.#toolbar.canGo(back, forward),
      toggleOutline: () => this.#toggleOutline(),
      lower: this.#lower,
      script: load,
      marked: (ids: ReadonlySet<string>) => this.#lower.select(ids),
    };
    this.#ways.element.hidden = true;
    this.#choice = new Choice(view);
    this.#keyboard = new Keyboard(view, this.#choice);
    side?.attach({ stage: this.#stage, choice: this.#choice });
    if (height) this.root.style.setProperty("--gl-height", height === "fill" ? "100%" : height);
    this.root.addEventListener("keydown", (event) => {
      if (!this.#cover.isOpen) this.#guard(() => this.#keyboard.press(event));
    });
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
    this.#choice.dispose();
    this.#end.abort();
    this.#layouts.cancel();
    this.#lower.dispose();
    this.#cover.dispose();
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

  async #showLine({ notebook }: Host, cell: string, line: number): Promise<void> {
    const shown = await notebook?.showLine(cell, line).catch(() => false);
    if (!shown) this.#status.say("This cell is no longer in the notebook");
  }

  #warmUp(): void {
    this.#layouts.warmUp().catch((error: unknown) => this.#status.fail(reason(error)));
  }

  #actions(): ConstructorParameters<typeof Toolbar>[1] {
    return {
      lens: (name) => this.#chooseLens(name),
      renderer: (renderer) => this.#send({ type: "renderer", renderer }),
      expandAll: () => {
        this.#expandsAll = true;
        this.#send({ type: "expand", id: "*" });
      },
      collapseAll: () => this.#send({ type: "collapse", id: "*" }),
      outline: () => this.#toggleOutline(),
      mirror: () => this.#choice.mirror(),
      lower: () => this.#lower.toggle("timeline"),
      back: () => this.#choice.history.step(-1),
      forward: () => this.#choice.history.step(1),
      help: () => void this.#keyboard.openHelp(),
      export: (format, copy) => this.#guard(() => this.#exporter.start(format, copy)),
    };
  }

  #toggleOutline(): void {
    this.#outline.toggle();
    this.#toolbar.outlineOpen(this.#outline.open);
  }

  // ---- messages ----------------------------------------------------------------------------------------------------

  #receive(message: FromKernel): void {
    switch (message.type) {
      case "scene":
        if (this.#latest && message.scene.revision < this.#latest.scene.revision) return;
        // A lens that was sent before the kernel knew of the user's choice must not undo that choice.
        if (message.lens !== this.#latest?.lens) this.#lens = message.lens;
        this.#chosen = message.renderer;
        this.#latest = drawable(message);
        distinguish(message.scene.nodes);
        noteInputs(message.scene);
        void this.#present(this.#latest);
        return;
      case "change":
        return void this.root.classList.toggle("gl-outdated", message.outdated); // its title says why
      case "inspection":
        this.#choice.showInspection(message.inspection);
        return;
      case "values_page":
        return this.#inspector.showValues(message);
      case "what_if":
        return this.#inspector.showWhatIf(message);
      case "search":
        return this.#search.show(message);
      case "highlight":
        this.#choice.filter(message);
        return;
      case "failure":
        this.#failed(message);
        return;
      case "function":
        return this.#cover.open("function", () => this.#covers.function?.(message));
      case "states":
        return this.#cover.open("states", () =>
          this.#covers.states?.(message, { way: this.#way, leave: () => this.#leaveStates() }),
        );
      case "function_closed":
        return this.#uncover("function");
      case "states_closed":
        return this.#uncover("states");
      case "show_pane":
        this.#choice.closeInspector(); // the picture needs the room: the run is followed there
        this.#lower.show(message.pane);
        return;
      default:
        this.#lower.receive(message);
    }
  }

  #uncover(kind: keyof Covers): void {
    if (this.#cover.close(kind)) this.#stage.focus(this.#choice.selected);
  }

  /** Asks for both states of the difference. */
  #chooseWay(way: DifferenceWay): void {
    if (way === "one") return;
    this.#way = way;
    this.#send({ type: "want_states", open: true });
  }

  #leaveStates(): void {
    this.#uncover("states");
    this.#send({ type: "want_states", open: false });
  }

  #failed({ request, text }: FailureMessage): void {
    // Not an error of the user's: it has gone with the last cell.
    if (request === "inspect" && this.#choice.inspectionFailed()) this.#status.say(text);
    else this.#status.fail(text);
  }

  async #present(message: SceneMessage): Promise<void> {
    this.root.dataset.busy = "true";
    try {
      let prepared = await this.#prepare(message);
      if (message !== this.#latest || this.#end.signal.aborted) return;
      if (this.#isCropped(message, prepared)) {
        const first = isOneFrame(message.scene) ? await this.#prepare(message, false) : prepared;
        if (!this.#isCropped(message, first)) {
          prepared = first;
        } else if (this.#asksForLess(message, prepared)) {
          await new Promise((resolve) => setTimeout(resolve, ANSWER_MS));
        } else if (message.scene.nodes.length <= FEW_BOXES) {
          const bare = await this.#prepare(message, false);
          if (!this.#isCropped(message, bare)) prepared = bare;
        }
        if (message !== this.#latest || this.#end.signal.aborted) return;
      }
      this.#draw(message, prepared);
    } catch (error) {
      if (error instanceof Superseded || message !== this.#latest) return;
      this.root.dataset.busy = "false";
      this.#status.fail(reason(error));
    }
  }

  async #prepare({ scene, renderer }: SceneMessage, labels = true): Promise<Prepared> {
    const start = performance.now();
    if (renderer === "mermaid") {
      this.#layouts.cancel();
      const svg = await this.#mermaid.render(scene);
      return { place: () => this.#mermaid.show(svg, scene), layoutMs: performance.now() - start };
    }
    this.#panel = this.#stage.camera.panel;
    const geometry = await this.#layouts.place(scene, this.#panel, labels);
    return { place: () => geometry, geometry, layoutMs: performance.now() - start };
  }

  #draw(message: SceneMessage, { place, layoutMs }: Prepared): void {
    const { scene, renderer } = message;
    this.#shown = message;
    this.#ways.element.hidden = !this.#covers.states || !isDifference(scene);
    this.#stage.show(scene, renderer, place, this.#choice.selected);
    this.#applyLens();
    this.#outline.update(scene);
    this.#status.describe(scene);
    this.#choice.drawn(message);
    this.#lower.drawn(scene);
    if (this.#expandsAll) this.#status.expanded(scene);
    this.#expandsAll = false;
    if (renderer !== this.#chosen) this.#status.say(tooManyForMermaid(scene));
    afterPaint(() => this.#report(message, layoutMs));
  }

  #isCropped(message: SceneMessage, { geometry }: Prepared): boolean {
    return this.#stage.camera.following && this.#crowding.isCropped(message, geometry, this.#panel);
  }

  #asksForLess(message: SceneMessage, { geometry }: Prepared): boolean {
    return geometry && this.#panel ? this.#crowding.asksForLess(message, geometry, this.#panel) : false;
  }

  /** Lays the picture out again for a panel of another shape. */
  #reshape(): void {
    const shown = this.#shown;
    const { panel, following } = this.#stage.camera;
    if (!shown || !panel || shown !== this.#latest || shown.renderer !== "graphviz") return;
    if (!following || this.#inspector.shown) return;
    const before = this.#panel ?? { width: 0, height: 0 };
    if (Math.abs(panel.width - before.width) + Math.abs(panel.height - before.height) < RESHAPE) return;
    if (before.width > 0 && panel.width * panel.height > 1.3 * before.width * before.height)
      this.#crowding.asksForMore();
    void this.#present(shown);
  }

  /** Reports the duration of the picture after the browser has painted it. */
  #report(message: SceneMessage, layoutMs: number): void {
    if (this.#end.signal.aborted || message !== this.#shown) return;
    const { renderer, sent_at: sentAt } = message;
    const { revision } = message.scene;
    const delay = revision === this.#delay[0] ? this.#delay[1] : sentAt > 0 ? Date.now() - sentAt : 0;
    this.#delay = [revision, delay];
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
      if (appeared || !this.#inspector.shown) this.#stage.resize(appeared);
      this.#reshape();
      const chosen = this.#stage.rectOf(this.#choice.selected);
      if (chosen && !camera.following) camera.ensureVisible(chosen);
    });
    observer.observe(canvas);
    observer.observe(this.root);
    this.#end.signal.addEventListener("abort", () => observer.disconnect());
  }

  // ---- lens --------------------------------------------------------------------------------------------------------

  #chooseLens(name: string): void {
    this.#lens = name;
    if (this.#shown) this.#status.describe(this.#shown.scene); // not what the lens before has said
    this.#applyLens();
    this.#send({ type: "lens", lens: name });
  }

  #applyLens(): void {
    if (!this.#shown) return;
    const name = this.#stage.look(this.#lens);
    this.root.dataset.lens = name;
    const note = this.#shown.scene.lenses.find((lens) => lens.name === name)?.note;
    if (note) this.#status.say(note);
    this.#toolbar.update(this.#shown.scene, name, this.#shown.renderer);
  }

  #tellLit(lines: number | null): void {
    const scene = this.#shown?.scene;
    if (lines !== null) this.#status.say(`The same number on ${lines} ${lines === 1 ? "line" : "lines"}`);
    else if (scene) this.#status.describe(scene);
  }
}
