// Tags: the text of a lens at a box or line, where it covers no label and no other box.

import { s } from "../dom";
import type { LensMark } from "../scene/generated";
import { ellipsize, oneLine, textWidth } from "../scene/measure";
import type { Point, Rect, Size } from "../scene/places";
import type { Obstacles } from "./obstacles";

/** The width in pixels that the text of a tag may always have, even over a narrow box. */
const TAG_LIMIT = 60;
const MOST_ROWS = 3;
const ROW_HEIGHT = 13;
const LINE_TAG_HEIGHT = 14;
/** The upper edge of a tag, in pixels below that of its box. */
const TOP = -9;
/** The distance in pixels of a tag from what is at the left of its box. */
const GAP = 4;

/** One row of a tag. */
interface Row extends Rect {
  readonly text: string;
}

/** The rows of a tag that is too long for one: instances of a repeat, or classes with the number of their nodes first. */
function rowsOf(text: string): readonly string[] {
  const rows = text.includes("; ")
    ? text.split("; ")
    : text.split(/(?<= × [\d,]+), /).map((row) => row.replace(/^(.*) × ([\d,]+)$/, "$2 × $1"));
  return rows.length > MOST_ROWS ? [...rows.slice(0, MOST_ROWS - 1), "and more"] : rows;
}

/** A text of at most `limit` pixels: the first of its parts between commas if they fit, or else its beginning. */
function fitted(text: string, limit: number): string {
  const parts = text.split(", ");
  let shown = text;
  while (parts.length > 1 && textWidth(shown, "label") > limit) {
    parts.pop();
    shown = `${parts.join(", ")} …`;
  }
  return ellipsize(shown, "label", limit);
}

/**
 * The rows of a tag within a box, the first one over its upper edge or `below` rows further down, the others at its lower edge. The tag of a
 * narrow box stands out at its left, where no badge is, or at its right.
 */
function placed(
  texts: readonly string[],
  limit: number,
  { width: boxWidth, height }: Size,
  below = 0,
  atRight = false,
): Row[] {
  return texts.flatMap((whole, i) => {
    const text = fitted(whole, limit);
    if (!text) return [];
    const width = textWidth(text, "label") + 10;
    const row = i + below;
    const x = atRight ? 6 : Math.min(6, boxWidth - 14 - width);
    return [{ text, x, y: row > 0 ? height - 4 + ROW_HEIGHT * (row - 1) : TOP, width, height: ROW_HEIGHT }];
  });
}

/**
 * A small tag over the upper edge of the box of `owner`, in coordinates of the box, with the lens's text for it; further rows are at the lower
 * edge. Where it would cover an obstacle it has one row, is shorter, at the lower edge or below it, or not there: the box has the colour of its
 * class. The tag becomes an obstacle.
 */
export function boxTag({ text }: LensMark, box: Rect, owner: string, obstacles: Obstacles): SVGElement[] {
  const least = Math.max(box.width - 30, TAG_LIMIT);
  const width = textWidth(text, "label");
  const atLeft = { x: box.x, y: box.y + TOP, width: 0, height: ROW_HEIGHT };
  const most =
    width > least ? Math.max(least, box.width - 24 + Math.max(0, obstacles.spaceAtLeft(atLeft) - GAP)) : least;
  const inPicture = (row: Row): Rect => ({ ...row, x: box.x + row.x, y: box.y + row.y });
  const choices = [
    placed(width > most ? rowsOf(text) : [text], most, box),
    placed([text], most, box),
    ...[0, 1, 2].flatMap((row) => [placed([text], least, box, row), placed([text], least, box, row, true)]),
  ];
  const rows = choices.find((choice) => !choice.some((row) => obstacles.meets(inPicture(row), owner))) ?? [];
  for (const row of rows) obstacles.add(inPicture(row));
  return rows.flatMap(({ text: shown, x, y, width, height }) => [
    s("rect", { x, y, width, height, rx: height / 2 }),
    s("text", { x: x + width / 2, y: y + 10 }, shown),
  ]);
}

/** A small tag on a line, at the first of some places where it covers no obstacle, and becomes one; none if there is no such place. */
export function lineTag(mark: LensMark, places: readonly Point[], owner: string, obstacles: Obstacles): SVGElement[] {
  const text = oneLine(mark.text);
  const [width, height] = [textWidth(text, "label") + 10, LINE_TAG_HEIGHT];
  const rects = places.map(({ x, y }) => ({ x: x - width / 2, y: y - height / 2, width, height }));
  const free = rects.find((rect) => !obstacles.meets(rect, owner));
  if (!free) return [];
  obstacles.add(free);
  return [s("rect", { ...free, rx: height / 2 }), s("text", { x: free.x + width / 2, y: free.y + 10.5 }, text)];
}
