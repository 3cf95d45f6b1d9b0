// The bodies that calls open into, as the tree takes them.
import type { GraphNode } from "../structure";

/** The differences that a graph shows, as far as its tree follows them: `graphcore.difference.Marks`. */
export interface Marks {
  /** The names of nodes that are different themselves. */
  readonly touched: ReadonlySet<string>;
  /** The names of producer and consumer of each edge that is gone. */
  readonly oldEdges: readonly (readonly [producer: string, consumer: string])[];
}

/** A graph, or the body of a call, with what its tree follows beside the nodes. */
export interface GraphData {
  /** The nodes in the order of their ids. */
  readonly nodes: readonly GraphNode[];
  /** True for the body of a call. */
  readonly isBody: boolean;
  /** The names of the nodes that save and restore in a SavedModel. */
  readonly saverNodes: ReadonlySet<string>;
  /** The names of the nodes of the inputs and outputs of each signature of a SavedModel, but for that of its initialization. */
  readonly signatures: ReadonlyMap<string, ReadonlySet<string>>;
  /** The classes of modules of another framework, by the paths of the scopes that stand for them. */
  readonly classes?: ReadonlyMap<string, string>;
  /** Null unless the graph shows a difference. */
  readonly marks: Marks | null;
}

/** A body of a call. */
export interface CallBody {
  /** The prefix of its nodes' names, without the last slash: `call:` or `call:then`. */
  readonly path: string;
  /** The label of its scope if it is one of several bodies. */
  readonly label: string;
  readonly graph: GraphData;
  /** Opens the calls in it. */
  readonly opener: Opener;
}

/** Opens calls within one body, or the graph itself. */
export interface Opener {
  /** The bodies of a call; none if it does not open. */
  bodies(node: GraphNode): readonly CallBody[];
}
