// A recorded run, node by node: the effect of a step, and the boxes and values after it.
import { CONST, type Comparison, type Quantity, type RecordedSteps, type StepTest } from "./generated";

export const RAN = 0;
export const DEAD = 1;
export const FAILED = 2;
export const FED = 3;
export const RUNNING = 4;

const MOST_COLUMNS = 8;
const MOST_TURNS = 20;

export type BoxState = "ran" | "dead" | "failed";

/** A value between two boxes, that of the newest run, and how many there are. */
export interface Token {
  readonly source: string;
  readonly target: string;
  run: number;
  count: number;
}

/** The boxes and values after the first runs. */
export interface Situation {
  /** The boxes of the node that ran last and of the calls around it. */
  readonly running: readonly string[];
  readonly boxes: ReadonlyMap<string, BoxState>;
  /** The values that wait for a node which has not run. */
  readonly waiting: readonly Token[];
  /** The values that the last node took. */
  readonly moving: readonly Token[];
}

/** The iterations of a loop with their values: the newest is last. */
export interface LoopTable {
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: readonly { readonly turn: number; readonly cells: readonly string[] }[];
}

export type Test = (steps: Steps, run: number) => boolean;

export class Steps {
  readonly data: RecordedSteps;
  readonly #from: Int32Array;

  constructor(data: RecordedSteps) {
    this.data = data;
    this.#from = new Int32Array(data.runs.counts.length + 1);
    for (const [run, count] of data.runs.counts.entries()) this.#from[run + 1] = (this.#from[run] as number) + count;
  }

  get size(): number {
    return this.data.runs.labels.length;
  }

  name(run: number): string {
    return this.data.nodes[this.data.runs.labels[run] ?? -1] ?? "";
  }

  op(run: number): string {
    return this.data.ops[this.data.runs.labels[run] ?? -1] ?? "";
  }

  state(run: number): number {
    return this.data.runs.states[run] ?? RAN;
  }

  /** The value of a run in words, "" if it was not recorded. */
  text(run: number): string {
    return this.data.texts[this.data.runs.texts[run] ?? -1] ?? "";
  }

  /** The runs whose values a run took. */
  takes(run: number): readonly number[] {
    return this.data.runs.takes.slice(this.#from[run], this.#from[run + 1]);
  }

  /** The loop of a run and its iteration in words, "" outside of loops. */
  loop(run: number): string {
    const name = this.data.loops[this.data.runs.loops[run] ?? -1];
    return name === undefined ? "" : `${name}, iteration ${this.data.runs.turns[run]}`;
  }

  /** A run in words, after the first `done` runs: a call has its value only at its end. */
  words(run: number, done = this.size): string {
    const isOpen = this.state(run) === RUNNING || (this.state(run) === RAN && (this.data.runs.lasts[run] ?? 0) >= done);
    const what = isOpen ? "runs" : ["ran", "is dead: its branch was not taken", "failed", "was fed"][this.state(run)];
    const place = this.loop(run);
    const text = isOpen ? "" : this.text(run);
    return `${this.name(run)} ${what}${place ? ` in ${place}` : ""}${text ? `: ${text}` : ""}`;
  }

  /** The calls around a run, outermost first. */
  around(run: number): readonly number[] {
    const { lasts } = this.data.runs;
    const found: number[] = [];
    for (let other = 0; other < run; other++) if ((lasts[other] as number) >= run) found.push(other);
    return found;
  }

  /** The number of runs after stepping over the next one: whatever runs in the same box or call is passed. */
  over(done: number, box: (run: number) => string): number {
    if (done >= this.size) return this.size;
    const { lasts } = this.data.runs;
    const here = box(done);
    let end = lasts[done] as number;
    let next = done + 1;
    while (next < this.size && (next <= end || (here !== "" && box(next) === here))) {
      end = Math.max(end, lasts[next] as number);
      next += 1;
    }
    return next;
  }

  /** The number of runs after running to the next run of which one of the tests holds; all if there is none. */
  runTo(done: number, tests: readonly Test[]): number {
    for (let run = done; run < this.size; run++) if (tests.some((test) => test(this, run))) return run + 1;
    return this.size;
  }

  /** The boxes and values after the first `done` runs, of which `last` is the one to look at. */
  situation(done: number, box: (run: number) => string, last = done - 1): Situation {
    return {
      running: last < 0 ? [] : [...new Set([...this.around(last), last].map(box).filter(Boolean))],
      boxes: this.#boxes(done, box),
      ...this.#tokens(done, box, last),
    };
  }

  /** A box is dead if all of its nodes were dead in the iteration that it reached. */
  #boxes(done: number, box: (run: number) => string): Map<string, BoxState> {
    const { states, loops, turns } = this.data.runs;
    const found = new Map<string, BoxState>();
    const places = new Map<string, string>();
    for (let run = 0; run < done; run++) {
      const id = box(run);
      if (!id) continue;
      const state = states[run] as number;
      const place = `${loops[run]} ${turns[run]}`;
      const known = places.get(id) === place ? found.get(id) : undefined;
      places.set(id, place);
      if (state === RUNNING) continue;
      if (state === FAILED || known === "failed") found.set(id, "failed");
      else if (state === DEAD) found.set(id, known ?? "dead");
      else found.set(id, "ran");
    }
    return found;
  }

