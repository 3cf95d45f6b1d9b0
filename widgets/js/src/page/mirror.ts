// The mirrored picture: each gradient beside what it differentiates.
import { ORIGINS } from "../scene/generated";
import { getOrMake } from "./order";
import { type Instance, Part } from "./parts";
import { CALL, GROUP, SCOPE } from "./space";
import { callsFunctions } from "./structure";
import type { Folding, Frame, Visible } from "./visible";

export const { MIRROR } = ORIGINS;
/** The frame of the backward pass, or its box. */
export const BACKWARD = `${MIRROR}/`;

/** The gradient nodes of one forward box or frame. */
export class Mirrored extends Part {
  readonly #key: string;
  readonly #label: string;
  readonly #nodes: number[];
  /** They differentiate one node. */
  readonly ofNode: boolean;

  constructor(instance: Instance, key: string, label: string, nodes: readonly number[], ofNode = false) {
    super(instance, null, null);
    this.#key = key;
    this.#label = label;
    this.#nodes = [...nodes];
    this.ofNode = ofNode;
  }

  override get key(): string {
    return this.#key;
  }

  override get label(): string {
    return this.#label;
  }

  override get total(): number {
    return this.#nodes.length;
  }

  override nodes(): Int32Array {
    return Int32Array.from(this.#nodes).sort();
  }

  add(nodes: readonly number[]): void {
    this.#nodes.push(...nodes);
  }
}

/** Adds the boxes of gradient nodes, beside the forward boxes that are there. */
export function placeMirrored(visible: Visible, folding: Folding, opened: ReadonlySet<string>): void {
  const { origins, root } = visible;
  if (folding.closed.has(MIRROR)) {
    const nodes = Int32Array.from(origins.keys()).sort();
    const part = new Mirrored(root, MIRROR, "gradients", [...nodes]);
    return visible.place({ id: BACKWARD, group: "", part, main: -1, nodes });
  }
  const all = new Set([...opened, ...folding.opened]);
  for (const nodes of levels(origins)) new Level(visible, folding, all).place(nodes);
}

/** The gradient nodes, then the gradients of gradients, and so on. */
function levels(origins: ReadonlyMap<number, number>): number[][] {
  const found: number[][] = [];
  let left = origins;
  while (left.size > 0) {
    const here = [...left].filter(([, origin]) => !left.has(origin)).map(([node]) => node);
    found.push(here);
    const done = new Set(here);
    left = new Map([...left].filter(([node]) => !done.has(node)));
  }
  return found;
}

class Level {
  readonly #visible: Visible;
  readonly #folding: Folding;
  readonly #opened: ReadonlySet<string>;
  readonly #places: ReadonlyMap<string, number>;
  readonly #frames: Map<string, Frame>;

  constructor(visible: Visible, folding: Folding, opened: ReadonlySet<string>) {
    this.#visible = visible;
    this.#folding = folding;
    this.#opened = opened;
    this.#places = new Map(visible.boxes.map(({ id }, place) => [id, place]));
    this.#frames = new Map(visible.frames.map((frame) => [frame.id, frame]));
  }

  place(nodes: readonly number[]): void {
    const { origins, root } = this.#visible;
    const bundles = new Map<string, number[]>();
    for (const node of [...nodes].sort((a, b) => a - b)) {
      const place = this.#visible.placeOf(root, origins.get(node) as number);
      getOrMake(bundles, place, (): number[] => []).push(node);
    }
    const order = (place: string): number => this.#places.get(place) ?? this.#places.size;
    for (const [place, bundle] of [...bundles].sort(([a], [b]) => order(a) - order(b))) {
      const [label, group, isNode] = this.#forward(place);
      const inside = this.#frame(group);
      const isSum = (node: number): boolean => isNode && root.space.gradients.get(node)?.body_node === "sum";
      for (const node of bundle.filter(isSum)) {
        const inputs = (root.space.inputsAt[node + 1] as number) - (root.space.inputsAt[node] as number);
        this.#leaf(node, inside, `sum of ${inputs} gradients of ${label}`);
      }
      const rest = bundle.filter((node) => !isSum(node));
      if (rest.length > 0) this.#body(place, inside, `gradient of ${label}`, rest);
    }
  }

