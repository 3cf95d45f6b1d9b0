// The picture as a self-contained SVG file: inlined styles, no classes, no scripts.
import { s } from "../dom";
import { HANDLE_WIDTH } from "../scene/boxes";
import type { Rect } from "../scene/geometry";
import { FONT_FAMILY } from "../scene/measure";

/** The properties to write out, with SVG's default values, which are omitted. */
const SHAPE_DEFAULTS = {
  fill: "",
  "fill-opacity": "1",
  stroke: "none",
  "stroke-width": "1px",
  "stroke-opacity": "1",
  "stroke-dasharray": "none",
  "stroke-linecap": "butt",
  "stroke-linejoin": "miter",
  opacity: "1",
  "paint-order": "normal",
};
const TEXT_DEFAULTS = { "font-size": "", "font-weight": "400", "font-style": "normal", "text-anchor": "start" };
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

function writeStyle(copy: Element, style: CSSStyleDeclaration): void {
  const tag = copy.tagName;
  if (/^(title|defs|svg|pattern|marker)$/.test(tag)) return;
  const shape = tag === "g" ? { opacity: "1" } : SHAPE_DEFAULTS;
  const wanted = { ...shape, ...(/^t(ext|span)$/.test(tag) ? TEXT_DEFAULTS : {}) };
  const stroked = style.getPropertyValue("stroke") !== "none";
  for (const [property, usual] of Object.entries(wanted)) {
    const value = style.getPropertyValue(property);
    const idle = property.startsWith("stroke-") && !stroked;
    if (value && value !== usual && !idle) copy.setAttribute(property, value);
    else copy.removeAttribute(property);
  }
}

/** A copy of one element with its computed style as attributes; null if it is invisible. */
function plainCopy(element: Element): Element | null {
  if (element.matches(PAGE_ONLY) || element.tagName === "style") return null;
  const style = getComputedStyle(element);
  if (hidden(style) && element.tagName !== "title") return null;
  const copy = element.cloneNode(false) as Element;
  for (const { name } of [...copy.attributes]) {
    if (!KEPT_ATTRIBUTES.has(name)) copy.removeAttribute(name);
  }
  writeStyle(copy, style);
  if (element.tagName === "text" && element.parentElement?.querySelector(":scope > .gl-handle[data-action=expand]")) {
    // The text of a box leaves room for its +, which is not in the file.
    copy.setAttribute("x", String(Number(element.getAttribute("x")) + HANDLE_WIDTH / 2));
  }
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
    "font-family": FONT_FAMILY,
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
