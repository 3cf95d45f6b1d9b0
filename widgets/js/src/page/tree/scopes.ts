// Name scopes and calls: the parts of a graph that names and functions form.
import { Counter } from "../order";
import { callsFunctions, type GraphNode, isEnd, isForeign, isHeavy, isParameter } from "../structure";
import type { CallBody, GraphData, Opener } from "./calls";
import { chainLabel, countSlashes, parentsOf, scopeOf } from "./chains";
import { anyLeadsTo, Fold, Group, nodesOf, type Part, structured, Thing, totalOf } from "./folds";
import { withinFunction, withSignatures } from "./saved_models";
import { unchangedTogether } from "./unchanged";

/** A node and the helper scope of the same name are one thing up to this many nodes. */
const SMALL_THING = 8;
/** So many weights of a call are one box beside its bodies. */
const MANY_WEIGHTS = 3;
/** The most modules that the box of a body names. */
const MOST_MODULES = 3;
/** The most frames within each other; what is deeper stays in a closed box. */
export const MOST_FRAMES = 64;

/** The graph of some scopes, and what opens its calls. */
interface Around {
  readonly graph: GraphData;
  readonly opener: Opener;
}

/** A body of a call with its scopes. */
interface BodyScopes extends CallBody {
  readonly scopes: Scopes;
}

/** A node that calls functions: a box that opens into bodies. A scope of its own name belongs to it. */
export class Call extends Fold {
  readonly node: GraphNode;
  readonly scope: Scope | null;
  readonly #opener: Opener;
  #bodies: readonly BodyScopes[] | null = null;

  constructor(node: GraphNode, scope: Scope | null, opener: Opener) {
    super();
    this.node = node;
    this.scope = scope;
    this.#opener = opener;
  }

  /** The name of the node. */
  get key(): string {
    return this.node.name;
  }

  /** The number of the graph's own nodes: the call and its helpers. */
  get total(): number {
    return 1 + (this.scope?.total ?? 0) + totalOf(this.helpers);
  }

  /** True iff it has bodies. */
  get opens(): boolean {
    return this.bodies.length > 0;
  }

  /** Its bodies; empty if it does not open. */
  get bodies(): readonly BodyScopes[] {
    this.#bodies ??= this.#opener.bodies(this.node).map((body) => ({ ...body, scopes: bodyScopes(body) }));
    return this.#bodies;
  }

  /** The scope of each of its bodies. */
  get roots(): readonly Scope[] {
    return this.bodies.map(({ scopes }) => scopes.root);
  }

  /** The parts shown when it is open: body, or own box and a scope for each body; then helpers. */
  parts(): readonly Part[] {
    const hub = this.node.hasHub ? [this.node] : [];
    return [...hub, ...this.inside(), ...this.beside()];
  }

  /** The parts of its bodies. */
  inside(): readonly Part[] {
    const { roots } = this;
    return roots.length > 1 ? roots : roots.flatMap((root) => root.parts());
  }

  /** Its helpers; the weights that bodies of another framework take are one box if they are many. */
  beside(): readonly Part[] {
    const parts = [...(this.scope?.parts() ?? []), ...this.helpers];
    const weights = parts.filter((part) => !(part instanceof Fold) && isForeign(part) && isParameter(part));
    if (weights.length < MANY_WEIGHTS) return parts;
    return [Group.of(this.key, 0, "weights", weights), ...parts.filter((part) => !weights.includes(part))];
  }

  /** The call and its helpers. */
  allNodes(): GraphNode[] {
    return [this.node, ...(this.scope?.allNodes() ?? []), ...nodesOf(this.helpers)];
  }

  leadsTo(name: string): boolean {
    return name === this.key || name.startsWith(`${this.key}/`) || anyLeadsTo(this.helpers, name);
  }
}

/** A name scope: its own nodes, its inner scopes, and `total`, the nodes at any depth. The root's path is "". */
export class Scope extends Fold {
  readonly path: string;
  readonly parent: Scope | null;
  readonly depth: number;
  readonly order: number;
  readonly around: Around;
  /** The label of one of several bodies of a call, null for other scopes. */
  readonly bodyLabel: string | null;
  readonly nodes = new Map<string, GraphNode>();
  readonly scopes = new Map<string, Scope>();
  #total = 0;
  #contents: readonly Part[] | null = null;

  constructor(path: string, parent: Scope | null, order: number, around: Around, bodyLabel: string | null = null) {
    super();
    this.path = path;
    this.parent = parent;
    this.depth = parent === null ? 0 : parent.depth + 1;
    this.order = order;
    this.around = around;
    this.bodyLabel = bodyLabel;
  }

