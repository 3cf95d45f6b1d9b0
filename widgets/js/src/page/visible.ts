// The visible boxes and frames.
import type { Mode, Role, TensorInfo } from "../scene/generated";
import { differenceOf } from "./difference";
import { placeMirrored } from "./mirror";
import { at, type Counter, compareTexts, getOrMake } from "./order";
import type { Instance, Part } from "./parts";
import { CALL, GRADIENT, NODE, SCOPE, THING } from "./space";
import { mainOps, near } from "./structure/alike";
import type { Op } from "./structure/nodes";
import { isTouched } from "./touched";
import { FEW_NODES, MOST_FRAMES } from "./tree";

/** However much the user opens: beyond this the oldest openings give way. */
const HARD_LIMIT = 500;
/** The modules of a model of another framework say what it is: fewer boxes and a smaller graph are open by themselves. */
const FEW_BOXES = 30;
/** So few boxes say too little. */
const FEWEST_BOXES = 10;
const FEW_FOREIGN = 60;
/** Gradients of higher order are not told apart. */
export const MOST_ORDERS = 9;

/** The user's choices of open and closed scopes. */
export interface Folding {
  readonly opened: ReadonlySet<string>;
  readonly closed: ReadonlySet<string>;
  /** The keys of what is open until the user closes it. */
  readonly first: readonly string[];
  readonly mode: Mode;
  readonly mirror: boolean;
  readonly maxBoxes: number;
  readonly autoBoxes: number;
}

export interface Box {
  readonly index: number;
  readonly id: string;
  readonly group: string;
  readonly part: Part;
  /** The node that it shows, -1 for scopes and groups. */
  readonly main: number;
  readonly nodes: Int32Array;
  /** The number of frames around it. */
  readonly depth: number;
}

export interface Frame {
  readonly id: string;
  readonly parent: string;
  readonly part: Part;
}

/** A tensor as an input of a node. `node` is -1 if no node of the space produces it. */
export interface Tensor {
  readonly instance: Instance;
  readonly node: number;
  readonly name: string;
  readonly slot: number;
  readonly info: TensorInfo;
  /** Numbers of its dimensions in the space, if they are not those of `node`. */
  readonly dims: readonly number[] | null;
}

export const tensorName = ({ name, slot }: Tensor): string => `${name}:${slot}`;

/** Type and shape: `float [?,10]`. */
export const tensorLabel = ({ info }: Tensor): string =>
  info.dtype === "INVALID" ? "" : `${info.dtype} ${info.sizes === null ? "?" : `[${info.sizes.join(",")}]`}`;

/** The output of a node. */
export function outputOf(instance: Instance, node: number, slot: number): Tensor {
  const info = instance.space.outputs(node)[slot] as TensorInfo;
  return { instance, node, name: instance.name(node), slot, info, dims: null };
}

/** The inputs of a node. */
export function inputsOf(instance: Instance, node: number): Tensor[] {
  const { space } = instance;
  const found: Tensor[] = [];
  for (let i = at(space.inputsAt, node); i < at(space.inputsAt, node + 1); i++) {
    const step = space.producers[i] as number;
    if (step !== 0) {
      found.push(outputOf(instance, node - step, at(space.slots, i)));
      continue;
    }
    const { name, slot, info, dims } = space.foreign(i);
    found.push({ instance, node: space.find(name) ?? -1, name: instance.prefix + name, slot, info, dims });
  }
  return found;
}

export class Visible {
  readonly boxes: Box[] = [];
  readonly frames: Frame[] = [];
  /** The number of the box of each node, by instance; -1 for a call that is open. */
  readonly boxOf = new Map<Instance, Int32Array>();
  readonly calls = new Map<Part, readonly Instance[]>();
  /** The open call of a node, by instance and node. */
  readonly #callOf = new Map<Instance, Map<number, Part>>();
  /** The tensors that come into the arguments of open bodies from outside, by instance and argument node. */
  readonly given = new Map<Instance, Map<number, Tensor>>();
  /** Gradient nodes in the bodies of open calls exist. */
  inner = false;
  total = 0;
  /** In a mirrored picture, for each gradient node the node that it differentiates. */
  readonly origins: ReadonlyMap<number, number>;
  /** In a mirrored picture, what a box of the backward pass is, by its id. */
  readonly words = new Map<string, string>();
  readonly root: Instance;

