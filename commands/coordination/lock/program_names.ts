/**
 * Rejects a call that has a program among several lock names, because it is ambiguous. For example, `baton lock deploy
 * kubectl exec pod -- rm -rf cache` may mean a command under the lock "deploy", or `rm -rf cache` under four locks. The
 * second meaning would run only the end of the command, and on this machine.
 */
import { BatonError } from "../../../src/base/errors.ts";
import { shellQuoteIfNeeded } from "../../../src/base/support/shell_quote.ts";
import { resolveCommand } from "../../../src/base/process/spawn/resolve_command.ts";
import type { ParsedArgs } from "../../../src/base/terminal/parse_args.ts";

/**
 * Returns PATH with the usual folders added. cron's PATH is shorter than a terminal's, but a call must mean the same
 * under both.
 */
function standardPath(path: string | undefined): string {
  const usual = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
  return [...path === undefined ? [] : [path], ...usual].join(":");
}

/** Throws USAGE if a name after the first is a program, unless -- is written twice: `a sort -- -- ./run.sh`. */
export function refuseProgramsAsLockNames(
  { names, command }: Pick<ParsedArgs, "names" | "command">,
  path: string | undefined,
): void {
  if (command === null || command[0] === "--") return;
  const searched = standardPath(path);
  const [lock = "", ...others] = names;
  const program = others.find((name) => resolveCommand(name, searched).kind === "found");
  if (program === undefined) return;
  const line = (...words: readonly string[]) => ["baton lock …", ...words.map(shellQuoteIfNeeded)].join(" ");
  throw new BatonError(
    "USAGE",
    `Several words before -- are names of locks, but "${program}" is a program. If it is a part of the command, ` +
      `write -- before the command: ${line(lock, "--", ...others, "--", ...command)}. ` +
      `If it is a lock, write -- twice: ${line(...names, "--", "--", ...command)}`,
  );
}
