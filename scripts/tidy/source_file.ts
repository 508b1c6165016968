/** A source file as the rules of tidy read it, and their findings. */

export interface SourceFile {
  /** From the project's root, with forward slashes. */
  readonly path: string;
  readonly text: string;
}

export interface Finding {
  readonly path: string;
  readonly line: number;
  /** The message, as a sentence. */
  readonly message: string;
}

/**
 * Returns the lines of a formatted TypeScript file without comments and the content of strings. Line numbers stay the
 * same.
 */
export function codeLines(file: SourceFile): string[] {
  let inComment = false;
  return file.text.split("\n").map((line) => {
    if (inComment || /^\s*\/\*/.test(line)) {
      inComment = !line.includes("*/");
      return "";
    }
    return line.replace(/"(?:[^"\\]|\\.)*"|`(?:[^`\\$]|\\.)*`/g, '""').replace(/\/\/.*$/, "");
  });
}

/** Returns a finding for every line of code that matches. */
export function findInCode(file: SourceFile, pattern: RegExp, message: string): Finding[] {
  return codeLines(file).flatMap((code, index) =>
    pattern.test(code) ? [{ path: file.path, line: index + 1, message }] : []
  );
}

/** Returns what a file imports, including types and dynamic imports, with the line. */
export function listImports(file: SourceFile): { specifier: string; line: number }[] {
  return file.text.split("\n").flatMap((text, index) =>
    [...text.matchAll(/(?:\bfrom\s+|^\s*import\s+|\bimport\()"([^"]+)"/g)].map((match) => ({
      specifier: match[1] ?? "",
      line: index + 1,
    }))
  );
}

/**
 * The kind of a character in a TypeScript file. "expression": code inside `${}` of a template. "text": strings,
 * templates and regular expressions with their delimiters.
 */
export type CharacterKind = "code" | "expression" | "comment" | "text";

/** Before a slash, these words show that a regular expression begins; other words are divided. */
const wordBeforePattern = /\b(return|typeof|case|in|of|void|throw|await|yield|else|do)$/;

/** Returns the kind of each character of a file. */
export function characterKinds(text: string): CharacterKind[] {
  const kinds: CharacterKind[] = [];
  const fill = (end: number, kind: CharacterKind) => {
    while (kinds.length < Math.min(end, text.length)) kinds.push(kind);
  };
  const endAfter = (pattern: RegExp, from: number): number => {
    pattern.lastIndex = from;
    return pattern.test(text) ? pattern.lastIndex : text.length;
  };
  /** Reads code up to the end of the file, or behind the brace that ends the expression of a template. */
  const readCode = (kind: CharacterKind): void => {
    for (let depth = 0; kinds.length < text.length;) {
      const at = kinds.length;
      const sign = text[at] ?? "";
      if (text.startsWith("//", at)) fill(endAfter(/(?=\n)/g, at), "comment");
      else if (text.startsWith("/*", at)) fill(endAfter(/\*\//g, at + 2), "comment");
      else if (sign === "`") readTemplate();
      else if (sign === '"' || sign === "'") fill(endAfter(/["'\n]/g, endOfString(text, at)), "text");
      else if (sign === "/" && beginsPattern(text.slice(Math.max(0, at - 80), at))) {
        fill(endOfPattern(text, at), "text");
      } else {
        fill(at + 1, kind);
        if (sign === "{") depth++;
        if (sign === "}" && --depth < 0 && kind === "expression") return;
      }
    }
  };
  const readTemplate = (): void => {
    for (fill(kinds.length + 1, "text"); kinds.length < text.length;) {
      const sign = text[kinds.length];
      if (text.startsWith("${", kinds.length)) {
        fill(kinds.length + 2, "text");
        readCode("expression");
        continue;
      }
      fill(kinds.length + (sign === "\\" ? 2 : 1), "text");
      if (sign === "`") return;
    }
  };
  readCode("code");
  return kinds;
}

/** Returns the index of the quote or line break that ends the string at `start`. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === text[start] || text[at] === "\n") return at;
  }
  return text.length;
}

function beginsPattern(before: string): boolean {
  const code = before.trimEnd();
  return code === "" || wordBeforePattern.test(code) || !/[\w$)\]}"'`<]$/.test(code);
}

/** Returns the index after the regular expression at `start`, including its flags. */
function endOfPattern(text: string, start: number): number {
  let inClass = false;
  let at = start + 1;
  for (; at < text.length && text[at] !== "\n"; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === "[") inClass = true;
    else if (text[at] === "]") inClass = false;
    else if (text[at] === "/" && !inClass) break;
  }
  return at + 1 + (/^\w*/.exec(text.slice(at + 1))?.[0].length ?? 0);
}
