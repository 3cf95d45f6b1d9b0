// Still pictures and files of scenes, for the V8 of a kernel beside Graphviz.
import type { Notes } from "../page/data";
import { toDot } from "../page/dot_text";
import type { GraphPage } from "../page/graph_page";
import { LivePage, type Told } from "../page/live_page";
import { toMermaid } from "../page/mermaid_text";
import { getOrMake } from "../page/order";
import { cutLongEdges } from "../page/stubs";
import { fittingScale } from "../scene/fold";
import type { ChangeMessage, FromViewer, GraphChange, Scene } from "../scene/generated";
import { Layouts } from "../scene/layouts";
import type { Geometry, Size } from "../scene/places";
import { speak } from "../scene/words";
import { boxesOf, compiled, first, mainsOf, nothingOf, sceneOf, type Wish } from "./compiler";
import { toSvg } from "./svg";

/** Larger scenes are not laid out: it would not end in time. */
const MOST_BOXES = 1500;
/** The scale from which on a picture is taken as it is, a little too large: folding does the same. */
const ENOUGH = 0.95;
/** The latest layouts that are kept: a run changes the values in a picture, and not where its boxes are. */
const MOST_KNOWN = 16;

interface Drawing {
  /** The size that a picture should have at most; null for data that flows down, unfolded. */
  readonly page: Size | null;
  readonly lens: string;
  readonly adapts: boolean;
  /** With shortcuts: straight lines without labels. */
  readonly fast: boolean;
  /** The language of words, "" for English. */
  readonly language: string;
}

interface Placed {
  readonly scene: Scene;
  readonly places: Geometry;
}

const graphviz = (
  globalThis as unknown as { graphloupeGraphviz: { layout(dot: string, format: string): Promise<string> } }
).graphloupeGraphviz;
const known = new Map<string, string>();

async function layout(dot: string): Promise<string> {
  const answer = known.get(dot) ?? (await graphviz.layout(dot, "dot"));
  known.delete(dot);
  known.set(dot, answer); // the latest is last
  for (const old of known.keys()) if (known.size > MOST_KNOWN) known.delete(old);
  return answer;
}

const layouter = { layout, cancel: () => undefined, warmUp: async () => undefined };

async function lay(scene: Scene, { page, fast }: Drawing, labels = true): Promise<Placed> {
  const nodes = scene.nodes.map((node) => ({ ...node, expandable: false })); // nothing opens, and no box has a +
  const shown = { ...scene, nodes };
  return { scene: shown, places: await new Layouts(layouter, () => undefined, fast).place(shown, page, labels) };
}

/**
 * The picture that fits into the page at its natural size, and the first one unless it is the same. If none fits, the former is the last one
 * without labels of edges. None of too many boxes is among them.
 */
async function fitting(scenes: readonly Scene[], drawing: Drawing): Promise<readonly Placed[]> {
  const [first, ...others] = scenes.filter(({ nodes }) => nodes.length <= MOST_BOXES);
  if (!first) return [];
  const whole = await lay(first, drawing);
  const { page } = drawing;
  if (!page) return [whole];
  let found = whole;
  for (const other of others) {
    if (fittingScale(found.places, page) >= ENOUGH) break;
    found = await lay(other, drawing);
  }
  if (found.places.width > page.width / ENOUGH) found = await lay(found.scene, drawing, false);
  return found === whole ? [whole] : [found, whole];
}

/** The pictures of a scene, or of one of its summaries, as SVG texts: the one to show, and the whole one if that is another. */
async function pictures(text: string, options: string): Promise<string> {
  const drawing = JSON.parse(options) as Drawing;
  speak(drawing.language);
  const found = await fitting(JSON.parse(text) as readonly Scene[], drawing);
  return JSON.stringify(found.map(({ scene, places }) => toSvg(scene, places, drawing)));
}

/** The pictures of graphs that live in the kernel, by key. */
const pages = new Map<string, LivePage>();

const pageOf = (key: string): LivePage => getOrMake(pages, key, () => new LivePage());

/** A scene in which stubs stand for far producers. */
function withoutLongEdges(scene: Scene): Scene {
  const [nodes, edges] = cutLongEdges([...scene.nodes], [...scene.edges], false);
  return { ...scene, nodes, edges };
}

/** The answers about a picture, by their names in requests. */
const ASKED = { scene: sceneOf, boxes: boxesOf, mains: mainsOf, openings: nothingOf } as const;
type Ask = (page: GraphPage) => unknown;

(globalThis as { graphloupeStills?: unknown }).graphloupeStills = {
  change: (key: string, change: string, message: string) =>
    JSON.stringify(pageOf(key).change(JSON.parse(change) as GraphChange, JSON.parse(message) as ChangeMessage)),
  ask: (key: string, request: string) => JSON.stringify(pageOf(key).answer(JSON.parse(request) as FromViewer)),
  place: (key: string, told: string) => JSON.stringify(pageOf(key).place(JSON.parse(told) as Told)),
  compile: (what: keyof typeof ASKED, key: string, changes: string, wish: string) =>
    JSON.stringify(compiled(key, JSON.parse(changes) as GraphChange[], JSON.parse(wish) as Wish, ASKED[what] as Ask)),
  first: (data: string, notes: string, wish: string) =>
    JSON.stringify(first(data, JSON.parse(notes) as Notes, JSON.parse(wish) as Wish)),
  cut: (text: string) => JSON.stringify(withoutLongEdges(JSON.parse(text) as Scene)),
  forget: (key: string) => String(pages.delete(key)),
  pictures,
  dot: (text: string) => toDot(JSON.parse(text) as Scene),
  graphviz: (dot: string) => graphviz.layout(dot, "svg"),
  mermaid: (text: string) => toMermaid(JSON.parse(text) as Scene),
};
