// Pan and zoom: the transform between the picture and the window it is seen through.
import { reducedMotion } from "../dom";
import type { Look } from "../scene/generated";
import { LEGIBLE } from "../scene/measure";
import type { Point, Rect, Size } from "../scene/places";
import { uncovered } from "./covers";

const MIN_SCALE = 0.05;
const MAX_SCALE = 4;
const MARGIN = 16;
const LARGEST_FIT = 1.15;
/** The largest scale for a part of a picture, so that it is shown with some of its surroundings. */
const LARGEST_PIECE = 1;
const GLIDE_MS = 220;
/** Below this scale text has less than 5 pixels on the screen and is hidden. */
const ILLEGIBLE = 0.45;
/** The time without a move after which a zoomed picture is drawn at its new scale. */
const REST_MS = 250;

export interface View {
  readonly x: number;
  readonly y: number;
  readonly scale: number;
}

export class Camera {
  /** True until the user pans or zooms. While true, new pictures move the window. */
  following = true;
  /** The x at which to begin a picture that is too large to show whole; null for its middle. */
  beginning: number | null = null;
  /** The height in pixels that something else covers at the bottom of the window. */
  covered = 0;
  /** Called after the user has moved the window. */
  steered: (from: View, to: View) => void = () => {};
  /** The parts of the window that controls cover. */
  covers: () => readonly Rect[] = () => [];
  /** The size of the picture at scale 1. */
  #size: Size = { width: 0, height: 0 };
  #view: View = { x: 0, y: 0, scale: 1 };
  /** The end of the running animation; the current view if there is none. */
  #goal: View = this.#view;
  #gliding = 0;
  /** True after the user asked for the whole picture, at any scale. */
  #whole = false;
  /** The size of the picture that the user asked for as a whole. */
  #asked: Size = { width: 0, height: 0 };
  /** True while only a part of the picture is shown, because it is too large to show whole. */
  #piece = false;
  /** The scale at which the picture is drawn. Until a zoom has come to rest, a transform of its layer makes up for the rest. */
  #drawn = 0;
  #resting: ReturnType<typeof setTimeout> | undefined;
  #world: SVGGElement;
  readonly #layer: HTMLElement;
  readonly #window: () => { width: number; height: number };
  readonly #changed: (view: View) => void;

  /** `layer` moves as a whole; the drawing `world` in it is scaled. */
  constructor(
    layer: HTMLElement,
    world: SVGGElement,
    size: () => { width: number; height: number },
    changed: (view: View) => void,
  ) {
    this.#layer = layer;
    this.#world = world;
    this.#window = size;
    this.#changed = changed;
  }

  set size(size: Size) {
    this.#size = size;
    this.#sizeLayer();
  }

  /** Replaces the drawing that the camera moves. */
  attach(world: SVGGElement): void {
    this.#world = world;
    this.#drawn = 0;
    this.#apply(this.#view);
  }

  /** The point of the picture in the middle of the window. */
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

  /** The part of the picture in the window; null while the camera follows the picture. */
  look(): Look["camera"] {
    if (this.following) return null;
    const { width, height } = this.#window();
    const { x, y, scale } = this.#goal;
    const round = (value: number): number => Number(value.toFixed(1));
    return { x: round((width / 2 - x) / scale), y: round((height / 2 - y) / scale), scale: Number(scale.toFixed(4)) };
  }

  /** The transform from the picture to the window, at the end of a movement. */
  get view(): View {
    return this.#goal;
  }

  /** Moves the window as another one has moved. */
  show(view: View): void {
    this.#leave();
    this.#set({ ...view, scale: Math.min(MAX_SCALE, Math.max(MIN_SCALE, view.scale)) }, false);
  }

