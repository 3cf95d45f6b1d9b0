// Small helpers that make elements. Data reaches the page only as text nodes and attribute values, never as markup.

import { shown } from "./scene/shown";
import { word } from "./scene/words";

export const SVG_NAMESPACE = "http://www.w3.org/2000/svg";

/** The attributes that people read. */
const READ: ReadonlySet<string> = new Set(["alt", "aria-description", "aria-label", "label", "placeholder", "title"]);

type Value = string | number | boolean | null | undefined;
type Attributes = Readonly<Record<string, Value | ((event: never) => void)>>;
export type Child = Node | string | null | undefined | false;

function fill(element: Element, attributes: Attributes, children: readonly Child[]): void {
  setAttributes(element, attributes);
  for (const child of children) {
    if (child) element.append(typeof child === "string" ? shown(child) : child);
  }
}

/** Sets attributes. A function becomes an event listener; `null`, `undefined` and `false` remove the attribute. */
export function setAttributes(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value as unknown as EventListener);
    else if (value === null || value === undefined || value === false) element.removeAttribute(name);
    else element.setAttribute(name, value === true ? "" : READ.has(name) ? shown(String(value)) : String(value));
  }
}

/** An HTML element. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, attributes, children);
  return element;
}

/** An SVG element. */
export function s<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS(SVG_NAMESPACE, tag) as SVGElementTagNameMap[K];
  fill(element, attributes, children);
  return element;
}

/** A button with an icon, its name, in the language of the page, for screen readers and as a tooltip. */
export function iconButton(icon: string, name: string, press: () => void, className = "gl-button"): HTMLButtonElement {
  const label = word(name);
  return h(
    "button",
    { type: "button", class: className, title: label, "aria-label": label, click: () => press() },
    s("svg", { viewBox: "0 0 16 16", class: "gl-icon", "aria-hidden": "true" }, s("path", { d: icon })),
  );
}

/**
 * Keeps the shortcuts for cells (`d d` deletes one) from keys that are pressed in `root`.
 * Shortcuts match the focused element itself, so the attribute that excludes them is set on that element. Outside of cells they match
 * nothing; there JupyterLab's others stay, such as those that go back to the notebook.
 */
export function ownKeys(root: HTMLElement): void {
  root.addEventListener("focusin", ({ target }) => {
    if (target instanceof Element && target.closest(".jp-Notebook"))
      target.setAttribute("data-lm-suppress-shortcuts", "true");
  });
}

/** True if the user asked the system for reduced motion. */
export function reducedMotion(): boolean {
  return globalThis.matchMedia?.("(prefers-reduced-motion: reduce)").matches ?? false;
}

/** Runs `work` after the browser has painted, or after 400 ms if it does not paint. */
export function afterPaint(work: () => void): void {
  let done = false;
  const once = (): void => {
    if (done) return;
    done = true;
    work();
  };
  requestAnimationFrame(() => requestAnimationFrame(once));
  setTimeout(once, 400);
}

/** The message of an error. */
export function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The element with the focus in the document or shadow tree that `place` is in: marimo shows views in shadow trees. */
export function focusedIn(place: Node): Element | null {
  const root = place.getRootNode();
  return root instanceof ShadowRoot ? root.activeElement : document.activeElement;
}
