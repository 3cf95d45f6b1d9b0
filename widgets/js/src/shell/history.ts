// Back and forward: where the user has been in a picture.
import type { Look, Openings } from "../scene/generated";

const MOST = 100;
/** A place counts once the user has stayed there for this long. */
const STAY_MS = 300;

/** The open scopes and the camera. */
export interface Place {
  readonly openings: Openings;
  readonly look: Look;
}

export interface HistoryActions {
  /** The current place; null before the first picture. */
  read(): Place | null;
  go(place: Place, from: Place): void;
  /** The user has come to another place. */
  arrived(place: Place): void;
}

export class History {
  readonly #actions: HistoryActions;
  #places: Place[] = [];
  #at = -1;
  /** On the way to a place of the list: what is reached is that place, not a new one. */
  #going = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(actions: HistoryActions) {
    this.#actions = actions;
  }

  get canGoBack(): boolean {
    return this.#at > 0;
  }

  get canGoForward(): boolean {
    return this.#at < this.#places.length - 1;
  }

  /** Something may have changed: remembers the place once it stays. */
  touch(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#note(), STAY_MS);
  }

  /** Goes back (-1) or forward (1). */
  step(by: -1 | 1): void {
    if (!this.#going) this.#note();
    const [from, to] = [this.#places[this.#at], this.#places[this.#at + by]];
    if (!from || !to) return;
    this.#at += by;
    this.#going = true;
    this.#actions.go(to, from);
    this.touch();
  }

  dispose(): void {
    clearTimeout(this.#timer);
  }

  #note(): void {
    clearTimeout(this.#timer);
    const place = this.#actions.read();
    if (!place) return;
    const same = JSON.stringify(place) === JSON.stringify(this.#places[this.#at]);
    const going = this.#going;
    this.#going = false;
    if (same) return going ? this.#actions.arrived(place) : undefined;
    if (going) this.#places[this.#at] = place;
    else this.#places = [...this.#places.slice(0, this.#at + 1), place].slice(-MOST);
    if (!going) this.#at = this.#places.length - 1;
    this.#actions.arrived(place);
  }
}
