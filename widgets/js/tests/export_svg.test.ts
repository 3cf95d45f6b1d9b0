import { afterEach, expect, test } from "vitest";
import { standaloneSvg } from "../src/canvas/export_svg";
import { boxLook } from "../src/scene/boxes";
import { HOSTILE, node, Page, SAMPLE, scene } from "./support";

let page: Page;

afterEach(() => page.dispose());

function exported(): Document {
  const world = page.one<SVGGElement>(".gl-world");
  const defs = page.one<SVGDefsElement>(".gl-svg defs");
  const text = standaloneSvg(world, defs, { x: 0, y: 0, width: 300, height: 200 }, "rgb(255, 255, 255)");
  const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
  expect(parsed.querySelector("parsererror")).toBeNull();
  return parsed;
}

test("the exported picture stands alone: all boxes, no class, no handler, nothing of the page", async () => {
  page = new Page();
  await page.show(SAMPLE);
  const svg = exported();
  expect(svg.querySelectorAll("[class], [tabindex], [data-node-id], [role]:not(svg)")).toHaveLength(0);
  const texts = [...svg.querySelectorAll("text")].map((text) => text.textContent);
  expect(texts).toContain("∇ BroadcastTo");
  expect(texts).toContain("float [64,10]");
  expect(svg.documentElement.getAttribute("viewBox")).toBe("-16 -16 332 232");
});

test("hostile names are text in the exported picture too", async () => {
  page = new Page();
  await page.show(scene({ nodes: HOSTILE.map((text, i) => node(`n${i}`, { label: text, op: text })) }));
  const svg = exported();
  expect(svg.querySelectorAll("script, image, foreignObject, a")).toHaveLength(0);
  expect(svg.documentElement.textContent).toContain("<script>");
});

test("the text of a box that opens is in its middle, since its + is not in the file", async () => {
  page = new Page();
  const box = node("layers/", { kind: "scope", label: "layers", op: "", count: 3, expandable: true });
  await page.show(scene({ nodes: [box] }));
  const title = [...exported().querySelectorAll("text")].find(({ textContent }) => textContent === "layers");
  expect(Number(title?.getAttribute("x"))).toBe(boxLook(box).width / 2);
});
