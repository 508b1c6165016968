/** Rules of style: columns, names of functions, and constructs that only save lines. */
import { characterKinds, type Finding, type SourceFile } from "./source_file.ts";

const columnsMax = 120;
/** A page for a browser, as it is sent: written by scripts/gen_page.ts. */
const generated = "src/operator/ui/page_files.ts";

/**
 * Checks that lines have at most 120 columns. The formatter does not break strings, templates, regular expressions and
 * comments. A line of a test may be longer when it consists of one string, template or regular expression.
 */
export function checkColumns(file: SourceFile): Finding[] {
  const lines = file.text.split("\n");
  if (file.path === generated || lines.every((text) => text.length <= columnsMax)) return [];
  const isTest = file.path.startsWith("test/");
  const kinds = characterKinds(file.text);
  const findings: Finding[] = [];
  let start = 0;
  lines.forEach((text, index) => {
    const columns = [...text].length;
    const isOneText = [...text.matchAll(/\S/g)].every((sign) => {
      const kind = kinds[start + sign.index];
      return kind === "text" || kind === "expression" || (kind === "code" && ",;)]}".includes(sign[0]));
    });
    start += text.length + 1;
    if (columns <= columnsMax || (isTest && isOneText)) return;
    findings.push({
      path: file.path,
      line: index + 1,
      message: `the line has ${columns} columns; ${columnsMax} are the limit`,
    });
  });
  return findings;
}

/** An exported function says what it returns or does: `path Of` says neither, read alone. */
export function checkFunctionNames(file: SourceFile): Finding[] {
  if (!/^(src|commands)\//.test(file.path)) return [];
  const pattern = /^export (?:(?:default )?(?:async )?function\*? (\w*Of)\b|const (\w*Of) = )/;
  return file.text.split("\n").flatMap((text, index) => {
    const [, declared, constant] = pattern.exec(text) ?? [];
    const name = declared ?? constant;
    const message = `${name} needs a name that says what the function returns or does`;
    return name === undefined ? [] : [{ path: file.path, line: index + 1, message }];
  });
}

/** Returns the code of a file with comments blanked and strings replaced by quotes, so that indexes stay the same. */
function maskedCode(text: string): string {
  const kinds = characterKinds(text);
  return [...Array(text.length).keys()].map((at) => {
    const sign = text[at] ?? "";
    if (sign === "\n") return sign;
    return kinds[at] === "text" ? '"' : kinds[at] === "comment" ? " " : sign;
  }).join("");
}

const pairs: Readonly<Record<string, string>> = { "[": "]", "{": "}", "(": ")" };

/** Returns the index of the bracket that closes the one at `open`, or -1. */
function closingBracket(code: string, open: number): number {
  const awaited: string[] = [];
  for (let at = open; at < code.length; at++) {
    const sign = code[at] ?? "";
    const closing = pairs[sign];
    if (closing !== undefined) awaited.push(closing);
    else if (sign === awaited.at(-1) && awaited.pop() !== undefined && awaited.length === 0) return at;
  }
  return -1;
}

/** Returns the elements between two brackets. */
function elementsBetween(code: string, open: number, close: number): string[] {
  const elements: string[] = [];
  let from = open + 1;
  for (let at = from; at < close; at++) {
    if (pairs[code[at] ?? ""] !== undefined) at = Math.max(at, closingBracket(code, at));
    else if (code[at] === ",") {
      elements.push(code.slice(from, at).trim());
      from = at + 1;
    }
  }
  return [...elements, code.slice(from, close).trim()].filter((element) => element !== "");
}

/** Returns whether a value reads what the same assignment changes, as in a swap. */
function readsItsTargets(targets: readonly string[], values: readonly string[]): boolean {
  return targets.some((target) => values.some((value) => value.includes(target)));
}

/**
 * Elements of an array and fields of an object stand in it themselves, and an assignment assigns one value:
 * `...{ a, b }`, `...["x"]` and `[a, b] = [1, 2]` only save lines. A swap is left.
 */
export function checkLineSavers(file: SourceFile): Finding[] {
  if (!/^(src|commands|scripts)\//.test(file.path)) return [];
  const code = maskedCode(file.text);
  const findings: Finding[] = [];
  const say = (at: number, message: string) =>
    findings.push({ path: file.path, line: code.slice(0, at).split("\n").length, message });
  for (const { index } of code.matchAll(/\.\.\.[[{]/g)) {
    const end = closingBracket(code, index + 3);
    if (code[index + 3] === "{") say(index, "the fields stand in the object themselves, without ...{ }");
    else if (/^\s*[,)\]}]/.test(code.slice(end + 1))) {
      say(index, "the elements stand in the list themselves, without ...[ ]");
    }
  }
  for (const { index, 0: before, 1: declaration } of code.matchAll(/(?:\b(const|let) |[;{})]\s+)(?=\[)/g)) {
    const open = index + before.length;
    const close = closingBracket(code, open);
    const assigned = /^(?:: [^=;]*)? = (?=\[)/.exec(code.slice(close + 1, close + 200))?.[0];
    if (close < 0 || assigned === undefined) continue;
    const valuesStart = close + 1 + assigned.length;
    const valuesEnd = closingBracket(code, valuesStart);
    if (!/^\s*(as const)?[;,)]/.test(code.slice(valuesEnd + 1, valuesEnd + 30))) continue;
    const values = elementsBetween(code, valuesStart, valuesEnd);
    const isSwap = declaration === undefined && readsItsTargets(elementsBetween(code, open, close), values);
    if (isSwap || values.some((value) => value.startsWith("..."))) continue;
    say(open, "each value is assigned by itself, without [a, b] = [1, 2]");
  }
  return findings;
}
