// The keyboard: the table of shortcuts, and walking through the picture.
import type { Help } from "../panes/help";
import type { LowerPlace, LowerScript } from "../panes/lower/place";
import type { Search } from "../panes/search";
import { isDifference } from "../scene/differences";
import type { Geometry } from "../scene/geometry";
import { ARROWS, type Direction, firstBox, lastBox, PANS, walk } from "../scene/walk";
import { word } from "../scene/words";
import type { Choice, ChoiceView } from "./choice";
import { type Shortcut, shortcutOf } from "./shortcuts";

/** The directions of arrow keys in words. */
const WAYS: Readonly<Record<Direction, string>> = {
  up: "further up",
  down: "further down",
  left: "to the left",
  right: "to the right",
};

/** The parts of a viewer that keys steer. */
export interface KeyboardView
  extends Pick<ChoiceView, "root" | "stage" | "status" | "inspector" | "outline" | "message" | "send"> {
  readonly search: Search;
  /** Loads what is rarely needed. */
  script(): Promise<LowerScript>;
  toggleOutline(): void;
  /** The panel below the picture. */
  readonly lower: Pick<LowerPlace, "toggle" | "press">;
}

export class Keyboard {
  readonly table: readonly Shortcut[];
  #help: Help | null = null;
  readonly #view: KeyboardView;
  readonly #choice: Choice;

  constructor(view: KeyboardView, choice: Choice) {
    this.#view = view;
    this.#choice = choice;
    this.table = this.#makeShortcuts();
    view.stage.canvas.setAttribute(
      "aria-label",
      word("Graph: arrow keys walk along the lines, question mark lists all keys"),
    );
  }