  /** The path. */
  get key(): string {
    return this.path;
  }

  get total(): number {
    return this.#total;
  }

  /** The last components of the path; for one of several bodies, its purpose and the function's name. */
  get label(): string {
    if (this.bodyLabel !== null) return this.bodyLabel;
    const label = chainLabel(this.path, this.parent?.path ?? null);
    const kind = this.around.graph.classes?.get(this.path);
    return kind ? `${label} ${kind}` : label;
  }

  /**
   * The parts shown when it is open: in creation order, or groups of them if they are many.
   *
   * A scope of one node is that node. A scope that never opens has its nodes.
   */
  parts(): readonly Part[] {
    this.#contents ??= this.#makeContents();
    return this.#contents;
  }

  /** The repeat that a module of another framework consists of, null if it has more or none. */
  get onlyRepeat(): Group | null {
    if (this.parent === null || this.depth > MOST_FRAMES || !this.isForeign) return null;
    const [only, ...others] = this.parts();
    return only instanceof Group && only.instances.length > 0 && others.length === 0 ? only : null;
  }

  /** The repeat that is most of a module of another framework, in words: `layers WhisperEncoderLayer ×4`; "" if none is. */
  get mainRepeat(): string {
    if (this.parent === null || this.depth > MOST_FRAMES || !this.isForeign) return "";
    for (const part of this.parts()) {
      const repeat = part instanceof Scope ? part.onlyRepeat : part;
      if (repeat instanceof Group && repeat.instances.length > 0 && 2 * repeat.total > this.total)
        return `${repeat.label} ×${repeat.instances.length}`;
    }
    return "";
  }

  /** The contents of one of several bodies in words: its largest modules, `stft, encoder, decoder`, else its layers, `Conv ×6`; "" for other scopes. */
  get mainModules(): string {
    if (this.bodyLabel === null || !this.isForeign) return "";
    const isModule = (part: Part): part is Scope | Group =>
      part instanceof Scope || (part instanceof Group && part.instances.length > 0);
    let modules = this.parts().filter(isModule);
    for (let [only] = modules; only instanceof Scope && modules.length === 1; [only] = modules)
      modules = only.parts().filter(isModule);
    if (modules.length < 2) return counted(this.allNodes().filter(isHeavy));
    const largest = [...modules].sort((a, b) => b.total - a.total).slice(0, MOST_MODULES);
    const words = modules
      .filter((part) => largest.includes(part))
      .map((part) => (part instanceof Group ? `${part.label} ×${part.instances.length}` : part.label));
    return words.join(", ") + (modules.length > MOST_MODULES ? ", …" : "");
  }

  /** True iff it is a module of another framework that is one op with its parameters. */
  get isLayer(): boolean {
    return this.isForeign && this.allNodes().filter((node) => !isParameter(node)).length <= 1;
  }

  /** True iff its nodes are of another framework. */
  get isForeign(): boolean {
    const [first] = this.nodes.size > 0 ? this.nodes.values() : this.allNodes();
    return first !== undefined && isForeign(first);
  }

  #makeContents(): readonly Part[] {
    if (this.depth > MOST_FRAMES) return this.allNodes().sort((a, b) => a.id - b.id);
    const { marks, saverNodes, signatures, isBody } = this.around.graph;
    const parts = this.apart();
    if (marks) return structured(this.path, unchangedTogether(this.path, parts, marks), 0);
    if (this.parent === null && (saverNodes.size > 0 || signatures.size > 0))
      return withSignatures(parts, this.around.graph);
    return structured(this.path, isBody ? withinFunction(this.path, parts) : parts, 0);
  }

  /** The nodes and inner scopes, without groups. */
  override apart(): readonly Part[] {
    return [...this.#plainParts(), ...this.helpers];
  }

  override takeIn(helpers: readonly Part[]): void {
    super.takeIn(helpers);
    this.#total += totalOf(helpers);
    this.#contents = null;
  }

  leadsTo(name: string): boolean {
    return name.startsWith(`${this.key}/`) || anyLeadsTo(this.helpers, name);
  }

  /** Counts the nodes of this scope and of those inside, which are counted before. */
  count(): void {
    this.#total = totalOf([...this.scopes.values()]) + this.nodes.size;
  }

  /** Every node inside, at any depth. */
  allNodes(): GraphNode[] {
    const nodes = nodesOf(this.helpers); // those of inner scopes are among these, or come from beside them
    const stack: Scope[] = [this];
    for (let scope = stack.pop(); scope; scope = stack.pop()) {
      for (const node of scope.nodes.values()) nodes.push(node);
      for (const inner of scope.scopes.values()) stack.push(inner);
    }
    return nodes;
  }

  #plainParts(): readonly Part[] {
    const parts: Part[] = [];
    const withScope = new Set<string>();
    const { opener } = this.around;
    for (const [path, scope] of this.scopes) {
      const main = this.nodes.get(path);
      // An input of another framework has no part in the module that takes it, whatever its name.
      if (!main || (isEnd(main) && isForeign(main))) {
        parts.push(alone(scope));
        continue;
      }
      withScope.add(path);
      if (callsFunctions(main)) parts.push(new Call(main, scope, opener));
      else if (scope.total < SMALL_THING) parts.push(new Thing(main, scope));
      else {
        parts.push(scope);
        if (!scope.helpers.includes(main)) scope.takeIn([main]);
      }
    }
    for (const [name, node] of this.nodes) if (!withScope.has(name)) parts.push(singlePart(node, opener));
    return this.scopes.size > 0 ? parts.sort((a, b) => orderOf(a) - orderOf(b)) : parts;
  }
}

