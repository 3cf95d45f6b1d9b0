// Code as a figure: lines with hanging indents, and a copy button.
import { h, iconButton } from "../dom";
import { word } from "../scene/words";
import { ICONS } from "../style/icons";

/** Lines of code. A long line is wrapped with a hanging indent. */
function codeLines(text: string): HTMLElement[] {
  const lines = text.replace(/\n+$/, "").split("\n");
  return lines.map((line, index) => {
    const hang = (/^ */.exec(line)?.[0].length ?? 0) + 4;
    const style = `padding-left:${hang}ch;text-indent:-${hang}ch`;
    return h("span", { class: "gl-code-line", style }, index < lines.length - 1 ? `${line}\n` : line);
  });
}

/** A piece of code under a title. */
export function codeFigure(text: string, title: string, copy: (text: string) => void): HTMLElement {
  const button = iconButton(ICONS.copy, title ? `${word("Copy")}: ${title}` : "Copy", () => copy(text));
  return h(
    "figure",
    { class: "gl-code" },
    h("figcaption", {}, title),
    button,
    h("pre", { tabindex: "0" }, ...codeLines(text)),
  );
}
