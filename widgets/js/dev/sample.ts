// A scene to look at while working on the viewer: the training graph of the quickstart, with gradients, frames and an error.
import type {
  Inspection,
  LensMark,
  Scene,
  SceneEdge,
  SceneGroup,
  SceneMessage,
  SceneNode,
} from "../src/scene/generated";

const DEFAULT_NODE: Omit<SceneNode, "id" | "label"> = {
  kind: "op",
  op: "",
  detail: "",
  group: "",
  role: "forward",
  state: "normal",
  error: "",
  clash: "",
  count: 1,
  repeat: 0,
  expandable: false,
  mirrors: "",
  stands_for: "",
  cell: "",
  together: "",
  lenses: {},
};

export function node(id: string, fields: Partial<SceneNode> = {}): SceneNode {
  return { ...DEFAULT_NODE, id, label: id.split("/").pop() ?? id, ...fields };
}

export function edge(source: string, target: string, label = "", fields: Partial<SceneEdge> = {}): SceneEdge {
  return {
    id: `${source}->${target}${fields.kind === "control" ? "^" : ""}`,
    source,
    target,
    kind: "data",
    label,
    count: 1,
    error: "",
    dims: [],
    clash: 0,
    reversed: false,
    loose: false,
    role: "forward",
    state: "normal",
    lenses: {},
    ...fields,
  };
}

export function group(id: string, fields: Partial<SceneGroup> = {}): SceneGroup {
  return { id, label: id.split("/").pop() ?? id, parent: "", count: 0, role: "forward", kind: "scope", ...fields };
}

export function scene(fields: Partial<Scene> = {}): Scene {
  return {
    title: "",
    nodes: [],
    edges: [],
    groups: [],
    lenses: [],
    numbers: [],
    colocations: [],
    revision: 1,
    total_nodes: fields.nodes?.length ?? 0,
    hidden_nodes: 0,
    mirror: false,
    summary: "",
    since: "with the last cell",
    ...fields,
  };
}

export function sceneMessage(shown: Scene, fields: Partial<SceneMessage> = {}): SceneMessage {
  return {
    type: "scene",
    scene: shown,
    focus: "",
    sent_at: 0,
    lens: "shapes",
    renderer: "graphviz",
    openings: { opened: [], closed: [], mode: "auto", mirror: false },
    look: null,
    ...fields,
  };
}

export function inspection(id: string, fields: Partial<Inspection> = {}): Inspection {
  return {
    id,
    name: id,
    op: "",
    kind: "op",
    node_def: "",
    summary: "",
    doc: "",
    traits: "",
    placement: [],
    signature: "",
    device: "",
    attrs: [],
    modules: [],
    quantization: [],
    origin: [],
    inputs: [],
    outputs: [],
    control_inputs: [],
    control_outputs: [],
    source: null,
    error: "",
    clashes: [],
    gradient: null,
    registered_gradient: null,
    functions: [],
    values: null,
    waits: false,
    chains: [],
    why: [],
    contents: [],
    times: [],
    numbers: [],
    recorded: [],
    ...fields,
  };
}

const cellTone: Readonly<Record<string, number>> = { "In [3]": 1, "In [4]": 2, "In [5]": 3, "In [6]": 4 };

const shapeTones = ["scalar", "vector", "matrix"];

function shapeMark(label: string): Record<string, LensMark> {
  const shape = /\[(.*)\]/.exec(label)?.[1];
  if (shape === undefined) return {};
  return { shapes: { text: label, tone: shape === "" ? 1 : 1 + shape.split(",").length } };
}

function marked(item: SceneNode): SceneNode {
  const given = edges.find((line) => line.source === item.id)?.label ?? "";
  const lenses: Record<string, LensMark> = {
    structure: { text: "computation", tone: 0 },
    ...shapeMark(given),
    devices: { text: item.kind === "variable" ? "/gpu:0" : "/cpu:0", tone: item.kind === "variable" ? 2 : 1 },
  };
  if (item.cell) lenses.cells = { text: item.cell, tone: cellTone[item.cell] ?? 0 };
  if (item.role === "gradient") lenses.gradients = { text: `∇ of ${item.mirrors}`, tone: 4 };
  return { ...item, lenses };
}

