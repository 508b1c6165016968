/** Measures and cuts texts by their width on a terminal, in columns. Pure. */

/** Matches East Asian wide and fullwidth characters, and emoji. */
const wideLetters = /[\u1100-\u115f\u2e80-\u303e\u3041-\u4dbf\u4e00-\ua4cf\ua960-\ua97c\uac00-\ud7a3]/u;
const wideForms = /[\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6]/u;
const wideSigns = /[\u{1b000}-\u{1b2fb}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;
/** Matches marks that are drawn over the character before them. */
const combining = /[\p{Mn}\p{Me}]/u;
const isAscii = /^[ -~]*$/;

const isWide = (char: string) => wideLetters.test(char) || wideForms.test(char) || wideSigns.test(char);
const charWidth = (char: string) => combining.test(char) ? 0 : isWide(char) ? 2 : 1;

/**
 * Returns the width of a text. A control character counts as one column, so the caller must first pass texts of others
 * through `printable`.
 */
export function textWidth(text: string): number {
  if (isAscii.test(text)) return text.length;
  let width = 0;
  for (const char of text) width += charWidth(char);
  return width;
}

export function cutTextToWidth(text: string, columns: number): string {
  if (text.length <= columns && isAscii.test(text)) return text;
  let kept = "";
  let left = columns;
  for (const char of text) {
    left -= charWidth(char);
    if (left < 0) return kept;
    kept += char;
  }
  return kept;
}

/** Shortens a text to `columns`. An ellipsis at the end shows that something is missing. */
export function shortenTextToWidth(text: string, columns: number): string {
  return textWidth(text) <= columns ? text : `${cutTextToWidth(text, columns - 1)}…`;
}
