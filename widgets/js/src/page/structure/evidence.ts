// The layers of a model that a group of nodes computes: those that can tell a known kind of block.

import { type Layer, NO_OP } from "../../scene/generated";
import { Counter } from "../order";
import { type GraphNode, isForeign } from "./nodes";
import { isEnd, isHeavy, isPlumbing } from "./serving";

/** The most nodes between a softmax and the products around it: masks, dropout, changes of shape. */
const FAR = 8;
const EXPONENTIAL = /^exp(onential)?$/i;
const DIVISION = /^div(ide)?$/i;

/**
 * The layers of a group by number, as far as they are the block's own. Gradients, losses and biases tell no kind.
 *
 * A sum or a scaling counts if no parameter takes part and it is no sum of losses or gradients, a softmax if it weighs products of another
 * product, and a sigmoid or tanh if it scales something, as gates do. `serving` are the names of parameters, constants, and what is computed
 * from these alone.
 */
export function tellingLayers(nodes: readonly GraphNode[], serving: ReadonlySet<string>): Counter<Layer> {
  const found = new Counter<Layer>();
  for (const node of nodes) {
    if (node.isGradient || serving.has(node.name) || node.op.name === NO_OP || isPlumbing(node) || isEnd(node))
      continue;
    const layer = isSoftmax(node) ? "softmax" : node.op.layer;
    if (layer && counts(node, serving)) found.add(layer);
  }
  return found;
}

function counts(node: GraphNode, serving: ReadonlySet<string>): boolean {
  const { layer } = node.op;
  if (layer === "addition" || layer === "scaling") {
    const sources = producers(node);
    return (
      node.outputs[0]?.dims?.length !== 0 &&
      !sources.some((source) => serving.has(source.name)) &&
      !sources.every((source) => source.isGradient)
    );
  }
  if (layer === "softmax" || isSoftmax(node))
    return leadsToProduct(node, producers) && leadsToProduct(node, forwardConsumers);
  if (layer === "sigmoid" || layer === "tanh") return throughPlumbing(node).some((each) => each.op.layer === "scaling");
  return true;
}

/** True for the exponential in a softmax of another framework that is written as several ops: it is divided by its sum. */
const isSoftmax = (node: GraphNode): boolean =>
  EXPONENTIAL.test(node.op.label) && isForeign(node) && node.consumers.some(({ op }) => DIVISION.test(op.label));

/** True if a product is near, with nothing heavy between. */
function leadsToProduct(start: GraphNode, following: (node: GraphNode) => readonly GraphNode[]): boolean {
  let near = [start];
  const seen = new Set(near);
  for (let step = 0; step < FAR; step++) {
    const next = new Set(near.flatMap(following).filter((other) => !seen.has(other)));
    near = [...next];
    if (near.some((other) => other.op.layer === "product")) return true;
    near = near.filter((other) => !isHeavy(other));
    for (const other of near) seen.add(other);
  }
  return false;
}

const producers = (node: GraphNode): GraphNode[] => node.inputs.map((tensor) => tensor.node);

const forwardConsumers = (node: GraphNode): GraphNode[] => node.consumers.filter((consumer) => !consumer.isGradient);

/** The consumers of a node, and of those that pass its value on. */
function throughPlumbing(node: GraphNode): GraphNode[] {
  const found = new Set(forwardConsumers(node));
  for (const each of found) if (isPlumbing(each)) for (const next of forwardConsumers(each)) found.add(next);
  return [...found];
}
