/** Reads a crontab file of this machine. */
import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { BatonError, systemCallErrorReason } from "../../base/errors.ts";
import { encodeLockName } from "../nodes/node_paths.ts";
import { resolveCommand } from "../../base/process/spawn/resolve_command.ts";
import { readBytesAtMost } from "../../base/support/read_at_most.ts";
import { countWithNoun, decodeUtf8 } from "../../base/support/text.ts";
import type { Io } from "../../base/terminal/io.ts";
import { chooseScheduleZone } from "../../base/schedule/local_zone.ts";
import { type Crontab, type CrontabProblem, parseCrontab } from "./crontab.ts";

const fileBytesMax = 1024 * 1024;
/** The PATH of commands if the file sets none, as in cron. */
export const cronSearchPath = "/usr/local/bin:/usr/bin:/bin";

/**
 * Reads and parses a crontab file. If `waits` is true, the file may be a pipe, which is read until its writers have
 * closed it. Throws IO if the file cannot be read, BAD_DATA if it is too long or not UTF-8, or USAGE for an invalid
 * time zone.
 */
export function readCrontab(
  file: string,
  env: Io["env"],
  { timezone, waits }: { readonly timezone: string | undefined; readonly waits: boolean },
): Crontab {
  let bytes: Uint8Array;
  try {
    const { O_RDONLY, O_NONBLOCK } = constants;
    const fd = openSync(file, waits ? O_RDONLY : O_RDONLY | O_NONBLOCK);
    try {
      if (!waits && !fstatSync(fd).isFile()) {
        throw new Error("it is not a regular file, and a running service does not wait for it");
      }
      bytes = readBytesAtMost(fd, fileBytesMax);
    } finally {
      closeSync(fd);
    }
  } catch (cause) {
    throw new BatonError("IO", `Cannot read the crontab ${file}: ${systemCallErrorReason(cause)}`, { cause });
  }
  if (bytes.length > fileBytesMax) {
    throw new BatonError("BAD_DATA", `The crontab ${file} has more than ${fileBytesMax / 1024} KiB`);
  }
  const zone = chooseScheduleZone(timezone, env);
  const users = usersOfMachine();
  return parseCrontab(decodeUtf8(bytes, file), {
    group: groupOf(file),
    zone,
    isUser: (word) => users.has(word),
    isProgram: (word, path = cronSearchPath) => resolveCommand(word, path).kind === "found",
  });
}

/**
 * Returns the file's base name without its extension. Throws USAGE if this name cannot be the beginning of a lock's
 * name.
 */
function groupOf(file: string): string {
  const name = basename(file).replace(/(?<=.)\.[^.]*$/, "");
  encodeLockName(name);
  return name;
}

function usersOfMachine(): ReadonlySet<string> {
  try {
    return new Set(readFileSync("/etc/passwd", "utf8").split("\n").map((line) => line.split(":")[0] ?? ""));
  } catch {
    return new Set(); // containers may have no user database
  }
}

export function printCrontabProblems(io: Io, file: string, { mistakes, warnings }: Crontab, quiet: boolean): void {
  const print = ({ line, what }: CrontabProblem, kind: string) => io.err(`baton: ${file}:${line}: ${kind}${what}\n`);
  for (const mistake of mistakes) print(mistake, "");
  if (!quiet) { for (const warning of warnings) print(warning, "warning: "); }
}

/** Prints the problems of a file and throws CONFIG if the file has mistakes. */
export function requireValidCrontab(io: Io, file: string, crontab: Crontab, quiet: boolean): void {
  if (crontab.mistakes.length === 0) return;
  printCrontabProblems(io, file, crontab, quiet);
  throw new BatonError("CONFIG", `The crontab ${file} has ${countWithNoun(crontab.mistakes.length, "mistake")}`);
}
