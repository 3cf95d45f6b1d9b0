// Sanitizes foreign SVG: only drawing elements and attributes, no styles.
import { SVG_NAMESPACE } from "../dom";

const ELEMENTS = new Set(
  "svg,g,path,rect,circle,ellipse,line,polygon,polyline,text,tspan,title,desc,defs,marker".split(","),
);
const ATTRIBUTES = new Set(
  (
    "id,class,transform,d,x,y,x1,x2,y1,y2,cx,cy,r,rx,ry,dx,dy,width,height,points,viewBox,preserveAspectRatio," +
    "fill,stroke,stroke-width,stroke-dasharray,opacity,font-weight,font-style,text-anchor," +
    "marker-start,marker-end,markerWidth,markerHeight,markerUnits,refX,refY,orient,data-id"
  ).split(","),
);

/** True if a value refers to nothing outside its document and cannot load or run anything. */
function harmlessValue(value: string): boolean {
  const plain = value.replace(/url\(\s*["']?#[\w:.-]+["']?\s*\)/g, "");
  return !/url\s*\(|javascript:|data:|\\/i.test(plain);
}

function copy(source: Element): Element | null {
  const tag = source.localName;
  if (source.namespaceURI !== SVG_NAMESPACE || !ELEMENTS.has(tag)) return null;
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

/** The characters that XML cannot contain, such as those of control. */
const NOT_XML = /[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu;

/** Parses SVG markup into a sanitised element of this page. Throws an Error if it is no SVG. */
export function sanitizeSvg(markup: string): SVGSVGElement {
  const parsed = new DOMParser().parseFromString(markup.replace(NOT_XML, "\uFFFD"), "image/svg+xml").documentElement;
  const clean = parsed.localName === "svg" ? copy(parsed) : null;
  if (!(clean instanceof SVGSVGElement)) throw new Error("the renderer gave no SVG");
  return clean;
}
