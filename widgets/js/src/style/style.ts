// Adds the style sheet to the root (document or shadow) of the viewer, once.
import controls from "./controls.css";
import functions from "./function.css";
import panes from "./panes.css";
import picture from "./picture.css";
import theme from "./theme.css";
import values from "./values.css";

const common = [theme, controls, picture, panes, functions, values].join("\n");

const MARK = "data-graphloupe-style";

/** Adds a style sheet to the element's root, once; by default that of the viewer. */
export function installStyle(element: Element, css = common): void {
  const root = element.getRootNode();
  const place = root instanceof ShadowRoot ? root : document.head;
  const known = [...place.querySelectorAll(`style[${MARK}]`)].some((style) => style.textContent === css);
  if (known) return;
  const style = document.createElement("style");
  style.setAttribute(MARK, "");
  style.textContent = css;
  place.append(style);
}
