// Structure of a graph by dataflow alone: what belongs together, and what is repeated.
//
// The parts of one scope are *items*. Recognition goes in steps, each about linear in nodes and edges:
//
// 1. *Serving* (`serving`): parameters, constants, shape arithmetic and plumbing fold into the item that they serve.
// 2. *Order* (`decompose`): a topological order in which every item follows its inputs as closely as possible. Each later grouping is an
//    interval of this order, so arrows between groups cannot form a cycle.
// 3. *Elements* (`decompose`): the order is cut wherever the tensors of at most one item cross. What lies between two cuts has one entry
//    and one exit: a residual block with its addition, or a single item of a chain. A long stretch without a cut is analysed again without
//    its longest edges and broadcasts (skips of a U-Net, a mask for every layer), then cut where the fewest tensors cross.
// 4. *Symbols* (`alike`): equal numbers for equal op structure, independent of names, shapes and attr values.
// 5. *Repeats* (`repeats`): tandem repeats in the sequence of symbols, with a pattern of any length; near-alike neighbours with the same
//    output shape join (the block with a projection that begins a stage).
// 6. *Summary* (`summary`): runs become repeats, what remains is joined to layers and then to longer groups until it is short enough.
//    `naming` finds names.
export { type Arrangement, arrange, FEW_PARTS, type Unit } from "./arrange";
export { before, cycles, type Items, makeItems } from "./items";
export type * from "./nodes";
export { callsFunctions, isForeign } from "./nodes";
export { CONE, isEnd, isHeavy, isParameter, isPlumbing, isVariable } from "./serving";
export { type Bunch, bunchOf } from "./summary";
