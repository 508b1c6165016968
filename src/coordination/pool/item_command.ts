/**
 * Inserts an item of a pool into its command. In a command for /bin/sh, the item becomes one literal text wherever `{}`
 * stands. Inside quotation marks, quotes of the item would end the line's quotes, and `"{}"` would run `$(…)` of an
 * item. Therefore the line's quotes are closed before the item and opened again after it. Pure.
 */
import { BatonError } from "../../base/errors.ts";
import { shellQuote } from "../../base/terminal/shell_quote.ts";

/**
 * Returns the command for one item. If the command has no `{}` and does not use BATON_ITEM, the item becomes its last
 * argument. In a shell command (`isLine`) it is $1 instead, because text after a command could be another command.
 */
export function commandForItem(
  command: readonly [string, ...string[]],
  item: string,
  isLine = false,
): [string, ...string[]] {
  const insert = (word: string) =>
    isLine ? insertItemIntoCommand(word, item) : word.replaceAll(/\{(item)?\}/g, () => item);
  const [program, ...args] = command.map(insert);
  const isUsed = command.some((word) => /\{(item)?\}|BATON_ITEM/.test(word));
  return [program ?? "", ...args, ...(isLine ? ["sh", item] : isUsed ? [] : [item])];
}

/** Whether the program depends on the item. Then a missing program affects only its own item. */
export function namesProgramByItem([program]: readonly [string, ...string[]]): boolean {
  return /\{(item)?\}/.test(program);
}

/** Inserts the item into a shell command. Throws USAGE for a place in which no quoting is safe in every shell. */
export function insertItemIntoCommand(line: string, item: string): string {
  const refusal = placesOf(line).length === 0 ? undefined : unsafe.find(([pattern]) => pattern.test(line));
  if (refusal !== undefined) throw placeError(refusal[1]);
  let inserted = "";
  let end = 0;
  for (const { index, length, quote } of placesOf(line)) {
    inserted += line.slice(end, index) + quote + shellQuote(item) + quote;
    end = index + length;
  }
  return inserted + line.slice(end);
}

const unsafe: readonly (readonly [pattern: RegExp, what: string])[] = [
  [/<</, "a here-document or <<"],
  [/\$'/, "$'…'"],
  [/\$\{(item)?\}|\$\{[^}]*\{(item)?\}/, "${…}"],
];

interface Place {
  readonly index: number;
  readonly length: number;
  /** The quotation mark around the place; empty if there is none. */
  readonly quote: string;
}

/** A part of the line that has to be closed: its closing character, and whether quotes and comments can begin in it. */
const closers: Readonly<Record<string, string>> = { "'": "'", '"': '"', "`": "`", "(": ")" };

/** The places of the item outside comments, in their order. `\{}` is none. */
function placesOf(line: string): Place[] {
  const places: Place[] = [];
  const open: string[] = [];
  let isUnclear = false;
  let before = "";
  const token = /\\[^]|\bcase\b|#[^\n]*|\{(?:item)?\}|\$\(|[^]/g;
  const literal = /\{(?:item)?\}|[^]/g;
  for (let at = 0; at < line.length;) {
    const inside = open.at(-1) ?? "(";
    const scan = inside === "'" ? literal : token;
    scan.lastIndex = at;
    let [text = ""] = scan.exec(line) ?? [];
    if (text.startsWith("#") && !(inside === "(" && /^[\s;&|()]?$|^\$\($/.test(before))) text = "#"; // no comment
    before = text;
    if (/^\{(item)?\}$/.test(text)) {
      if (open.includes("`")) throw placeError("`…`");
      if (isUnclear) throw placeError('case inside of "$(…)"');
      places.push({ index: at, length: text.length, quote: inside === "(" ? "" : inside });
    } else if (text === closers[inside]) open.pop();
    else if (text === "case") isUnclear ||= open.includes('"'); // its patterns end with ) as $(…) does
    else if (text === "$(" && inside !== "'" && inside !== "`") open.push("(");
    else if (inside === "(" && text in closers || inside === '"' && text === "`") open.push(text);
    at += text.length;
  }
  return places;
}

function placeError(where: string): BatonError {
  return new BatonError(
    "USAGE",
    `{} cannot be used in a shell command with ${where}: the shell may run a part of the item; ` +
      'write "$1" in place of {}',
  );
}