  /** Looks at something again. */
  lookAt(camera: NonNullable<Look["camera"]>, glide = true): void {
    this.#leave();
    const from = this.#goal;
    const { width, height } = this.#window();
    const scale = Math.min(MAX_SCALE, Math.max(MIN_SCALE, camera.scale));
    const view = { x: width / 2 - camera.x * scale, y: height / 2 - camera.y * scale, scale };
    if (glide) this.#glide(view);
    else this.#set(view);
    this.steered(from, view);
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
    const from = this.#view;
    this.#set({ ...from, x: from.x + dx, y: from.y + dy }, false);
    this.steered(from, this.#view);
  }

  /** Zooms by a factor about a point of the window, by default its middle. */
  zoom(factor: number, about?: Point): void {
    this.#leave();
    const { width, height } = this.#window();
    const { x, y } = about ?? { x: width / 2, y: height / 2 };
    const from = this.#view;
    const scale = Math.min(MAX_SCALE, Math.max(MIN_SCALE, from.scale * factor));
    const ratio = scale / from.scale;
    this.#set({ x: x - (x - from.x) * ratio, y: y - (y - from.y) * ratio, scale }, false);
    this.steered(from, this.#view);
  }

  /** Shows a whole rectangle at scale 1 or little more, and keeps doing so as the picture grows. */
  fit(rect: Rect | null, glide = true): void {
    const { width, height } = this.#window();
    if (!rect || width < 10 || height < 10) return;
    this.following = true;
    this.#whole = true;
    this.#asked = rect;
    this.#piece = false;
    this.#centre(rect, this.#fittingScale(rect), glide);
  }

  /** True if a whole rectangle is shown: because the user asked for it, or because it is legible. */
  showsAll(rect: Rect | null): boolean {
    return rect !== null && (this.#whole || this.#fittingScale(rect) >= LEGIBLE);
  }

  /** Shows a new picture: whole if it is legible, else its changed part, else its upper end. */
  follow(rect: Rect | null, news: Rect | null, glide: boolean): void {
    if (!rect) return;
    if (this.#whole && (rect.width !== this.#asked.width || rect.height !== this.#asked.height)) {
      this.#whole = false; // it was asked for another picture: this one is to be legible
    }
    const whole = this.#whole;
    if (this.showsAll(rect)) {
      this.fit(rect, glide);
      this.#whole = whole;
      return;
    }
    this.following = true;
    this.#piece = true;
    const wanted = news ? Math.min(this.#fittingScale(news), LARGEST_PIECE) : 0;
    const scale = Math.max(wanted, LEGIBLE);
    const height = (this.#window().height - this.covered - 2 * MARGIN) / scale;
    const part = news && news.height < height ? news : { ...(news ?? this.#upperEnd(rect, scale)), height };
    this.#centre(this.#within(rect, part, scale), scale, glide);
  }

  /** Moves a part of a picture so that the window around it shows nothing beyond the picture's edges. */
  #within(rect: Rect, part: Rect, scale: number): Rect {
    const panel = this.panel ?? { width: 0, height: 0 };
    const move = (start: number, length: number, first: number, all: number, seen: number): number => {
      const [low, high] = [first + seen / 2, first + all - seen / 2];
      const middle = low < high ? Math.min(Math.max(start + length / 2, low), high) : first + all / 2;
      return middle - length / 2;
    };
    const x = move(part.x, part.width, rect.x, rect.width, panel.width / scale);
    return { ...part, x, y: move(part.y, part.height, rect.y, rect.height, panel.height / scale) };
  }

  /** The upper part of a picture, as wide as the window, centred on its beginning. */
  #upperEnd(rect: Rect, scale: number): Rect {
    const width = Math.min((this.#window().width - 2 * MARGIN) / scale, rect.width);
    const left = (this.beginning ?? rect.x + rect.width / 2) - width / 2;
    return { ...rect, x: Math.min(Math.max(left, rect.x), rect.x + rect.width - width), width };
  }

  /** Adapts to a window of another size or cover: a followed picture fits it again, a part stays in place. */
  resettle(rect: Rect | null, glide: boolean): void {
    if (this.following && (!this.#piece || this.showsAll(rect))) this.follow(rect, null, glide);
  }

  /** Fits a rectangle into a smaller window. Returns false if it would become much smaller. */
  refit(rect: Rect | null): boolean {
    if (!rect || !this.showsAll(rect) || this.#fittingScale(rect) < 0.75 * this.#view.scale) return false;
    this.follow(rect, null, true);
    return true;
  }

  /** The size of the window that a picture can fill at scale 1; null where there is no window. */
  get panel(): Size | null {
    const { width, height } = this.#window();
    const panel = { width: width - 2 * MARGIN, height: height - this.covered - 2 * MARGIN };
    return panel.width > 0 && panel.height > 0 ? panel : null;
  }

  #fittingScale(rect: Rect): number {
    const { width, height } = this.panel ?? { width: 0, height: 0 };
    return Math.max(Math.min(width / rect.width, height / rect.height, LARGEST_FIT), MIN_SCALE);
  }

  /** Centres a rectangle at a legible scale. */
  focus(rect: Rect): void {
    this.#leave();
    this.#centre(rect, Math.min(Math.max(this.#view.scale, 0.8), 1.5), true);
  }

  /** Moves a rectangle, or the beginning of a larger one, into the window by the shortest way. A hidden window stays. */
  ensureVisible(rect: Rect): void {
    const { width, height: all } = this.#window();
    if (width < 10 || all < 10) return;
    const height = all - this.covered;
    const { x, y, scale } = this.#goal;
    const push = (start: number, end: number, length: number): number => {
      if (start < MARGIN) return MARGIN - start;
      return end > length - MARGIN ? Math.max(length - MARGIN - end, MARGIN - start) : 0;
    };
    const dx = push(x + rect.x * scale, x + (rect.x + rect.width) * scale, width);
    const dy = push(y + rect.y * scale, y + (rect.y + rect.height) * scale, height);
    const box = {
      x: x + dx + rect.x * scale,
      y: y + dy + rect.y * scale,
      width: rect.width * scale,
      height: rect.height * scale,
    };
    const clear = uncovered(box, this.covers(), { width, height }, MARGIN);
    if (dx || dy || clear.x || clear.y) this.#glide({ x: x + dx + clear.x, y: y + dy + clear.y, scale });
  }

  /** Keeps a point that moved in the picture at its place on the screen. */
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

  #set(view: View, rests = true): void {
    cancelAnimationFrame(this.#gliding);
    this.#goal = view;
    this.#apply(view, rests);
  }

  /** Moves the layer, which browsers do without drawing it again, and draws it at the scale at which it comes to rest. */
  #apply(view: View, rests = true): void {
    this.#view = view;
    clearTimeout(this.#resting);
    const magnified = view.scale / this.#drawn;
    if (rests || this.#drawn === 0) this.#draw();
    else if (magnified !== 1) this.#resting = setTimeout(() => this.#apply(this.#view), REST_MS);
    const scale = view.scale / this.#drawn;
    const place = (value: number): number => (scale === 1 ? Math.round(value) : Number(value.toFixed(2)));
    this.#layer.style.transform = `translate(${place(view.x)}px,${place(view.y)}px) scale(${Number(scale.toFixed(4))})`;
    this.#changed(view);
  }

  #draw(): void {
    const { scale } = this.#view;
    if (scale === this.#drawn) return;
    this.#drawn = scale;
    this.#world.setAttribute("transform", `scale(${Number(scale.toFixed(4))})`);
    this.#sizeLayer();
    this.#layer.classList.toggle("gl-far", scale < ILLEGIBLE);
  }

  #sizeLayer(): void {
    this.#layer.style.width = `${this.#size.width * this.#drawn}px`;
    this.#layer.style.height = `${this.#size.height * this.#drawn}px`;
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
      const view = { x: mix(from.x, to.x), y: mix(from.y, to.y), scale: mix(from.scale, to.scale) };
      this.#apply(t < 1 ? view : to, t === 1);
      if (t < 1) this.#gliding = requestAnimationFrame(step);
    };
    this.#gliding = requestAnimationFrame(step);
  }
}
