// The Mermaid engine: flowcharts laid out by dagre, nothing else (build.mjs leaves the other diagrams out).
import mermaid from "mermaid";

/** How the viewer wants its flowcharts; `dark` follows the theme of the page. */
export interface MermaidOptions {
  readonly dark: boolean;
  readonly fontFamily: string;
}

let drawn = 0;

/** Gives the SVG markup of a flowchart. The caller must sanitise it before it touches the page. */
export async function render(text: string, options: MermaidOptions): Promise<string> {
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: "strict",
    htmlLabels: false,
    maxEdges: 20_000,
    maxTextSize: 5_000_000,
    theme: options.dark ? "dark" : "default",
    fontFamily: options.fontFamily,
    deterministicIds: true,
    suppressErrorRendering: true,
    flowchart: { htmlLabels: false, useMaxWidth: false, curve: "basis" },
  });
  drawn += 1;
  const { svg } = await mermaid.render(`graphloupe-mermaid-${drawn}`, text);
  return svg;
}
