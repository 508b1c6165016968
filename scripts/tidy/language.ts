/**
 * Rules of plain technical English, with the terms of docs/glossary.md and docs/development/terms.md: banned words,
 * comments that are fragments of a sentence, and exported types that share a name. Applies to names, comments, messages
 * and pages alike.
 */
import { type Finding, type SourceFile } from "./source_file.ts";

interface BannedWord {
  readonly pattern: RegExp;
  readonly use: string;
}

/** Banned words in text: comments, messages, help and pages. */
const bannedInText: readonly BannedWord[] = [
  { pattern: /\bat once\b/i, use: '"immediately" or "at the same time"' },
  { pattern: /\b(whoever|whomever|whosever)\b/i, use: '"the process that", "the client that"' },
  { pattern: /\b(nobody|no one)\b/i, use: '"no process", "no client", "no user"' },
  { pattern: /\b(somebody|someone|anybody|(?<![":])anyone)\b/i, use: '"another process", "a client", "a user"' },
  { pattern: /\beverybody\b/i, use: '"all users", "all clients"' },
  { pattern: /\bso (many|long|much)\b(?! as\b)/i, use: 'the value itself: "N", "this long"' },
  { pattern: /\bso (much )?later\b/i, use: '"after this time"' },
  {
    pattern: /\bno more\b(?! (than|then|often|of the|requests|messages|bytes|memory|space|room|files))/i,
    use: '"no longer"',
  },
  { pattern: /\bany ?more\b/i, use: '"no longer"' },
  { pattern: /\banew\b/i, use: '"again"' },
  { pattern: /\b(crowd|custody|tenures?|vigils?|deeds?|letter office)\b/i, use: "the term of docs/glossary.md" },
  { pattern: /\b(he|she|him|his|hers?) (has|is|was|had|said|says|does|did|may|can|will)\b/i, use: '"it" or the noun' },
];

/** Banned words in names, in camelCase, PascalCase and snake_case. */
const bannedInNames: readonly BannedWord[] = [
  { pattern: /^(crowd|desk|custody|tenure|vigil|deeds?|fate|reign)$/, use: "the term of docs/glossary.md" },
  { pattern: /^(foreign)$/, use: '"interop"' },
  { pattern: /^(alarm|rung)$/, use: '"event", "set"' },
  { pattern: /^(glance|sight)$/, use: '"probe", "state"' },
  { pattern: /^(somebody|nobody|whoever|anew)$/, use: "the noun of the thing itself" },
];

/** Matches the start of a comment that is only a fragment of a sentence. */
const fragmentStart = new RegExp(
  `^(${
    [
      "About Above Across After Against Along Among Around As_it As_they As_the At Before Behind Below Beneath " +
      "Beside Besides Between Beyond",
      "By During For From In Inside Into Like Of Off On Onto Out Outside Over Per Since Through Throughout Till " +
      "To_the To_a Toward Towards",
      "Under Until Unto Up Upon With Within Without It Its He She They Them Their His Her Who Whoever Whom Whose " +
      "What Which That Those",
    ].join(" ").split(" ").map((word) => word.replace("_", " ")).join("|")
  })\\b`,
);

/** Returns the first line of each comment of a file. */
function commentStarts(file: SourceFile): { line: number; text: string }[] {
  const lines = file.text.split("\n");
  return lines.flatMap((text, index) => {
    const block = /^\s*\/\*\*?\s+(\S.*)$/.exec(text) ??
      (/^\s*\/\*\*?\s*$/.test(lines[index - 1] ?? "") ? /^\s*\*\s+(\S.*)$/.exec(text) : null);
    const previousIsComment = /^\s*\/\//.test(lines[index - 1] ?? "");
    const single = previousIsComment ? null : /^\s*\/\/\s+(\S.*)$/.exec(text);
    const found = block?.[1] ?? single?.[1];
    return found === undefined ? [] : [{ line: index + 1, text: found }];
  });
}

/** Checks that comments of the product are sentences, or nouns with their attributes. */
export function checkComments(file: SourceFile): Finding[] {
  return commentStarts(file).flatMap(({ line, text }) => {
    const start = fragmentStart.exec(text);
    if (start === null) return [];
    const message = `a comment starts with a noun or a verb, not with "${start[0]}": ${text.slice(0, 60)}`;
    return [{ path: file.path, line, message }];
  });
}

/** Finds banned words: in any line of a page, in comments and strings of a source. */
export function checkWords(file: SourceFile): Finding[] {
  const isSource = file.path.endsWith(".ts");
  return file.text.split("\n").flatMap((text, index) => {
    const found = bannedInText.filter(({ pattern }) => pattern.test(text));
    const words = isSource ? namesIn(text) : [];
    const names = bannedInNames.filter(({ pattern }) => words.some((word) => pattern.test(word)));
    return [...found, ...names].map(({ pattern, use }) => ({
      path: file.path,
      line: index + 1,
      message: `${pattern.exec(text)?.[0] ?? pattern.source}: use ${use}`,
    }));
  });
}

/** Returns the words of the identifiers of a line of code, in lower case. */
function namesIn(line: string): string[] {
  const code = line.replace(/^\s*(\/?\*|\/\/).*$/, "").replace(/"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`/g, "").replace(
    /\/\/.*$/,
    "",
  );
  return (code.match(/[A-Za-z_$][\w$]*/g) ?? []).flatMap((name) =>
    name.replace(/([a-z0-9])([A-Z])/g, "$1_$2").toLowerCase().split("_")
  );
}

/** Checks that each exported type has a unique name in the product, so that a search finds one declaration. */
export function checkTypeNames(files: readonly SourceFile[]): Finding[] {
  const declared = new Map<string, { path: string; line: number }[]>();
  for (const { path, text } of files) {
    if (!/^(src|commands)\//.test(path)) continue;
    text.split("\n").forEach((line, index) => {
      const name = /^(?:export )?(?:abstract )?(?:interface|type|class|enum) (\w+)/.exec(line)?.[1];
      if (name !== undefined) declared.set(name, [...declared.get(name) ?? [], { path, line: index + 1 }]);
    });
  }
  return [...declared].filter(([, places]) => places.length > 1).flatMap(([name, places]) =>
    places.slice(1).map(({ path, line }) => ({
      path,
      line,
      message: `the type name ${name} is declared in ${places[0]?.path}, too`,
    }))
  );
}
