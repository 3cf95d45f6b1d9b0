// The picture of a difference.
import type { DifferenceRecord, State } from "../scene/generated";
import { type Bundle, CROWD } from "./edges";
import { at, getOrMake, grouped } from "./order";
import type { Instance, Part } from "./parts";
import { SCOPE } from "./space";
import { kindOf, TOUCHED } from "./touched";
import { type Box, outputOf, tensorName, type Visible } from "./visible";

const SIGNS = [
  ["added", "+"],
  ["removed", "−"],
  ["changed", "~"],
  ["renamed", "»"],
] as const;

type Nodes = Iterable<number>;

/** The marks of the difference that a graph shows; null for any other graph, and for bodies. */
export const differenceOf = ({ space }: Instance): DifferenceRecord | null => space.head.difference;

/** The differences among some nodes, counted: `+3 −1 ~2`. */
function counts(marks: DifferenceRecord, nodes: Nodes): string {
  const found = new Map<string | undefined, number>();
  for (const node of nodes) found.set(kindOf(marks, node), (found.get(kindOf(marks, node)) ?? 0) + 1);
  const signed = SIGNS.flatMap(([kind, sign]) => (found.has(kind) ? [sign + grouped(found.get(kind) as number)] : []));
  const follows = found.get("follows");
  return signed.join(" ") || (follows ? `${grouped(follows)} of other shapes` : "");
}

/** The state of a box, and its difference in words: the changes of a node, counts for several nodes. */
export function boxDifference({ part, main, nodes }: Box, marks: DifferenceRecord): [State, string] {
  const kinds = new Set(Array.from(nodes, (node) => kindOf(marks, node)));
  let state: State = "normal";
  if (kinds.size === 1 && kinds.has("added")) state = "new";
  else if (kinds.size === 1 && kinds.has("removed")) state = "removed";
  else if ([...kinds].some((kind) => TOUCHED.has(kind))) state = "changed";
  const mark = main < 0 ? undefined : marks.nodes[main];
  const own = main < 0 ? formerScope(part, marks) : mark && mark[0] !== "moved" ? mark[1] : "";
  return [state, [own, nodes.length > 1 ? counts(marks, nodes) : ""].filter(Boolean).join("; ")];
}

function formerScope(part: Part, { scopes }: DifferenceRecord): string {
  const former = part.kind === SCOPE ? scopes[part.key] : undefined;
  return former === undefined ? "" : `was ${former || "outside"}`;
}

/** The differences in an open frame, for its name: `  +3 −1`. */
export function frameWords(part: Part, marks: DifferenceRecord): string {
  const words = [counts(marks, part.nodes()), formerScope(part, marks)].filter(Boolean).join(", ");
  return words && `  ${words}`;
}

/** Marks the bundles of new edges and of removed nodes' own. Returns bundles of other removed edges. */
export function markEdges(visible: Visible, root: Instance, marks: DifferenceRecord, bundles: Bundle[]): Bundle[] {
  const ends = (source: Box, target: Box, control: boolean): string => `${source.index} ${target.index} ${control}`;
  const byEnds = new Map(
    bundles.map((bundle) => [ends(bundle.source, bundle.target, bundle.kind === "control"), bundle]),
  );
  const fresh = new Set(marks.new_inputs.map((edge) => edge.join(" ")));
  const seen = new Map<Bundle, Set<string>>();
  const mark = (target: Box, node: number, producer: number, name: string, slot: number): void => {
    const source = visible.box(root, producer);
    const bundle = source && source !== target && byEnds.get(ends(source, target, slot < 0));
    if (!bundle || seen.get(bundle)?.has(name)) return;
    const [before, after] = [kindOf(marks, producer), kindOf(marks, node)];
    const isNew = before === "added" || after === "added" || fresh.has(`${node} ${slot} ${slot < 0 ? producer : -1}`);
    if (after === "removed") bundle.removed += 1;
    else if (isNew) bundle.new += 1;
    else return;
    getOrMake(seen, bundle, () => new Set<string>()).add(name);
  };
  const { space } = root;
  for (const box of visible.boxes) {
    if (box.part.instance !== root) continue;
    for (const node of box.nodes) {
      const first = at(space.inputsAt, node);
      for (let i = first; i < at(space.inputsAt, node + 1); i++) {
        const producer = node - (space.producers[i] as number);
        if (producer !== node) mark(box, node, producer, `${producer}:${at(space.slots, i)}`, i - first);
      }
      for (const producer of space.awaited(node)) mark(box, node, producer, `${producer}`, -1);
    }
  }
  return oldEdges(visible, root, marks);
}

/** Bundles of edges that are gone. Crowds of control edges are left to the words of their consumers. */
function oldEdges(visible: Visible, root: Instance, { old_edges: edges }: DifferenceRecord): Bundle[] {
  const found = new Map<string, Bundle>();
  for (const [producer, output, consumer, slot] of edges) {
    const [source, target] = [visible.box(root, producer), visible.box(root, consumer)];
    if (!source || !target || source === target) continue;
    const kind = slot < 0 ? "control" : "data";
    const bundle = getOrMake(
      found,
      `${source.index} ${target.index} ${kind}`,
      (): Bundle => ({
        source,
        target,
        kind,
        tensors: new Map(),
        copies: new Map(),
        errors: [],
        isBackEdge: false,
        isGone: true,
        new: 0,
        removed: 0,
      }),
    );
    if (output < 0 || !root.space.outputs(producer)[output]) continue;
    const tensor = outputOf(root, producer, output);
    bundle.tensors.set(tensorName(tensor), tensor);
  }
  const old = [...found.values()];
  const waits = ({ target }: Bundle): number =>
    old.filter((other) => other.kind === "control" && other.target === target).length;
  return old.filter((bundle) => bundle.kind !== "control" || waits(bundle) <= CROWD);
}
