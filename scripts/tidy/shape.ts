/** Rules about files: their names, their length, and what they must not contain. */
import { posix } from "node:path";
import { listFunctions } from "./functions.ts";
import { findInCode, type Finding, type SourceFile } from "./source_file.ts";

const fileLinesMax = 800;
const functionLinesMax = 70;
const drawers = /\/(utils?|helpers?|common|misc|index)\.ts$/;

/** Checks the name and length of a TypeScript file and of its functions. */
export function checkFileShape(file: SourceFile): Finding[] {
  const findings: Finding[] = [];
  const say = (line: number, message: string) => findings.push({ path: file.path, line, message });
  if (drawers.test(file.path)) say(1, "a file is named after what is in it, not after a drawer");
  if (!/^[a-z0-9_/]+(\.d)?\.tsx?$/.test(file.path)) say(1, "file and folder names are snake_case");
  const lines = file.text.trimEnd().split("\n");
  if (lines.length > fileLinesMax) say(1, `the file has ${lines.length} lines; ${fileLinesMax} are the limit`);
  if (!file.path.startsWith("test/") && !/^(#!.*\n)?\/\*\*/.test(file.text)) {
    say(1, "a module opens with a comment that says what it owns");
  }
  // The callback of a test suite may be long.
  for (const { start, end } of file.path.startsWith("test/") ? [] : listFunctions(file)) {
    const length = end - start + 1;
    if (length > functionLinesMax) {
      say(start + 1, `the function has ${length} lines; ${functionLinesMax} are the limit`);
    }
  }
  return findings;
}

/** Checks that tests wait for events. A fixed time is too long on one machine and too short on another. */
export function checkWaits(file: SourceFile): Finding[] {
  if (!file.path.startsWith("test/")) return [];
  const message = "no literal sleeps: wait for an event, or use eventually()";
  return findInCode(file, /\b(Bun\.)?sleep(Sync)?\([\d_]+|setTimeout\(\w+, [\d_]+\)\)/, message);
}

/** Finds folders that exist only on one developer's machine. Applies to every text of the project. */
export function checkMachinePaths(file: SourceFile): Finding[] {
  const pattern = /(?<![\w$.}])\/(work|root|home\/\w+|Users\/\w+)\//;
  return file.text.split("\n").flatMap((text, index) =>
    pattern.test(text) ? [{ path: file.path, line: index + 1, message: "this folder exists on one machine only" }] : []
  );
}

/** Checks that links lead to a file and, in a page, to a heading. `read` returns the text of a path, or null. */
export function checkLinks(file: SourceFile, read: (path: string) => string | null): Finding[] {
  if (!file.path.endsWith(".md")) return [];
  return file.text.split("\n").flatMap((text, index) =>
    [...text.matchAll(/\]\(([^)#:\s]*)(?:#([^)\s]*))?\)/g)].flatMap(([, path = "", anchor = ""]) => {
      const target = path === "" ? file.path : posix.join(posix.dirname(file.path), path);
      const page = path === "" ? file.text : read(target);
      const hasPlace = page !== null && (anchor === "" || !target.endsWith(".md") || anchorsOf(page).includes(anchor));
      const message = page === null ? `there is no ${target}` : `${target} has no heading for #${anchor}`;
      return hasPlace ? [] : [{ path: file.path, line: index + 1, message }];
    })
  );
}

/** Returns the anchors that GitHub gives to the headings of a page. */
function anchorsOf(page: string): string[] {
  const seen = new Map<string, number>();
  return [...page.replace(/^```[^]*?^```$/gm, "").matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) => {
    const anchor = heading.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-");
    const count = seen.get(anchor) ?? 0;
    seen.set(anchor, count + 1);
    return count === 0 ? anchor : `${anchor}-${count}`;
  });
}

/** Checks that `deno task` and `npm run` know the same names, except those of npm's own life cycle. */
export function checkTasks(packageJson: string, denoJson: string): Finding[] {
  const { prepublishOnly: _, ...known } = (JSON.parse(packageJson) as { scripts: Record<string, string> }).scripts;
  const scripts = JSON.stringify(known);
  const tasks = JSON.stringify((JSON.parse(denoJson) as { tasks: unknown }).tasks);
  if (scripts === tasks) return [];
  return [{ path: "deno.json", line: 1, message: "its tasks differ from the scripts of package.json" }];
}