  #tokens(done: number, box: (run: number) => string, last: number): Pick<Situation, "waiting" | "moving"> {
    const { lasts, takes } = this.data.runs;
    const waiting = new Map<string, Token>();
    const moving = new Map<string, Token>();
    const from = this.#from;
    for (let run = Math.max(0, last); run < this.size; run++) {
      if (run !== last && run < done) continue;
      const tokens = run < done ? moving : waiting;
      for (let place = from[run] as number; place < (from[run + 1] as number); place++) {
        const taken = takes[place] as number;
        if ((lasts[taken] as number) >= done && run >= done) continue;
        const [source, target] = [box(taken), box(run)];
        if (!source || !target || source === target) continue;
        const key = `${source}\n${target}`;
        const known = tokens.get(key);
        if (!known) tokens.set(key, { source, target, run: taken, count: 1 });
        else if (known.run !== taken) {
          known.count += 1;
          known.run = Math.max(known.run, taken);
        }
      }
    }
    return { waiting: [...waiting.values()], moving: [...moving.values()] };
  }

  /** The iterations of the loop of the last of some runs, null outside of loops. */
  table(done: number): LoopTable | null {
    const { loops, turns, labels, texts } = this.data.runs;
    const loop = loops[done - 1] ?? -1;
    if (loop < 0) return null;
    const rows = new Map<number, Map<number, string>>();
    const columns = new Set<number>();
    for (let run = 0; run < done; run++) {
      if (loops[run] !== loop) continue;
      const row = rows.get(turns[run] as number) ?? new Map<number, string>();
      rows.set(turns[run] as number, row);
      const label = labels[run] as number;
      if (this.data.ops[label] === CONST || (texts[run] as number) < 0) continue;
      columns.add(label);
      row.set(label, this.text(run));
    }
    const merges = [...columns].filter(
      (label) => this.data.ops[label]?.endsWith("Merge") || this.data.carried.includes(label),
    );
    const rest = [...columns].filter((label) => !PASSING.test(this.data.ops[label] ?? ""));
    const shown = [...new Set([...merges, ...rest])].slice(0, MOST_COLUMNS);
    return {
      title: this.data.loops[loop] ?? "",
      columns: shown.map((label) => this.data.nodes[label] ?? ""),
      rows: [...rows]
        .slice(-MOST_TURNS)
        .map(([turn, cells]) => ({ turn, cells: shown.map((label) => cells.get(label) ?? "") })),
    };
  }
}

/** The ops that pass values on, which other columns of a table show. */
const PASSING = /(Merge|Switch|Identity|NextIteration|Enter|Exit|LoopCond)$/;

const COMPARED = /^(min|max|mean|nan|inf|iteration)\s*(<=|>=|==|!=|<|>)\s*(-?[\d.]+(?:e[-+]?\d+)?)$/i;
const REQUIRED = "such as max > 10, nan > 0, iteration == 3, dead, failed, or a part of a name; several joined by and";

export const isBad: Test = ({ data: { runs } }, run) => (runs.nans[run] ?? 0) + (runs.infs[run] ?? 0) > 0;

/** Reads a condition on runs. Throws an Error that says what is required. */
export function testsOf(text: string): readonly StepTest[] {
  return text.split(/\s+and\s+/i).map((part) => single(part.trim()));
}

/** A condition on runs. Throws an Error that says what is required. */
export function condition(text: string): Test {
  const tests = testsOf(text);
  return (steps, run) => tests.every((test) => holds(test, steps, run));
}

function single(text: string): StepTest {
  if (text === "dead" || text === "failed") return { quantity: text, operator: "", number: 0, text: "" };
  const [, quantity = "", operator = "", number = ""] = COMPARED.exec(text) ?? [];
  if (quantity) {
    const lower = quantity.toLowerCase() as Quantity;
    return { quantity: lower, operator: operator as Comparison, number: Number(number), text: "" };
  }
  if (!text || /[<>=!]/.test(text)) throw new Error(`Required a condition ${REQUIRED}; got '${text}'`);
  return { quantity: "name", operator: "", number: 0, text };
}

function holds({ quantity, operator, number, text }: StepTest, steps: Steps, run: number): boolean {
  const { runs } = steps.data;
  switch (quantity) {
    case "dead":
      return steps.state(run) === DEAD;
    case "failed":
      return steps.state(run) === FAILED;
    case "name":
      return steps.name(run).toLowerCase().includes(text.toLowerCase());
    case "iteration":
      if ((runs.loops[run] ?? -1) < 0) return false;
  }
  const columns = {
    min: runs.lows,
    max: runs.highs,
    mean: runs.means,
    nan: runs.nans,
    inf: runs.infs,
    iteration: runs.turns,
  };
  const value = columns[quantity][run];
  if (value === null || value === undefined) return false;
  switch (operator) {
    case "<":
      return value < number;
    case ">":
      return value > number;
    case "<=":
      return value <= number;
    case ">=":
      return value >= number;
    case "==":
      return value === number;
    default:
      return value !== number;
  }
}
