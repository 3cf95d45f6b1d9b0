// Modules of other frameworks: which of them intervals are, and which lie in a list.
import { at, Counter, commonTotal, range, totalOf } from "../order";
import { totalOps } from "./alike";
import { type Order, type Part, partOf, type Span, spanOf } from "./decompose";
import { commonScope } from "./naming";
import { type Dims, type GraphNode, isForeign, type Op } from "./nodes";
import { isPlumbing } from "./serving";

/** The number of a module among those of a list. */
const NUMBER = /[._]?\d+$/;
/** The number of a module in a list that counts its modules. */
const LISTED = /\.\d+$/;
/** A module in a list that has fewer operations is not worth a box of its own. */
const LEAST = 4;
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
    for (const part of found.flatMap((each) => this.#atModules(each))) {
      const inner = part.instances.length > 0 ? part.instances : [part.span];
      const kinds = new Set(inner.map((each) => this.#inList(each)));
      const kind = kinds.size === 1 && this.#areSeveral(inner) ? ([...kinds][0] as string) : "";
      const key = kind && JSON.stringify([kind, shapeOf(at(inner, inner.length - 1))]);
      const before = joined.at(-1);
      if (key && key === last && before) {
        const instances = [...(before.instances.length > 0 ? before.instances : [before.span]), ...inner];
        if (this.#areSeveral(instances))
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

  /** The classes of the modules that an interval consists of, if they are several: `Conv, C2f`. */
  in(span: Span): string {
    const kinds = this.#kindsIn(span);
    const different = new Set(kinds);
    if (different.size < 2 || kinds.length > MOST_CLASSES || kinds.some((kind) => CONTAINERS.has(kind))) return "";
    return [...different].join(", ");
  }

  /**
   * A part in pieces, where modules say more than ops.
   *
   * Instances whose modules are mostly of other classes are no repeat. Without instances, each of some neighbours that are modules of one list is
   * a piece by itself.
   */
  #atModules({ span, instances }: Part): Part[] {
    const { start, stop } = span;
    if (instances.length > 0) {
      const [usual, ...others] = instances.map((each) => new Counter(this.#kindsIn(each))).reverse();
      if (usual === undefined || others.every((each) => 2 * commonTotal(usual, each) >= totalOf(each)))
        return [partOf(span, instances)];
      return range(start, stop).map((place) => partOf(spanOf(place, place + 1)));
    }
    const kinds = range(start, stop).map((place) => this.#inList(spanOf(place, place + 1)));
    const isOne = (i: number): boolean => kinds[i] !== "" && (kinds[i] === kinds[i - 1] || kinds[i] === kinds[i + 1]);
    const cuts = range(1, kinds.length).filter((i) => isOne(i) || isOne(i - 1));
    return [...cuts, kinds.length].map((cut, i) => partOf(spanOf(start + (cuts[i - 1] ?? 0), start + cut)));
  }

  /** The classes of the modules just below what is around, for each item of an interval; "" for one that is in none. */
  #kindsIn({ start, stop }: Span): string[] {
    const places = range(start, stop).filter((place) => !this.#weak[at(this.#order.order, place)]);
    const depth = this.#around === "" ? 1 : this.#around.split("/").length + 1;
    const paths = places.map((place) =>
      this.#path(spanOf(place, place + 1))
        .split("/")
        .slice(0, depth)
        .join("/"),
    );
    return paths.map((path) => this.#classes.get(path) ?? "");
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
    const name = path.slice(path.lastIndexOf("/") + 1).replace(NUMBER, "");
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
