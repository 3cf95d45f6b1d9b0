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

/** The width of one line of text, in pixels. Without a canvas it is estimated. */
export function textWidth(text: string, font: FontName): number {
  const key = `${font}\n${text}`;
  const known = widths.get(key);
  if (known !== undefined) return known;
  const canvas = canvasContext();
  if (canvas) canvas.font = FONTS[font];
  const width = canvas ? canvas.measureText(text).width : [...text].length * (font === "title" ? 7 : 6);
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
