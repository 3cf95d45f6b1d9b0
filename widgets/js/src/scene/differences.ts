// Pictures of the difference of two states of a graph.
import type { Scene } from "./generated";

/** True for the picture of a difference. */
export const isDifference = (scene: Scene | undefined): boolean => scene?.since === "" && scene.nodes.length > 0;
