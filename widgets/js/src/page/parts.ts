// The parts of a picture's tree, as `widgets/scene/tree.py` forms them.
import type { BodyRecord, CallRecord, GroupRecord } from "../scene/generated";
import { at, CALL, GROUP, NODE, SCOPE, type Space } from "./space";

/** A space in the place where it is: the graph, or a body of one call. `prefix` begins the names of its nodes. */
export class Instance {
  readonly space: Space;
  readonly prefix: string;
  /** The call whose body it is. */
  readonly call: Part | null;
  readonly record: BodyRecord | null;
  readonly several: boolean;
  readonly #parts = new Map<number, Part>();
  #gradientBodies: ReadonlySet<string> | null = null;

  constructor(
    space: Space,
    prefix: string,
    call: Part | null = null,
    record: BodyRecord | null = null,
    several = false,
  ) {
    this.space = space;
    this.prefix = prefix;
    this.call = call;
    this.record = record;
    this.several = several;
  }

  name(node: number): string {
    return this.prefix + this.space.name(node);
  }

  /** The paths of the scopes that are one inlined gradient function. */
  get gradientBodies(): ReadonlySet<string> {
    this.#gradientBodies ??= new Set(this.space.head.body_scopes.map((scope) => this.path(scope)));
    return this.#gradientBodies;
  }

  /** The full path of a scope. */
  path(scope: number): string {
    const path = this.space.head.paths[scope] ?? "";
    return path ? this.prefix + path : this.prefix.slice(0, -1);
  }

  part(index: number): Part {
    let part = this.#parts.get(index);
    if (!part) {
      part = new Part(this, index);
      this.#parts.set(index, part);
    }
    return part;
  }

  /** The parts from one place of the tree to another. */
  partsBetween(from: number, to: number): Part[] {
    const found: Part[] = [];
    for (let i = from; i < to; i = at(this.space.ends, i)) found.push(this.part(i));
    return found;
  }
}

/** Parts, with those of rows in place of the rows. */
function outOfRows(parts: readonly Part[]): Part[] {
  return parts.flatMap((part) =>
    part.kind === GROUP && (part.group.keys[0]?.[1] ?? 0) < 0 ? outOfRows(part.parts()) : [part],
  );
}

/** The root of a space, as a part. */
export const ROOT = -1;

export class Part {
  readonly instance: Instance;
  readonly index: number;
  readonly kind: number;
  /** Its bodies could not be made, and this was found by opening it. */
  attempted = false;
  #bodies: Instance[] | null = null;
  #key: string | null = null;
  #contents: readonly Part[] | null = null;

  constructor(instance: Instance, index: number, kind = index === ROOT ? SCOPE : at(instance.space.kinds, index)) {
    this.instance = instance;
    this.index = index;
    this.kind = kind;
  }

  /** The number of its node, -1 for groups and scopes. */
  get node(): number {
    return this.kind <= CALL ? at(this.instance.space.refs, this.index) : -1;
  }

  get folds(): boolean {
    return this.kind !== NODE;
  }

  get key(): string {
    this.#key ??= this.#makeKey();
    return this.#key;
  }

  #makeKey(): string {
    const { instance } = this;
    if (this.index === ROOT) return instance.path(0);
    if (this.kind <= CALL) return instance.name(this.node);
    if (this.kind === SCOPE) return instance.path(at(instance.space.refs, this.index));
    const { keys, first, first_is_scope: isScope } = this.group;
    const start = isScope ? instance.path(first) : instance.name(first);
    return keys.map(([path, depth]) => `${instance.path(path)}/#${depth}.`).join("") + start;
  }

  get group(): GroupRecord {
    return this.instance.space.head.groups[at(this.instance.space.refs, this.index)] as GroupRecord;
  }

  /** The instances of a repeat, none for other parts. */
  get instances(): readonly Part[] {
    return this.kind === GROUP && this.group.instances > 0
      ? outOfRows(this.parts()).slice(0, this.group.instances)
      : [];
  }

  get call(): CallRecord {
    return this.instance.space.head.calls[this.instance.space.callAt.get(this.index) as number] as CallRecord;
  }

  /** One of several bodies of a call. */
  get isBody(): boolean {
    return this.index === ROOT && this.instance.several;
  }

  /** The number of its scope's path, -1 for other parts. */
  get scope(): number {
    return this.index === ROOT ? 0 : this.kind === SCOPE ? at(this.instance.space.refs, this.index) : -1;
  }

  get label(): string {
    if (this.kind === GROUP) return this.group.label;
    if (this.isBody) return this.instance.record?.scope_label ?? "";
    const label =
      this.kind === SCOPE ? this.instance.space.head.labels[at(this.instance.space.refs, this.index)] : undefined;
    return label ?? this.key.slice(this.key.lastIndexOf("/") + 1);
  }

  /** The number of nodes, without those of bodies. */
  get total(): number {
    if (this.kind === NODE) return 1;
    const { space } = this.instance;
    return this.index === ROOT ? space.size : at(space.to, this.index) - at(space.from, this.index);
  }

  /** The nodes by number, without those of bodies. */
  nodes(): Int32Array {
    if (this.kind === NODE) return Int32Array.of(this.node);
    const { space } = this.instance;
    const { order } = space;
    return (
      this.index === ROOT ? order.slice() : order.slice(at(space.from, this.index), at(space.to, this.index))
    ).sort();
  }

  /** The parts shown when it is open. */
  parts(): readonly Part[] {
    this.#contents ??= this.#makeParts();
    return this.#contents;
  }

  #makeParts(): readonly Part[] {
    const { instance, index } = this;
    if (index === ROOT) return instance.partsBetween(0, instance.space.parts);
    if (this.kind !== CALL) return this.beside();
    const hub = this.call.hub ? [new Part(instance, index, NODE)] : [];
    return [...hub, ...this.inside(), ...this.beside()];
  }

  /** The parts of the bodies of a call. */
  inside(): readonly Part[] {
    const bodies = this.bodies();
    return bodies.length > 1
      ? bodies.map((body) => body.part(ROOT))
      : bodies.flatMap((body) => body.part(ROOT).parts());
  }

  /** The parts in it, but for the bodies of a call. */
  beside(): readonly Part[] {
    return this.instance.partsBetween(this.index + 1, at(this.instance.space.ends, this.index));
  }

  /** The bodies of a call; empty if it does not open. */
  bodies(): readonly Instance[] {
    this.attempted = true;
    const { bodies } = this.call;
    this.#bodies ??= bodies.map((record) => {
      const space = this.instance.space.other(record.space);
      return new Instance(space, `${this.key}:${record.label}/`, this, record, bodies.length > 1);
    });
    return this.#bodies;
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
