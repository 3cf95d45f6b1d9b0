import { afterEach, expect, test } from "vitest";
import { inWords, speak, word } from "../src/scene/words";
import { inspection, node, Page, SAMPLE, scene } from "./support";

afterEach(() => speak(""));

/** The words of the viewer that people read, without names of the graph. */
function titles(page: Page): string[] {
  const parts = page.root.querySelectorAll(
    "button[title], summary, h3, [aria-label].gl-toolbar, .gl-lens-box span, .gl-legend li span, option",
  );
  return [...parts].map((part) => part.getAttribute("title") ?? part.textContent ?? "");
}

test("a view in Chinese has no English words in toolbar, legend, lenses and inspector", async () => {
  const page = new Page({ language: "zh" });
  await page.show(SAMPLE);
  page.receive({ type: "inspection", inspection: inspection(SAMPLE.nodes[0]?.id ?? "") });
  const english = titles(page).filter(
    (title) => !/[\u4e00-\u9fff]/.test(title) && !/^(Graphviz|Mermaid|NodeDef)$/.test(title),
  );
  expect(english).toEqual([]);
  page.dispose();
});

test("names stay as they are, whatever they are called", async () => {
  const page = new Page({ language: "zh" });
  await page.show(scene({ revision: 1, nodes: [node("Legend"), node("Inputs")] }));
  expect(page.box("Legend").textContent).toContain("Legend");
  expect(page.box("Inputs").textContent).toContain("Inputs");
  page.dispose();
});

test("fields are filled in, and an unknown word stays", () => {
  speak("zh");
  expect(word("Right: {node} ran", { node: "{guess}" })).toBe("正确:运行的是 {guess}");
  expect(word("a sentence of nobody")).toBe("a sentence of nobody");
  speak("xx");
  expect(word("Legend")).toBe("Legend");
});

test("phrases of the compiler are said in the chosen language, and other text stays", () => {
  const summary = "1,204 nodes in 12 boxes, 1 with errors, 3 edges, one note, input 3";
  expect(inWords(summary)).toBe(summary);
  speak("zh");
  expect(inWords(summary)).toBe("12 个方框内的 1,204 个节点,1 个有错误,3 条边,one note,输入 3");
});
