// The script of the panel below the picture, loaded when the panel is first opened.

import type { LowerActions } from "../panes/lower/pane";
import { LowerPanel } from "../panes/lower/panel";
import { TimelinePane } from "../panes/lower/timeline";
import css from "../style/lower.css";

/** The panel with all its panes, in the order of their tabs. */
export function makePanel(actions: LowerActions): LowerPanel {
  return new LowerPanel([new TimelinePane(actions)], actions);
}

export { css };
