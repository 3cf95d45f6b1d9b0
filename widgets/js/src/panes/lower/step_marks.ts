// The marks of a step on the picture: the running box, dead branches, and tokens on the lines.
import type { Stage } from "../../canvas/stage";
import { reducedMotion, s } from "../../dom";
import type { Scene } from "../../scene/generated";
import { routeMiddle, routePath } from "../../scene/geometry";
import { ellipsize, textWidth } from "../../scene/measure";
import { type BoxState, DEAD, type Situation, type Steps, type Token } from "../../scene/steps";

const MOVE_MS = 400;
const MOST_TOKENS = 300;
const TOKEN_WIDTH = 110;

export class StepMarks {
  readonly #stage: Stage;
  readonly #layer = s("g", { class: "gl-steps", "aria-hidden": "true" });
  readonly #marked = new Map<Element, string>();
  #elements: ReadonlyMap<string, Element> | null = null;
  #lines: ReadonlyMap<string, string> = new Map();
  #frame = 0;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  /** Another picture is on the screen. */
  drawn({ edges }: Scene): void {
    this.#elements = null;
    this.#lines = new Map(edges.map(({ id, source, target }) => [`${source}\n${target}`, id]));
    this.#marked.clear();
  }

  /** True for the boxes and frames of the picture. */
  has(id: string): boolean {
    return this.#known.has(id);
  }

  show(steps: Steps, { running, boxes, waiting, moving }: Situation, moves: boolean): void {
    const classes = new Map<Element, string>();
    const texts: SVGElement[] = [];
    const mark = (id: string, name: string, text: string): void => {
      const element = this.#known.get(id);
      if (!element) return;
      classes.set(element, name);
      const rect = text ? this.#stage.rectOf(id) : null;
      if (rect) texts.push(tag(text, rect.x + rect.width / 2, rect.y + rect.height + 1, name.split(" ")[0] ?? ""));
    };
    for (const [id, state] of boxes) mark(id, `gl-step-${state}`, WORDS[state]);
    for (const id of running) {
      const state = boxes.get(id);
      mark(id, state === "ran" || !state ? "gl-step-now" : `gl-step-now gl-step-${state}`, "▶ runs");
    }
    for (const [element, name] of this.#marked) {
      if (classes.get(element) !== name) element.classList.remove(...name.split(" "));
    }
    for (const [element, name] of classes) element.classList.add(...name.split(" "));
    this.#marked.clear();
    for (const [element, name] of classes) this.#marked.set(element, name);
    const still = waiting.slice(0, MOST_TOKENS).flatMap((token) => this.#token(steps, token) ?? []);
    const taken = moving
      .slice(0, MOST_TOKENS)
      .flatMap((token) => this.#token(steps, token, "gl-step-taken-token") ?? []);
    this.#layer.replaceChildren(...still, ...taken, ...texts);
    const world = this.#stage.canvas.querySelector(".gl-world");
    if (world && this.#layer.parentNode !== world) world.append(this.#layer);
    if (running.length > 0) {
      const rect = this.#stage.rectOf(running.at(-1) ?? "");
      if (rect) this.#stage.camera.ensureVisible(rect);
    }
    cancelAnimationFrame(this.#frame);
    if (moves && !reducedMotion()) this.#move(moving, taken);
  }

  clear(): void {
    cancelAnimationFrame(this.#frame);
    for (const [element, name] of this.#marked) element.classList.remove(...name.split(" "));
    this.#marked.clear();
    this.#layer.remove();
  }

  get #known(): ReadonlyMap<string, Element> {
    if (!this.#elements) {
      const found = this.#stage.canvas.querySelectorAll<SVGElement>("[data-node-id], [data-group-id]");
      this.#elements = new Map([...found].map((each) => [each.dataset.nodeId ?? each.dataset.groupId ?? "", each]));
    }
    return this.#elements;
  }

  /** The token of a value on its line, null if no line is drawn. */
  #token(steps: Steps, { source, target, run, count }: Token, name = ""): SVGElement | null {
    const route = this.#stage.geometry?.edges.get(this.#lines.get(`${source}\n${target}`) ?? "");
    if (!route) return null;
    const { x, y } = name ? route.tip : routeMiddle(route);
    const full = steps.text(run);
    const isDead = steps.state(run) === DEAD;
    const text = count > 1 ? `${count} values` : ellipsize(full, "detail", TOKEN_WIDTH);
    return s(
      "g",
      { class: `gl-token ${name}${isDead ? " gl-token-dead" : ""}`, transform: `translate(${x},${y})` },
      s("title", {}, `${steps.words(run)}${count > 1 ? ` and ${count - 1} more` : ""}`),
      s("circle", { r: 5 }),
      text ? s("rect", { x: 8, y: -8, width: textWidth(text, "detail") + 8, height: 16, rx: 4 }) : null,
      text ? s("text", { x: 12, y: 4 }, text) : null,
    );
  }

  /** Moves the tokens that were taken along their lines. */
  #move(moving: readonly Token[], taken: readonly SVGElement[]): void {
    const paths = moving.flatMap(({ source, target }) => {
      const route = this.#stage.geometry?.edges.get(this.#lines.get(`${source}\n${target}`) ?? "");
      return route ? [s("path", { d: `${routePath(route)}L${route.tip.x},${route.tip.y}` })] : [];
    });
    const start = performance.now();
    const draw = (now: number): void => {
      const part = Math.min(1, Math.max(0, (now - start) / MOVE_MS));
      for (const [place, path] of paths.entries()) {
        const { x, y } = path.getPointAtLength(path.getTotalLength() * part);
        taken[place]?.setAttribute("transform", `translate(${x},${y})`);
      }
      if (part < 1) this.#frame = requestAnimationFrame(draw);
    };
    if (paths.length > 0) this.#frame = requestAnimationFrame(draw);
  }
}

/** The states of boxes in words; that a box has run is seen from its value. */
const WORDS: Readonly<Record<BoxState, string>> = { ran: "", dead: "dead", failed: "failed" };

function tag(text: string, x: number, y: number, name: string): SVGElement {
  const width = text.length * 6 + 10;
  return s(
    "g",
    { class: `gl-step-tag ${name}-tag`, transform: `translate(${x},${y})` },
    s("rect", { x: -width / 2, y: -9, width, height: 15, rx: 4 }),
    s("text", { y: 2 }, text),
  );
}
