// The pane of the stepper: its controls, the last step in words, and the iterations of loops.

import { h, iconButton, reason } from "../../dom";
import type { FromKernel, LiveRun, LiveStepRequest, Scene, StepsMessage } from "../../scene/generated";
import { shown } from "../../scene/shown";
import { condition, DEAD, isBad, type Situation, Steps, type Test, type Token, testsOf } from "../../scene/steps";
import { word } from "../../scene/words";
import { ICONS } from "../../style/icons";
import type { LowerActions, LowerPane } from "./pane";
import { type Guess, Prediction } from "./prediction";
import { StepMarks } from "./step_marks";

const PLAY_MS = 700;
const ASK_MS = 200;
const NONE =
  "No run is recorded yet: session.run(…, options=gc.RunOptions(values=True)) records one, " +
  "and session.step_through(…) begins one that goes on here, node by node; %step model(x) records a call of PyTorch or JAX";

export class StepperPane implements LowerPane {
  readonly name = "stepper";
  readonly title = "Stepper";
  readonly controls: HTMLElement;
  readonly element: HTMLElement;
  readonly #actions: LowerActions;
  readonly #marks: StepMarks;
  readonly #slider: HTMLInputElement;
  readonly #play: HTMLButtonElement;
  readonly #said = h("p", { class: "gl-step-said", role: "status" });
  readonly #taken = h("ul", { class: "gl-step-taken" });
  readonly #table = h("div", { class: "gl-lower-table gl-step-loop" });
  readonly #breaks = h("span", { class: "gl-step-breaks" });
  readonly #onBad = h("input", { type: "checkbox" });
  readonly #predicate: HTMLInputElement;
  readonly #stopAt = new Set<string>();
  #key = "";
  #run = "";
  #live: LiveRun | null = null;
  #pending: LiveStepRequest | null = null;
  /** A request to repeat when the node that now runs has ended. */
  #unfinished: LiveStepRequest | null = null;
  #asking: ReturnType<typeof setTimeout> | undefined;
  #steps: Steps | null = null;
  #boxes: Readonly<Record<string, string>> = {};
  #done = 0;
  #timer: ReturnType<typeof setInterval> | undefined;
  readonly #prediction = new Prediction(
    () => this.#step(),
    () => this.#show(false),
  );
  /** The student's prediction of the step that is being made. */
  #guess: Guess | null = null;
  #selection: ReadonlySet<string> = new Set();
  #isShown = false;

  constructor(actions: LowerActions) {
    this.#actions = actions;
    this.#marks = new StepMarks(actions.stage);
    this.#slider = h("input", {
      type: "range",
      min: "0",
      max: "0",
      value: "0",
      class: "gl-step-slider",
      "aria-label": word("Step of the run"),
      input: () => this.#go(Number(this.#slider.value), false),
    });
    this.#play = iconButton(ICONS.play, "Play or pause (y)", () => this.#toggle());
    this.#predicate = h("input", {
      type: "text",
      placeholder: "max > 10",
      "aria-label": word("Stop where this holds"),
      title: word("A condition such as max > 10, iteration == 3, dead, or a part of a name"),
    });
    this.controls = h(
      "div",
      { class: "gl-lower-controls", role: "toolbar", "aria-label": word("Stepper") },
      iconButton(ICONS.stepBack, "One step back (,)", () => this.#back()),
      this.#play,
      iconButton(ICONS.stepOn, "One step: the next node runs (.)", () => this.#step()),
      iconButton(ICONS.stepIn, "Step in: open the box of the next node (i)", () => this.#in()),
      iconButton(ICONS.stepOver, "Step over the next box or call (x)", () => this.#over()),
      iconButton(ICONS.runOn, "Run to the next breakpoint, or to the end (r)", () => this.#runOn()),
      this.#slider,
    );
    this.element = h(
      "div",
      { class: "gl-stepper" },
      this.#said,
      this.#prediction.element,
      h(
        "div",
        { class: "gl-step-stops" },
        h("span", {}, word("Run to")),
        h("label", {}, this.#onBad, ` ${word("NaN or Inf")}`),
        h("label", {}, `${word("where")} `, this.#predicate),
        h(
          "button",
          {
            type: "button",
            class: "gl-link",
            title: word("Breakpoint at the selected boxes, or remove it (b)"),
            click: () => this.#breakpoint(),
          },
          word("+ the selected boxes"),
        ),
        this.#breaks,
      ),
      h("div", { class: "gl-step-values" }, this.#taken, this.#table),
    );
  }

  dispose(): void {
    clearTimeout(this.#asking);
    this.#pause();
    this.#marks.clear();
  }

  shown(): void {
    this.#isShown = true;
    this.#ask();
    this.#show(false);
  }

  hidden(): void {
    this.#isShown = false;
    this.#pause();
    this.#marks.clear();
  }

  drawn(scene: Scene): void {
    this.#marks.drawn(scene);
    this.#ask();
  }

  resized(): void {}

  select(ids: ReadonlySet<string>): void {
    this.#selection = ids;
    if (ids.size === 1 && this.#isShown) this.#prediction.choose([...ids][0] ?? "");
  }

  receive(message: FromKernel): void {
    if (message.type === "steps") this.#receive(message);
  }

  press({ key, ctrlKey, altKey, metaKey }: KeyboardEvent): boolean {
    const act = {
      ",": () => this.#back(),
      ".": () => this.#step(),
      i: () => this.#in(),
      x: () => this.#over(),
      r: () => this.#runOn(),
      y: () => this.#toggle(),
      b: () => this.#breakpoint(),
    }[key];
    if (!act || ctrlKey || altKey || metaKey) return false;
    act();
    return true;
  }

  #ask(): void {
    this.#actions.send({ type: "want_steps", known: this.#key });
  }

  #receive({ key, run, steps, boxes, live }: StepsMessage): void {
    const wasAtFront = this.#done === (this.#steps?.size ?? 0);
    const before = this.#done;
    this.#boxes = boxes;
    this.#live = live;
    if (key !== this.#key) {
      this.#key = key;
      this.#steps = steps && new Steps(steps);
      if (run !== this.#run) {
        this.#run = run;
        this.#pause();
        this.#done = live ? this.#front : 0;
      } else if (live && wasAtFront) this.#done = this.#front;
    }
    const asked = this.#pending;
    this.#pending = null;
    if (live && live.state !== "runs" && live.row >= 0 && this.#front > 0) this.#judge(live.row);
    this.#show(asked !== null && this.#done === before + 1);
    if (!live || live.state === "over") return this.#pause();
    const unfinished = live.is_on_way ? (asked ?? this.#unfinished) : null;
    this.#unfinished = live.state === "runs" ? unfinished : null;
    if (live.state === "runs") this.#askLater();
    else if (unfinished) this.#goOn(unfinished);
  }

  /** Asks again for a run whose node takes long. */
  #askLater(): void {
    clearTimeout(this.#asking);
    this.#asking = setTimeout(() => this.#isShown && this.#ask(), ASK_MS);
  }

  /** The number of runs so far. */
  get #front(): number {
    return this.#steps?.size ?? 0;
  }

  /** True if the next step is one that has not been made yet. */
  get #isLive(): boolean {
    return this.#live !== null && this.#live.state !== "over" && this.#done === this.#front;
  }

  /** Lets the run go on, unless it is doing so. */
  #goOn(request: LiveStepRequest): void {
    if (this.#pending || this.#live?.state === "runs") return;
    this.#pending = request;
    this.#actions.send(request);
  }

  /** The box of a run; an open call is its frame. */
  readonly #box = (run: number): string => {
    const name = this.#steps?.name(run) ?? "";
    return this.#boxes[name] ?? (this.#marks.has(name) ? name : "");
  };

  // ---- moving ------------------------------------------------------------------------------------------------------

  #go(done: number, moves = true): void {
    const size = this.#front;
    this.#done = Math.max(0, Math.min(done, size));
    if (this.#done === size && !this.#isLive) this.#pause();
    this.#show(moves);
  }

  #step(): void {
    const isAtEnd = !this.#isLive && this.#done >= this.#front;
    if (this.#prediction.on && !isAtEnd) {
      this.#pause();
      this.#guess = this.#prediction.take();
      if (!this.#guess) return;
      if (!this.#isLive) this.#judge(this.#done);
    }
    if (this.#isLive) this.#goOn(request("step"));
    else this.#go(this.#done + 1);
  }

  /** Compares the prediction with a run. */
  #judge(run: number): void {
    const [steps, guess] = [this.#steps, this.#guess];
    this.#guess = null;
    if (!steps || !guess || run < 0) return;
    const before = steps.situation(run, this.#box).boxes;
    const couldRun = (name: string): boolean => this.#couldRun(name, before);
    this.#prediction.judge(guess, { name: steps.name(run), box: this.#box(run), text: steps.text(run), couldRun });
  }

  /** True for a box that waits for nothing: all boxes with lines to it have run, and it has not. */
  #couldRun(name: string, boxes: Situation["boxes"]): boolean {
    const scene = this.#actions.scene();
    const id = this.#boxes[name] ?? name;
    const node = scene?.nodes.find((other) => other.id === id);
    if (!scene || !node || boxes.has(id)) return false;
    const far = new Map(scene.nodes.map((other) => [other.id, other.stands_for || other.id]));
    return scene.edges.every(({ source, target }) => target !== id || boxes.has(far.get(source) ?? source));
  }

  #back(): void {
    this.#pause();
    this.#go(this.#done - 1, false);
  }

  /** The name of the node that runs next, "" if that is not known. */
  get #next(): string {
    return this.#isLive ? (this.#live?.next ?? "") : (this.#steps?.name(this.#done) ?? "");
  }

  /** Opens what is around the next node. */
  #in(): void {
    const name = this.#next;
    const box = this.#boxes[name] ?? (this.#marks.has(name) ? name : "");
    this.#step();
    if (name && box !== name) this.#actions.send({ type: "reveal", name, quiet: true });
  }

  #over(): void {
    if (this.#isLive) this.#goOn(request("over"));
    else if (this.#steps) this.#go(this.#steps.over(this.#done, this.#box));
  }

  #runOn(): void {
    const steps = this.#steps;
    if (!steps) return;
    this.#pause();
    const where = this.#predicate.value.trim();
    try {
      const tests: Test[] = [(_, run) => this.#stopAt.has(this.#box(run)) || this.#stopAt.has(steps.name(run))];
      if (this.#onBad.checked) tests.push(isBad);
      if (where) tests.push(condition(where));
      const found = steps.runTo(this.#done, tests);
      const isFound = found > this.#done && tests.some((test) => test(steps, found - 1));
      if (isFound || !this.#live || this.#live.state === "over") return this.#go(found);
      this.#go(this.#front, false);
      this.#goOn({
        ...request("run"),
        stops: [...this.#stopAt],
        on_bad: this.#onBad.checked,
        where: where ? testsOf(where) : [],
      });
    } catch (error) {
      this.#said.textContent = shown(reason(error));
    }
  }

  #toggle(): void {
    if (this.#timer !== undefined || this.#pending?.way === "run" || this.#unfinished) return this.#pause();
    if (!this.#steps) return;
    if (this.#done >= this.#front && !this.#isLive) this.#done = 0;
    this.#timer = setInterval(() => this.#step(), PLAY_MS);
    this.#playing(true);
    this.#step();
  }

  #pause(): void {
    this.#pending = null;
    this.#unfinished = null;
    if (this.#timer === undefined) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#playing(false);
  }

  #playing(isPlaying: boolean): void {
    this.#play.setAttribute("aria-pressed", String(isPlaying));
    this.#play.querySelector("path")?.setAttribute("d", isPlaying ? ICONS.pause : ICONS.play);
    if (isPlaying) this.#said.setAttribute("aria-live", "off");
    else this.#said.removeAttribute("aria-live");
  }

  #breakpoint(): void {
    if (this.#selection.size === 0) {
      this.#said.textContent = "Select the box to stop at first";
      return;
    }
    for (const id of this.#selection) if (!this.#stopAt.delete(id)) this.#stopAt.add(id);
    this.#breaks.textContent = this.#stopAt.size > 0 ? shown(`or at ${[...this.#stopAt].join(", ")}`) : "";
  }

  // ---- showing -----------------------------------------------------------------------------------------------------

  #show(moves: boolean): void {
    if (!this.#isShown) return;
    const steps = this.#steps;
    this.controls.classList.toggle("gl-none", !steps);
    if (!steps) {
      this.#said.textContent = this.#key ? NONE : "";
      this.#taken.replaceChildren();
      this.#table.replaceChildren();
      return this.#marks.clear();
    }
    // At the front of a run that waits, the node that ended last: nodes of a function follow the call that runs them.
    const last = this.#isLive ? (this.#live?.row ?? -1) : this.#done - 1;
    this.#slider.max = String(steps.size);
    this.#slider.value = String(this.#done);
    const where = this.#place;
    const words = last < 0 ? ["the run begins", ...steps.data.notes].join("; ") : steps.words(last, this.#done);
    this.#slider.setAttribute("aria-valuetext", `${where}: ${words}`);
    this.#said.textContent = shown(`${where}: ${words}${this.#outlook}`);
    this.#taken.replaceChildren(...(last < 0 ? [] : steps.takes(last).map((run) => this.#value(steps, run))));
    this.#showTable(steps);
    const situation = steps.situation(this.#done, this.#box, last);
    this.#marks.show(steps, this.#isLive ? this.#atFront(situation) : situation, moves);
  }

  /** The place in the run, in words. */
  get #place(): string {
    const live = this.#live;
    if (!live || live.state === "over") return `Step ${this.#done} of ${this.#front}`;
    return this.#isLive ? `Step ${this.#done}, live` : `Step ${this.#done}, live at ${this.#front}`;
  }

  /** The words after those of the last step. */
  get #outlook(): string {
    const live = this.#live;
    if (!live || this.#done < this.#front) return "";
    if (live.state === "runs") return ". It still runs";
    if (live.state === "waits") return this.#prediction.on ? "" : `. Next: ${live.next}`;
    return live.error ? `. The run has failed: ${live.error}` : ". The run is over";
  }

  /** The values that wait at the front of a run are those of nodes whose consumers have not run. */
  #atFront(situation: Situation): Situation {
    const tokens = new Map<string, Token>();
    for (const [run, name] of this.#live?.waiting ?? []) {
      const [source, target] = [this.#box(run), this.#boxes[name] ?? ""];
      if (!source || !target || source === target) continue;
      const key = `${source}\n${target}`;
      const known = tokens.get(key);
      tokens.set(key, { source, target, run: Math.max(run, known?.run ?? 0), count: (known?.count ?? 0) + 1 });
    }
    return { ...situation, waiting: [...tokens.values()] };
  }

  #value(steps: Steps, run: number): HTMLElement {
    const name = steps.name(run);
    const choose = (): void => this.#actions.choose(name, this.#boxes[name] ?? "");
    const link = h("button", { type: "button", class: "gl-link", click: choose }, name);
    return h(
      "li",
      {},
      "took ",
      link,
      steps.state(run) === DEAD ? " (dead)" : steps.text(run) ? ` ${steps.text(run)}` : "",
    );
  }

  #showTable(steps: Steps): void {
    const table = steps.table(this.#done);
    if (!table) return this.#table.replaceChildren();
    const head = ["Iteration", ...table.columns.map((name) => name.split(/[/:]/).at(-1) ?? "")];
    const rows = table.rows.map(({ turn, cells }, place) =>
      h(
        "tr",
        { "aria-current": place === table.rows.length - 1 ? "step" : null },
        h("th", { scope: "row" }, `${place === table.rows.length - 1 ? "▶ " : ""}${turn}`),
        ...cells.map((cell) => h("td", {}, cell)),
      ),
    );
    this.#table.replaceChildren(
      h(
        "table",
        {},
        h("caption", {}, `Loop ${table.title}`),
        h("thead", {}, h("tr", {}, ...head.map((text) => h("th", { scope: "col" }, text)))),
        h("tbody", {}, ...rows),
      ),
    );
  }
}

function request(way: LiveStepRequest["way"]): LiveStepRequest {
  return { type: "live_step", way, stops: [], on_bad: false, where: [] };
}
