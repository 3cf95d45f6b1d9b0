// The pane of the stepper: its controls, the last step in words, and the iterations of loops.
import { h, iconButton, reason } from "../../dom";
import type { FromKernel, Scene, StepsMessage } from "../../scene/generated";
import { condition, isBad, Steps, type Test } from "../../scene/steps";
import { ICONS } from "../../style/icons";
import type { LowerActions, LowerPane } from "./pane";
import { StepMarks } from "./step_marks";

const PLAY_MS = 700;
const NONE = "No run is recorded yet: session.run(…, options=gc.RunOptions(values=True)) records one";

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
  #steps: Steps | null = null;
  #boxes: Readonly<Record<string, string>> = {};
  #done = 0;
  #timer: ReturnType<typeof setInterval> | undefined;
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
      "aria-label": "Step of the run",
      input: () => this.#go(Number(this.#slider.value), false),
    });
    this.#play = iconButton(ICONS.play, "Play or pause (y)", () => this.#toggle());
    this.#predicate = h("input", {
      type: "text",
      placeholder: "max > 10",
      "aria-label": "Stop where this holds",
      title: "A condition such as max > 10, iteration == 3, dead, or a part of a name",
    });
    this.controls = h(
      "div",
      { class: "gl-lower-controls", role: "toolbar", "aria-label": "Stepper" },
      iconButton(ICONS.stepBack, "One step back (,)", () => this.#back()),
      this.#play,
      iconButton(ICONS.stepOn, "One step: the next node runs (.)", () => this.#step()),
      iconButton(ICONS.stepIn, "Step in: open the box of the next node (i)", () => this.#in()),
      iconButton(ICONS.stepOver, "Step over the next box or call (x)", () => this.#over()),
      iconButton(ICONS.runOn, "Run to the next breakpoint, or to the end (r)", () => this.#run()),
      this.#slider,
    );
    this.element = h(
      "div",
      { class: "gl-stepper" },
      this.#said,
      h(
        "div",
        { class: "gl-step-stops" },
        h("span", {}, "Run to"),
        h("label", {}, this.#onBad, " NaN or Inf"),
        h("label", {}, "where ", this.#predicate),
        iconButton(ICONS.stop, "Breakpoint at the selected boxes, or remove it (b)", () => this.#breakpoint()),
        this.#breaks,
      ),
      h("div", { class: "gl-step-values" }, this.#taken, this.#table),
    );
  }

  dispose(): void {
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
      r: () => this.#run(),
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

  #receive({ key, steps, boxes }: StepsMessage): void {
    this.#boxes = boxes;
    if (key !== this.#key) {
      this.#key = key;
      this.#steps = steps && new Steps(steps);
      this.#done = 0;
      this.#pause();
    }
    this.#show(false);
  }

  /** The box of a run; an open call is its frame. */
  readonly #box = (run: number): string => {
    const name = this.#steps?.name(run) ?? "";
    return this.#boxes[name] ?? (this.#marks.has(name) ? name : "");
  };

  // ---- moving ------------------------------------------------------------------------------------------------------

  #go(done: number, moves = true): void {
    const size = this.#steps?.size ?? 0;
    this.#done = Math.max(0, Math.min(done, size));
    if (this.#done === size) this.#pause();
    this.#show(moves);
  }

  #step(): void {
    this.#go(this.#done + 1);
  }

  #back(): void {
    this.#pause();
    this.#go(this.#done - 1, false);
  }

  /** Opens what is around the next node. */
  #in(): void {
    const name = this.#steps?.name(this.#done) ?? "";
    const isClosed = name !== "" && this.#box(this.#done) !== name;
    this.#step();
    if (isClosed) this.#actions.send({ type: "reveal", name });
  }

  #over(): void {
    if (this.#steps) this.#go(this.#steps.over(this.#done, this.#box));
  }

  #run(): void {
    const steps = this.#steps;
    if (!steps) return;
    this.#pause();
    try {
      const tests: Test[] = [(_, run) => this.#stopAt.has(this.#box(run)) || this.#stopAt.has(steps.name(run))];
      if (this.#onBad.checked) tests.push(isBad);
      if (this.#predicate.value.trim()) tests.push(condition(this.#predicate.value.trim()));
      this.#go(steps.runTo(this.#done, tests));
    } catch (error) {
      this.#said.textContent = reason(error);
    }
  }

  #toggle(): void {
    if (this.#timer !== undefined) return this.#pause();
    if (!this.#steps) return;
    if (this.#done >= this.#steps.size) this.#done = 0;
    this.#timer = setInterval(() => this.#step(), PLAY_MS);
    this.#play.setAttribute("aria-pressed", "true");
    this.#said.setAttribute("aria-live", "off");
    this.#step();
  }

  #pause(): void {
    if (this.#timer === undefined) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#play.setAttribute("aria-pressed", "false");
    this.#said.removeAttribute("aria-live");
  }

  #breakpoint(): void {
    if (this.#selection.size === 0) {
      this.#said.textContent = "Select the box to stop at first";
      return;
    }
    for (const id of this.#selection) if (!this.#stopAt.delete(id)) this.#stopAt.add(id);
    this.#breaks.textContent = this.#stopAt.size > 0 ? `or at ${[...this.#stopAt].join(", ")}` : "";
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
    const last = this.#done - 1;
    this.#slider.max = String(steps.size);
    this.#slider.value = String(this.#done);
    const where = `Step ${this.#done} of ${steps.size}`;
    const words = last < 0 ? ["the run begins", ...steps.data.notes].join("; ") : steps.words(last);
    this.#slider.setAttribute("aria-valuetext", `${where}: ${words}`);
    this.#said.textContent = `${where}: ${words}`;
    this.#taken.replaceChildren(...(last < 0 ? [] : steps.takes(last).map((run) => this.#value(steps, run))));
    this.#showTable(steps);
    this.#marks.show(steps, steps.situation(this.#done, this.#box), moves);
  }

  #value(steps: Steps, run: number): HTMLElement {
    const name = steps.name(run);
    const choose = (): void => this.#actions.choose(name, this.#boxes[name] ?? "");
    const link = h("button", { type: "button", class: "gl-link", click: choose }, name);
    return h("li", {}, "took ", link, steps.text(run) ? ` ${steps.text(run)}` : "");
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
