// One picture of a page's data: what is open in it, and answers to requests of the viewer. It knows nothing of the page around.

import type {
  Explanation,
  FromViewer,
  HighlightMessage,
  Inspection,
  Mode,
  Openings,
  PictureMessage,
  RecordedSteps,
  Renderer,
  RevealRequest,
  Scene,
  SearchMessage,
  StepsMessage,
  StepTimeline,
  TimelinesMessage,
  WhyStep,
} from "../scene/generated";
import { highlighted, matches, type Searched } from "../scene/query";
import type { PageData } from "./data";
import { Inspector, type Place } from "./inspect";
import { MIRROR, Mirrored } from "./mirror";
import { compareTexts } from "./order";
import { Instance, type Part, partWith } from "./parts";
import { healthOf } from "./recorded_values";
import { type Built, buildScene } from "./scene";
import { CALL } from "./space";
import { ScopeTree, SpaceGraph } from "./tree";
import { type Folding, type Visible, visibleBoxes } from "./visible";

/** The key of the timelines, which never change in a page. */
const OF_PAGE = "page";

/** The state in which a picture begins. */
export interface Beginning {
  readonly title: string;
  readonly lens: string;
  readonly renderer: Renderer;
  readonly openings: Openings;
  readonly timelines?: readonly StepTimeline[] | undefined;
  readonly steps?: RecordedSteps | undefined;
  /** The most boxes that open at all, and automatically; those of the data by default. */
  readonly limits?: { readonly max_boxes: number; readonly auto_boxes: number } | undefined;
}

/** A part that was opened by its key, or a node that was revealed by its name, before a picture showed them. */
export type Asked = readonly ["part" | "node", string];

export class GraphPage {
  readonly #data: PageData;
  readonly #root: Part;
  #title: string;
  #maxBoxes: number;
  readonly #timelines: readonly StepTimeline[];
  readonly #steps: RecordedSteps | null;
  readonly #tree: ScopeTree;
  #opened = new Set<string>();
  #closed = new Set<string>();
  #mode: Mode = "auto";
  #mirror = false;
  #autoBoxes: number;
  #lens: string;
  #renderer: Renderer;
  #built: Built | null = null;
  #searched: NodeFacts[] | null = null;

  constructor(data: PageData, beginning: Beginning) {
    this.#data = data;
    const graph = SpaceGraph.first(data);
    this.#tree = new ScopeTree(graph, graph);
    this.#root = new Instance(graph, this.#tree.scopes).root;
    this.#timelines = beginning.timelines ?? data.head.timelines;
    this.#steps = beginning.steps ?? null;
    this.#title = beginning.title;
    this.#lens = beginning.lens;
    this.#renderer = beginning.renderer;
    this.#maxBoxes = data.head.max_boxes;
    this.#autoBoxes = data.head.auto_boxes;
    this.begin(beginning);
  }

  /** Begins anew with other choices. */
  begin({ title, lens, renderer, openings, limits }: Beginning): void {
    const { max_boxes: maxBoxes, auto_boxes: autoBoxes } = limits ?? this.#data.head;
    this.#maxBoxes = maxBoxes;
    this.#autoBoxes = autoBoxes;
    this.#title = title;
    this.#lens = lens;
    this.#renderer = renderer;
    this.#restore(openings);
    this.#built = null;
  }

