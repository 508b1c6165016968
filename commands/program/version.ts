/** Defines `baton version`, which prints the release, the commit that was compiled, its date, and the platform. */
import { readBuildFacts } from "../../src/base/support/build.ts";
import { printJson } from "../../src/base/terminal/io.ts";
import { toggleSetting } from "../../src/base/config/setting.ts";
import { BatonError } from "../../src/base/errors.ts";
import { type Command, defineCommand } from "../command.ts";
import type { AllProductSettings } from "../product.ts";
import { exitCodes } from "../../src/base/exit_codes.ts";
import type { VersionJson } from "../json_shapes/machine_shapes.ts";

export function versionCommandFor(loadSettings: () => Promise<AllProductSettings>): Command {
  return defineCommand({
    name: "version",
    summary: "print the version, the commit, its date, and the platform",
    usage: "[options]",
    details: [
      "The date is the one of the commit, or SOURCE_DATE_EPOCH of the build. A commit with -dirty was built with " +
      "changes that are not part of it. baton --version prints the same. With --verbose, also the paths of the " +
      "files, folders and sockets that this user's commands use.",
    ],
    examples: [
      ["baton version", "one line for people"],
      ["baton version --verbose", "with the paths of configuration and state"],
      ["baton version --json", "for programs"],
    ],
    settings: { json: toggleSetting("--json", { help: "print one JSON object" }) },
    runsNothing: true,
    async run({ names, values, io }) {
      if (names.length > 0) throw new BatonError("USAGE", `baton version takes no arguments, not "${names.join(" ")}"`);
      const facts: VersionJson = readBuildFacts();
      const paths = values.verbose
        ? await (await import("./used_paths.ts")).findUsedPaths(io.env, (await loadSettings()).inFiles)
        : undefined;
      if (values.json) printJson<VersionJson>(io, paths === undefined ? facts : { ...facts, paths });
      else {
        io.out(versionLine(facts));
        for (const { what, path, exists } of paths ?? []) io.out(`${what}: ${path}${exists ? "" : " (not there)"}\n`);
      }
      return exitCodes.SUCCESS;
    },
  }) as Command;
}

/** Returns a line such as `baton 0.1.0 (commit 0123456789ab, 2026-01-31, linux-x64)`. */
export function versionLine({ release, commit, date, platform }: VersionJson): string {
  const facts = [
    ...(commit === null ? [] : [`commit ${commit.replace(/^([0-9a-f]{12})[0-9a-f]*/, "$1")}`]),
    ...(date === null ? [] : [date.slice(0, "2026-01-31".length)]),
    platform,
  ];
  return `baton ${release} (${facts.join(", ")})\n`;
}