  #body(place: string, inside: string, words: string, nodes: readonly number[]): void {
    const { root } = this.#visible;
    const key = MIRROR + (place.endsWith("/") ? place.slice(0, -1) : place);
    const ofNode = !place.endsWith("/") || !this.#places.has(place);
    const part = new Mirrored(root, key, words, nodes, ofNode);
    if (this.#opened.has(key) && !place.endsWith("/") && nodes.length > 1) {
      this.#visible.frames.push({ id: `${key}/`, parent: inside, part });
      this.#keep(inside, nodes);
      for (const node of nodes) this.#node(node, `${key}/`);
    } else if (nodes.length === 1) {
      this.#node(nodes[0] as number, inside, words);
    } else {
      this.#visible.place({ id: MIRROR + place, group: inside, part, main: -1, nodes: Int32Array.from(nodes) });
      this.#keep(inside, nodes);
      this.#visible.words.set(MIRROR + place, words);
    }
  }

  #node(node: number, group: string, words = ""): void {
    const part = this.#partOf(node);
    const isOpen = part.kind === CALL && this.#opened.has(part.key) && part.opens;
    if (!isOpen) return this.#leaf(node, group, words);
    const frame = `${part.key}/`;
    this.#visible.frames.push({ id: frame, parent: group, part });
    this.#visible.openCall(part);
    if (part.call.hub) this.#leaf(node, frame, "");
    const bodies = part.bodies().map((body) => body.root.key);
    const opened = new Set([...this.#opened, ...bodies.filter((body) => !this.#folding.closed.has(body))]);
    this.#visible.placeParts(part.inside(), frame, opened);
    this.#keep(group, [node]);
  }

  /** A node with the part that it is: a call opens. */
  #partOf(node: number): Part {
    const { root } = this.#visible;
    return callsFunctions(root.graph.node(node)) ? root.partOf(node) : root.node(node);
  }

  #leaf(node: number, group: string, words: string): void {
    const { root } = this.#visible;
    const id = root.name(node);
    const part = this.#visible.callOf(root, node) ? root.node(node) : this.#partOf(node);
    this.#visible.place({ id, group, part, main: node, nodes: Int32Array.of(node) });
    this.#keep(group, [node]);
    if (words) this.#visible.words.set(id, words);
  }

  /** The label of a forward box or of an open call, the frame around it, and true if it shows one node. */
  #forward(place: string): [string, string, boolean] {
    const last = (path: string): string => path.slice(path.lastIndexOf("/") + 1);
    const box = this.#visible.boxes[this.#places.get(place) ?? -1];
    const known = this.#visible.words.get(place);
    if (box) return [known ?? (box.main < 0 ? box.part.label : last(box.id)), box.group, box.main >= 0];
    return [last(place.replace(/\/$/, "")), this.#frames.get(place)?.parent ?? "", true];
  }

  /** The frame that mirrors a frame of the forward pass, made when it is needed. */
  #frame(forward: string): string {
    const frame = this.#frames.get(forward);
    if (frame && !isMirrored(frame.part)) return this.#frame(frame.parent);
    const mirrored = MIRROR + (forward || "/");
    if (!this.#frames.has(mirrored)) {
      const parent = frame ? this.#frame(frame.parent) : "";
      const label = frame ? `gradient of ${frame.part.label}` : "gradients";
      const part = new Mirrored(this.#visible.root, mirrored.replace(/\/$/, ""), label, []);
      const made = { id: mirrored, parent, part };
      this.#frames.set(mirrored, made);
      this.#visible.frames.push(made);
    }
    return mirrored;
  }

  #keep(group: string, nodes: readonly number[]): void {
    for (let frame = this.#frames.get(group); frame; frame = this.#frames.get(frame.parent))
      if (frame.part instanceof Mirrored) frame.part.add(nodes);
  }
}

/** True for the frames of scopes and groups; other frames are those of single nodes. */
function isMirrored(part: Part): boolean {
  if (part instanceof Mirrored) return !part.ofNode;
  return part.kind === GROUP || (part.kind === SCOPE && !part.isBody);
}
