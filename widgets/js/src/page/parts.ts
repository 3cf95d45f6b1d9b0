// The parts of a picture: those of the tree, with what the page's data says of them.
import type { BodyRecord, CallRecord } from "../scene/generated";
import { getOrMake } from "./order";
import { CALL, GROUP, NODE, SCOPE, type Space, THING } from "./space";
import {
  Call,
  Fold,
  Group,
  leadsTo,
  nameOf,
  nodesOf,
  Roles,
  Scope,
  type Scopes,
  type SpaceGraph,
  Thing,
  type Part as TreePart,
} from "./tree";

/** A space in the place where it is: the graph, or a body of one call. `prefix` begins the names of its nodes. */
export class Instance {
  readonly graph: SpaceGraph;
  readonly scopes: Scopes;
  readonly space: Space;
  readonly prefix: string;
  /** The call whose body it is. */
  readonly call: Part | null;
  readonly record: BodyRecord | null;
  readonly several: boolean;
  /** The root of its scopes, as a part. */
  readonly root: Part;
  #roles: Roles | null = null;
  readonly #parts = new Map<number, Part>();

  constructor(
    graph: SpaceGraph,
    scopes: Scopes,
    call: Part | null = null,
    record: BodyRecord | null = null,
    several = false,
  ) {
    this.graph = graph;
    this.scopes = scopes;
    this.space = graph.space;
    this.prefix = graph.prefix;
    this.call = call;
    this.record = record;
    this.several = several;
    this.root = new Part(this, scopes.root, call);
  }

  name(node: number): string {
    return this.prefix + this.space.name(node);
  }

  get roles(): Roles {
    this.#roles ??= new Roles(this.graph, this.scopes);
    return this.#roles;
  }

  /** A node as a part by itself. */
  node(node: number): Part {
    return new Part(this, this.graph.node(node), null);
  }

  /** The part that is a node, or has it as its main one. */
  partOf(node: number): Part {
    return getOrMake(this.#parts, node, () => this.#find(node));
  }

  #find(node: number): Part {
    const name = this.name(node);
    let part = this.root;
    do part = part.beside().find(({ fold }) => fold && leadsTo(fold, name)) as Part;
    while (part.kind !== NODE && part.node !== node);
    return part;
  }
}

function kindOf(fold: TreePart | null): number {
  if (fold instanceof Thing) return THING;
  if (fold instanceof Call) return CALL;
  if (fold instanceof Scope) return SCOPE;
  return fold === null || fold instanceof Group ? GROUP : NODE;
}

/** A module of a list. */
const LISTED = /\.\d+$/;

export class Part {
  readonly instance: Instance;
  /** The part of the tree, null for one that is in no tree. */
  readonly fold: TreePart | null;
  /** The part around it, null at the top. */
  readonly around: Part | null;
  readonly kind: number;
  /** Its bodies could not be made, and this was found by opening it. */
  attempted = false;
  #bodies: readonly Instance[] | null = null;
  #contents: readonly Part[] | null = null;
  #instances: readonly Part[] | null = null;
  #nodes: Int32Array | null = null;

  constructor(instance: Instance, fold: TreePart | null, around: Part | null) {
    this.instance = instance;
    this.fold = fold;
    this.around = around;
    this.kind = kindOf(fold);
  }

  /** The number of its node, -1 for groups and scopes. */
  get node(): number {
    const { fold } = this;
    if (fold instanceof Thing || fold instanceof Call) return fold.node.id;
    return fold === null || fold instanceof Fold ? -1 : fold.id;
  }

  get folds(): boolean {
    return this.kind !== NODE;
  }

  get key(): string {
    return this.fold ? nameOf(this.fold) : "";
  }

  /** The number of instances of a repeat, 0 for other parts. */
  get repeat(): number {
    return this.repeated?.instances.length ?? 0;
  }

  /** The group that its box stands for: itself, or the repeat that is all of a module. Null for other parts. */
  get repeated(): Group | null {
    if (this.fold instanceof Group) return this.fold;
    return this.fold instanceof Scope ? this.fold.onlyRepeat : null;
  }

  /** True iff it is a module of another framework of which its box says all. */
  get saysAll(): boolean {
    return this.fold instanceof Scope && (this.fold.isLayer || this.fold.onlyRepeat !== null);
  }

  /** The repeat that is most of a module of another framework, or the modules of a body, in words; "" if its label says all, or there are none. */
  get mainContents(): string {
    return this.fold instanceof Scope && !this.repeated ? this.fold.mainRepeat || this.fold.mainModules : "";
  }

