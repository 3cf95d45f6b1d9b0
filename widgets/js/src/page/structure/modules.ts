// Modules of other frameworks: which of them intervals are, and which lie in a list.
import { areEqual, at, Counter, commonTotal, range, totalOf } from "../order";
import { totalOps } from "./alike";
import { type Order, type Part, partOf, type Span, spanOf } from "./decompose";
import { commonScope } from "./naming";
import { type Dims, type GraphNode, isForeign, type Op } from "./nodes";
import { isPlumbing } from "./serving";

/** The number of a module among those of a list. */
const NUMBER = /[._]?\d+$/;
/** The numbers of a module, and their letters: `inception3b`, `multi_head_attention_1_2`. */
const MEMBER = /([._]?\d+[a-z]?)+$/;
/** The number of a module in a list that counts its modules. */
const LISTED = /\.\d+$/;
/** The scope of a module that has only a number, as its list has: `features.2.0`. */
const NAMELESS = /^layer\.\d+$/;
/** The beginning of a path up to the first module of a list. */
const LISTED_BELOW = /^.*?\.\d+(?=\/|$)/;
/** A module in a list that has fewer operations is not worth a box of its own. */
const LEAST = 4;
/** Modules of one class, of which one has more than so many times the operations of another, are not alike. */
const LIKE = 2.5;
/** The most modules of an instance that its name lists. */
const MOST_CLASSES = 3;
/** The classes that say nothing of what they compute. */
const CONTAINERS: ReadonlySet<string> = new Set(["", "Sequential", "ModuleList", "ModuleDict"]);
const NO_CLASSES: ReadonlyMap<string, string> = new Map();

/** The modules of the nodes of one scope. Without modules, as in other graphs, intervals are none. */
export class Modules {
  readonly #order: Order;
  readonly #ops: readonly Counter<Op>[];
  readonly #weak: readonly boolean[];
  readonly #serving: ReadonlySet<string>;
  readonly #classes: ReadonlyMap<string, string>;
  readonly #isForeign: boolean;
  /** The path of the scope that holds everything. */
  readonly #around: string;

  constructor(order: Order, ops: readonly Counter<Op>[], weak: readonly boolean[], serving: ReadonlySet<string>) {
    this.#order = order;
    this.#ops = ops;
    this.#weak = weak;
    this.#serving = serving;
    const { members } = order.items;
    const first = members.find((nodes) => nodes.length > 0)?.[0];
    this.#classes = first?.classes ?? NO_CLASSES;
    this.#isForeign = first !== undefined && isForeign(first);
    const main = order.order.filter((_, position) => at(ops, position).counts.size > 0);
    this.#around = this.#isForeign
      ? commonScope(main.flatMap((item) => at(members, item).map(({ name }) => name)))
      : "";
  }

  /** True iff the source says the classes of modules. */
  get haveClasses(): boolean {
    return this.#classes.size > 0;
  }

