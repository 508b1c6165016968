/**
 * Delivers messages to a command, which gets the body as stdin. If the processor dies, the guard kills the command
 * within a second. At that time the lease still holds, so no other processor tries the message yet.
 */
import { statSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import type { JobTable } from "../../base/process/proc/job_table.ts";
import { resolveCommand } from "../../base/process/spawn/resolve_command.ts";
import type { CommandGuard } from "../../base/process/guard/guard.ts";
import { BatonError, type ErrorCode } from "../../base/errors.ts";
import type { TryLease } from "../queue/processor_lease.ts";
import type { ClaimedMessage, MessageHead } from "../queue/stored_message.ts";
import { type Target, type TryResult, tryResult } from "./target.ts";
import { outcomeOfExit, type RetryRules } from "./outcome.ts";
import type { Clock } from "../../base/support/clock.ts";
import { runWithInput } from "./run_with_input.ts";

export interface CommandTargetOptions {
  /** The shell command that gets every message; null if each message has a command of its own. */
  readonly line: string | null;
  readonly rules: RetryRules;
  /** Returns the exit code that stands for an error, such as 127 if the command is not found. */
  readonly exitCodeOf: (code: ErrorCode) => number;
  readonly timeoutMs: number;
  readonly killAfterMs: number;
  readonly storeName: string;
  readonly guard: CommandGuard;
  readonly jobTable: JobTable;
  readonly clock: Clock;
  readonly hangUpIgnored: boolean;
  /** Called for each message that cannot be tried because the processor has neither a command nor a URL for it. */
  readonly onNoCommand: () => void;
  /** Called if SIGKILL has not ended a command. `what` names its processes. */
  readonly onUnstoppable: (id: string, what: string) => void;
}

export class CommandTarget implements Target {
  readonly #options: CommandTargetOptions;

  constructor(options: CommandTargetOptions) {
    this.#options = options;
  }

  async deliver(message: ClaimedMessage, lease: TryLease): Promise<TryResult> {
    const { line, rules, timeoutMs, killAfterMs, guard, jobTable, clock, hangUpIgnored } = this.#options;
    const command = line === null ? commandOf(message.head) : { argv: ["/bin/sh", "-c", line] as const, cwd: null };
    if (command === null) {
      this.#options.onNoCommand();
      const why = "the message has no command or URL of its own, and the processor has neither --exec nor --url";
      return { kind: "held_back", why };
    }
    if (command.cwd !== null && !isFolder(command.cwd)) {
      return tryResult("retry", `could not be run: its working directory ${command.cwd} does not exist`);
    }
    const ended = await runWithInput({
      command: command.argv,
      env: messageEnvironment(message, this.#options.storeName),
      cwd: command.cwd,
      body: message.body,
      beside: jobTable,
      onEvent: (event) => {
        if (event.kind === "unstoppable") this.#options.onUnstoppable(message.id, event.what);
      },
      lease,
      clock,
      guard,
      timeoutMs,
      killAfterMs,
      hangUpIgnored,
    });
    if (ended.kind === "not_started") return { kind: "not_begun", why: ended.error.message, error: ended.error };
    const { outcome: end, code, how } = ended;
    const isStoppedLate = end.kind === "breach" && end.isDead; // its lease has ended
    if (end.kind === "lost" || end.kind === "cancelled" || isStoppedLate) return { kind: "lost" };
    if (end.kind === "breach") {
      const pids = end.survivors.join(", ");
      return {
        kind: "breach",
        error: new BatonError("FENCE_BREACH", `The command for message ${message.id} ${how}: process ${pids}`),
      };
    }
    if (end.kind === "start_failed") {
      return { kind: "not_begun", why: how, error: new BatonError("START_FAILED", end.message) };
    }
    // The message is not the cause of this stop, but the try counts.
    if (end.kind === "revoked") return tryResult("retry", how);
    const outcome = outcomeOfExit(typeof code === "number" ? code : this.#options.exitCodeOf(code), rules);
    return tryResult(outcome, outcome === "done" ? null : how);
  }
}

export function messageEnvironment(
  { id, tries, fence, key }: Pick<ClaimedMessage, "id" | "tries" | "fence" | "key">,
  storeName: string,
): Record<string, string | undefined> {
  return {
    BATON_MESSAGE_ID: id,
    BATON_MESSAGE_TRY: String(tries + 1),
    BATON_MESSAGE_FENCE: String(fence),
    BATON_MESSAGE_KEY: key ?? "",
    BATON_MESSAGE_STORE: storeName,
  };
}

/**
 * Returns the command of the message; null if the message has none. A relative path to a program is resolved from the
 * directory where the command was stored.
 */
function commandOf(head: MessageHead): { readonly argv: readonly string[]; readonly cwd: string | null } | null {
  if (head.kind !== "command" || head.argv === null) return null;
  const [name = "", ...args] = head.argv;
  const isRelative = head.cwd !== null && name.includes("/") && !isAbsolute(name);
  return { argv: [isRelative ? join(head.cwd ?? "", name) : name, ...args], cwd: head.cwd };
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/**
 * Looks for the program of a simple shell command before the first try. If its name is mistyped, every message would
 * become a dead letter. Throws COMMAND_NOT_FOUND or NOT_EXECUTABLE.
 */
export function checkExecLine(line: string, path: string | undefined): void {
  const [word = ""] = line.trim().split(/\s+/);
  if (!/^[\w./+-]+$/.test(word) || shellWords.has(word)) return;
  const found = resolveCommand(word, path);
  if (found.kind === "not_found") throw new BatonError("COMMAND_NOT_FOUND", `--exec: ${found.message}`);
  if (found.kind === "not_executable") throw new BatonError("NOT_EXECUTABLE", `--exec: ${found.message}`);
}

/**
 * Reserved words and built-in commands of the shell (POSIX 2.4 and 2.14). They work although there is no file with
 * their name.
 */
const shellWords: ReadonlySet<string> = new Set(
  ("if for while until case . : break continue eval exec exit export readonly return set shift times trap unset cd " +
    "read umask command type alias wait ulimit hash").split(" "),
);
