// Builds scenes from the data of a graph.
import {
  ARG,
  type NodeKind,
  type Role,
  type Scene,
  type SceneEdge,
  type SceneGroup,
  type SceneNode,
  type State,
} from "../scene/generated";
import { ClashLines } from "./clash_lines";
import { colocationsOf } from "./colocation";
import { boxDifference, differenceOf, frameWords, markEdges } from "./difference";
import { Dimensions } from "./dimensions";
import { bundleEdges, type LostInput, sceneEdge } from "./edges";
import { gapBoxes } from "./gaps";
import { numberOf } from "./instances";
import { allLenses, type LensView } from "./lenses";
import { BACKWARD, Mirrored } from "./mirror";
import { at, Counter, counted, grouped } from "./order";
import type { Instance, Part } from "./parts";
import { ALTERED, CALL, FRESH, GROUP, NODE, PARTIAL, SCOPE, SHORT, type Space, THING } from "./space";
import { cutLongEdges, PLAIN, REFUSED } from "./stubs";
import { MOST_FRAMES } from "./tree";
import {
  type Box,
  type Folding,
  type Frame,
  inputsOf,
  isGradientBody,
  outputOf,
  roleOf,
  type Tensor,
  tensorLabel,
  tensorName,
  type Visible,
  visibleBoxes,
} from "./visible";

const MAX_NAMED_ERRORS = 3;
const ENDS: Readonly<Record<string, string>> = {
  _Arg: "argument",
  _DeviceArg: "argument",
  _Retval: "return",
  _DeviceRetval: "return",
};
const TOO_DEEP = `closed: ${MOST_FRAMES} frames around it`;
const DEFAULT_NAME = /^(Const|zeros|ones)(_\d+)?$/;

const lastPart = (name: string): string => name.slice(name.lastIndexOf("/") + 1);

/** A scene, and what is visible in it. */
export interface Built {
  readonly scene: Scene;
  readonly visible: Visible;
}

export function buildScene(root: Part, folding: Folding, title: string): Built {
  const visible = visibleBoxes(root, folding);
  const { boxes } = visible;
  const roles = boxes.map((box) => boxRole(box, visible));
  const dimensions = new Dimensions(visible);
  const lenses = allLenses(boxes, root.instance.space, dimensions);
  const clashes = new ClashLines(visible);
  const captures = capturesOf(visible);
  const [colocations, together] = colocationsOf(root.instance, visible);
  const around = { root: root.instance, visible, dimensions, roles, clashes, lenses, captures, together };
  const shown = boxes.map((box) => sceneNode(box, around));
  const [bundles, lost] = bundleEdges(visible);
  const marks = differenceOf(root.instance);
  if (marks) bundles.push(...markEdges(visible, root.instance, marks, bundles));
  const [gapNodes, gapEdges] = folding.mirror ? gapBoxes(visible) : [[], []];
  const mirror = visible.origins.size > 0 || gapNodes.length > 0;
  const lines = bundles.map((bundle) => sceneEdge(bundle, roles, dimensions, clashes, visible));
  const [goneNodes, goneEdges] = lostInputs(lost);
  goneEdges.push(...circles(visible));
  const [refused, refusedEdges] = refusedBoxes(root.instance, visible);
  const [nodes, edges] = cutLongEdges(
    [...shown, ...goneNodes, ...refused, ...gapNodes],
    [...lines, ...goneEdges, ...refusedEdges, ...gapEdges],
    mirror,
  );
  const scene: Scene = {
    title,
    nodes,
    edges,
    groups: visible.frames.map((frame) => sceneGroup(frame, root.instance, visible)),
    lenses: lenses.map(({ lens }) => lens),
    numbers: lenses.flatMap(({ numbers }) => (numbers ? [numbers] : [])),
    colocations,
    revision: 0,
    total_nodes: visible.total,
    hidden_nodes: visible.total - boxes.filter((box) => box.nodes.length === 1).length,
    summary: summary(root.instance, visible, nodes, edges),
    mirror,
    since: marks ? "" : "with the last cell",
  };
  return { scene, visible };
}

function boxRole({ part, main, nodes }: Box, visible: Visible): Role {
  if (visible.origins.size > 0 && part.instance === visible.root)
    return visible.origins.has(nodes[0] as number) ? "gradient" : "forward";
  return roleOf(part.instance, main < 0 ? nodes : Int32Array.of(main));
}

