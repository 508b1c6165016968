/** Publishes a verified release: first the npm packages, then all files as a release of the repository. */
import { join } from "node:path";
import { shellQuoteIfNeeded } from "../../src/base/support/shell_quote.ts";
import { filePathsBelow } from "./contents.ts";
import { npmMainPackageName, npmPackageFile, npmPlatformPackageName } from "./npm_packages.ts";
import { releasePlatforms } from "./platforms.ts";
import { ReleaseError, type ReleaseProject } from "./project.ts";
import { runTool, runToolOrThrow } from "./run_tool.ts";

/** Throws unless the commit has the version's tag and the user is logged in to npm. */
export async function checkPublishable({ root, version }: ReleaseProject): Promise<void> {
  const git = async (...words: string[]) => (await runToolOrThrow(["git", ...words], { cwd: root })).trim();
  if (await git("status", "--porcelain") !== "") {
    throw new ReleaseError(78, "there are changes that are not committed; a release is made of a commit");
  }
  const tags = (await git("tag", "--points-at", "HEAD")).split("\n");
  if (!tags.includes(`v${version}`)) {
    throw new ReleaseError(78, `this commit does not have the tag v${version}; to try it out use --dry-run`);
  }
  const who = await runTool(["npm", "whoami"], { cwd: root });
  if (who.code !== 0) throw new ReleaseError(77, "npm has no login that can publish; see npm help login");
}

export interface ReleasePublication {
  readonly command: readonly string[];
  /** The npm package, as NAME@VERSION; null for the release of the repository. */
  readonly npmPackage: string | null;
}

/** Returns what to publish. The platform packages come first, because the main package depends on them. */
export function listPublications(project: ReleaseProject, outFolder: string): ReleasePublication[] {
  const names = [
    ...releasePlatforms.map((platform) => npmPlatformPackageName(project, platform)),
    npmMainPackageName(project),
  ];
  const tag = `v${project.version}`;
  const files = filePathsBelow(outFolder).filter((path) => !path.startsWith("npm/")).map((path) =>
    join(outFolder, path)
  );
  return [
    ...names.map((name) => ({
      command: ["npm", "publish", "--access", "public", join(outFolder, npmPackageFile(project, name))],
      npmPackage: `${name}@${project.version}`,
    })),
    {
      command: ["gh", "release", "create", tag, "--verify-tag", "--title", `baton ${tag}`, ...files],
      npmPackage: null,
    },
  ];
}

/** Returns the command as a user can type it. */
export const formatCommand = (command: readonly string[]): string => command.map(shellQuoteIfNeeded).join(" ");

/** Publishes, skipping npm packages that are already published, so that a failed release can be repeated. */
export async function publishRelease(all: readonly ReleasePublication[], say: (line: string) => void): Promise<void> {
  for (const { command, npmPackage } of all) {
    if (npmPackage !== null && (await runTool(["npm", "view", npmPackage, "version"])).stdout.trim() !== "") {
      say(`${npmPackage} is already published`);
      continue;
    }
    say(formatCommand(command));
    await runToolOrThrow(command, { minutesMax: 30 });
  }
}