  /** The user's choices, with which the picture of a changed graph begins. */
  get choices(): Pick<Beginning, "lens" | "renderer" | "openings"> {
    return { lens: this.#lens, renderer: this.#renderer, openings: this.#openings };
  }

  get #openings(): Openings {
    return {
      opened: [...this.#opened],
      closed: [...this.#closed].sort(compareTexts),
      mode: this.#mode,
      mirror: this.#mirror,
    };
  }

  /** The answer to a request; null for those that have none. */
  answer(request: FromViewer): PictureMessage | null {
    switch (request.type) {
      case "ready":
        return this.#scene();
      case "expand":
        this.#expand(request.id);
        return this.#scene();
      case "collapse":
        this.#collapse(request.id);
        return this.#scene();
      case "crowded":
        this.#autoBoxes = Math.min(request.boxes, this.#data.head.auto_boxes) || this.#data.head.auto_boxes;
        return this.#scene();
      case "restore":
        this.#restore(request.openings);
        return this.#scene();
      case "renderer":
        this.#renderer = request.renderer;
        return null;
      case "reveal":
        return this.#reveal(request);
      case "inspect": {
        const inspection = this.#inspector().inspect(request.id);
        const text = `'${request.id}' is not in the graph`;
        return inspection ? { type: "inspection", inspection } : { type: "failure", request: "inspect", text };
      }
      case "want_timelines":
        return this.#timelinesFor(request.known);
      case "want_health":
        return healthOf(this.#data, (name) => this.#boxOf(name));
      case "want_steps":
        return this.#stepsFor(request.known);
      case "find":
        return this.#find(request.query, request.limit);
      case "filter":
        return this.#filter(request.query);
      case "lens":
        this.#lens = request.lens;
        return null;
      default:
        return null;
    }
  }

  // ---- for still pictures ------------------------------------------------------------------------------------------

  /** Opens what is around parts that were opened by their keys, and around nodes. False if one of the nodes is not there. */
  surround(asked: readonly Asked[]): boolean {
    let found = true;
    for (const [kind, key] of asked) {
      if (kind === "part") {
        if (this.#opened.has(key)) this.#openWithin(key, partWith(this.#root, key));
        continue;
      }
      const place = this.#locate(key);
      if (place) this.#show(place);
      else found = false;
    }
    this.#built = null;
    return found;
  }

  /** The scene. */
  get scene(): Scene {
    return this.#now().scene;
  }

  /** The box of each node, by name. */
  boxes(): Record<string, string> {
    const found: Record<string, string> = {};
    for (const { id, part, nodes } of this.#visible().boxes)
      for (const node of nodes) found[part.instance.name(node)] = id;
    return found;
  }

  /** The names of the nodes that have boxes of their own. */
  mains(): string[] {
    return this.#visible().boxes.flatMap(({ main, part }) => (main < 0 ? [] : [part.instance.name(main)]));
  }

  // ---- with a kernel -----------------------------------------------------------------------------------------------

  /** The inspection of a node with what the kernel says of it; null if it has gone. */
  explained(id: string, explanation: Explanation): Inspection | null {
    const inspector = this.#inspector();
    const inspection = inspector.inspect(id);
    const place = inspection && this.#locate(inspection.name);
    return place && inspector.explained(inspection, explanation, place);
  }

  /** The names of the nodes of boxes and frames. A box that shows a node stands for this node alone: what is folded into it follows. */
  namesIn(ids: readonly string[]): string[] {
    const { boxes, frames } = this.#now().visible;
    const wanted = new Set(ids);
    const places = [
      ...boxes
        .filter(({ id }) => wanted.has(id))
        .map(({ part, main, nodes }) => [part, main < 0 ? nodes : [main]] as const),
      ...frames.filter(({ id }) => wanted.has(id)).map(({ part }) => [part, part.nodes()] as const),
    ];
    return places.flatMap(([part, nodes]) => [...nodes].map((node) => part.instance.name(node)));
  }

  /** The boxes of nodes in the picture, by name. */
  boxesOf(names: readonly string[]): Record<string, string> {
    return this.#boxesOf(names);
  }

  /** Steps with the places of their nodes. */
  placed(steps: readonly WhyStep[]): WhyStep[] {
    return this.#inspector().placed(steps);
  }

  #inspector(): Inspector {
    return new Inspector(this.#now().visible, this.#root.instance);
  }

  /** The scene that is shown, built when it is needed. */
  #now(): Built {
    this.#built ??= buildScene(this.#root, this.#folding, this.#title);
    return this.#built;
  }

  get #folding(): Folding {
    return {
      opened: this.#opened,
      closed: this.#closed,
      first: [...this.#tree.openedFirst],
      mode: this.#mode,
      mirror: this.#mirror,
      maxBoxes: this.#maxBoxes,
      autoBoxes: this.#autoBoxes,
    };
  }

  #visible(): Visible {
    return this.#built?.visible ?? visibleBoxes(this.#root, this.#folding);
  }

  #scene(focus = ""): PictureMessage {
    this.#built = null;
    const { scene } = this.#now();
    return {
      type: "scene",
      scene,
      focus: focus && (this.#boxOf(focus) || focus),
      sent_at: 0,
      ...this.choices,
      look: null,
    };
  }

  #restore({ opened, closed, mode, mirror }: Openings): void {
    this.#mirror = mirror;
    this.#start(opened, closed, mode);
  }

  #start(opened: Iterable<string>, closed: Iterable<string>, mode: Mode): void {
    this.#mode = mode;
    this.#opened = new Set(opened);
    this.#closed = new Set(closed);
  }

  #startOver(mode: Mode): void {
    this.#start([], [], mode);
  }