interface Around {
  readonly root: Instance;
  readonly visible: Visible;
  readonly dimensions: Dimensions;
  readonly roles: readonly Role[];
  readonly clashes: ClashLines;
  readonly lenses: readonly LensView[];
  readonly captures: Captures;
  readonly together: ReadonlyMap<Box, string>;
}

function sceneNode(
  box: Box,
  { root, visible, dimensions, roles, clashes, lenses, captures, together }: Around,
): SceneNode {
  const { part, main, nodes } = box;
  const error = boxError(box);
  const role = roles[box.index] as Role;
  const words = visible.words.get(box.id);
  const marks = lenses.flatMap(({ lens, marks }) => {
    const mark = marks.get(box);
    return mark ? [[lens.name, mark] as const] : [];
  });
  const texts = main < 0 ? partTexts(box, root) : nodeTexts(box, captures, dimensions);
  const difference = differenceOf(part.instance);
  const [state, said] = difference ? boxDifference(box, difference) : [boxState(box), ""];
  const whole = [said, texts.detail].filter(Boolean).join("; ");
  return {
    ...PLAIN,
    id: box.id,
    ...texts,
    detail: main < 0 ? whole : said || texts.detail,
    ...(main >= 0 && words && { op: opLabel(part.instance.space, main), label: words }),
    group: box.group,
    role,
    state: error ? "error" : state,
    error,
    clash: clashes.note(box),
    count: nodes.length,
    repeat: part.repeat,
    expandable: box.depth < MOST_FRAMES && (part.kind === CALL ? !part.refusal || part.hasScope : part.kind !== NODE),
    mirrors: role === "gradient" ? mirrored(box, root, visible) : "",
    cell: cells(box),
    together: together.get(box) ?? "",
    lenses: Object.fromEntries(marks),
  };
}

/** The op of a node as pictures name it: without the domain of another framework. */
function opLabel(space: Space, node: number): string {
  const op = space.text("ops", node);
  return space.data.head.ops[op]?.label || op;
}

type Texts = Pick<SceneNode, "kind" | "op" | "label" | "detail">;

function partTexts({ part, depth }: Box, root: Instance): Texts {
  const body = part instanceof Mirrored ? part.ofNode : part.kind === SCOPE && isFunctionScope(part, root);
  const detail = depth >= MOST_FRAMES ? TOO_DEEP : part.differences || part.mainContents;
  return { kind: body ? "function" : "scope", op: "", label: part.boxLabel, detail };
}

const isFunctionScope = (part: Part, root: Instance): boolean => part.isBody || isGradientBody(root, part.key);

/** A constant shows its value, with its name if the user chose one. */
function nodeTexts({ part, main, group }: Box, captures: Captures, dimensions: Dimensions): Texts {
  const { instance } = part;
  const { space } = instance;
  const kind = space.text("kinds", main) as NodeKind;
  const op = space.text("ops", main);
  const name = instance.name(main);
  const given = ARG.has(op) ? space.head.user_names[main] || captures.get(instance)?.get(main) : undefined;
  const label = given ?? labelOf(name, group);
  const isInput = kind === "placeholder" && space.outputs(main).length > 0;
  let detail = isInput ? dimensions.label(outputOf(instance, main, 0)) : space.text("details", main);
  const end = ENDS[op];
  if ((kind === "placeholder" || kind === "return") && end) return { kind, op: end, label, detail };
  if (part.kind === CALL && part.refusal && !part.failure) detail = part.refusal;
  if (kind !== "constant" || !detail) return { kind, op: opLabel(space, main), label, detail };
  const last = lastPart(name);
  const unnamed = DEFAULT_NAME.test(last) || space.gradients.has(main);
  return unnamed && (space.has(main, SHORT) || last.startsWith("Const"))
    ? { kind, op: "", label: detail, detail: "" }
    : { kind, op: "", label, detail };
}

/** The names of the tensors that open loops and branches use, by the arguments for them. */
type Captures = ReadonlyMap<Instance, ReadonlyMap<number, string>>;

