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

/** The phrases of the compiler of scenes, which knows no language. */
const PHRASES = [
  "1 node",
  "{count} nodes",
  "{count} nodes in {boxes} boxes",
  "{count} nodes in 1 box",
  "{count} with errors",
  "1 edge",
  "{count} edges",
  "1 gradient node",
  "{count} gradient nodes",
  "{count} new",
  "{count} from failed cells",
  "input {number}",
  "not used",
  "and {count} more consumers",
] as const;

/** Phrases of the compiler, such as `12 nodes in 3 boxes, 4 edges`, in the chosen language; other text stays. */
export function inWords(text: string): string {
  return text.split(", ").map(phraseInWords).join(word(", "));
}

function phraseInWords(text: string): string {
  for (const phrase of PHRASES) {
    const pattern = phrase.replace(/\{(\w+)\}/g, "(?<$1>[\\d,]+)");
    const match = new RegExp(`^${pattern}$`).exec(text);
    if (match) return word(phrase, match.groups);
  }
  return text;
}
