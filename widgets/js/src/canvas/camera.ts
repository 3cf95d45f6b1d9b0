// Pan and zoom: the transform between the picture and the window it is seen through.
import { reducedMotion } from "../dom";
import type { Look } from "../scene/generated";
import type { Point, Rect } from "../scene/geometry";

const MIN_SCALE = 0.05;
const MAX_SCALE = 4;
const MARGIN = 24;
const LARGEST_FIT = 1.15;
/** A picture that would have to be smaller than this to fit is followed piece by piece. */
const SMALLEST_WHOLE = 0.33;
/** A piece is shown in this range: large enough to be read, small enough to see what is around it. */
const SMALLEST_PIECE = 0.42;
const LARGEST_PIECE = 0.8;
const GLIDE_MS = 220;

export interface View {
  readonly x: number;
  readonly y: number;
  readonly scale: number;
}

export class Camera {
  /** True until the user pans or zooms: then a new picture no longer moves the window. */
  following = true;
  /** Where, from left to right, a picture begins that is too large to be shown whole; null for its middle. */
  beginning: number | null = null;
  /** Height at the bottom of the window that something else covers. */
  covered = 0;
  #view: View = { x: 0, y: 0, scale: 1 };
  /** Where a glide ends; the view itself while nothing glides. */
  #goal: View = this.#view;
  #gliding = 0;
  /** The user asked for all of the picture, however small. */
  #whole = false;
  /** What is shown is a part of a picture that is too large to be shown whole. */
  #piece = false;
  #world: SVGGElement;
  readonly #window: () => { width: number; height: number };
  readonly #changed: (view: View) => void;

  constructor(world: SVGGElement, size: () => { width: number; height: number }, changed: (view: View) => void) {
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

  /** The point of the picture at a point of the window. */
  toPicture(point: Point): Point {
    const { x, y, scale } = this.#view;
    return { x: (point.x - x) / scale, y: (point.y - y) / scale };
  }

  /** What the user looks at; null while the picture is followed. */
  look(): Look["camera"] {
    if (this.following) return null;
    const { width, height } = this.#window();
    const { x, y, scale } = this.#goal;
    const round = (value: number): number => Number(value.toFixed(1));
    return { x: round((width / 2 - x) / scale), y: round((height / 2 - y) / scale), scale: Number(scale.toFixed(4)) };
  }

  /** Looks at something again. */
  lookAt(camera: NonNullable<Look["camera"]>, glide = true): void {
    this.#leave();
    const { width, height } = this.#window();
    const scale = Math.min(MAX_SCALE, Math.max(MIN_SCALE, camera.scale));
    const view = { x: width / 2 - camera.x * scale, y: height / 2 - camera.y * scale, scale };
    if (glide) this.#glide(view);
    else this.#set(view);
  }

  /** Follows the picture again. */
  release(rect: Rect | null): void {
    this.#whole = false;
    this.following = true;
    this.follow(rect, null, true);
  }

  /** Brings a point of the picture to the middle. */
  centreOn(x: number, y: number): void {
    this.lookAt({ x, y, scale: this.#view.scale }, false);
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
    this.#piece = false;
    this.#centre(rect, this.#fittingScale(rect), glide);
  }

  /** Whether following shows all of a rectangle: the user asked for that, or it can be made out. */
  showsAll(rect: Rect | null): boolean {
    return rect !== null && (this.#whole || this.#fittingScale(rect) >= SMALLEST_WHOLE);
  }

  /** Shows a new picture: all of it while it can be made out, else where its news are, else its upper end. */
  follow(rect: Rect | null, news: Rect | null, glide: boolean): void {
    if (!rect) return;
    const whole = this.#whole;
    if (this.showsAll(rect)) {
      this.fit(rect, glide);
      this.#whole = whole;
      return;
    }
    this.following = true;
    this.#piece = true;
    const wanted = news ? Math.min(this.#fittingScale(news), LARGEST_PIECE) : 0;
    const scale = Math.max(wanted, SMALLEST_PIECE);
    const height = (this.#window().height - this.covered - 2 * MARGIN) / scale;
    this.#centre(
      news && news.height < height ? news : { ...(news ?? this.#upperEnd(rect, scale)), height },
      scale,
      glide,
    );
  }

  /** As much of a picture's width as the window holds, about where it begins. */
  #upperEnd(rect: Rect, scale: number): Rect {
    const width = Math.min((this.#window().width - 2 * MARGIN) / scale, rect.width);
    const left = (this.beginning ?? rect.x + rect.width / 2) - width / 2;
    return { ...rect, x: Math.min(Math.max(left, rect.x), rect.x + rect.width - width), width };
  }

  /** The window has another size, or something covers it: a picture that is followed fits it again, a piece stays where it is. */
  resettle(rect: Rect | null, glide: boolean): void {
    if (this.following && (!this.#piece || this.showsAll(rect))) this.follow(rect, null, glide);
  }

  /** Fits a rectangle into a window that has shrunk, unless it would become much smaller for that: false then. */
  refit(rect: Rect | null): boolean {
    if (!rect || !this.showsAll(rect) || this.#fittingScale(rect) < 0.75 * this.#view.scale) return false;
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

  /** Moves as little as needed for the rectangle to be inside the window; of one that is larger its beginning is. */
  ensureVisible(rect: Rect): void {
    const { width, height: all } = this.#window();
    const height = all - this.covered;
    const { x, y, scale } = this.#goal;
    const push = (start: number, end: number, room: number): number => {
      if (start < MARGIN) return MARGIN - start;
      return end > room - MARGIN ? Math.max(room - MARGIN - end, MARGIN - start) : 0;
    };
    const dx = push(x + rect.x * scale, x + (rect.x + rect.width) * scale, width);
    const dy = push(y + rect.y * scale, y + (rect.y + rect.height) * scale, height);
    if (dx || dy) this.#glide({ x: x + dx, y: y + dy, scale });
  }

  /** Keeps a point of the picture where it was on the screen although its place in the picture changed. */
  hold(before: Point, after: Point): void {
    const { x, y, scale } = this.#goal;
    const moved = { x: x + (before.x - after.x) * scale, y: y + (before.y - after.y) * scale, scale };
    if (this.#goal === this.#view) this.#set(moved);
    else this.#glide(moved);
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
    this.#goal = view;
    this.#apply(view);
  }

  #apply(view: View): void {
    const round = (value: number, digits: number): number => Number(value.toFixed(digits));
    this.#view = view;
    const place = `translate(${round(view.x, 2)},${round(view.y, 2)}) scale(${round(view.scale, 4)})`;
    this.#world.setAttribute("transform", place);
    this.#changed(view);
  }

  #glide(to: View): void {
    if (reducedMotion()) return this.#set(to);
    cancelAnimationFrame(this.#gliding);
    this.#goal = to;
    const from = this.#view;
    const start = performance.now();
    const step = (now: number): void => {
      const t = Math.min(1, Math.max(0, (now - start) / GLIDE_MS));
      const eased = 1 - (1 - t) ** 3;
      const mix = (a: number, b: number): number => a + (b - a) * eased;
      this.#apply(t < 1 ? { x: mix(from.x, to.x), y: mix(from.y, to.y), scale: mix(from.scale, to.scale) } : to);
      if (t < 1) this.#gliding = requestAnimationFrame(step);
    };
    this.#gliding = requestAnimationFrame(step);
  }
}
