// Checks of the tables of a page's data: each record has its fields, each number points to a record.
import {
  type Check,
  either,
  flag,
  list,
  number,
  object,
  sinceLater,
  table,
  text,
  tuple,
  within,
} from "../scene/checks";
import type {
  BodyRecord,
  CallRecord,
  Clash,
  DifferenceRecord,
  ErrorRecord,
  ForeignTensor,
  FunctionInfo,
  GapRecord,
  GradientMagnitude,
  GradientRow,
  GradientText,
  HealthRow,
  OpText,
  Overlay,
  OwnClasses,
  PageHead,
  RefusedRecord,
  RunHealth,
  RunTimes,
  RunValues,
  SourceRow,
  SpaceHead,
  StepTimeline,
  TensorInfo,
  TimelineLane,
  TimelineMemory,
  TimelineSpans,
  ValueRow,
  Values,
  Why,
  WhyStep,
} from "../scene/generated";

/** The most boxes of a picture. */
const MOST_BOXES = 20_000;
const SLOT = within(0, 2 ** 31);

const none: Check = (value) => value === null;
const maybe = (check: Check): Check => either(none, check);
const texts = list(text);
const numbers = list(number);

const source = object<SourceRow>({ cell: text, line: number, text, file: text, cell_id: text });
const info = object<TensorInfo>({ dtype: text, sizes: maybe(texts), reference: flag, bytes: maybe(number) });
const why = object<Why>({
  what: text,
  size: text,
  key: text,
  steps: list(object<WhyStep>({ text, node: text, name: text, depth: number, source: maybe(source) })),
});
const lines = list(tuple(text, text));
const row = object<HealthRow>({ node: text, text });
const times = object<RunTimes>({
  clock: text,
  length: number,
  whole: number,
  devices: texts,
  prefixes: texts,
  places: numbers,
  names: texts,
  runs: numbers,
  own: numbers,
  total: numbers,
  lasting: numbers,
  shortest: numbers,
  longest: numbers,
  sizes: numbers,
  threads: numbers,
  on: list(numbers),
});
const overlay = object<Overlay>({
  name: text,
  title: text,
  unit: text,
  combine: text,
  scale: text,
  bounds: numbers,
  prefixes: texts,
  places: numbers,
  names: texts,
  values: numbers,
});
const details = object<Values>({
  note: text,
  dtype: text,
  shape: text,
  statistics: lines,
  bins: list(maybe(number)),
  rows: list(object<ValueRow>({ index: text, cells: texts })),
  first: number,
  total: number,
  page: number,
  picture: list(list(maybe(number))),
  pictures: number,
});
const values = object<RunValues>({
  health: object<RunHealth>({
    summary: text,
    first: maybe(row),
    inputs: list(row),
    bad: list(row),
    zeros: list(row),
    more_bad: number,
    more_zeros: number,
    magnitudes: list(
      object<GradientMagnitude>({ node: text, depth: number, text, level: maybe(number), bad: flag, weight: flag }),
    ),
  }),
  prefixes: texts,
  places: numbers,
  names: texts,
  classes: numbers,
  words: texts,
  rows: list(lines),
  details: table(details),
});
const memory = { lanes: numbers, labels: numbers, starts: numbers, lasting: numbers, sizes: numbers };
const timeline = object<StepTimeline>({
  title: text,
  clock: text,
  notes: texts,
  length: number,
  lanes: list(object<TimelineLane>({ name: text, text, link: flag, busy: number, peak: number })),
  labels: texts,
  nodes: texts,
  spans: object<TimelineSpans>({ ...memory, iterations: numbers }),
  memory: object<TimelineMemory>(memory),
});

/** The fields of the head but for its graphs. */
export function headFields(infos: number): Readonly<Record<Exclude<keyof PageHead, "spaces">, Check>> {
  return {
    infos: list(info),
    signatures: list(list(within(0, infos))),
    gradients: list(object<GradientText>({ function: text, definition: text, instantiated: text })),
    ops: table(
      object<OpText>({
        doc: text,
        traits: text,
        signature: text,
        layer: text,
        memory: text,
        elementwise: flag,
        needs_only_shapes: flag,
        label: sinceLater(text),
      }),
    ),
    slots: list(tuple(texts, texts)),
    own_lenses: list(tuple(text, text)),
    max_boxes: within(0, MOST_BOXES),
    auto_boxes: within(0, MOST_BOXES),
    times: maybe(times),
    overlays: sinceLater(list(overlay)),
    device_words: sinceLater(text),
    timelines: list(timeline),
    values: maybe(values),
  };
}

export const sourceRows = list(source);

/** The fields of the head of a graph of `size` nodes, in data of `spaces` graphs and `words` texts. */
export function spaceFields(
  size: number,
  spaces: number,
  words: number,
  gradients: number,
): Readonly<Record<keyof SpaceHead, Check>> {
  const node = within(0, size);
  const nodeOrNone = within(-1, size);
  const error = object<ErrorRecord>({
    text,
    inputs: table(text),
    has_error: flag,
    circle: nodeOrNone,
    chains: list(tuple(lines, lines)),
    clashes: list(object<Clash>({ tensor: text, shape: text, source: maybe(source) })),
    explained: list(why),
  });
  const call = object<CallRecord>({
    node,
    refusal: text,
    failure: text,
    hub: flag,
    loop: flag,
    choice: flag,
    called: text,
    bodies: list(object<BodyRecord>({ space: within(1, spaces), label: text, scope_label: text })),
    invariant: texts,
    functions: list(
      object<FunctionInfo>({
        place: number,
        label: text,
        name: text,
        attrs: text,
        definition: text,
        instantiated: text,
        derived: flag,
        note: text,
        opens: flag,
      }),
    ),
  });
  return {
    paths: texts,
    calls: list(call),
    foreign: list(object<ForeignTensor>({ name: text, slot: number, info, dims: maybe(numbers) })),
    errors: table(error),
    gradients: list(
      object<GradientRow>({ node, forward: text, function: maybe(text), info: within(-1, gradients), body_node: text }),
    ),
    gradient_count: number,
    origins: list(node),
    gaps: list(object<GapRecord>({ node, cuts: list(tuple(nodeOrNone, nodeOrNone, text)) })),
    refused: list(object<RefusedRecord>({ name: text, text, inputs: list(tuple(node, SLOT)) })),
    why: table(list(why)),
    user_names: table(text),
    colocations: list(tuple(list(node), texts)),
    own_classes: list(object<OwnClasses>({ classes: list(within(0, words)), failure: text })),
    arguments: list(node),
    returns: list(node),
    control_returns: list(node),
    difference: maybe(
      object<DifferenceRecord>({
        nodes: table(tuple(text, text)),
        new_inputs: list(tuple(node, number, nodeOrNone)),
        old_edges: list(tuple(node, number, node, number)),
        scopes: table(text),
        summary: text,
      }),
    ),
    saver_nodes: list(node),
    saved_signatures: list(tuple(text, list(node))),
    classes: sinceLater(table(text)),
  };
}