function capturesOf(visible: Visible): Captures {
  const found = new Map<Instance, Map<number, string>>();
  for (const [call, bodies] of visible.calls) {
    if (!call.call.hub) continue;
    const inputs = inputsOf(call.instance, call.node).slice(call.call.choice ? 1 : 0);
    const names = inputs.map(({ name }) => (name.includes(":/") ? name.slice(name.lastIndexOf(":/") + 2) : name));
    for (const body of bodies) {
      const args = body.space.head.arguments.slice(0, names.length);
      found.set(body, new Map(args.map((arg, i) => [arg, names[i] as string])));
    }
  }
  return found;
}

/** The name within the surrounding frame; in the body of a call, without the call's name. */
function labelOf(name: string, group: string): string {
  if (group === `${name}/`) return lastPart(name);
  const before = group.split("#", 1)[0] as string;
  if (before && name.startsWith(before)) return name.slice(before.length);
  return name.includes(":/") ? name.slice(name.lastIndexOf(":/") + 2) : name;
}

function cells({ part, main, nodes }: Box): string {
  const { space } = part.instance;
  if (main >= 0) return space.text("cells", main);
  const labels = new Set<string>();
  for (const node of nodes) labels.add(space.text("cells", node));
  const first = [...labels].slice(0, 4).filter(Boolean);
  return first.join(", ") + (labels.size > 4 ? ", …" : "");
}

function boxError({ part, nodes }: Box): string {
  const failure = part.kind === CALL && part.failure ? `does not open: ${part.failure}` : "";
  return [nodesError(part, nodes), failure].filter(Boolean).join("\n");
}

function nodesError(part: Part, nodes: Int32Array): string {
  const { instance } = part;
  const { errors } = instance.space.head;
  if (Object.keys(errors).length === 0) return "";
  const wrong = [...nodes].filter((node) => errors[node] !== undefined);
  if (nodes.length === 1) return wrong.map((node) => errors[node]?.text ?? "").join("");
  const lines = wrong
    .slice(0, MAX_NAMED_ERRORS)
    .map((node) => `${numberOf(part, node)}${instance.name(node)}: ${errors[node]?.text}`);
  if (wrong.length > MAX_NAMED_ERRORS) lines.push(`and ${wrong.length - MAX_NAMED_ERRORS} more`);
  return lines.join("\n");
}

function boxState({ part, nodes }: Box): State {
  const { flags } = part.instance.space;
  let some = 0;
  let every = FRESH;
  for (const node of nodes) {
    some |= at(flags, node);
    every &= at(flags, node);
  }
  if (some & PARTIAL) return "stale";
  return every ? "new" : some & (FRESH | ALTERED) ? "changed" : "normal";
}

/** The id of the forward box that most of these gradient nodes differentiate, "" if there is none. */
function mirrored({ part, nodes, id, group }: Box, root: Instance, visible: Visible): string {
  if (visible.origins.size > 0) {
    const origin = visible.origin(part.instance, nodes[0] as number);
    // The nodes of an open gradient function have no row: they would all be in one.
    const isInBody = visible.frames.some(
      (frame) => frame.id === group && frame.part instanceof Mirrored && frame.part.ofNode,
    );
    return origin === undefined || id === BACKWARD || isInBody ? "" : visible.placeOf(root, origin);
  }
  const forward = new Counter();
  let total = 0;
  for (const node of nodes) {
    const record = part.instance.space.gradients.get(node);
    const target = record && visible.box(root, root.space.find(record.forward) ?? -1)?.id;
    if (target === undefined || target === id) continue;
    forward.add(target);
    total += 1;
  }
  const [best] = forward.mostCommon(1);
  return best && 2 * best[1] > total ? best[0] : "";
}

function lostInputs(lost: readonly LostInput[]): [SceneNode[], SceneEdge[]] {
  const nodes = new Map<string, SceneNode>();
  const edges = new Map<string, SceneEdge>();
  for (const { tensor, target, error: known } of lost) {
    const error = known || `${tensor.name} is no longer in the graph`;
    const id = `gone:${tensor.name}:${target.id}`;
    const label = `${tensor.name} is gone`;
    nodes.set(id, { ...PLAIN, id, label, kind: "stub", group: target.group, state: "error", error, count: 0 });
    const edge = `${id}->${target.id}`;
    edges.set(edge, faultyEdge(edge, id, target.id, tensor, error));
  }
  return [[...nodes.values()], [...edges.values()]];
}

const FAULTY = {
  kind: "data",
  label: "",
  count: 1,
  dims: [],
  clash: 0,
  reversed: false,
  loose: false,
  role: "forward",
  state: "normal",
  lenses: {},
} as const;

