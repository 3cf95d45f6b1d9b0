// The parts of a scene as a tree: name scopes, things, calls, and groups by dataflow.

export { FEW_NODES, Fold, Group, leadsTo, nameOf, nodesOf, type Part, Thing } from "./folds";
export { SpaceGraph } from "./from_data";
export { Roles } from "./roles";
export { Call, MOST_FRAMES, Scope, type Scopes } from "./scopes";
export { ScopeTree } from "./tree";
