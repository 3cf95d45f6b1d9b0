// Predict first: the student says which node runs next and what its value is, then the step shows it.
import { h } from "../../dom";
import { word } from "../../scene/words";

/** The relative difference of numbers that counts as equal: texts of values have four digits. */
const NEAR = 2e-3;
const NUMBER = /[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|\b(?:nan|inf|true|false)\b/gi;

/** A prediction: the name of a node, and its value as text, "" for none. */
export interface Guess {
  readonly name: string;
  readonly value: string;
}

/** The node that ran. */
export interface Outcome {
  readonly name: string;
  /** Its box in the picture. */
  readonly box: string;
  /** Its value in words, "" if there is none. */
  readonly text: string;
  /** True for a node that could have run as well. */
  readonly couldRun: (name: string) => boolean;
}

export class Prediction {
  readonly element: HTMLElement;
  readonly #on: HTMLInputElement;
  readonly #form: HTMLElement;
  readonly #name: HTMLInputElement;
  readonly #value: HTMLInputElement;
  readonly #score = h("output", { class: "gl-score" });
  readonly #verdict = h("p", { class: "gl-verdict", role: "status" });
  #right = 0;
  #wrong = 0;

  /** `step` makes the step once both fields are filled in; `toggled` follows the switch. */
  constructor(step: () => void, toggled: () => void) {
    const field = (name: string, placeholder: string): HTMLInputElement =>
      h("input", {
        type: "text",
        "aria-label": word(name),
        placeholder: word(placeholder),
        keydown: (event: KeyboardEvent) => {
          if (event.key !== "Enter") return;
          event.preventDefault();
          step();
        },
      });
    this.#name = field("The node that runs next", "name, or click its box");
    this.#value = field("Its value", "such as 6 or [1, 2]");
    this.#form = h(
      "span",
      { class: "gl-guess", hidden: true },
      h("label", {}, `${word("Next runs")} `, this.#name),
      h("label", {}, `${word("with value")} `, this.#value),
      h("button", { type: "button", class: "gl-text-button", click: step }, word("Step")),
      this.#score,
    );
    this.#on = h("input", {
      type: "checkbox",
      change: () => {
        this.#form.hidden = !this.#on.checked;
        this.#verdict.textContent = "";
        toggled();
      },
    });
    this.element = h(
      "div",
      { class: "gl-predict" },
      h("div", { class: "gl-predict-row" }, h("label", {}, this.#on, ` ${word("Predict first")}`), this.#form),
      this.#verdict,
    );
    this.#count();
  }

  /** True while the student predicts each step. */
  get on(): boolean {
    return this.#on.checked;
  }

  /** Takes the box that the student clicked. */
  choose(id: string): void {
    if (this.on) this.#name.value = id;
  }

  /** The prediction that is filled in; null, and a request for it, if there is none. */
  take(): Guess | null {
    const [name, value] = [this.#name.value.trim(), this.#value.value.trim()];
    if (name) return { name, value };
    this.#verdict.textContent = word("Say first which node runs next");
    this.#name.focus();
    return null;
  }

  /** Compares a prediction with what ran, and counts. */
  judge(guess: Guess, { name, box, text, couldRun }: Outcome): void {
    const exact = guess.name === name || guess.name === box;
    const nodeIsRight = exact || couldRun(guess.name);
    const expected = elementsIn(text);
    const judged = exact && guess.value !== "" && expected.length > 0;
    const valueIsRight = judged && sameNumbers(numbersIn(guess.value), expected);
    this.#right += Number(nodeIsRight) + Number(valueIsRight);
    this.#wrong += Number(!nodeIsRight) + Number(judged && !valueIsRight);
    this.#count();
    const fields = { node: name, guess: guess.name, value: text };
    const said = exact
      ? "Right: {node} ran"
      : nodeIsRight
        ? "{guess} could run as well; this time {node} ran first"
        : "{guess} cannot run yet, or has run: {node} ran";
    const value = !text
      ? ""
      : !judged
        ? ". Its value: {value}"
        : valueIsRight
          ? ", with the value {value}"
          : ", but its value is {value}";
    this.#verdict.textContent = word(said, fields) + word(value, fields);
    this.#verdict.classList.toggle("gl-is-wrong", !nodeIsRight || (judged && !valueIsRight));
    this.#name.value = "";
    this.#value.value = "";
    this.#name.focus();
  }

  #count(): void {
    this.#score.textContent = word("right {right}, wrong {wrong}", { right: this.#right, wrong: this.#wrong });
  }
}

/** The numbers of a value that is there as a whole, behind its type and shape; none of one that is too large to be predicted. */
function elementsIn(text: string): number[] {
  const value = text.replace(/^\w+ \[[^\]]*\] /, "");
  const isWhole = value.startsWith("[") ? !value.includes("...") : /^[^\s;]+$/.test(value);
  return isWhole ? numbersIn(value) : [];
}

function numbersIn(value: string): number[] {
  return [...value.matchAll(NUMBER)].map(([found]) => {
    const lower = found.toLowerCase();
    if (lower === "true" || lower === "false") return Number(lower === "true");
    return lower === "inf" ? Infinity : lower === "nan" ? Number.NaN : Number(lower);
  });
}

function sameNumbers(given: readonly number[], expected: readonly number[]): boolean {
  return (
    given.length === expected.length && expected.every((value, place) => sameNumber(given[place] as number, value))
  );
}

function sameNumber(given: number, value: number): boolean {
  return (
    Object.is(given, value) || given === value || Math.abs(given - value) <= NEAR * Math.max(1e-3, Math.abs(value))
  );
}
