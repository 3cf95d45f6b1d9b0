// The legend of the lens: colours and patterns with their meanings.
import { h, s } from "../dom";
import type { Lens, Scene, SceneNode } from "../scene/generated";
import { DEVICES_LENS } from "../scene/hulls";
import { detailPath, outlinePath } from "../scene/shapes";
import { word } from "../scene/words";
import { badge } from "./badge";

/** One pattern for each tone, so that tones differ even without colour. */
const PATTERNS = [
  "",
  "M-1,1l2,-2M0,6l6,-6M5,7l2,-2",
  "M0,3H6",
  "M1.5,3a1.2,1.2 0 1 0 2.4,0a1.2,1.2 0 1 0 -2.4,0",
  "M3,0V6",
  "M-1,5l2,2M0,0l6,6M5,-1l2,2",
  "M0,3H6M3,0V6",
  "M0,0l6,6M0,6l6,-6",
];

/** SVG definitions `<prefix>-0` to `<prefix>-7`: the tone's colour with its pattern. */
export function patternDefs(prefix: string): SVGDefsElement {
  const patterns = PATTERNS.map((d, tone) =>
    s(
      "pattern",
      { id: `${prefix}-${tone}`, width: 6, height: 6, patternUnits: "userSpaceOnUse" },
      s("rect", { class: `gl-tone-fill gl-tone-${tone}`, width: 6, height: 6 }),
      d ? s("path", { class: `gl-tone-line gl-tone-${tone}`, d }) : null,
    ),
  );
  return s("defs", {}, ...patterns);
}

/** The lens without marks: kinds and roles are shown by shape and colour. */
export const PLAIN_LENS = "structure";

const KINDS: readonly (readonly [SceneNode["kind"], string])[] = [
  ["op", "computation"],
  ["placeholder", "input"],
  ["return", "what a function returns"],
  ["constant", "constant"],
  ["variable", "variable"],
  ["control", "control flow"],
  ["scope", "closed scope"],
  ["function", "function call"],
  ["stub", "stands for a box far away"],
];

function swatch(...drawing: SVGElement[]): SVGSVGElement {
  return s("svg", { class: "gl-swatch", viewBox: "-1 -1 26 16", "aria-hidden": "true" }, ...drawing);
}

function boxSwatch(kind: SceneNode["kind"], role: string): SVGSVGElement {
  const shape = s("path", { class: "gl-shape", d: outlinePath(kind, 24, 14) });
  const detail = s("path", { class: "gl-shape-detail", d: detailPath(kind, 24, 14) });
  return swatch(s("g", { class: `gl-node gl-${kind} gl-role-${role}` }, shape, detail));
}

function repeatSwatch(): SVGSVGElement {
  const shape = s("path", { class: "gl-shape", d: outlinePath("scope", 24, 14, true) });
  const detail = s("path", { class: "gl-shape-detail", d: detailPath("scope", 24, 14, true) });
  return swatch(s("g", { class: "gl-node gl-scope gl-role-forward" }, shape, detail));
}

function lineSwatch(kind: string): SVGSVGElement {
  const line = s("path", { class: "gl-line", d: "M0,7H24" });
  const core = s("path", { class: kind === "reference" ? "gl-line-core" : "", d: "M0,7H24", fill: "none" });
  return swatch(s("g", { class: `gl-${kind}` }, line, core));
}

/** The meanings of the shapes and lines that occur in this scene. */
function plainRows({ nodes, edges }: Scene): HTMLElement[] {
  const row = (sign: SVGSVGElement, text: string): HTMLElement => h("li", {}, sign, h("span", {}, word(text)));
  const kinds = new Set(nodes.map((node) => node.kind));
  const rows = KINDS.filter(([kind]) => kinds.has(kind)).map(([kind, text]) => row(boxSwatch(kind, "forward"), text));
  if (nodes.some((node) => node.repeat)) rows.push(row(repeatSwatch(), "×n: a structure that occurs n times"));
  if (nodes.some((node) => node.role === "gradient")) rows.push(row(boxSwatch("op", "gradient"), "∇ gradient"));
  if (edges.some((edge) => edge.kind === "control")) rows.push(row(lineSwatch("control"), "runs before"));
  if (edges.some((edge) => edge.kind === "reference"))
    rows.push(row(lineSwatch("reference"), "reference to a variable"));
  return rows;
}

