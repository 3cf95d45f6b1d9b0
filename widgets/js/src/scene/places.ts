// Places of boxes, frames and lines. Pixels, y downwards.

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** A rectangle by its upper left corner. */
export interface Rect extends Point, Size {}

/** A line between boxes: its Bezier points (1 + 3n) to the base of the arrowhead, its tip, and the middle of its label. */
export interface Route {
  readonly points: readonly Point[];
  readonly tip: Point;
  readonly label: Point | null;
}

/** A laid-out picture, by the scene's ids. */
export interface Geometry extends Size {
  readonly nodes: ReadonlyMap<string, Rect>;
  readonly groups: ReadonlyMap<string, Rect>;
  readonly edges: ReadonlyMap<string, Route>;
}
