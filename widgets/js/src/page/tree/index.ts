// The parts of a scene as a tree: name scopes, things, calls, and groups by dataflow. As `widgets.scene.tree` in Python.

export { Fold, Group, leadsTo, nameOf, nodesOf, type Part, Thing } from "./folds";
export { SpaceGraph } from "./from_data";
export { Roles } from "./roles";
export { Call, Scope, type Scopes } from "./scopes";
export { ScopeTree } from "./tree";
