/** The facts that every package states about baton: fields of package.json, and the time of all files. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";

export interface ReleaseProject {
  readonly root: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly author: string;
  /** The scope of the npm packages, with the "@": the setting "config.npmScope" of package.json. */
  readonly scope: string;
  /** The address of the repository in a browser. */
  readonly homepage: string;
  /** The modification time of all packed files, in seconds since 1970. */
  readonly epoch: number;
}

/** A mistake that the caller of scripts/release can correct; printed without a stack. */
export class ReleaseError extends Error {
  readonly exitCode: number;

  constructor(exitCode: number, message: string) {
    super(message);
    this.exitCode = exitCode;
  }
}

interface PackageJson {
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly author: string;
  readonly homepage: string;
  readonly config: { readonly npmScope: string };
}

export function readReleaseProject(root: string): ReleaseProject {
  const { version, description, license, author, homepage, config } = JSON.parse(
    readFileSync(join(root, "package.json"), "utf8"),
  ) as PackageJson;
  const scope = config.npmScope;
  if (!/^@[a-z0-9][a-z0-9._-]*$/.test(scope)) {
    throw new ReleaseError(78, `config.npmScope in package.json is "${scope}"; it has the form @NAME`);
  }
  return { root, version, description, license, author, scope, homepage, epoch: sourceDate(root) };
}

/** Returns SOURCE_DATE_EPOCH, or else the time of the commit, so that two builds of one commit have the same bytes. */
function sourceDate(root: string): number {
  const named = process.env["SOURCE_DATE_EPOCH"];
  if (named !== undefined && named !== "") {
    if (/^\d{1,10}$/.test(named)) return Number(named);
    throw new ReleaseError(64, `SOURCE_DATE_EPOCH is "${named}"; it is a number of seconds since 1970`);
  }
  const { status, stdout } = spawnSync("git", ["log", "-1", "--format=%ct"], { cwd: root, encoding: "utf8" });
  if (status === 0 && /^\d+\s*$/.test(stdout)) return Number(stdout);
  throw new ReleaseError(69, "the time of this source is not known: there is no git commit; set SOURCE_DATE_EPOCH");
}
