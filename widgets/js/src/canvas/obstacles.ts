// The places that tags of lenses leave free: boxes, labels, and other tags.
import type { Rect } from "../scene/places";

/** The height in pixels of a band of the picture. */
const BAND = 64;

interface Obstacle extends Rect {
  readonly owner: string;
}

const meet = (a: Rect, b: Rect): boolean =>
  a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;

export class Obstacles {
  /** The obstacles by the bands that they are in. */
  readonly #bands = new Map<number, Obstacle[]>();

  /** Adds a place that tags must leave free, except for those of its owner. */
  add({ x, y, width, height }: Rect, owner = ""): void {
    const obstacle = { x, y, width, height, owner };
    for (let band = Math.floor(y / BAND); band * BAND < y + height; band++) {
      const others = this.#bands.get(band);
      if (others) others.push(obstacle);
      else this.#bands.set(band, [obstacle]);
    }
  }

  /** True if a tag of `owner` would cover something at this place. */
  meets(rect: Rect, owner: string): boolean {
    return this.#near(rect).some((other) => (owner === "" || other.owner !== owner) && meet(rect, other));
  }

  /** The free space in pixels at the left of a place, up to the next obstacle or the end of the picture. */
  spaceAtLeft(rect: Rect): number {
    const strip = { ...rect, x: 0, width: rect.x };
    const ends = this.#near(strip).filter((other) => meet(strip, other) && other.x + other.width <= rect.x);
    return Math.max(0, rect.x - Math.max(0, ...ends.map(({ x, width }) => x + width)));
  }

  #near({ y, height }: Rect): Obstacle[] {
    const found: Obstacle[] = [];
    for (let band = Math.floor(y / BAND); band * BAND < y + height; band++)
      found.push(...(this.#bands.get(band) ?? []));
    return found;
  }
}
