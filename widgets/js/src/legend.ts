// What the colours and patterns of the lens mean, and the patterns themselves.
import { h, s } from "./dom";
import type { Lens } from "./generated";

/** One pattern for each tone, so that tones differ without colour: lines in four directions, grids, dots, none. */
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

/** The legend of a lens; empty when the lens explains nothing. */
export function legendElement(lens: Lens | undefined, prefix: string): HTMLElement {
  const rows = (lens?.legend ?? []).map(({ tone, text }) =>
    h(
      "li",
      {},
      s(
        "svg",
        { class: "gl-swatch", viewBox: "0 0 22 12", "aria-hidden": "true" },
        s("rect", {
          x: 0.5,
          y: 0.5,
          width: 21,
          height: 11,
          rx: 3,
          fill: `url(#${prefix}-${tone & 7})`,
          class: `gl-tone-edge gl-tone-${tone & 7}`,
        }),
      ),
      h("span", {}, text),
    ),
  );
  const legend = h("div", { class: "gl-legend", hidden: rows.length === 0 });
  if (lens && rows.length > 0) legend.append(h("ul", { "aria-label": `Legend: ${lens.title}` }, ...rows));
  return legend;
}
