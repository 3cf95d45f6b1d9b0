// The panel below the picture, and exports to pixels: loaded when one of them is first needed.

export { pngOf, printPdf } from "../canvas/raster";

import { HealthPane } from "../panes/lower/health";
import type { LowerActions } from "../panes/lower/pane";
import { LowerPanel } from "../panes/lower/panel";
import { TimelinePane } from "../panes/lower/timeline";
import css from "../style/lower.css";

/** The panel with all its panes, in the order of their tabs. */
export function makePanel(actions: LowerActions): LowerPanel {
  return new LowerPanel([new TimelinePane(actions), new HealthPane(actions)], actions);
}

export { css };