const forward: SceneNode[] = [
  node("x", { op: "Placeholder", kind: "placeholder", detail: "float [?,64]", cell: "In [3]" }),
  node("labels", { op: "Placeholder", kind: "placeholder", detail: "float [?,10]", cell: "In [3]" }),
  node("W", { op: "VariableV2", kind: "variable", detail: "float [64,10]", cell: "In [3]" }),
  node("b", { op: "VariableV2", kind: "variable", detail: "float [10]", cell: "In [3]" }),
  node("W/initial_value", {
    op: "Const",
    kind: "constant",
    detail: "[[0 0 0...]...]",
    cell: "In [3]",
    group: "W_scope",
  }),
  node("W/Assign", { op: "Assign", cell: "In [3]", group: "W_scope" }),
  node("W/read", { op: "Identity", cell: "In [3]" }),
  node("b/read", { op: "Identity", cell: "In [3]" }),
  node("model/MatMul", { op: "MatMul", group: "model", cell: "In [4]" }),
  node("model/add", { op: "AddV2", group: "model", cell: "In [4]" }),
  node("model/Softmax", { op: "Softmax", group: "model", cell: "In [4]" }),
  node("model/dropout", {
    kind: "scope",
    op: "",
    label: "dropout",
    group: "model",
    count: 12,
    expandable: true,
    cell: "In [4]",
  }),
  node("loss/Log", { op: "Log", group: "loss", cell: "In [4]" }),
  node("loss/mul", { op: "Mul", group: "loss", cell: "In [4]" }),
  node("loss/axis", { op: "Const", kind: "constant", detail: "[1]", group: "loss", cell: "In [4]" }),
  node("loss/Sum", { op: "Sum", group: "loss", cell: "In [4]" }),
  node("loss/Neg", { op: "Neg", group: "loss", cell: "In [4]" }),
  node("loss/Mean", { op: "Mean", group: "loss", cell: "In [4]" }),
];

const gradientOf = (id: string, op: string, mirrors: string, fields: Partial<SceneNode> = {}): SceneNode =>
  node(`gradients/${id}`, {
    op,
    role: "gradient",
    mirrors,
    cell: "In [5]",
    group: "gradients",
    state: "new",
    ...fields,
  });

const backward: SceneNode[] = [
  gradientOf("loss/Mean_grad/Fill", "Fill", "loss/Mean"),
  gradientOf("loss/Neg_grad/Neg", "Neg", "loss/Neg"),
  gradientOf("loss/Sum_grad/BroadcastTo", "BroadcastTo", "loss/Sum"),
  gradientOf("loss/mul_grad/Mul", "Mul", "loss/mul"),
  gradientOf("loss/Log_grad/Reciprocal", "Reciprocal", "loss/Log"),
  gradientOf("model/Softmax_grad/SoftmaxGrad", "SoftmaxGrad", "model/Softmax", {
    kind: "function",
    label: "SoftmaxGrad",
    count: 5,
    expandable: true,
  }),
  gradientOf("model/add_grad/Sum", "Sum", "model/add"),
  gradientOf("model/MatMul_grad/MatMul_1", "MatMul", "model/MatMul"),
  node("stub/x", { kind: "stub", label: "x", stands_for: "x", group: "gradients", role: "forward" }),
];

const update: SceneNode[] = [
  node("train/rate", { op: "Const", kind: "constant", detail: "0.5", group: "train", cell: "In [6]" }),
  node("train/mul", { op: "Mul", group: "train", cell: "In [6]" }),
  node("train/mul_1", { op: "Mul", group: "train", cell: "In [6]" }),
  node("train/AssignSub", { op: "AssignSub", group: "train", cell: "In [6]", state: "changed" }),
  node("train/AssignSub_1", {
    op: "AssignSub",
    group: "train",
    cell: "In [6]",
    state: "error",
    error: "AssignSub requires ref and value of one shape, got [10] and [12]",
  }),
  node("train/group", { op: "NoOp", kind: "control", group: "train", cell: "In [6]", state: "stale" }),
];

const back = { role: "gradient", reversed: true } as const;