  constructor(root: Instance, mirror: boolean) {
    this.root = root;
    this.origins = mirror ? root.space.origins : new Map();
    this.#enter(root);
  }

  /** The node that a node of an instance differentiates, in a mirrored picture. */
  origin(instance: Instance, node: number): number | undefined {
    return instance === this.root ? this.origins.get(node) : undefined;
  }

  /** In a mirrored picture 1 for a gradient, 2 for a gradient of a gradient, and so on; else 0. */
  order({ part, nodes }: Box): number {
    let order = 0;
    let node = nodes[0];
    while (node !== undefined && order < MOST_ORDERS) {
      node = this.origin(part.instance, node);
      if (node !== undefined) order += 1;
    }
    return order;
  }

  /** The parts with nodes of the forward pass if the backward pass mirrors them, else all. */
  shown(parts: readonly Part[]): readonly Part[] {
    const { origins } = this;
    if (origins.size === 0) return parts;
    return parts.flatMap((part) => {
      if (part.instance !== this.root) return [part];
      if ((part.kind === THING || part.kind === CALL) && origins.has(part.node))
        return this.shown(part.kind === THING ? part.parts() : part.beside());
      const nodes = part.nodes();
      return nodes.length === 0 || nodes.some((node) => !origins.has(node)) ? [part] : [];
    });
  }

  /** Adds the boxes and frames of some parts, in the frame `group`. */
  placeParts(parts: readonly Part[], group: string, opened: ReadonlySet<string>, depth = 0): void {
    for (const part of this.shown(parts)) {
      if (!part.folds) {
        this.place({ id: part.key, group, part, main: part.node, nodes: part.nodes(), depth });
      } else if (opened.has(part.key)) {
        const frame = `${part.key}/`;
        this.frames.push({ id: frame, parent: group, part });
        if (part.kind === CALL) this.openCall(part);
        this.placeParts(part.parts(), frame, opened, depth + 1);
      } else {
        const isNode = part.kind === THING || part.kind === CALL;
        const id = isNode ? part.key : `${part.key}/`;
        const nodes = part.nodes().filter((node) => this.origin(part.instance, node) === undefined);
        this.place({ id, group, part, main: part.node, nodes, depth });
      }
    }
  }

  #enter(instance: Instance): void {
    this.boxOf.set(instance, new Int32Array(instance.space.size).fill(-1));
  }

  openCall(part: Part): void {
    const bodies = part.bodies();
    this.calls.set(part, bodies);
    getOrMake(this.#callOf, part.instance, () => new Map<number, Part>()).set(part.node, part);
    const given = part.call.hub ? null : (calleeArguments(part) ?? []);
    for (const body of bodies) {
      this.#enter(body);
      this.inner ||= Array.prototype.some.call(body.space.flags, (flag: number) => (flag & GRADIENT) !== 0);
      if (!given) continue;
      const inside = new Map<number, Tensor>();
      for (const [i, node] of body.space.head.arguments.entries()) {
        const tensor = given[i];
        if (tensor) inside.set(node, tensor);
      }
      this.given.set(body, inside);
    }
  }

  place(box: Omit<Box, "index" | "depth"> & { readonly depth?: number }): void {
    const placed = { depth: 0, ...box, index: this.boxes.length };
    this.boxes.push(placed);
    const boxOf = this.boxOf.get(box.part.instance) as Int32Array;
    for (const node of box.nodes) boxOf[node] = placed.index;
    this.total += box.nodes.length;
  }

  box(instance: Instance, node: number): Box | undefined {
    return node < 0 ? undefined : this.boxes[this.boxOf.get(instance)?.[node] ?? -1];
  }

  callOf(instance: Instance, node: number): Part | undefined {
    return this.#callOf.get(instance)?.get(node);
  }

  /** The boxes that produce a tensor, with its name there: for an open call the returns of its bodies. */
  sources(tensor: Tensor): [Box, Tensor][] {
    const call = this.callOf(tensor.instance, tensor.node);
    if (!call || (call.call.hub && !call.call.choice)) {
      const box = this.box(tensor.instance, tensor.node);
      return box ? [[box, tensor]] : [];
    }
    const found: [Box, Tensor][] = [];
    for (const body of call.bodies()) {
      const ret = body.space.head.returns[tensor.slot];
      if (ret === undefined) continue;
      const returned = inputsOf(body, ret)[0] as Tensor;
      found.push([this.box(body, ret) as Box, returned.info.sizes !== null ? returned : tensor]);
    }
    return found;
  }

  /** The boxes that a control dependency on a node waits for. */
  awaited(instance: Instance, node: number): Box[] {
    const call = this.callOf(instance, node);
    if (!call || call.call.hub) {
      const box = this.box(instance, node);
      return box ? [box] : [];
    }
    return call.bodies().flatMap((body) => {
      const { control_returns: controls, returns } = body.space.head;
      return (controls.length > 0 ? controls : returns).flatMap((last) => this.awaited(body, last));
    });
  }

  /** The first boxes of a body. */
  beginnings(body: Instance): Box[] {
    const { space } = body;
    let first: readonly number[] = space.head.arguments;
    if (first.length === 0) {
      const nodes = Array.from({ length: space.size }, (_, node) => node);
      first = nodes.filter(
        (node) =>
          at(space.inputsAt, node) === at(space.inputsAt, node + 1) &&
          at(space.waitsAt, node) === at(space.waitsAt, node + 1),
      );
    }
    return first.flatMap((node) => {
      const call = this.callOf(body, node);
      return call && !call.call.hub
        ? call.bodies().flatMap((inner) => this.beginnings(inner))
        : [this.box(body, node) as Box];
    });
  }

  /** The id of a node's box, or of the frame of an open call; "" if it is not visible. */
  placeOf(instance: Instance, node: number): string {
    return this.box(instance, node)?.id ?? (this.callOf(instance, node) ? `${instance.name(node)}/` : "");
  }
}

