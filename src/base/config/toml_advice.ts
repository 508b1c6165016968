/** Finds out what is wrong in a line of a TOML file, for frequent mistakes. Pure. */

/** A mistake as the parser reports it. `line` and `column` count from 1. */
interface TomlMistake {
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

/** Returns what to do about a mistake; null if that is not known. Quotes nothing, because a value may be a secret. */
export function tomlAdvice(source: string, { line, column, message }: TomlMistake): string | null {
  const text = source.split(/\r?\n/)[line - 1] ?? "";
  if (message.includes("illegal character in key")) {
    return /^\s*\[/.test(text) ? null : "write NAME = VALUE, with = between them";
  }
  const isAtEnd = column > text.length;
  if (message.includes("unfinished string") || message.includes("control characters") && isAtEnd) {
    return /"""|'''/.test(text) ? null : "the quotation mark is not closed on this line";
  }
  if (!/invalid value|illegal character in numeric literal/.test(message) || isAtEnd) return null;
  const [value = ""] = /[^\s=,[\]]*$/.exec(text.slice(0, column - 1)) ?? [];
  const [word = ""] = /^[^\s,\]#]*/.exec(value + text.slice(column - 1)) ?? [];
  if (/^(true|false|yes|no|on|off)$/i.test(word)) return "write true or false, in small letters";
  return /^[\w/.-]/.test(word) ? "put the text in quotation marks" : null;
}
