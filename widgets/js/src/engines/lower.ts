// Loaded when it is first needed: the panel below the picture, exports to pixels, the list of keys.

export { pngOf, printPdf } from "../canvas/raster";
export { Help } from "../panes/help";

import { HealthPane } from "../panes/lower/health";
import type { LowerActions } from "../panes/lower/pane";
import { LowerPanel } from "../panes/lower/panel";
import { StepperPane } from "../panes/lower/stepper";
import { TimelinePane } from "../panes/lower/timeline";
import css from "../style/lower.css";

/** The panel with all its panes, in the order of their tabs. */
export function makePanel(actions: LowerActions): LowerPanel {
  return new LowerPanel([new TimelinePane(actions), new HealthPane(actions), new StepperPane(actions)], actions);
}

export { css };