/** The tensors given to the arguments of a node's callees, by index; null if unknown. For a loop only loop invariants. */
export function calleeArguments(part: Part): Tensor[] | null {
  const { instance, node, call } = part;
  const inputs = inputsOf(instance, node);
  if (call.loop) {
    const outputs = instance.space.outputs(node);
    return outputs.length === inputs.length ? outputs.map((_, slot) => outputOf(instance, node, slot)) : null;
  }
  if (call.choice) return inputs.slice(1);
  return call.hub ? null : inputs;
}

export function visibleBoxes(root: Part, folding: Folding): Visible {
  const visible = new Visible(root.instance, folding.mirror);
  const opened = chooseOpen(root, folding, visible);
  visible.placeParts(root.parts(), "", opened);
  if (visible.origins.size > 0) placeMirrored(visible, folding, opened);
  return visible;
}

// ---- choosing what is open -------------------------------------------------------------------------------------------

/** The key of the part around it, the number of parts around it, and a closed part. */
type Closed = readonly [string, number, Part];

interface Requested {
  readonly opened: Set<string>;
  readonly boxes: number;
  readonly closed: readonly Closed[];
}

function chooseOpen(root: Part, folding: Folding, visible: Visible): ReadonlySet<string> {
  const requested = [...folding.opened];
  const first = folding.mode === "none" ? [] : folding.first.filter((key) => !folding.closed.has(key));
  let found: Requested;
  for (;;) {
    found = openRequested(root, visible, new Set([...first, ...requested]), folding.closed);
    if (found.boxes <= HARD_LIMIT || requested.length === 0) break;
    requested.shift();
  }
  if (folding.mode !== "none") openLargest(root, folding, visible, found);
  return found.opened;
}

function openRequested(
  root: Part,
  visible: Visible,
  requested: ReadonlySet<string>,
  shut: ReadonlySet<string>,
): Requested {
  const opened = new Set<string>();
  const closed: Closed[] = [];
  let boxes = 0;
  const stack: Closed[] = visible.shown(root.parts()).map((part) => ["", 0, part]);
  for (let next = stack.pop(); next; next = stack.pop()) {
    const [, depth, part] = next;
    if (!part.folds) {
      boxes += 1;
    } else if (depth < MOST_FRAMES && isRequested(part, requested, shut)) {
      opened.add(part.key);
      for (const inner of visible.shown(part.parts())) stack.push([part.key, depth + 1, inner]);
    } else {
      boxes += 1;
      closed.push(next);
    }
  }
  return { opened, boxes, closed };
}

function isRequested(part: Part, requested: ReadonlySet<string>, shut: ReadonlySet<string>): boolean {
  if (requested.has(part.key)) return part.kind !== CALL || part.opens;
  // The branches of a call are opened together.
  return part.isBody && !shut.has(part.key);
}

