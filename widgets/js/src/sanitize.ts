// Makes foreign SVG harmless before it enters the page: only drawing elements, only drawing attributes.
import { SVG_NAMESPACE } from "./dom";

const ELEMENTS = new Set(
  "svg,g,path,rect,circle,ellipse,line,polygon,polyline,text,tspan,title,desc,defs,marker,style,clipPath,linearGradient,stop".split(
    ",",
  ),
);
const ATTRIBUTES = new Set(
  (
    "id,class,style,transform,d,x,y,x1,x2,y1,y2,cx,cy,r,rx,ry,dx,dy,width,height,points,viewBox,preserveAspectRatio," +
    "fill,fill-opacity,stroke,stroke-width,stroke-dasharray,stroke-linecap,stroke-linejoin,stroke-opacity,opacity," +
    "font-size,font-family,font-weight,font-style,text-anchor,dominant-baseline,alignment-baseline," +
    "marker-start,marker-end,markerWidth,markerHeight,markerUnits,refX,refY,orient,offset,stop-color,clip-path," +
    "role,aria-roledescription,aria-label,data-id,data-look,data-et"
  ).split(","),
);

/** Only references inside the same document, and nothing that could fetch or run. */
function harmlessValue(value: string): boolean {
  const plain = value.replace(/url\(\s*["']?#[\w:.-]+["']?\s*\)/g, "");
  return !/url\s*\(|javascript:|expression\s*\(|@import|image-set|\\/i.test(plain);
}

function copy(source: Element): Element | null {
  const tag = source.localName;
  if (source.namespaceURI !== SVG_NAMESPACE || !ELEMENTS.has(tag)) return null;
  if (tag === "style" && !harmlessValue(source.textContent ?? "")) return null;
  const clean = document.createElementNS(SVG_NAMESPACE, tag);
  for (const { name, value } of source.attributes) {
    if (ATTRIBUTES.has(name) && harmlessValue(value)) clean.setAttribute(name, value);
  }
  for (const child of source.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) clean.append(child.textContent ?? "");
    if (!(child instanceof Element)) continue;
    const inner = copy(child);
    if (inner) clean.append(inner);
  }
  return clean;
}

/** Reads SVG markup and gives a clean copy as an element of this page. Throws an Error when it is no SVG. */
export function sanitizeSvg(markup: string): SVGSVGElement {
  const parsed = new DOMParser().parseFromString(markup, "image/svg+xml").documentElement;
  const clean = parsed.localName === "svg" ? copy(parsed) : null;
  if (!(clean instanceof SVGSVGElement)) throw new Error("the renderer gave no SVG");
  return clean;
}