  /** The parts, with neighbours joined that are modules of one list and class and pass on one shape, however alike they are. */
  joined(found: readonly Part[], shapeOf: (span: Span) => Dims): Part[] {
    if (!this.#isForeign) return [...found];
    const joined: Part[] = [];
    let last = "";
    for (const part of found.flatMap((each) => this.#atModules(each, shapeOf))) {
      const inner = part.instances.length > 0 ? part.instances : [part.span];
      const kinds = new Set(inner.map((each) => this.#inList(each)));
      const kind = kinds.size === 1 && this.#areSeveral(inner) ? ([...kinds][0] as string) : "";
      const key = kind && JSON.stringify([kind, shapeOf(at(inner, inner.length - 1))]);
      const before = joined.at(-1);
      if (key && key === last && before) {
        const instances = [...(before.instances.length > 0 ? before.instances : [before.span]), ...inner];
        if (this.#areSeveral(instances) && this.#areOfLikeSize(instances))
          joined[joined.length - 1] = { span: spanOf(before.span.start, part.span.stop), instances };
        else joined.push(part);
      } else joined.push(part);
      last = key;
    }
    return joined;
  }

  /** The module that each of some intervals is: `layers LlamaDecoderLayer`; "" if they are none. */
  of(spans: readonly Span[]): string {
    if (!this.#isForeign) return "";
    const found = new Set(this.#paths(spans).map((path) => this.#at(path)));
    return found.size === 1 && this.#areSeveral(spans) ? ([...found][0] as string) : "";
  }

  /** True iff all of some intervals are modules with several ops. */
  areAll(spans: readonly Span[]): boolean {
    return this.of(spans) !== "" && spans.every((span) => this.#isLarge(span));
  }

  /** The classes of the modules that one of some intervals consists of, if they are several: `Conv, C2f`. */
  in(span: Span, instances: readonly Span[]): string {
    if (!this.haveClasses) return "";
    const kinds = this.#kindsIn(span, this.#path(wholeOf(instances)));
    const different = new Set(kinds);
    if (different.size < 2 || kinds.length > MOST_CLASSES || kinds.some((kind) => CONTAINERS.has(kind))) return "";
    return [...different].join(", ");
  }

  /**
   * A part in pieces, where modules say more than ops.
   *
   * Instances that modules tell apart are no repeat. Without instances, each of some neighbours that are modules of one list is a piece by itself.
   */
  #atModules({ span, instances }: Part, shapeOf: (span: Span) => Dims): Part[] {
    const { start, stop } = span;
    if (instances.length > 0) {
      const isRepeat = this.#areAlike(instances) && this.#areBlocks(instances, shapeOf);
      if (isRepeat) return [partOf(span, instances)];
      return range(start, stop).map((place) => partOf(spanOf(place, place + 1)));
    }
    const kinds = range(start, stop).map((place) => this.#inList(spanOf(place, place + 1)));
    const isOne = (i: number): boolean => kinds[i] !== "" && (kinds[i] === kinds[i - 1] || kinds[i] === kinds[i + 1]);
    const cuts = range(1, kinds.length).filter((i) => isOne(i) || isOne(i - 1));
    return [...cuts, kinds.length].map((cut, i) => partOf(spanOf(start + (cuts[i - 1] ?? 0), start + cut)));
  }

  /** True if most operations of each instance are in modules of the classes that the last one has. */
  #areAlike(instances: readonly Span[]): boolean {
    const around = this.#path(wholeOf(instances));
    const [usual, ...others] = instances.map((each) => this.#opsOfKinds(each, around)).reverse();
    return usual === undefined || others.every((each) => 2 * commonTotal(usual, each) >= totalOf(each));
  }

  /**
   * True unless instances hold modules of a list that are not the same, though at least one is large.
   *
   * The same modules are of the same lists and classes, and the instances pass on one shape: a stage with what halves its result is no repeat. Two
   * modules of one list and class are two instances.
   */
  #areBlocks(instances: readonly Span[], shapeOf: (span: Span) => Dims): boolean {
    const around = this.#path(wholeOf(instances));
    const modules = instances.map((each) => this.#listedIn(each, around));
    if (!modules.some(({ hasLarge }) => hasLarge)) return true;
    const kinds = modules.map(({ kinds }) => [...kinds.values()].sort());
    const shapes = instances.map(shapeOf);
    return (
      kinds.every((each) => new Set(each).size === each.length && areEqual(each, at(kinds, 0))) &&
      shapes.every((shape) => mayBeOne(shape, at(shapes, 0)))
    );
  }

  /** The lists and classes of the modules of lists in an interval, by their paths; `around` is the path around all. */
  #listedIn({ start, stop }: Span, around: string): { kinds: ReadonlyMap<string, string>; hasLarge: boolean } {
    const kinds = new Map<string, string>();
    let hasLarge = false;
    for (const place of range(start, stop)) {
      const span = spanOf(place, place + 1);
      const [below = ""] = LISTED_BELOW.exec(this.#path(span).slice(around.length)) ?? [];
      if (!below) continue;
      const path = around + below;
      kinds.set(path, `${path.replace(LISTED, "")} ${this.#kindAt(path)}`);
      hasLarge ||= this.#isLarge(span);
    }
    return { kinds, hasLarge };
  }

  /** The class of the module just below `around`, for each item of an interval; its name if there are no classes, "" if it is in none. */
  #kindsIn({ start, stop }: Span, around: string): string[] {
    const places = range(start, stop).filter((place) => !this.#weak[at(this.#order.order, place)]);
    const depth = around === "" ? 1 : around.split("/").length + 1;
    return places.map((place) => {
      const path = this.#path(spanOf(place, place + 1))
        .split("/")
        .slice(0, depth)
        .join("/");
      if (this.haveClasses) return this.#classes.get(path) ?? "";
      return path.length > around.length ? path.replace(MEMBER, "") : "";
    });
  }

  /** The numbers of operations in modules of each class just below `around`. */
  #opsOfKinds({ start, stop }: Span, around: string): Counter {
    const counts = new Counter();
    for (const place of range(start, stop))
      for (const kind of this.#kindsIn(spanOf(place, place + 1), around))
        counts.add(kind, totalOf(at(this.#ops, place)));
    return counts;
  }

  /** The module with several ops that an interval is, without its number in a list; "" if it is none. */
  #inList(span: Span): string {
    const path = this.#path(span);
    const kind = LISTED.test(path) ? this.#kindAt(path) : undefined;
    return kind !== undefined && this.#isLarge(span) ? `${path.replace(LISTED, "")} ${kind}` : "";
  }

  #isLarge(span: Span): boolean {
    return totalOf(totalOps(this.#ops, span)) >= LEAST;
  }

  /** True if none of some intervals has far more operations than another, as stages with other numbers of blocks have. */
  #areOfLikeSize(spans: readonly Span[]): boolean {
    const sizes = spans.map((span) => totalOf(totalOps(this.#ops, span)));
    return Math.max(...sizes) <= LIKE * Math.min(...sizes);
  }

  /** True if no two intervals are pieces of one module. */
  #areSeveral(spans: readonly Span[]): boolean {
    return new Set(this.#paths(spans)).size === spans.length;
  }

  /** The scopes of intervals, all as deep as the outermost: a block without a residual may be all in a scope of its own. */
  #paths(spans: readonly Span[]): string[] {
    const parts = spans.map((span) => this.#path(span).split("/"));
    const depth = Math.min(...parts.map(({ length }) => length));
    return parts.map((path) => path.slice(0, depth).join("/"));
  }

  #at(path: string): string {
    const kind = path.length > this.#around.length ? this.#kindAt(path) : undefined;
    const parts = path.split("/");
    // A number in a numbered list has no name of its own.
    const place = NAMELESS.test(parts.at(-1) ?? "") && LISTED.test(parts.at(-2) ?? "") ? -2 : -1;
    const name = place < -1 ? parts.at(place) : (parts.at(-1) ?? "").replace(NUMBER, "");
    return kind === undefined ? "" : `${name} ${kind}`.trimEnd();
  }

  /** The class of the module at a path, "" for one of a list in a file that has no classes; undefined if there is none. */
  #kindAt(path: string): string | undefined {
    return this.haveClasses || !LISTED.test(path) ? this.#classes.get(path) : "";
  }

  /** The scope of an interval, without what only passes its input on: the dropout before a layer is not its own. */
  #path({ start, stop }: Span): string {
    const items = this.#order.order.slice(start, stop).filter((item) => !this.#weak[item]);
    const nodes: GraphNode[] = items.flatMap((item) => at(this.#order.items.members, item));
    return commonScope(
      nodes.filter((node) => !this.#serving.has(node.name) && !isPlumbing(node)).map(({ name }) => name),
    );
  }
}

/** The interval from the first of some to the last. */
const wholeOf = (spans: readonly Span[]): Span => spanOf(at(spans, 0).start, at(spans, spans.length - 1).stop);

/** True unless two shapes are known to differ: negative sizes are unknown ones. */
const mayBeOne = (ours: Dims, theirs: Dims): boolean =>
  ours === null ||
  theirs === null ||
  (ours.length === theirs.length &&
    ours.every((size, i) => {
      const other = theirs[i] as number | null;
      return size === other || size === null || other === null || size < 0 || other < 0;
    }));