  #expand(id: string): void {
    if (id === "*") return this.#startOver("all");
    const { boxes, frames } = this.#now().visible;
    const key = this.#forward(id);
    const place = key === withoutSlash(id) ? id : `${key}/`;
    const part = boxes.find((box) => box.id === place)?.part ?? frames.find((frame) => frame.id === place)?.part;
    this.#openWithin(key, part);
  }

  /** Opens what has a key, and all around it if it is a part of the graph. */
  #openWithin(key: string, part: Part | undefined): void {
    this.#open(part?.folds && !(part instanceof Mirrored) ? [...keysAround(part), key] : [key]);
  }

  /** Opens what has these keys; the last is the latest, and the one to be reopened. */
  #open(keys: readonly string[]): void {
    this.#closed.delete(keys.at(-1) ?? "");
    for (const key of keys) {
      this.#opened.delete(key);
      this.#opened.add(key);
    }
  }

  #collapse(id: string): void {
    if (id === "*") return this.#startOver("none");
    const path = withoutSlash(id);
    const key = this.#opened.has(path) ? path : this.#forward(id);
    this.#opened.delete(key);
    this.#closed.add(key);
  }

  /** The key to open or close for a box: a scope of the backward pass opens with the scope that it mirrors. */
  #forward(id: string): string {
    const path = withoutSlash(id);
    return this.#mirror && id.endsWith("/") && path.startsWith(MIRROR) ? path.replace(/^∇+/, "") || MIRROR : path;
  }

  #reveal({ name, quiet }: RevealRequest): PictureMessage {
    const place = this.#locate(name);
    if (!place) return { type: "failure", request: "reveal", text: `'${name}' is not in the graph` };
    this.#show(place);
    return this.#scene(quiet ? "" : name);
  }

  /** Opens everything around a node. */
  #show(place: Place): void {
    const { instance } = this.#root;
    const origin = this.#mirror && place.instance === instance ? instance.space.origins.get(place.node) : undefined;
    if (origin !== undefined) {
      this.#show({ instance, node: origin });
      this.#closed.delete(MIRROR);
      return this.#open([MIRROR + instance.name(origin)]);
    }
    const keys = keysAround(place.instance.partOf(place.node));
    for (const [i] of keys.entries()) this.#open(keys.slice(0, i + 1));
  }

  /** The timelines of the page, and the boxes of their nodes. */
  #timelinesFor(known: string): TimelinesMessage {
    const boxes = this.#boxesOf(this.#timelines.flatMap(({ nodes }) => nodes));
    return { type: "timelines", key: OF_PAGE, timelines: known === OF_PAGE ? null : this.#timelines, boxes };
  }

  /** The recorded run of the page, and the boxes of its nodes. */
  #stepsFor(known: string): StepsMessage {
    const boxes = this.#boxesOf(this.#steps?.nodes ?? []);
    return {
      type: "steps",
      key: OF_PAGE,
      run: OF_PAGE,
      live: null,
      steps: known === OF_PAGE ? null : this.#steps,
      boxes,
    };
  }

  #boxesOf(names: readonly string[]): Record<string, string> {
    const boxes: Record<string, string> = {};
    for (const name of names) {
      const box = this.#boxOf(name);
      if (box) boxes[name] = box;
    }
    return boxes;
  }

  /** The box of a node in the picture, or of the closed call around it; "" if there is none. */
  #boxOf(name: string): string {
    for (let around = name; ; around = around.slice(0, around.lastIndexOf(":"))) {
      const place = this.#locate(around);
      const box = place && this.#now().visible.box(place.instance, place.node);
      if (box || !around.includes(":")) return box?.id ?? "";
    }
  }

  /** The node of this name: names in bodies follow that of the call and a colon. */
  #locate(name: string): Place | null {
    let { instance } = this.#root;
    let rest = name;
    for (;;) {
      const colon = rest.indexOf(":");
      const node = instance.space.find(colon < 0 ? rest : rest.slice(0, colon));
      if (node === undefined) return null;
      if (colon < 0) return { instance, node };
      const call = instance.partOf(node);
      const bodies = call.kind === CALL ? call.bodies() : [];
      const body = bodies.find(({ record }) => rest.startsWith(`${record?.label}/`, colon + 1));
      if (!body) return null;
      rest = rest.slice(colon + 2 + (body.record?.label.length ?? 0));
      instance = body;
    }
  }

  // ---- search ------------------------------------------------------------------------------------------------------

  #matching(query: string): readonly NodeFacts[] {
    this.#searched ??= searchedIn(this.#root.instance);
    const inner = [...this.#now().visible.calls.values()].flat().flatMap(searchedIn);
    return matches([...this.#searched, ...inner], query);
  }

  #filter(query: string): HighlightMessage {
    const found = this.#matching(query);
    const { visible } = this.#now();
    const places = found.map(({ instance, node }) => visible.box(instance, node)?.id ?? "");
    return highlighted(query, places);
  }

  #find(query: string, limit: number): SearchMessage {
    const found = this.#matching(query);
    const hits = found.slice(0, limit).map(({ name, op }) => ({ node: name, name, op }));
    return { type: "search", query, hits, total: found.length };
  }
}

