/** `baton version`: the release, the commit that was compiled, its date, and the platform. */
import { readBuildFacts } from "../../src/base/support/build.ts";
import { printJson } from "../../src/base/terminal/io.ts";
import { toggleSetting } from "../../src/base/config/setting.ts";
import { BatonError } from "../../src/base/errors.ts";
import { defineCommand } from "../command.ts";
import { exitCodes } from "../../src/base/exit_codes.ts";
import type { VersionJson } from "../json_shapes/machine_shapes.ts";

export const versionCommand = defineCommand({
  name: "version",
  summary: "print the version, the commit, its date, and the platform",
  usage: "[options]",
  details: [
    "The date is the one of the commit, or SOURCE_DATE_EPOCH of the build. A commit with -dirty was built with " +
    "changes that are not part of it. baton --version prints the same.",
  ],
  examples: [
    ["baton version", "one line for people"],
    ["baton version --json", "for programs"],
  ],
  settings: { json: toggleSetting("--json", { help: "print one JSON object" }) },
  runsNothing: true,
  run({ names, values, io }) {
    if (names.length > 0) throw new BatonError("USAGE", `baton version takes no arguments, not "${names.join(" ")}"`);
    const facts = readBuildFacts();
    if (values.json) printJson(io, facts);
    else io.out(versionLine(facts));
    return Promise.resolve(exitCodes.SUCCESS);
  },
});

/** Returns `baton 0.1.0 (commit 0123456789ab, 2026-01-31, linux-x64)`. */
export function versionLine({ release, commit, date, platform }: VersionJson): string {
  const facts = [
    ...(commit === null ? [] : [`commit ${commit.replace(/^([0-9a-f]{12})[0-9a-f]*/, "$1")}`]),
    ...(date === null ? [] : [date.slice(0, "2026-01-31".length)]),
    platform,
  ];
  return `baton ${release} (${facts.join(", ")})\n`;
}