const STATES: readonly (readonly [SceneNode["state"], string])[] = [
  ["new", "new"],
  ["removed", "removed"],
  ["changed", "changed"],
  ["error", "has an error"],
  ["stale", "left by a cell that failed"],
];

/** The meanings of the badges that occur in this scene. */
function badgeRows({ nodes, since }: Scene): HTMLElement[] {
  const states = new Set(nodes.map(({ state }) => state));
  return STATES.filter(([state]) => states.has(state)).map(([state, text]) => {
    const sign = s("g", { class: `gl-node gl-state-${state}` }, badge(state, 12, 7));
    return h(
      "li",
      {},
      swatch(sign),
      h("span", {}, word(state === "error" || state === "stale" || !since ? text : `${text} ${since}`)),
    );
  });
}

/** The lenses with classes of the viewer's own; the classes of others are data. */
const OWN_CLASSES: ReadonlySet<string> = new Set(["shapes", "gradients", "time", "values"]);

function lensRows(lens: Lens, prefix: string): HTMLElement[] {
  return lens.legend.map(({ tone, text }) => {
    const fill = tone & 7 ? `url(#${prefix}-${tone & 7})` : "none";
    const box = s("rect", { width: 24, height: 14, rx: 3, fill, class: `gl-tone-edge gl-tone-${tone & 7}` });
    return h("li", {}, swatch(box), h("span", {}, OWN_CLASSES.has(lens.name) ? word(text) : text));
  });
}

/** The meanings of further signs and words of the devices lens in this scene. */
function deviceRows({ nodes, edges, colocations }: Scene): HTMLElement[] {
  const texts = nodes.map(({ lenses }) => lenses.devices?.text ?? "");
  const sign = (fields: Record<string, string | number>): SVGSVGElement =>
    swatch(s("rect", { x: 1, y: 1, width: 22, height: 12, rx: 6, ...fields }));
  const rows: [boolean, SVGSVGElement | null, string][] = [
    [texts.some((text) => text.startsWith("requested ")), null, "requested …: not placed yet"],
    [texts.some((text) => text.includes(" (requested ")), null, "(requested …): placed elsewhere than requested"],
    [
      edges.some(({ lenses }) => lenses.devices),
      sign({ class: "gl-tone-6 gl-copy" }),
      "bytes copied to another device",
    ],
    [colocations.length > 0, sign({ class: "gl-hull-edge" }), "together: must be on one device"],
  ];
  return rows.flatMap(([occurs, drawn, text]) => (occurs ? [h("li", {}, drawn, h("span", {}, word(text)))] : []));
}

/** The legend of a scene under a lens. Calls `folded` when the user folds or unfolds it. */
export function legendElement(
  scene: Scene,
  lens: Lens | undefined,
  prefix: string,
  open: boolean,
  toggled: (open: boolean) => void,
): HTMLDetailsElement {
  const note = lens?.note ? [h("li", { class: "gl-legend-note" }, word(lens.note))] : [];
  const own = lens && lens.name !== PLAIN_LENS ? lensRows(lens, prefix) : plainRows(scene);
  const further = lens?.name === DEVICES_LENS ? deviceRows(scene) : [];
  const rows = [...note, ...own, ...further, ...badgeRows(scene)];
  const legend = h(
    "details",
    { class: "gl-legend", open, hidden: rows.length === 0 },
    h("summary", {}, word("Legend")),
    h("ul", {}, ...rows),
  );
  legend.addEventListener("toggle", () => toggled(legend.open));
  return legend;
}
