// Checks of saved pictures in notebooks, which may come from strangers.
import type {
  Camera,
  Colocation,
  Dim,
  LegendEntry,
  Lens,
  LensMark,
  Look,
  Openings,
  Scene,
  SceneEdge,
  SceneGroup,
  SceneMessage,
  SceneNode,
} from "../scene/generated";
import type { SavedPicture } from "./saved_picture";

type Check = (value: unknown) => boolean;
type Fields<T> = Readonly<Record<keyof T, Check>>;

/** The most boxes, edges or frames of one picture. */
const MOST = 20_000;

const text: Check = (value) => typeof value === "string";
const flag: Check = (value) => typeof value === "boolean";
const number: Check = (value) => typeof value === "number" && Number.isFinite(value);
const among =
  (...values: readonly unknown[]): Check =>
  (value) =>
    values.includes(value);
const list =
  (each: Check): Check =>
  (value) =>
    Array.isArray(value) && value.length <= MOST && value.every(each);
const either =
  (...checks: readonly Check[]): Check =>
  (value) =>
    checks.some((check) => check(value));
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const table =
  (each: Check): Check =>
  (value) =>
    isObject(value) && Object.values(value).every(each);
function object<T>(fields: Fields<T>): Check {
  const checks = Object.entries<Check>(fields);
  return (value) => isObject(value) && checks.every(([name, check]) => check(value[name]));
}

const role = among("forward", "gradient");
const state = among("changed", "error", "new", "normal", "removed", "stale");
const lenses = table(object<LensMark>({ text, tone: number }));
const node = object<SceneNode>({
  id: text,
  label: text,
  kind: among("constant", "control", "function", "op", "placeholder", "return", "scope", "stub", "variable"),
  op: text,
  detail: text,
  group: text,
  role,
  state,
  error: text,
  clash: text,
  count: number,
  repeat: number,
  expandable: flag,
  mirrors: text,
  stands_for: text,
  cell: text,
  together: text,
  lenses,
});
const edge = object<SceneEdge>({
  id: text,
  source: text,
  target: text,
  kind: among("control", "data", "reference"),
  label: text,
  count: number,
  dims: list(object<Dim>({ text, key: text })),
  error: text,
  clash: number,
  reversed: flag,
  loose: flag,
  role,
  state,
  lenses,
});
const scene = object<Scene>({
  title: text,
  nodes: list(node),
  edges: list(edge),
  groups: list(
    object<SceneGroup>({
      id: text,
      label: text,
      parent: text,
      count: number,
      role,
      kind: among("function", "scope"),
    }),
  ),
  lenses: list(
    object<Lens>({
      name: text,
      title: text,
      legend: list(object<LegendEntry>({ tone: number, text })),
      note: text,
    }),
  ),
  colocations: list(object<Colocation>({ nodes: list(text), text, reasons: list(text) })),
  revision: number,
  total_nodes: number,
  hidden_nodes: number,
  summary: text,
  mirror: flag,
  since: text,
});
const message = object<SceneMessage>({
  type: among("scene"),
  scene,
  mermaid: text,
  focus: text,
  sent_at: number,
  lens: text,
  renderer: among("graphviz", "mermaid"),
  openings: object<Openings>({
    opened: list(text),
    closed: list(text),
    mode: among("all", "auto", "none"),
    mirror: flag,
  }),
  look: either(
    among(null),
    object<Look>({
      camera: either(among(null), object<Camera>({ x: number, y: number, scale: number })),
      selection: list(text),
    }),
  ),
});
const maybeText = either(among(undefined), text);
const none = among(undefined);
const picture = object<SavedPicture>({
  message,
  model: maybeText,
  graph_gzip_base64: maybeText,
  timelines: none,
  steps: none,
});

/** The saved picture, with nothing else beside it; null if it is none of ours. */
export function checkedPicture(value: unknown): SavedPicture | null {
  if (!picture(value)) return null;
  const { message, model = "", graph_gzip_base64 } = value as SavedPicture;
  return { message, model, ...(graph_gzip_base64 && { graph_gzip_base64 }) };
}
