/** Asks git which files this branch has changed, and for their earlier text. */
import { spawnSync } from "node:child_process";

/** The commit to which the work is compared. */
export interface ChangeBase {
  readonly commit: string;
  /** A noun for messages. */
  readonly name: string;
}

export interface ChangedFile {
  readonly path: string;
  /** The path of the file in the base commit; null if it did not exist. */
  readonly pathBefore: string | null;
}

/** The output of git; null if there is no git, no repository, or no such commit or file. */
function git(root: string, ...args: string[]): string | null {
  const { status, stdout } = spawnSync("git", args, { cwd: root, encoding: "utf8", maxBuffer: 1 << 28 });
  return status === 0 ? stdout : null;
}

/**
 * Returns the merge base with origin/main, or the last commit if there is no such branch. Returns null without a
 * repository.
 */
export function findChangeBase(root: string): ChangeBase | null {
  const mergeBase = git(root, "merge-base", "HEAD", "origin/main")?.trim();
  if (mergeBase !== undefined) {
    return { commit: mergeBase, name: `the merge base with origin/main, ${mergeBase.slice(0, 8)}` };
  }
  const head = git(root, "rev-parse", "HEAD")?.trim();
  if (head === undefined) return null;
  return { commit: head, name: `the last commit, ${head.slice(0, 8)}, because there is no origin/main` };
}

/** Returns the files that differ from the base, including untracked and deleted ones. */
export function listChangedFiles(root: string, base: ChangeBase): ChangedFile[] {
  const differing = git(root, "diff", "--name-status", "--find-renames", "--no-relative", base.commit) ?? "";
  const unknown = git(root, "ls-files", "--others", "--exclude-standard", "--full-name") ?? "";
  return [
    ...differing.split("\n").filter(Boolean).map(changedFile),
    ...unknown.split("\n").filter(Boolean).map((path) => ({ path, pathBefore: null })),
  ];
}

/** Reads a line of `git diff --name-status`: `M path`, `A path`, `R100 path-before path`, divided by tabs. */
export function changedFile(line: string): ChangedFile {
  const [status = "", first = "", second] = line.split("\t");
  if (second !== undefined) return { path: second, pathBefore: first };
  return { path: first, pathBefore: status.startsWith("A") ? null : first };
}

/** Returns the text of a file in a commit; null if it did not exist. */
export function readTextAt(root: string, commit: string, path: string): string | null {
  return git(root, "show", `${commit}:${path}`);
}
