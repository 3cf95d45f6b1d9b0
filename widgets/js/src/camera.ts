// Pan and zoom: the transform between the picture and the window it is seen through.
import { reducedMotion } from "./dom";
import type { Point, Rect } from "./geometry";

const MIN_SCALE = 0.05;
const MAX_SCALE = 4;
const MARGIN = 24;
const LARGEST_FIT = 1.15;
/** Below this scale nobody reads a label: a picture that would have to be smaller is followed piece by piece. */
const READABLE = 0.42;
const GLIDE_MS = 220;

interface View {
  readonly x: number;
  readonly y: number;
  readonly scale: number;
}

export class Camera {
  /** True until the user pans or zooms: then a new picture no longer moves the window. */
  following = true;
  /** Height at the bottom of the window that something else covers. */
  covered = 0;
  #view: View = { x: 0, y: 0, scale: 1 };
  #gliding = 0;
  /** The user asked for all of the picture, however small. */
  #whole = false;
  #world: SVGGElement;
  readonly #window: () => { width: number; height: number };
  readonly #changed: (scale: number) => void;

  constructor(world: SVGGElement, size: () => { width: number; height: number }, changed: (scale: number) => void) {
    this.#world = world;
    this.#window = size;
    this.#changed = changed;
  }

  /** Moves another drawing from now on. */
  attach(world: SVGGElement): void {
    this.#world = world;
    this.#apply(this.#view);
  }

  /** The point of the picture that is in the middle of the window. */
  middle(): Point {
    const { width, height } = this.#window();
    const { x, y, scale } = this.#view;
    return { x: (width / 2 - x) / scale, y: (height / 2 - y) / scale };
  }

  pan(dx: number, dy: number): void {
    this.#leave();
    this.#set({ ...this.#view, x: this.#view.x + dx, y: this.#view.y + dy });
  }

  /** Zooms by a factor about a point of the window; its middle when none is given. */
  zoom(factor: number, about?: Point): void {
    this.#leave();
    const { width, height } = this.#window();
    const { x, y } = about ?? { x: width / 2, y: height / 2 };
    const scale = Math.min(MAX_SCALE, Math.max(MIN_SCALE, this.#view.scale * factor));
    const ratio = scale / this.#view.scale;
    this.#set({ x: x - (x - this.#view.x) * ratio, y: y - (y - this.#view.y) * ratio, scale });
  }

  /** Shows all of a rectangle, almost never larger than life, and follows growth from now on. */
  fit(rect: Rect | null, glide = true): void {
    const { width, height } = this.#window();
    if (!rect || width < 10 || height < 10) return;
    this.following = true;
    this.#whole = true;
    this.#centre(rect, this.#fittingScale(rect), glide);
  }

  /** Shows a new picture: all of it while that is readable, else where its news are, else its upper end. */
  follow(rect: Rect | null, news: Rect | null, glide: boolean): void {
    if (!rect) return;
    const whole = this.#whole;
    if (whole || this.#fittingScale(rect) >= READABLE) {
      this.fit(rect, glide);
      this.#whole = whole;
      return;
    }
    this.following = true;
    const { width, height } = this.#window();
    const room = { width: width / READABLE, height: (height - this.covered - 2 * MARGIN) / READABLE };
    const shown = news && news.height < room.height ? news : { ...(news ?? rect), height: room.height };
    this.#centre(shown, READABLE, glide);
  }

  /** Fits a rectangle into a window that has shrunk, unless it would become much smaller for that: false then. */
  refit(rect: Rect | null): boolean {
    if (!rect || this.#fittingScale(rect) < 0.75 * this.#view.scale) return false;
    this.follow(rect, null, true);
    return true;
  }

  #fittingScale(rect: Rect): number {
    const { width, height } = this.#window();
    const room = height - this.covered - 2 * MARGIN;
    return Math.max(Math.min((width - 2 * MARGIN) / rect.width, room / rect.height, LARGEST_FIT), MIN_SCALE);
  }

  /** Brings a rectangle to the middle, near enough to be read. */
  focus(rect: Rect): void {
    this.#leave();
    this.#centre(rect, Math.min(Math.max(this.#view.scale, 0.8), 1.5), true);
  }

  /** Moves as little as needed for the rectangle to be inside the window. */
  ensureVisible(rect: Rect): void {
    const { width, height: all } = this.#window();
    const height = all - this.covered;
    const { x, y, scale } = this.#view;
    const margin = 24;
    const push = (start: number, end: number, room: number): number =>
      start < margin ? margin - start : end > room - margin ? room - margin - end : 0;
    const dx = push(x + rect.x * scale, x + (rect.x + rect.width) * scale, width);
    const dy = push(y + rect.y * scale, y + (rect.y + rect.height) * scale, height);
    if (dx || dy) this.#glide({ x: x + dx, y: y + dy, scale });
  }

  /** Keeps a point of the picture where it was on the screen although its place in the picture changed. */
  hold(before: Point, after: Point): void {
    const { x, y, scale } = this.#view;
    this.#set({ x: x + (before.x - after.x) * scale, y: y + (before.y - after.y) * scale, scale });
  }

  #leave(): void {
    this.following = false;
    this.#whole = false;
  }

  #centre(rect: Rect, scale: number, glide: boolean): void {
    const { width, height } = this.#window();
    const x = width / 2 - (rect.x + rect.width / 2) * scale;
    const y = (height - this.covered) / 2 - (rect.y + rect.height / 2) * scale;
    if (glide) this.#glide({ x, y, scale });
    else this.#set({ x, y, scale });
  }

  #set(view: View): void {
    cancelAnimationFrame(this.#gliding);
    this.#apply(view);
  }

  #apply(view: View): void {
    const round = (value: number, digits: number): number => Number(value.toFixed(digits));
    this.#view = view;
    const place = `translate(${round(view.x, 2)},${round(view.y, 2)}) scale(${round(view.scale, 4)})`;
    this.#world.setAttribute("transform", place);
    this.#changed(view.scale);
  }

  #glide(to: View): void {
    cancelAnimationFrame(this.#gliding);
    if (reducedMotion()) return this.#apply(to);
    const from = this.#view;
    const start = performance.now();
    const step = (now: number): void => {
      const t = Math.min(1, Math.max(0, (now - start) / GLIDE_MS));
      const eased = 1 - (1 - t) ** 3;
      const mix = (a: number, b: number): number => a + (b - a) * eased;
      this.#apply({ x: mix(from.x, to.x), y: mix(from.y, to.y), scale: mix(from.scale, to.scale) });
      if (t < 1) this.#gliding = requestAnimationFrame(step);
    };
    this.#gliding = requestAnimationFrame(step);
  }
}