  /** True for nodes of another framework. */
  get isForeign(): boolean {
    return this.fold instanceof Scope && this.fold.isForeign;
  }

  /** The instances of a repeat, none for other parts. */
  get instances(): readonly Part[] {
    this.#instances ??= this.repeated?.instances.map((each) => new Part(this.instance, each, this)) ?? [];
    return this.#instances;
  }

  /** The ops in which the instances of a repeat differ, in words. */
  get differences(): string {
    return this.repeated?.differences ?? "";
  }

  get call(): CallRecord {
    return this.instance.graph.call(this.node);
  }

  /** A scope of the name of a call belongs to it. */
  get hasScope(): boolean {
    return this.fold instanceof Call && this.fold.scope !== null;
  }

  /** One of several bodies of a call. */
  get isBody(): boolean {
    return this.instance.several && this === this.instance.root;
  }

  get label(): string {
    if (this.fold instanceof Group || this.fold instanceof Scope) return this.fold.label;
    return this.key.slice(this.key.lastIndexOf("/") + 1);
  }

  /** The label of its box: of the repeat that is all of a module, after the module's place in a list: `stages.0/layers ConvNextLayer`. */
  get boxLabel(): string {
    const { repeated, fold, label } = this;
    if (!repeated || repeated === fold) return label;
    const place = this.key.slice(this.key.lastIndexOf("/") + 1);
    return LISTED.test(place) && !repeated.label.startsWith(place) ? `${place}/${repeated.label}` : repeated.label;
  }

  /** The number of nodes, without those of bodies. */
  get total(): number {
    return this.fold instanceof Fold ? this.fold.total : 1;
  }

  /** The nodes by number, without those of bodies. */
  nodes(): Int32Array {
    this.#nodes ??= Int32Array.from(nodesOf(this.fold ? [this.fold] : []), ({ id }) => id).sort();
    return this.#nodes;
  }

  /** The parts shown when it is open. */
  parts(): readonly Part[] {
    if (this.kind !== CALL) return this.beside();
    const hub = this.call.hub ? [this.instance.node(this.node)] : [];
    return [...hub, ...this.inside(), ...this.beside()];
  }

  /** The parts of the bodies of a call. */
  inside(): readonly Part[] {
    const bodies = this.bodies();
    return bodies.length > 1 ? bodies.map(({ root }) => root) : bodies.flatMap(({ root }) => root.parts());
  }

  /** The parts in it, but for the bodies of a call. */
  beside(): readonly Part[] {
    this.#contents ??= this.#makeContents();
    return this.#contents;
  }

  #makeContents(): readonly Part[] {
    const fold = this.repeated ?? this.fold;
    const inside = fold instanceof Call ? fold.beside() : fold instanceof Fold ? fold.parts() : [];
    return inside.map((inner) => new Part(this.instance, inner, this));
  }

  /** The bodies of a call; empty if it does not open. */
  bodies(): readonly Instance[] {
    this.attempted = true;
    this.#bodies ??= this.#makeBodies();
    return this.#bodies;
  }

  #makeBodies(): readonly Instance[] {
    const bodies = this.fold instanceof Call ? this.fold.bodies : [];
    const records = this.call.bodies;
    return bodies.map(({ graph, scopes }, i) => {
      const record = records[i] as BodyRecord;
      return new Instance(graph as SpaceGraph, scopes, this, record, bodies.length > 1);
    });
  }

  get opens(): boolean {
    return this.bodies().length > 0;
  }

  /** The reason for which it has no bodies, known once it was opened. */
  get failure(): string {
    return this.attempted ? this.call.failure : "";
  }

  get refusal(): string {
    return this.failure || this.call.refusal;
  }
}

/** The part with a key, wherever it is; undefined if there is none. */
export function partWith(root: Part, key: string): Part | undefined {
  for (let parts = root.parts(); ; ) {
    const part = parts.find(({ fold }) => fold && holds(fold, key));
    if (!part || part.key === key) return part;
    parts = part.parts();
  }
}

/** True iff a part has a key, or a part in it. */
function holds(part: TreePart, key: string): boolean {
  if (!(part instanceof Fold)) return false;
  if (part instanceof Group) {
    const inside = key.includes("/#") ? part.parts() : [...part.items, ...part.helpers];
    return key === part.key || inside.some((inner) => holds(inner, key));
  }
  const isWithin = key === part.key || key.startsWith(`${part.key}/`);
  const isInBody = part instanceof Call && key.startsWith(`${part.key}:`);
  return isWithin || isInBody || part.helpers.some((inner) => holds(inner, key));
}
