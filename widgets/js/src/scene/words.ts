// The words of the viewer in the language of the page.
import { CHINESE } from "./generated";

const PLACE = Symbol.for("graphloupe.language");
const TABLES: Readonly<Record<string, Readonly<Record<string, string>>>> = { zh: CHINESE };

/** Scripts of the viewer are loaded one by one, and speak one language. */
const page = globalThis as { [PLACE]?: string };

/** Chooses the language from now on: `zh`, anything else is English. */
export function speak(language: string): void {
  page[PLACE] = language;
}

/** A text of the viewer in the chosen language, with fields for what is in braces: `{node} ran`. */
export function word(text: string, fields: Readonly<Record<string, string | number>> = {}): string {
  const said = TABLES[page[PLACE] ?? ""]?.[text] ?? text;
  return said.replace(/\{(\w+)\}/g, (whole, name: string) => String(fields[name] ?? whole));
}
