/**
 * Rules for the pages that users read: their length, the phrases of plain English, and claims that need their limit.
 * docs/protocol, docs/adr and docs/development are for contributors, and have no budget.
 */
import { type Finding, type SourceFile } from "./source_file.ts";

/** The most words of all pages for users. */
const wordsMax = 45_000;
const guideWordsMax = 1_500;
/** The most words of single pages. */
const budgets: Readonly<Record<string, number>> = {
  "README.md": 900,
  "CONTRIBUTING.md": 900,
  "CHANGELOG.md": 250,
  "SECURITY.md": 350,
  "docs/README.md": 250,
  "docs/tutorial.md": 900,
  "docs/install.md": 1_400,
  "docs/limits.md": 1_800,
  "docs/glossary.md": 900,
  "docs/crontab.md": 700,
  "docs/json.md": 700,
  "docs/exit_codes.md": 450,
  "docs/message_semantics.md": 1_200,
  "docs/retry_semantics.md": 1_300,
  "docs/development/architecture.md": 1_800,
  "docs/development/testing.md": 2_000,
};

const userPage = /^(README\.md|docs\/[^/]+\.md|docs\/(guides|commands)\/[^/]+\.md)$/;

export function isUserPage(path: string): boolean {
  return userPage.test(path);
}

/** Returns the number of words as `wc -w` counts them, the marks of tables included, without comments of HTML. */
export function countWords(page: string): number {
  return page.replace(/<!--.*?-->/gs, "").split(/\s+/).filter((word) => word !== "").length;
}

function budgetOf(path: string): number {
  return budgets[path] ?? (path.startsWith("docs/guides/") ? guideWordsMax : Infinity);
}

/** Checks that no page has more words than its budget, and all pages for users no more than theirs. */
export function checkWordBudgets(pages: readonly SourceFile[]): Finding[] {
  const counted = pages.map(({ path, text }) => ({ path, words: countWords(text) }));
  const sum = counted.filter(({ path }) => isUserPage(path)).reduce((total, { words }) => total + words, 0);
  return [
    ...counted.filter(({ path, words }) => words > budgetOf(path)).map(({ path, words }) => ({
      path,
      line: 1,
      message: `${words} words; its budget is ${
        budgetOf(path)
      }: shorten it, or move a part to the page that it belongs to`,
    })),
    ...sum <= wordsMax ? [] : [{
      path: "docs",
      line: 1,
      message: `the pages for users have ${sum} words; their budget is ${wordsMax}`,
    }],
  ];
}

/** Phrases that a native speaker would not write, and what to write instead. */
const phrases: readonly { readonly pattern: RegExp; readonly use: string }[] = [
  { pattern: /\b(is|are|was) refused\b(?! \(|;| while)/i, use: '"baton rejects", "exits with", "fails"' },
  { pattern: /\b(is|are) left out\b|\bleave out\b/i, use: '"is skipped", "omit"' },
  { pattern: /\b(?<!so |says |means |shows )(that of|those of)\b/i, use: "a possessive, or the noun again" },
  { pattern: /\bwithout need\b/i, use: '"needlessly"' },
  { pattern: /\b(is|are) told\b(?! of| how)/i, use: '"learns", "baton reports to"' },
  { pattern: /\bis noticed\b/i, use: '"baton detects"' },
  { pattern: /\b(ask|asked|take|taken) back\b/i, use: '"break", "broken"' },
  { pattern: /\b(a|by) repetition\b/i, use: '"a retry", "retrying"' },
  { pattern: /\bshall\b/i, use: '"must", "should", or the present tense' },
  { pattern: /\boperator's word\b/i, use: "the names of the commands" },
  { pattern: /\bany longer\b/i, use: '"no longer" before the verb' },
  { pattern: /\bcomes? again\b/i, use: '"is delivered again"' },
  { pattern: /\bwhatever\b/i, use: '"any", "even if", or the cases' },
  { pattern: /\bmeanwhile\b/i, use: '"until then", or nothing' },
  { pattern: /\balso (if|when|where)\b/i, use: '"even if", "even when"' },
  { pattern: /\b(say|says) so\b(?! on)/i, use: '"reports it", "prints a message"' },
  { pattern: /\bof its own\b/i, use: '"its own files", "a separate one"' },
];

/** Finds phrases of translated English in a page for users. */
export function checkPhrases({ path, text }: SourceFile): Finding[] {
  if (!isUserPage(path)) return [];
  return text.split("\n").flatMap((line, index) =>
    phrases.filter(({ pattern }) => pattern.test(line)).map(({ pattern, use }) => ({
      path,
      line: index + 1,
      message: `${pattern.exec(line)?.[0]}: write ${use}`,
    }))
  );
}

/** What gives the claim "exactly once" its limit, in the same paragraph. */
const limit = /\]\([^)]*\)|limit|except|unless|repeat|again|--out-dir|file|store|acknowledg|at least once/i;

/** Checks that "exactly once" stands beside what it covers, or beside a link to it. */
export function checkExactlyOnce({ path, text }: SourceFile): Finding[] {
  if (!isUserPage(path)) return [];
  let line = 1;
  return text.split(/(\n\n+)/).flatMap((paragraph) => {
    const start = line;
    line += paragraph.split("\n").length - 1;
    if (!/exactly once/i.test(paragraph) || limit.test(paragraph)) return [];
    return [{ path, line: start, message: '"exactly once" needs its limit, or a link to it, in the same paragraph' }];
  });
}

/** Checks that pages for users do not send their readers to pages for contributors. */
export function checkAudience({ path, text }: SourceFile): Finding[] {
  if (!/^docs\/(guides|commands)\//.test(path)) return [];
  return text.split("\n").flatMap((line, index) =>
    /\]\((\.\.\/)+(development|adr)\//.test(line)
      ? [{ path, line: index + 1, message: "a guide does not link to pages for contributors" }]
      : []
  );
}