/** The ops of these nodes, each with its number if there are several: `Conv ×6, MatMul`. */
function counted(nodes: readonly GraphNode[]): string {
  const labels = nodes.map(({ op }) => op.label);
  return [...new Counter(labels).counts].map(([label, count]) => label + (count > 1 ? ` ×${count}` : "")).join(", ");
}

/** The part for a scope: itself, or the single node or thing inside. */
function alone(scope: Scope): Part {
  if (scope.total === 1) return singlePart(scope.allNodes()[0] as GraphNode, scope.around.opener);
  const [main] = scope.nodes.values();
  const [inner] = scope.scopes.values();
  const isThing = scope.nodes.size === 1 && scope.scopes.size === 1 && main?.name === inner?.path;
  if (!main || !inner || !isThing) return scope;
  if (inner.total >= SMALL_THING || callsFunctions(main) || scope.helpers.length > 0) return scope;
  return new Thing(main, inner);
}

/** A part for a node by itself: a call if it calls functions. */
function singlePart(node: GraphNode, opener: Opener): Part {
  return callsFunctions(node) ? new Call(node, null, opener) : node;
}

/** The scopes in the names of the nodes of a graph, by path, below one root. */
export class Scopes {
  readonly root: Scope;
  readonly byPath: Map<string, Scope>;
  readonly #parents: ReadonlyMap<string, string>;
  readonly #around: Around;

  constructor(root: string, graph: GraphData, opener: Opener, bodyLabel: string | null = null) {
    this.#around = { graph, opener };
    this.root = new Scope(root, null, 0, this.#around, bodyLabel);
    this.byPath = new Map([[root, this.root]]);
    const names = graph.nodes.map(({ name }) => name);
    const prefixes = names.map(scopeOf);
    this.#parents = parentsOf(root, new Set(prefixes), names);
    for (const [place, node] of graph.nodes.entries()) {
      const prefix = prefixes[place] as string;
      const scope = this.byPath.get(prefix) ?? this.#make(prefix, node.id);
      scope.nodes.set(node.name, node);
    }
    for (const scope of innerFirst(this.byPath.values())) scope.count();
  }

  #make(path: string, order: number): Scope {
    const missing: string[] = []; // innermost first; a file may nest scopes very deep
    let outer = path;
    let parent = this.byPath.get(outer);
    while (!parent) {
      missing.push(outer);
      outer = this.#parents.get(outer) as string;
      parent = this.byPath.get(outer);
    }
    for (const each of missing.reverse()) {
      const scope = new Scope(each, parent, order, this.#around);
      this.byPath.set(each, scope);
      parent.scopes.set(each, scope);
      parent = scope;
    }
    return parent;
  }
}

/** The scopes of a function body, below its path. */
const bodyScopes = ({ path, graph, opener, label }: CallBody): Scopes => new Scopes(path, graph, opener, label);

function orderOf(part: Part): number {
  if (part instanceof Thing || part instanceof Call) return part.node.id;
  if (part instanceof Scope) return part.order;
  return part instanceof Fold ? 0 : part.id;
}

/** Scopes ordered so that each comes before its parent. */
function innerFirst(scopes: Iterable<Scope>): Scope[] {
  const rank = (scope: Scope): number => (scope.path ? -countSlashes(scope.path) : 1);
  return [...scopes].sort((a, b) => rank(a) - rank(b));
}
