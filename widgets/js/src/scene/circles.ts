// Circles of loops, which folding does not cut.
import type { Scene } from "./generated";

/** The lines that lead back in loops: a circle is not cut. */
export const circlesOf = ({ edges }: Scene): readonly string[] =>
  edges.filter(({ reversed, role }) => reversed && role === "forward").map(({ id }) => id);
