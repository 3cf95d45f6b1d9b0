// The user's choices: selected boxes, inspected and highlighted ones, and the history.

import type { Press } from "../canvas/gestures";
import type { Stage } from "../canvas/stage";
import { focusedIn } from "../dom";
import type { Breadcrumbs } from "../panes/breadcrumbs";
import type { Inspector } from "../panes/inspector";
import type { Outline } from "../panes/outline";
import type { Status } from "../panes/status";
import type {
  FromViewer,
  HighlightMessage,
  Inspection,
  Look,
  Scene,
  SceneMessage,
  SceneNode,
} from "../scene/generated";
import { among, between, nearby } from "../scene/nearby";
import { type Highlighted, selectedBoxes, type Traced, trace, type Way } from "../scene/trace";
import { endOfLine } from "../scene/walk";
import { word } from "../scene/words";
import { History, type Place } from "./history";

/** The longest time between the presses of a double click, as desktops have it. */
const DOUBLE_CLICK_MS = 500;

/** The parts of a viewer that show what is chosen. */
export interface ChoiceView {
  readonly root: HTMLElement;
  readonly stage: Stage;
  readonly outline: Outline;
  readonly inspector: Inspector;
  readonly breadcrumbs: Breadcrumbs;
  readonly status: Status;
  /** The picture on the screen; null before the first. */
  message(): SceneMessage | null;
  send(message: FromViewer): void;
  /** These boxes are selected. */
  marked(ids: ReadonlySet<string>): void;
  /** Says again in the status line what the picture shows. */
  tellScene(): void;
  canGo(back: boolean, forward: boolean): void;
}

/** Boxes to be highlighted, found again in each picture. */
interface Highlight {
  readonly way: Highlighted | "filter";
  readonly steps?: number;
  find(scene: Scene, selection: ReadonlySet<string>): Traced;
}

export class Choice {
  readonly history: History;
  /** Called after each selection. */
  marking: (ids: ReadonlySet<string>) => void = () => {};
  readonly #view: ChoiceView;
  /** The box that was chosen last, and all that are chosen. */
  #selected = "";
  #selection: ReadonlySet<string> = new Set();
  #highlight: Highlight | null = null;
  /** The place to look at in the requested picture. */
  #due: Look | null = null;
  #toldLook = JSON.stringify({ camera: null, selection: [] });
  /** The node of the last request to the kernel. */
  #inspecting = "";
  /** The box under the last press; none for a press on a line or a button. */
  #pressed = "";
  #settling: ReturnType<typeof setTimeout> | undefined;

