// The Mermaid engine: flowcharts laid out by dagre, without the other diagrams (see build.mjs).
import mermaid from "mermaid";
import { FONT_FAMILY } from "../scene/measure";
import css from "../style/mermaid.css";

export { css };

/** The font size with which labels are measured; the viewer's style sheet has the same. */
const FONT_SIZE = "13px";

mermaid.initialize({
  startOnLoad: false,
  securityLevel: "strict",
  htmlLabels: false,
  maxEdges: 20_000,
  maxTextSize: 5_000_000,
  theme: "base",
  themeVariables: { fontSize: FONT_SIZE, fontFamily: FONT_FAMILY },
  fontFamily: FONT_FAMILY,
  deterministicIds: true,
  suppressErrorRendering: true,
  flowchart: {
    htmlLabels: false,
    useMaxWidth: false,
    curve: "basis",
    nodeSpacing: 28,
    rankSpacing: 34,
    padding: 10,
    wrappingWidth: 320,
    subGraphTitleMargin: { top: 3, bottom: 7 },
  },
});

let drawn = 0;

/** The SVG markup of a flowchart. The caller must sanitise it before adding it to the page. */
export async function render(text: string): Promise<string> {
  drawn += 1;
  const { svg } = await mermaid.render(`graphloupe-mermaid-${drawn}`, text);
  return svg;
}
