// The picture as an SVG file that stands alone: styles written out, no classes, no scripts, nothing of the page.
import { s } from "./dom";
import type { Rect } from "./geometry";

const PROPERTIES = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-opacity",
  "stroke-dasharray",
  "stroke-linecap",
  "stroke-linejoin",
  "opacity",
  "font-family",
  "font-size",
  "font-weight",
  "font-style",
  "text-anchor",
  "dominant-baseline",
  "paint-order",
] as const;
const KEPT_ATTRIBUTES = new Set(
  "d,x,y,x1,y1,x2,y2,cx,cy,r,rx,ry,width,height,points,transform,viewBox,id,dx,dy,patternUnits,refX,refY,markerWidth,markerHeight,orient,markerUnits,marker-end,marker-start,markerEnd".split(
    ",",
  ),
);
/** Characters that no XML file may contain, not even escaped; a browser's own serialiser lets them through. */
const NOT_XML = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;
const PAGE_ONLY = ".gl-reach,.gl-handle";

function hidden(style: CSSStyleDeclaration): boolean {
  return style.display === "none" || style.visibility === "hidden";
}

/** A copy of one element with its computed style as attributes; null when it is not to be seen. */
function plainCopy(element: Element): Element | null {
  if (element.matches(PAGE_ONLY) || element.tagName === "style") return null;
  const style = getComputedStyle(element);
  if (hidden(style) && element.tagName !== "title") return null;
  const copy = element.cloneNode(false) as Element;
  for (const { name } of [...copy.attributes]) {
    if (!KEPT_ATTRIBUTES.has(name)) copy.removeAttribute(name);
  }
  if (!/^(g|title|defs|svg)$/.test(element.tagName)) {
    for (const property of PROPERTIES) {
      const value = style.getPropertyValue(property);
      if (value) copy.setAttribute(property, value.replaceAll('"', "'"));
    }
  }
  if (element.tagName === "g" && style.opacity !== "1" && style.opacity) copy.setAttribute("opacity", style.opacity);
  for (const child of element.childNodes) {
    if (child.nodeType === Node.TEXT_NODE) copy.append(child.cloneNode());
    if (!(child instanceof Element)) continue;
    const inner = plainCopy(child);
    if (inner) copy.append(inner);
  }
  return copy;
}

/** The SVG text of the drawing `world` (with `defs` it refers to), cut to `bounds`, on a background. */
export function standaloneSvg(world: SVGGElement, defs: SVGDefsElement, bounds: Rect, background: string): string {
  const margin = 16;
  const box = {
    x: Math.floor(bounds.x - margin),
    y: Math.floor(bounds.y - margin),
    width: Math.ceil(bounds.width + 2 * margin),
    height: Math.ceil(bounds.height + 2 * margin),
  };
  const svg = s("svg", {
    width: box.width,
    height: box.height,
    viewBox: `${box.x} ${box.y} ${box.width} ${box.height}`,
    role: "img",
  });
  const drawing = plainCopy(world);
  drawing?.removeAttribute("transform");
  const definitions = plainCopy(defs);
  if (definitions) svg.append(definitions);
  svg.append(s("rect", { ...box, fill: background }));
  if (drawing) svg.append(drawing);
  const text = new XMLSerializer().serializeToString(svg).replace(NOT_XML, "\ufffd");
  return `<?xml version="1.0" encoding="UTF-8"?>\n${text}\n`;
}