  constructor(view: ChoiceView) {
    this.#view = view;
    this.history = new History({
      read: () => {
        const message = view.message();
        return message && { openings: message.openings, look: this.#look() };
      },
      go: (place, from) => this.#travel(place, from),
      arrived: ({ look }) => this.#tellLook(look),
    });
  }

  get selected(): string {
    return this.#selected;
  }

  dispose(): void {
    clearTimeout(this.#settling);
    this.history.dispose();
  }

  /** Another picture is on the screen. */
  drawn({ focus, look: wanted }: SceneMessage): void {
    const look = this.#due ?? wanted;
    this.#due = null;
    if (this.#selected) this.#mark(this.#selected, this.#selection);
    this.history.touch();
    if (look) this.#lookAt(look);
    else if (focus) this.goTo(focus, true);
    else if (this.#view.inspector.shown) this.inspect(this.#view.inspector.shown);
  }

  /** True if the failed inspection was of the shown node, which has gone with the last cell. */
  inspectionFailed(): boolean {
    const gone = this.#view.inspector.shown === this.#inspecting;
    if (gone) this.closeInspector();
    return gone;
  }

  /** Does something with the picture as it is without a selection. */
  unmarked<T>(work: () => T): T {
    this.#view.stage.select(new Set());
    this.#view.stage.highlight(null);
    const result = work();
    this.#view.stage.select(this.#selection);
    this.#showTrace();
    return result;
  }

  get #scene(): Scene | undefined {
    return this.#view.message()?.scene;
  }

  node(id: string): SceneNode | undefined {
    return this.#scene?.nodes.find((node) => node.id === id);
  }

  press({ target, double, more }: Press): void {
    // The picture may have moved since the first press, on which the inspector opened.
    if (double && this.#pressed) return this.toggle(this.#pressed);
    const near = (name: string) => target.closest(`[data-${name}]`)?.getAttribute(`data-${name}`);
    const action = near("action");
    const line = near("edge-id");
    const end = line && this.#scene && endOfLine(line, this.#scene);
    const id = near("node-id") ?? near("group-id") ?? end;
    this.#pressed = action || line ? "" : (id ?? "");
    if (!id) {
      if (more) return;
      this.#view.stage.focus();
      return this.unselect();
    }
    if (action === "expand" || action === "collapse") return this.#view.send({ type: action, id });
    if (double && !line) return this.toggle(id);
    if (more) return this.#alsoChoose(id);
    this.choose(id, true);
  }

  /** Chooses a further box, or no longer. */
  #alsoChoose(id: string): void {
    const ids = new Set(this.#selection);
    if (!ids.delete(id)) ids.add(id);
    this.#mark(ids.has(id) ? id : ([...ids].at(-1) ?? ""), ids);
    this.#view.stage.focus(this.#selected);
    this.#tellSelection();
  }

  add(ids: readonly string[]): void {
    this.#mark(ids.at(-1) ?? this.#selected, new Set([...this.#selection, ...ids]));
    this.#view.stage.focus(this.#selected);
    this.#tellSelection();
  }

  /** The inspector tells about what is selected: one box in full, several as a summary. */
  #tellSelection(): void {
    const boxes = this.#scene?.nodes.filter(({ id }) => this.#selection.has(id)) ?? [];
    if (this.#selection.size === 0) return this.closeInspector();
    if (this.#selection.size === 1) return this.inspect(this.node(this.#selected)?.stands_for || this.#selected);
    this.#inspecting = "";
    this.#view.inspector.showMany(boxes);
    this.#view.root.classList.add("gl-inspecting");
  }

  choose(id: string, inspect: boolean): void {
    this.#mark(id);
    this.#view.stage.focus(id);
    if (inspect) this.inspect(this.node(id)?.stands_for || id);
  }

  inspect(id: string): void {
    this.#inspecting = id;
    this.#view.send({ type: "inspect", id });
  }

  #mark(id: string, all: ReadonlySet<string> = new Set(id ? [id] : [])): void {
    this.#selected = id;
    this.#selection = all;
    this.#view.root.dataset.selected = id;
    this.#view.stage.select(all);
    this.#view.outline.select(id, all);
    this.#view.marked(all);
    this.marking(all);
    if (this.#scene) this.#view.breadcrumbs.show(this.#scene, id);
    this.#showTrace();
    this.history.touch();
  }

  /** Selects, and inspects nothing. */
  mark(ids: ReadonlySet<string>): void {
    this.#mark([...ids].at(-1) ?? "", ids);
  }

  // ---- upstream and downstream -------------------------------------------------------------------------------------

  /** Highlights what lies that way of the selection; a second time no longer. */
  trace(way: Way): void {
    const off = this.#highlight?.way === way || this.#selection.size === 0;
    this.#highlight = off ? null : { way, find: (scene, selection) => trace(scene, selection, way) };
    this.#tellOthers(way);
  }

  /** Highlights what is near the selection, a step further each time. */
  neighborhood(): void {
    if (this.#selection.size === 0) return this.#view.status.say(word("Select a box to see its neighborhood"));
    const steps = this.#highlight?.way === "near" ? (this.#highlight.steps ?? 0) + 1 : 1;
    this.#highlight = { way: "near", steps, find: (scene, selection) => nearby(scene, selection, steps) };
    this.#tellOthers(`within ${steps} ${steps === 1 ? "step" : "steps"}`);
  }

  /** Highlights all ways between two selected boxes. */
  paths(): void {
    const [first, second, ...more] = this.#selection;
    if (!first || !second || more.length > 0)
      return this.#view.status.say(word("Select two boxes to see the ways between them"));
    this.#highlight = { way: "paths", find: (scene) => between(scene, first, second) };
    const found = this.#showTrace();
    if (found?.boxes.size) return this.#tellOthers("between them");
    this.#highlight = null;
    this.#view.status.say(word("There is no way between the two boxes"));
  }

  /** Highlights the boxes that the host found. */
  filter({ boxes, text }: HighlightMessage): void {
    this.#highlight = { way: "filter", find: (scene) => among(scene, new Set(boxes)) };
    this.#showTrace();
    this.#view.status.say(text);
  }

  #tellOthers(which: string): void {
    const found = this.#showTrace();
    if (!found || !this.#scene) return this.#view.tellScene();
    const own = selectedBoxes(this.#scene, this.#selection);
    const others = [...found.boxes].filter((id) => !own.has(id)).length;
    this.#view.status.say(`${others} ${others === 1 ? "box" : "boxes"} ${which}`);
  }

  #showTrace(): Traced | null {
    const scene = this.#scene;
    const way = this.#highlight?.way;
    const traced = (scene && this.#highlight?.find(scene, this.#selection)) ?? null;
    this.#view.stage.highlight(traced && traced.boxes.size > 0 ? traced : null);
    this.#view.inspector.traced(way && way !== "filter" ? way : null);
    return traced;
  }

  // ---- back and forward --------------------------------------------------------------------------------------------

  #look(): Look {
    return { camera: this.#view.stage.camera.look(), selection: [...this.#selection] };
  }

  #lookAt({ camera, selection }: Look): void {
    const there = selection.filter((id) => this.#view.stage.rectOf(id));
    this.#mark(there.at(-1) ?? "", new Set(there));
    this.#tellSelection();
    if (camera) this.#view.stage.camera.lookAt(camera);
    else this.#view.stage.camera.release(this.#view.stage.bounds());
  }

  #travel({ openings, look }: Place, from: Place): void {
    if (JSON.stringify(openings) === JSON.stringify(from.openings)) return this.#lookAt(look);
    this.#due = look;
    this.#view.send({ type: "restore", openings });
  }

  #tellLook(look: Look): void {
    this.#view.canGo(this.history.canGoBack, this.history.canGoForward);
    const text = JSON.stringify(look);
    if (text === this.#toldLook) return;
    this.#toldLook = text;
    this.#view.send({ type: "look", look });
  }

  unselect(): void {
    this.#highlight = null;
    this.#mark("");
    this.closeInspector();
  }

  closeInspector(): void {
    this.#inspecting = "";
    this.#view.inspector.close();
    this.#view.root.classList.remove("gl-inspecting");
  }

  showInspection(inspection: Inspection): void {
    const { id, name, waits } = inspection;
    if (id !== this.#inspecting) return;
    if (waits) this.#view.send({ type: "explain", id, name });
    const { camera } = this.#view.stage;
    const group = this.#scene?.colocations.find(({ nodes }) => nodes.includes(inspection.id));
    const differs = this.#scene?.since === "";
    this.#view.inspector.show(inspection, this.node(inspection.id), group?.reasons, differs);
    this.#view.root.classList.add("gl-inspecting");
    const rect = this.#view.stage.rectOf(inspection.id) ?? this.#view.stage.rectOf(this.#selected);
    // Later, so that the second press of a double click still meets the same box.
    clearTimeout(this.#settling);
    this.#settling = setTimeout(() => {
      if (camera.following) camera.refit(this.#view.stage.bounds());
      if (rect) camera.ensureVisible(rect);
    }, DOUBLE_CLICK_MS);
  }

  /** Opens or closes: a closed scope opens, an open frame closes, a stub leads to what it stands for. */
  toggle(id: string): void {
    const node = this.node(id);
    if (node?.kind === "stub") return node.stands_for ? this.reveal(node.stands_for, node.stands_for) : undefined;
    if (node?.expandable) return this.#view.send({ type: "expand", id });
    if (!node && this.#scene?.groups.some((group) => group.id === id)) this.#view.send({ type: "collapse", id });
  }

  /** Puts each gradient beside what it differentiates, or no longer. */
  mirror(): void {
    const openings = this.#view.message()?.openings;
    if (openings) this.#view.send({ type: "restore", openings: { ...openings, mirror: !openings.mirror } });
  }

  /** Brings a box of this picture into view, or asks the kernel to open what hides it. */
  reveal(id: string, name: string): void {
    if (this.#view.stage.rectOf(id)) return this.goTo(id, true);
    this.#view.send({ type: "reveal", name, quiet: false });
  }

  goTo(id: string, pulse: boolean): void {
    const rect = this.#view.stage.rectOf(id);
    if (!rect) return;
    this.#mark(id);
    this.#view.stage.camera.focus(rect);
    if (pulse) this.#view.stage.pulse(id);
    // The link that led here goes with what the inspector told before. Elsewhere on the page the focus is the user's.
    if (pulse && this.#view.root.contains(focusedIn(this.#view.root))) this.#view.stage.focus(id);
    this.inspect(id);
  }
}