/** The role of most of these nodes. */
export function roleOf({ space }: Instance, nodes: Int32Array): Role {
  let gradient = 0;
  for (const node of nodes) if (space.has(node, GRADIENT)) gradient += 1;
  return 2 * gradient > nodes.length ? "gradient" : "forward";
}

interface Family {
  readonly role: Role;
  readonly size: number;
  readonly key: string;
  readonly depth: number;
  readonly parts: readonly Part[];
}

/** The number of nodes in the bodies of a call. */
const bodyNodes = (call: Part): number => call.bodies().reduce((sum, { space }) => sum + space.size, 0);

/** These parts without bodies that are near alike to one before: networks for two rates, or with and without a cache. */
function withoutTwins(parts: readonly Part[]): Part[] {
  const before: Counter<Op>[] = [];
  return parts.filter((part) => {
    if (!part.isBody) return true;
    const ops = mainOps([...part.instance.graph.nodes], new Set());
    if (before.some((others) => near(others, ops))) return false;
    before.push(ops);
    return true;
  });
}

/**
 * Opens the largest first, and gradients once there is space for everything else. Siblings of similar size open together or
 * not at all, so that equal layers look equal. A call in a model of another framework opens if more nodes are in it than around:
 * it is the model. Of near alike bodies the first does.
 */
function openLargest(root: Part, folding: Folding, visible: Visible, { opened, boxes, closed }: Requested): void {
  const { isForeign } = root;
  let limit = folding.mode === "all" ? folding.maxBoxes : Math.min(folding.maxBoxes, folding.autoBoxes);
  if (visible.origins.size > 0) limit = Math.floor((2 * limit) / 3); // the rest is for their gradients
  const total = root.total - visible.origins.size;
  const marks = differenceOf(root.instance);
  const few = isForeign ? FEW_FOREIGN : FEW_NODES;
  const least = total > few && !marks ? Math.floor(total / 4) : 0;
  let shown = boxes;
  const families: Family[] = [];
  const size = (part: Part): number => (part.kind === CALL ? bodyNodes(part) : part.total);
  const mayOpen = (part: Part): boolean => {
    if (folding.closed.has(part.key)) return false;
    if (marks && folding.mode !== "all")
      return part.kind !== CALL && part.nodes().some((node) => isTouched(marks, node));
    if (part.kind === CALL)
      return folding.mode === "all" ? part.opens : isForeign && part.total + bodyNodes(part) > total;
    if (folding.mode === "all" || part.kind !== SCOPE) return folding.mode === "all";
    return part.total >= least && !isGradientBody(root.instance, part.key) && !part.saysAll;
  };
  const consider = (siblings: readonly Part[], depth: number): void => {
    if (depth >= MOST_FRAMES) return;
    let open = siblings.filter(mayOpen).sort((a, b) => size(b) - size(a));
    while (open.length > 0) {
      const largest = size(open[0] as Part);
      const family = open.filter((part) => 2 * size(part) >= largest);
      const [first] = family as [Part];
      families.push({
        role: roleOf(first.instance, first.nodes()),
        size: largest,
        key: first.key,
        depth,
        parts: family,
      });
      open = open.slice(family.length);
    }
  };
  const siblings = new Map<string, [number, Part[]]>();
  for (const [parent, depth, part] of closed)
    getOrMake(siblings, parent, (): [number, Part[]] => [depth, []])[1].push(part);
  for (const [depth, parts] of siblings.values()) consider(parts, depth);
  let isFull = false;
  while (families.length > 0) {
    families.sort((a, b) => compareTexts(b.role, a.role) || a.size - b.size || compareTexts(b.key, a.key));
    const { role, depth, parts } = families.pop() as Family;
    const more = parts.reduce((sum, part) => sum + visible.shown(part.parts()).length - 1, 0);
    const most = isForeign && folding.mode !== "all" && shown > FEWEST_BOXES ? Math.min(limit, FEW_BOXES) : limit;
    if (shown + more > most || (role === "gradient" && isFull)) {
      isFull = true;
      continue;
    }
    shown += more;
    for (const part of parts) {
      opened.add(part.key);
      const inside = visible.shown(part.parts()).filter(({ kind }) => kind !== NODE);
      consider(isForeign ? withoutTwins(inside) : inside, depth + 1);
    }
  }
}

/** True if the scope with this path is one inlined gradient function. Only the graph has such scopes. */
export function isGradientBody(root: Instance, path: string): boolean {
  return root.roles.bodies.has(path);
}