function faultyEdge(id: string, source: string, target: string, tensor: Tensor, error: string): SceneEdge {
  return { ...FAULTY, id, source, target, label: tensorLabel(tensor), error };
}

/** The inputs that would have closed a circle, from the node that its cell failed to make again. */
function circles(visible: Visible): SceneEdge[] {
  const edges: SceneEdge[] = [];
  for (const box of visible.boxes) {
    const { instance } = box.part;
    const { errors } = instance.space.head;
    for (const node of box.nodes) {
      const refused = errors[node]?.circle ?? -1;
      const source = visible.box(instance, refused);
      if (!source || (source === box && box.nodes.length > 1)) continue;
      const [name, input] = [instance.name(node), instance.name(refused)];
      const error = `'${name}' would take '${input}' as an input, which itself depends on '${name}'`;
      edges.push({
        ...FAULTY,
        id: `circle:${input}->${box.id}`,
        source: source.id,
        target: box.id,
        error,
        reversed: true,
      });
    }
  }
  return edges;
}

/** The boxes of nodes that could not be made, with edges from their inputs. */
function refusedBoxes(root: Instance, visible: Visible): [SceneNode[], SceneEdge[]] {
  const nodes: SceneNode[] = [];
  const edges: SceneEdge[] = [];
  for (const { name, text: error, inputs } of root.space.head.refused) {
    const id = `${REFUSED}${name}`;
    const label = `${lastPart(name)} was not made`;
    nodes.push({ ...PLAIN, id, label, kind: "stub", state: "error", error, count: 0 });
    for (const [node, slot] of inputs) {
      const source = visible.box(root, node);
      const tensor = outputOf(root, node, slot);
      if (source) edges.push(faultyEdge(`${tensorName(tensor)}->${id}`, source.id, id, tensor, error));
    }
  }
  return [nodes, edges];
}

function sceneGroup({ id, parent, part }: Frame, root: Instance, visible: Visible): SceneGroup {
  const isFunction = part instanceof Mirrored ? part.ofNode : part.kind === CALL || isFunctionScope(part, root);
  const marks = differenceOf(root);
  return {
    id,
    label: frameLabel(part, parent) + (marks && part.instance === root ? frameWords(part, marks) : ""),
    parent,
    count: part.kind === CALL ? part.bodies().reduce((sum, body) => sum + body.space.size, 0) : part.total,
    role: frameRole(part, visible),
    kind: isFunction ? "function" : "scope",
  };
}

function frameRole(part: Part, visible: Visible): Role {
  if (part.kind !== SCOPE) return roleOf(part.instance, part.nodes());
  if (part.instance.roles.isMostlyGradient(part.key)) return "gradient";
  return visible.inner ? roleOf(part.instance, part.nodes()) : "forward";
}

function frameLabel(part: Part, parent: string): string {
  if (part.repeated && part.repeat > 0) return `${part.boxLabel} ×${part.repeat}`;
  if (part.kind === GROUP || part.kind === SCOPE) return part.label;
  if (part.kind === THING) return labelOf(part.key, parent);
  const name = lastPart(part.key);
  const { called } = part.call;
  return called === name ? name : `${name} · ${called}`;
}

function summary(root: Instance, visible: Visible, nodes: readonly SceneNode[], edges: readonly SceneEdge[]): string {
  const { total, boxes } = visible;
  const within = boxes.length === 1 ? "1 box" : `${grouped(boxes.length)} boxes`;
  const parts = [counted(total, "node") + (boxes.length === total ? "" : ` in ${within}`)];
  const marks = differenceOf(root);
  if (marks) return `${marks.summary}; ${parts[0]}`;
  const wrong = nodes.filter(({ id, error, kind }) => error && (kind !== "stub" || id.startsWith(REFUSED))).length;
  if (wrong) parts.push(`${grouped(wrong)} with errors`); // first, because the end of a long line is cut off
  parts.push(counted(edges.length, "edge"));
  const gradient = root.space.head.gradient_count;
  if (gradient) parts.push(counted(gradient, "gradient node"));
  const fresh = nodes.filter(({ state }) => state === "new").length;
  if (fresh) parts.push(`${grouped(fresh)} new`);
  const left = nodes.filter(({ state }) => state === "stale").length;
  if (left) parts.push(`${grouped(left)} from failed cells`);
  return parts.join(", ");
}