const edges: SceneEdge[] = [
  edge("W", "W/read", "float [64,10]", { kind: "reference" }),
  edge("b", "b/read", "float [10]", { kind: "reference" }),
  edge("W", "W/Assign", "float [64,10]", { kind: "reference" }),
  edge("W/initial_value", "W/Assign", "float [64,10]"),
  edge("x", "model/MatMul", "float [?,64]"),
  edge("W/read", "model/MatMul", "float [64,10]"),
  edge("model/MatMul", "model/add", "float [?,10]"),
  edge("b/read", "model/add", "float [10]"),
  edge("model/add", "model/dropout", "float [?,10]", { count: 2 }),
  edge("model/dropout", "model/Softmax", "float [?,10]"),
  edge("model/Softmax", "loss/Log", "float [?,10]"),
  edge("loss/Log", "loss/mul", "float [?,10]"),
  edge("labels", "loss/mul", "float [?,10]"),
  edge("loss/mul", "loss/Sum", "float [?,10]"),
  edge("loss/axis", "loss/Sum", "int32 [1]"),
  edge("loss/Sum", "loss/Neg", "float [?]"),
  edge("loss/Neg", "loss/Mean", "float [?]"),
  edge("loss/Mean", "gradients/loss/Mean_grad/Fill", "float []", { role: "gradient" }),
  edge("gradients/loss/Mean_grad/Fill", "gradients/loss/Neg_grad/Neg", "float [?]", back),
  edge("gradients/loss/Neg_grad/Neg", "gradients/loss/Sum_grad/BroadcastTo", "float [?]", back),
  edge("gradients/loss/Sum_grad/BroadcastTo", "gradients/loss/mul_grad/Mul", "float [?,10]", back),
  edge("gradients/loss/mul_grad/Mul", "gradients/loss/Log_grad/Reciprocal", "float [?,10]", back),
  edge("loss/Log", "gradients/loss/Log_grad/Reciprocal", "float [?,10]", { role: "gradient" }),
  edge("gradients/loss/Log_grad/Reciprocal", "gradients/model/Softmax_grad/SoftmaxGrad", "float [?,10]", back),
  edge("gradients/model/Softmax_grad/SoftmaxGrad", "gradients/model/add_grad/Sum", "float [?,10]", back),
  edge("gradients/model/Softmax_grad/SoftmaxGrad", "gradients/model/MatMul_grad/MatMul_1", "float [?,10]", back),
  edge("stub/x", "gradients/model/MatMul_grad/MatMul_1", "float [?,64]"),
  edge("gradients/model/MatMul_grad/MatMul_1", "train/mul", "float [64,10]", { role: "gradient" }),
  edge("gradients/model/add_grad/Sum", "train/mul_1", "float [10]", { role: "gradient" }),
  edge("train/rate", "train/mul", "float []"),
  edge("train/rate", "train/mul_1", "float []"),
  edge("train/mul", "train/AssignSub", "float [64,10]"),
  edge("train/mul_1", "train/AssignSub_1", "float [12]", { error: "[12] does not fit [10]" }),
  edge("train/AssignSub", "train/group", "", { kind: "control" }),
  edge("train/AssignSub_1", "train/group", "", { kind: "control" }),
];

const groups: SceneGroup[] = [
  group("W_scope", { label: "W", count: 2 }),
  group("model", { count: 15 }),
  group("loss", { count: 6 }),
  group("gradients", { count: 9, role: "gradient" }),
  group("train", { count: 6 }),
];

export const SAMPLE = scene({
  title: "graph",
  summary: "33 boxes, gradients of loss",
  nodes: [...forward, ...backward, ...update].map(marked),
  edges: edges.map((line) => ({ ...line, lenses: shapeMark(line.label) })),
  groups,
  total_nodes: 48,
  hidden_nodes: 15,
  lenses: [
    { name: "structure", title: "Structure", note: "", legend: [] },
    { name: "shapes", title: "Shapes", note: "", legend: shapeTones.map((text, i) => ({ tone: i + 1, text })) },
    {
      name: "devices",
      title: "Devices",
      note: "",
      legend: [
        { tone: 1, text: "/cpu:0" },
        { tone: 2, text: "/gpu:0 (simulated)" },
      ],
    },
    { name: "gradients", title: "Gradients", note: "", legend: [{ tone: 4, text: "made by gradients()" }] },
    {
      name: "cells",
      title: "Cells",
      note: "",
      legend: Object.entries(cellTone).map(([text, tone]) => ({ tone, text })),
    },
  ],
});

