/** A file as the rules of tidy see it, and what they say about it. */

export interface SourceFile {
  /** From the project's root, with forward slashes. */
  readonly path: string;
  readonly text: string;
}

export interface Finding {
  readonly path: string;
  readonly line: number;
  /** A sentence. */
  readonly message: string;
}

/** The lines of a formatted TypeScript file without comments and without what stands in strings; their numbers stay. */
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

/** A finding for every line of code that matches. */
export function findInCode(file: SourceFile, pattern: RegExp, message: string): Finding[] {
  return codeLines(file).flatMap((code, index) =>
    pattern.test(code) ? [{ path: file.path, line: index + 1, message }] : []
  );
}

/** What a file imports, types and dynamic imports included, and in which line. */
export function importsOf(file: SourceFile): { specifier: string; line: number }[] {
  return file.text.split("\n").flatMap((text, index) =>
    [...text.matchAll(/(?:\bfrom\s+|^\s*import\s+|\bimport\()"([^"]+)"/g)].map((match) => ({
      specifier: match[1] ?? "",
      line: index + 1,
    }))
  );
}
