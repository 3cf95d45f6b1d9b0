// The script of the timeline, which a viewer loads when it is opened for the first time.
import css from "../style/timeline.css";

export { TimelinePane } from "../panes/timeline";
export { css };
