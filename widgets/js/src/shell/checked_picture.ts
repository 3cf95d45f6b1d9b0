// Checks of saved pictures in notebooks, which may come from strangers.

import {
  among,
  type Check,
  either,
  flag,
  list,
  nodeKind,
  number,
  object,
  sinceLater,
  table,
  text,
  tuple,
} from "../scene/checks";
import type {
  Camera,
  Colocation,
  Dim,
  LegendEntry,
  Lens,
  LensMark,
  LensNumbers,
  Look,
  Openings,
  Scene,
  SceneEdge,
  SceneGroup,
  SceneMessage,
  SceneNode,
} from "../scene/generated";
import type { BothStates, PictureData } from "./local_host";
import type { SavedPicture } from "./saved_picture";

/** The most boxes, edges or frames of one picture. */
const MOST = 20_000;
/** The most frames within each other. */
const MOST_DEPTH = 200;

const few = (each: Check): Check => list(each, MOST);
const role = among("forward", "gradient");
const state = among("changed", "error", "new", "normal", "removed", "stale");
const lenses = table(object<LensMark>({ text, tone: number }));
const node = object<SceneNode>({
  id: text,
  label: text,
  kind: nodeKind,
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
  dims: few(object<Dim>({ text, key: text })),
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
  nodes: few(node),
  edges: few(edge),
  groups: few(
    object<SceneGroup>({
      id: text,
      label: text,
      parent: text,
      count: number,
      role,
      kind: among("function", "scope"),
    }),
  ),
  lenses: few(
    object<Lens>({
      name: text,
      title: text,
      legend: few(object<LegendEntry>({ tone: number, text })),
      note: text,
    }),
  ),
  numbers: sinceLater(few(object<LensNumbers>({ lens: text, unit: text, values: table(number) }))),
  colocations: few(object<Colocation>({ nodes: few(text), text, reasons: few(text) })),
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
  focus: text,
  sent_at: number,
  lens: text,
  renderer: among("graphviz", "mermaid"),
  openings: object<Openings>({
    opened: few(text),
    closed: few(text),
    mode: among("all", "auto", "none"),
    mirror: flag,
  }),
  look: either(
    among(null),
    object<Look>({
      camera: either(among(null), object<Camera>({ x: number, y: number, scale: number })),
      selection: few(text),
    }),
  ),
});
const maybeText = either(among(undefined), text);
const none = among(undefined);
const both = (each: Check): Check => tuple(each, each);
const stateOfDifference = object<PictureData>({
  message,
  graph_gzip_base64: maybeText,
  language: none,
  timelines: none,
  steps: none,
  states: none,
});
const states = object<BothStates>({
  titles: both(text),
  words: text,
  pictures: both(stateOfDifference),
  twins: both(table(text)),
});
const picture = object<SavedPicture>({
  message,
  model: maybeText,
  graph_gzip_base64: maybeText,
  language: maybeText,
  timelines: none,
  steps: none,
  states: either(among(undefined, null), states),
});

/** True iff no frame is within itself or within too many others. */
function nestsShallowly({ groups }: Scene): boolean {
  const parents = new Map(groups.map(({ id, parent }) => [id, parent]));
  return groups.every(({ id }) => {
    let around: string | undefined = id;
    for (let depth = 0; around !== undefined && depth <= MOST_DEPTH; depth++) around = parents.get(around);
    return around === undefined;
  });
}

/** The saved picture, with nothing else beside it; null if it is none of ours. */
export function checkedPicture(value: unknown): SavedPicture | null {
  if (!picture(value)) return null;
  const { message, model = "", graph_gzip_base64, language, states } = value as SavedPicture;
  const scenes = [message.scene, ...(states?.pictures ?? []).map((state) => state.message.scene)];
  if (!scenes.every(nestsShallowly)) return null;
  return {
    message,
    model,
    ...(graph_gzip_base64 && { graph_gzip_base64 }),
    ...(language && { language }),
    ...(states && { states }),
  };
}
