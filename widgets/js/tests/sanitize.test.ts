import { expect, test } from "vitest";
import { sanitizeSvg } from "../src/engines/sanitize";

const wrap = (inner: string): string => `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 10">${inner}</svg>`;

test.each([
  ["scripts", "<script>alert(1)</script>"],
  [
    "foreign objects",
    '<foreignObject><img xmlns="http://www.w3.org/1999/xhtml" src="x" onerror="alert(1)"/></foreignObject>',
  ],
  ["images", '<image href="http://evil.example/x.png"/>'],
  ["links", '<a href="javascript:alert(1)"><text>click</text></a>'],
  ["uses", '<use href="http://evil.example/x.svg#y"/>'],
  ["animations", '<set attributeName="href" to="javascript:alert(1)"/>'],
  ["style sheets", "<style>@import url(http://evil.example/x.css);</style>"],
])("%s are taken out", (_, markup) => {
  const clean = sanitizeSvg(wrap(`<g>${markup}</g>`));
  expect(clean.outerHTML).not.toMatch(/alert|evil|script|style/i);
  expect(clean.querySelector("g")?.children).toHaveLength(0);
});

test("event handlers, styles and references to elsewhere are taken off", () => {
  const markup =
    '<rect onclick="alert(1)" style="fill:url(http://evil.example)" fill="url(http://evil.example#p)" width="3"/>';
  const rect = sanitizeSvg(wrap(markup)).querySelector("rect");
  expect(rect?.getAttributeNames()).toEqual(["width"]);
});

test("drawing, text and references inside the document stay", () => {
  const markup = '<path d="M0,0L1,1" marker-end="url(#m-1_a.b)"/><text x="1">a &lt;b&gt; &#91;1&#93;</text>';
  const clean = sanitizeSvg(wrap(markup));
  expect(clean.querySelector("path")?.getAttribute("marker-end")).toBe("url(#m-1_a.b)");
  expect(clean.querySelector("text")?.textContent).toBe("a <b> [1]");
});

test("what is no SVG is refused", () => {
  expect(() => sanitizeSvg("<p>hello</p>")).toThrow("no SVG");
  expect(() => sanitizeSvg("not even markup <")).toThrow("no SVG");
});

test("characters that XML cannot contain are replaced, and the picture is kept", () => {
  const clean = sanitizeSvg(`<svg xmlns="http://www.w3.org/2000/svg"><text>a\u0000\u0007\ufffe\ud800b</text></svg>`);
  expect(clean.textContent).toBe("a\ufffd\ufffd\ufffd\ufffdb");
});
