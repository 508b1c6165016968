/**
 * Inserts an item of a pool into its command. In a shell command, each `{}` becomes the quoted item. Inside quotation
 * marks, a quote of the item would end them, and the shell would run a `$(…)` of the item. Therefore the quotes are
 * closed before the item and opened again after it. Pure.
 */
import { BatonError } from "../../base/errors.ts";
import { shellQuote } from "../../base/support/shell_quote.ts";

/**
 * Returns the command for one item. If the command neither has a `{}` nor uses BATON_ITEM, the item becomes the last
 * argument. In a shell command (`isLine`) the item is always $1, because text after the command could be another
 * command.
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

/** Returns whether the program's name contains the item. If so, a missing program affects only its own item. */
export function isProgramNamedByItem([program]: readonly [string, ...string[]]): boolean {
  return /\{(item)?\}/.test(program);
}

/** Inserts the item into a shell command. Throws USAGE if a `{}` stands where no quoting is safe in every shell. */
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
  /** The quotation mark around the place; empty if the place is not quoted. */
  readonly quote: string;
}

/** The closing character of each part of a shell command that has to be closed. */
const closers: Readonly<Record<string, string>> = { "'": "'", '"': '"', "`": "`", "(": ")" };

/** Returns the places of the item in a shell command, in order. A `{}` in a comment and `\{}` are not such places. */
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
    if (text.startsWith("#") && !(inside === "(" && /^[\s;&|()]?$|^\$\($/.test(before))) text = "#"; // not a comment
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