const SOFTMAX_GRADIENT = `SoftmaxGrad[T:{half, bfloat16, float, double}](x:T, dy:T) -> (dx:T) {
  y = Softmax[T=$T](x)
  p = Mul[T=$T](dy, y:softmax)
  axis = Const[dtype=int32, value=[-1]]()
  s = Sum[T=$T, Tidx=int32, keep_dims=true](p, axis)
  d = Sub[T=$T](dy, s)
  dx = Mul[T=$T](d, y:softmax)
}`;

export const INSPECTIONS: Readonly<Record<string, Inspection>> = {
  ...Object.fromEntries(
    SAMPLE.nodes.map((item) => [
      item.id,
      inspection(item.id, {
        op: item.op,
        kind: item.kind,
        doc: "Multiplies the matrix a by the matrix b.",
        traits: "costs as much as a matrix product; cannot fail",
        signature: "MatMul[T:{float, double}, transpose_a:bool = false](a:T, b:T) -> (product:T)",
        device: "/device:CPU:0",
        attrs: [
          ["T", "float"],
          ["transpose_a", "false"],
          ["transpose_b", "false"],
        ],
        inputs: edges
          .filter((other) => other.target === item.id)
          .map((other, i) => ({
            name: "ab"[i] ?? "c",
            tensor: `${other.source}:0`,
            dtype: "float",
            shape: other.label.split(" ")[1] ?? "",
            node: other.source,
            error: other.error,
            note: "",
          })),
        outputs: edges
          .filter((other) => other.source === item.id)
          .map((other) => ({
            name: "product",
            tensor: `${item.id}:0`,
            dtype: "float",
            shape: other.label.split(" ")[1] ?? "",
            node: other.target,
            error: "",
            note: "",
          })),
        source: {
          cell: item.cell || "In [3]",
          line: 4,
          text: "y = softmax(gc.matmul(x, W) + b)",
          file: "",
          cell_id: "third",
        },
        node_def: `name: "${item.id}"\nop: "${item.op}"\ninput: "x"\nattr { key: "T" value { type: DT_FLOAT } }`,
      }),
    ]),
  ),
  "train/AssignSub_1": inspection("train/AssignSub_1", {
    op: "AssignSub",
    error: "AssignSub requires ref and value of one shape, got [10] and [12].",
    clashes: [
      {
        tensor: "b:0",
        shape: "[10]",
        source: {
          cell: "In [3]",
          line: 4,
          text: 'b = gc.Variable(gc.zeros([10]), name="b")',
          file: "",
          cell_id: "third",
        },
      },
      {
        tensor: "train/mul_1:0",
        shape: "[12]",
        source: {
          cell: "In [6]",
          line: 2,
          text: "train = gc.group(W.assign_sub(0.5 * gw), b.assign_sub(0.5 * gb))",
          file: "",
          cell_id: "third",
        },
      },
    ],
    source: {
      cell: "In [6]",
      line: 2,
      text: "train = gc.group(W.assign_sub(0.5 * gw), b.assign_sub(0.5 * gb))",
      file: "",
      cell_id: "third",
    },
  }),
  "gradients/model/Softmax_grad/SoftmaxGrad": inspection("gradients/model/Softmax_grad/SoftmaxGrad", {
    op: "SoftmaxGrad",
    kind: "function",
    doc: "The gradient of Softmax.",
    gradient: {
      differentiates: "model/Softmax",
      differentiates_id: "model/Softmax",
      function: "SoftmaxGrad",
      definition: SOFTMAX_GRADIENT,
      instantiated: SOFTMAX_GRADIENT.replaceAll("$T", "float"),
      body_node: "dx",
      built: "grad_x = Mul[T=float](n2, model/Softmax)",
    },
    contents: [
      ["Mul", 2],
      ["Sum", 1],
      ["Sub", 1],
      ["Const", 1],
    ],
  }),
};
