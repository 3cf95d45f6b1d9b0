// Texts as they are shown, by the same rule as `graphcore/support/shown.py`.

const UNSHOWN =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is escaped
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\ufffe\uffff\u{e0000}-\u{e007f}]/gu;

/** The text with characters that have no look of their own, or change that of others, as escapes: `\x1b`, `\u202e`, `\ud800`. */
export function shown(text: string): string {
  return text.replace(UNSHOWN, (letter) => {
    const code = (letter.codePointAt(0) as number).toString(16);
    if (code.length <= 2) return `\\x${code.padStart(2, "0")}`;
    return code.length <= 4 ? `\\u${code.padStart(4, "0")}` : `\\U${code.padStart(8, "0")}`;
  });
}