  #makeShortcuts(): readonly Shortcut[] {
    const arrows = Object.keys(ARROWS);
    const shown = "arrow keys";
    const onPicture = true;
    const towards = (work: (direction: Direction) => void) => (key: string) => {
      const direction = ARROWS[key];
      if (direction) work(direction);
    };
    const fit = (): void => this.#view.stage.fit();
    const zoom = (factor: number) => () => this.#view.stage.camera.zoom(factor);
    return [
      { keys: arrows, shown, says: "walk along the lines", onPicture, run: towards((to) => this.#step(to, false)) },
      {
        keys: arrows,
        shown,
        held: "Shift",
        says: "select further boxes",
        onPicture,
        run: towards((to) => this.#step(to, true)),
      },
      { keys: arrows, shown, held: "Ctrl", says: "move the picture", onPicture, run: towards((to) => this.#pan(to)) },
      { keys: ["Home"], says: "go to the first box", onPicture, run: () => this.#walkTo(firstBox) },
      { keys: ["End"], says: "go to the last box", onPicture, run: () => this.#walkTo(lastBox) },
      { keys: ["Enter"], says: "inspect the box, then open it", onPicture, run: () => this.#enter() },
      { keys: [" "], says: "open the box, or close the frame around it", onPicture, run: () => this.#space() },
      { keys: ["o"], says: "open the function of a call", run: () => this.#openSelected() },
      { keys: ["u"], says: "highlight everything upstream", run: () => this.#choice.trace("upstream") },
      { keys: ["d"], says: "highlight everything downstream", run: () => this.#choice.trace("downstream") },
      {
        keys: ["n"],
        says: "highlight the neighborhood, a step further each time",
        run: () => this.#choice.neighborhood(),
      },
      { keys: ["p"], says: "highlight the ways between two selected boxes", run: () => this.#choice.paths() },
      { keys: ["t"], says: "open or close the timeline", run: () => this.#view.lower.toggle("timeline") },
      { keys: ["s"], says: "open or close the stepper", run: () => this.#view.lower.toggle("stepper") },
      { keys: ["m"], says: "mirror gradients", run: () => this.#choice.mirror() },
      {
        keys: ["v"],
        says: "open or close the values of the last recorded run",
        run: () => this.#view.lower.toggle("values"),
      },
      { keys: ["f", "0"], says: "fit the whole graph", run: fit },
      { keys: ["+", "="], shown: "+", says: "zoom in", run: zoom(1.3) },
      { keys: ["-"], says: "zoom out", run: zoom(1 / 1.3) },
      { keys: ["/"], says: "find a node", run: () => this.#view.search.focus() },
      { keys: ["ArrowLeft"], held: "Alt", says: "back to where you were", run: () => this.#choice.history.step(-1) },
      { keys: ["ArrowRight"], held: "Alt", says: "forward again", run: () => this.#choice.history.step(1) },
      { keys: ["?"], says: "this list", run: () => void this.openHelp() },
      { keys: ["Escape"], says: "close the inspector, the outline, or a difference", run: () => this.#escape() },
    ];
  }

  async openHelp(): Promise<void> {
    const { Help } = await this.#view.script();
    this.#help ??= new Help(this.table);
    this.#view.root.append(this.#help.element);
    this.#help.open();
  }

  /** Does what a key asks for. */
  press(event: KeyboardEvent): void {
    const { target } = event;
    const typing = target instanceof Element && target.matches("input, select, textarea");
    if (event.defaultPrevented || typing) return;
    if (this.#view.lower.press(event)) return event.preventDefault();
    const onPicture = target instanceof Node && this.#view.stage.canvas.contains(target);
    const shortcut = shortcutOf(this.table, event, onPicture);
    if (!shortcut) return;
    event.preventDefault();
    shortcut.run(event.key);
  }

  #escape(): void {
    if (!this.#choice.selected && this.#view.outline.open) this.#view.toggleOutline();
    else if (!this.#choice.selected && isDifference(this.#view.message()?.scene)) this.#leaveDifference();
    this.#choice.unselect();
    this.#view.stage.focus();
  }

  /** Shows the graph again; a view that always shows a difference stays. */
  #leaveDifference(): void {
    this.#view.send({ type: "want_difference", since: 0 });
  }

  #openSelected(): void {
    const id = this.#choice.selected;
    const chosen = this.#choice.node(id) ?? this.#view.message()?.scene.groups.find((group) => group.id === id);
    if (chosen?.kind === "function") this.#view.send({ type: "open_function", id, place: 0 });
  }

  #enter(): void {
    if (!this.#choice.selected) return this.#step("down", false);
    if (this.#view.inspector.shown === this.#choice.selected) return this.#choice.toggle(this.#choice.selected);
    this.#choice.choose(this.#choice.selected, true);
  }

  /** Of a box that does not open, the frame around it closes. */
  #space(): void {
    const node = this.#choice.node(this.#choice.selected);
    const closes = node && !node.expandable && node.kind !== "stub" && node.group;
    this.#choice.toggle(closes || this.#choice.selected);
  }

  #pan(direction: Direction): void {
    this.#view.stage.camera.pan(...PANS[direction]);
  }

  #step(direction: Direction, also: boolean): void {
    const scene = this.#view.message()?.scene;
    const { geometry } = this.#view.stage;
    if (!scene || !geometry) return;
    const from = this.#choice.selected;
    const next = from ? walk(direction, from, scene, geometry) : firstBox(geometry);
    if (from && (!next || next === from)) return this.#view.status.tell(`No box ${WAYS[direction]}`);
    this.#walkTo(() => next, also);
  }

  /** Chooses the box that `find` gives; with `also` besides what is chosen. */
  #walkTo(find: (geometry: Geometry) => string | null, also = false): void {
    const { geometry, camera } = this.#view.stage;
    const next = geometry && find(geometry);
    const rect = next && this.#view.stage.rectOf(next);
    if (!rect) return;
    if (also) this.#choice.add([next]);
    else this.#choice.choose(next, Boolean(this.#view.inspector.shown));
    camera.ensureVisible(rect);
  }
}
