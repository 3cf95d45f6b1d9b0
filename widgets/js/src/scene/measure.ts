// Text widths and abbreviation of texts. Fonts are those of the style sheets.

import { shown } from "./shown";

export const FONT_FAMILY =
  'Inter, "Segoe UI", system-ui, -apple-system, "Helvetica Neue", "Liberation Sans", Arial, sans-serif';

export const FONTS = {
  title: `600 12px ${FONT_FAMILY}`,
  name: `400 11px ${FONT_FAMILY}`,
  detail: `400 10px ${FONT_FAMILY}`,
  label: `400 10px ${FONT_FAMILY}`,
  note: `600 10px ${FONT_FAMILY}`,
  group: `600 11px ${FONT_FAMILY}`,
} as const;

/** The scale at which the smallest font, of 10 pixels, has 9 pixels on the screen: the smallest legible size. */
export const LEGIBLE = 9 / 10;

export type FontName = keyof typeof FONTS;

const widths = new Map<string, number>();
let context: CanvasRenderingContext2D | null | undefined;

function canvasContext(): CanvasRenderingContext2D | null {
  if (context !== undefined) return context;
  context = typeof CanvasRenderingContext2D === "undefined" ? null : document.createElement("canvas").getContext("2d");
  return context;
}

/** The widths of Helvetica's letters from the space on, in thousandths of the font's size: regular, and bold. */
const HELVETICA = [
  "278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 556 556 556 278 278 584 584 584 556 " +
    "1015 667 667 722 722 667 611 778 722 278 500 667 556 833 722 778 667 778 722 667 611 722 667 944 667 667 611 278 278 278 469 556 " +
    "333 556 556 500 556 556 278 556 556 222 222 500 222 833 556 556 556 556 333 500 278 556 500 722 500 500 500 334 260 334 584",
  "278 333 474 556 556 889 722 238 333 333 389 584 278 333 278 278 556 556 556 556 556 556 556 556 556 556 333 333 584 584 584 611 " +
    "975 722 722 722 722 667 611 778 722 278 556 722 611 833 722 778 667 778 722 667 611 722 667 944 667 667 611 333 278 333 584 556 " +
    "333 556 611 556 611 556 333 611 611 278 278 556 278 889 611 611 611 611 389 556 333 611 556 778 556 556 500 389 280 389 584",
] as const;
let helvetica: readonly number[][] | undefined;
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;

/** The width of a text in Helvetica, for places without a canvas. */
function helveticaWidth(text: string, font: FontName): number {
  const [, weight = "", size = ""] = /^(\d+) (\d+)px/.exec(FONTS[font]) ?? [];
  helvetica ??= HELVETICA.map((row) => row.split(" ").map(Number));
  const widths = helvetica[weight === "600" ? 1 : 0] ?? [];
  let total = 0;
  for (const letter of text)
    total += widths[letter.charCodeAt(0) - 32] ?? (/\p{Mn}/u.test(letter) ? 0 : WIDE.test(letter) ? 1000 : 600);
  return (total * Number(size)) / 1000;
}

/** The width of one line of text, in pixels: as the page measures it, or in Helvetica. */
export function textWidth(text: string, font: FontName): number {
  const key = `${font}\n${text}`;
  const known = widths.get(key);
  if (known !== undefined) return known;
  const canvas = canvasContext();
  if (canvas) canvas.font = FONTS[font];
  const width = canvas ? canvas.measureText(text).width : helveticaWidth(text, font);
  if (widths.size > 20_000) widths.clear();
  widths.set(key, width);
  return width;
}

const SPACES = /[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/g;

/** The shown text as one line: runs of white space are single spaces. */
export function oneLine(text: string): string {
  return shown(text.replace(SPACES, " ").replace(/^ | $/g, ""));
}

/** Shortens a text to `limit` pixels. "…" replaces its end, or with `middle` its middle. */
export function ellipsize(text: string, font: FontName, limit: number, middle = false): string {
  const line = oneLine(text.length > 2000 ? text.slice(0, 2000).replace(/[\ud800-\udbff]$/, "") : text);
  if (textWidth(line, font) <= limit) return line;
  const letters = [...line];
  const shortened = (kept: number): string => {
    const head = middle ? Math.ceil(kept / 2) : kept;
    return `${letters.slice(0, head).join("")}…${letters.slice(letters.length - (kept - head)).join("")}`;
  };
  let low = 1;
  let high = letters.length - 1;
  while (low < high) {
    const half = Math.ceil((low + high) / 2);
    if (textWidth(shortened(half), font) <= limit) low = half;
    else high = half - 1;
  }
  return shortened(low);
}