const withoutSlash = (id: string): string => (id.endsWith("/") ? id.slice(0, -1) : id);

/** The keys of everything around a part, outermost first. */
export function keysAround(part: Part): string[] {
  const keys: string[] = [];
  for (let outer = part.around; outer; outer = outer.around)
    if (outer !== outer.instance.root || outer.isBody) keys.unshift(outer.key);
  return keys;
}

/** The nodes of a space for the search, whose facts are read when a query asks for them. */
function searchedIn(instance: Instance): NodeFacts[] {
  return Array.from({ length: instance.space.size }, (_, node) => new NodeFacts(instance, node));
}

class NodeFacts implements Searched {
  readonly instance: Instance;
  readonly node: number;
  #name: string | null = null;

  constructor(instance: Instance, node: number) {
    this.instance = instance;
    this.node = node;
  }

  get name(): string {
    this.#name ??= this.instance.name(this.node);
    return this.#name;
  }

  get box(): string {
    return this.name;
  }

  get op(): string {
    return this.instance.space.text("ops", this.node);
  }

  get cell(): string {
    return this.instance.space.text("cells", this.node);
  }

  get device(): string {
    const { space } = this.instance;
    return space.text("devices", this.node) || space.text("requests", this.node);
  }

  get dtypes(): readonly string[] {
    return this.instance.space.outputs(this.node).map(({ dtype }) => dtype);
  }

  get shapes(): readonly string[] {
    const { space } = this.instance;
    return space.outputs(this.node).map(({ sizes }) => (sizes === null ? "?" : `[${sizes.join(",")}]`));
  }

  get attrs(): readonly (readonly [string, string])[] {
    return this.instance.space.attrs(this.node);
  }
}
