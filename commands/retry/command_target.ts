/**
 * Messages to a command: the body is its stdin. Under the guard, so that a try is dead when its processor has been for a second,
 * and before the lease ends that keeps others from trying the same.
 */
import { statSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import type { JobTable } from "../../src/process/proc/job_table.ts";
import { resolveCommand } from "../../src/process/spawn/resolve_command.ts";
import type { Guard } from "../../src/process/guard/guard.ts";
import { BatonError } from "../../src/errors.ts";
import type { TryLease } from "../../src/retry/queue/processor_lease.ts";
import type { ClaimedMessage, MessageHead } from "../../src/retry/queue/stored_message.ts";
import type { Attempt, Target } from "../../src/retry/targets/target.ts";
import { type RetryRules, verdictOfExit } from "../../src/retry/targets/outcome.ts";
import type { Clock } from "../../src/support/clock.ts";
import { superviseInput } from "./supervise_input.ts";

export interface CommandTargetOptions {
  /** A line of shell for every message; null: each brings its own command. */
  readonly line: string | null;
  readonly rules: RetryRules;
  readonly timeoutMs: number;
  readonly killAfterMs: number;
  readonly storeName: string;
  readonly guard: Guard;
  readonly beside: JobTable;
  readonly clock: Clock;
  readonly hangUpIgnored: boolean;
}

export class CommandTarget implements Target {
  readonly #options: CommandTargetOptions;

  constructor(options: CommandTargetOptions) {
    this.#options = options;
  }

  async attempt(message: ClaimedMessage, lease: TryLease): Promise<Attempt> {
    const { line, rules, timeoutMs, killAfterMs, guard, beside, clock, hangUpIgnored } = this.#options;
    const command = line === null ? commandOf(message.head) : { argv: ["/bin/sh", "-c", line] as const, cwd: null };
    if (command === null) return failed("final", "it has no command of its own, and --exec names none");
    if (command.cwd !== null && !isFolder(command.cwd)) {
      return failed("retry", `its folder ${command.cwd} is not there`);
    }
    const ended = await superviseInput({
      command: command.argv,
      env: messageEnvironment(message, this.#options.storeName),
      cwd: command.cwd,
      body: message.body,
      ...{ lease, clock, guard, beside, timeoutMs, killAfterMs, hangUpIgnored },
    });
    if (ended.kind === "refused") return { kind: "not_begun", why: ended.error.message, error: ended.error };
    const { outcome, code, how } = ended;
    if (outcome.kind === "lost" || outcome.kind === "cancelled") return { kind: "lost" };
    if (outcome.kind === "breach") {
      const pids = outcome.survivors.join(", ");
      return { kind: "breach", error: new BatonError("FENCE_BREACH", `The try of ${message.id} ${how}: ${pids}`) };
    }
    if (outcome.kind === "start_failed") {
      return { kind: "not_begun", why: how, error: new BatonError("START_FAILED", outcome.message) };
    }
    // That baton was told to end says nothing about the message, but the try was one.
    const verdict = outcome.kind === "revoked" ? "retry" : verdictOfExit(code, rules);
    const works = outcome.kind === "revoked" ? null : verdict !== "retry";
    return { kind: "tried", end: { verdict, retryAfterMs: null }, error: verdict === "done" ? null : how, works };
  }
}

/** What a tried command learns of its message. */
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

/** A program that is named by a path from the folder it ran in is looked for there. */
function commandOf(head: MessageHead): { readonly argv: readonly string[]; readonly cwd: string | null } | null {
  if (head.kind !== "command" || head.argv === null) return null;
  const [name = "", ...args] = head.argv;
  const isBeside = head.cwd !== null && name.includes("/") && !isAbsolute(name);
  return { argv: [isBeside ? join(head.cwd ?? "", name) : name, ...args], cwd: head.cwd };
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function failed(verdict: "retry" | "final", error: string): Attempt {
  return { kind: "tried", end: { verdict, retryAfterMs: null }, error, works: null };
}

/**
 * A line that is one plain command is looked for before any message is tried: a word mistyped would else make a dead letter of
 * every message. Throws NOT_FOUND, NOT_EXECUTABLE.
 */
export function checkLine(line: string, path: string | undefined): void {
  const [word = ""] = line.trim().split(/\s+/);
  if (!/^[\w./+-]+$/.test(word) || shellWords.has(word)) return;
  const found = resolveCommand(word, path);
  if (found.kind === "not_found") throw new BatonError("COMMAND_NOT_FOUND", `--exec: ${found.message}`);
  if (found.kind === "not_executable") throw new BatonError("NOT_EXECUTABLE", `--exec: ${found.message}`);
}

/** POSIX 2.4 and 2.14: the shell's own, of which no file is to be found. */
const shellWords: ReadonlySet<string> = new Set(
  ("if for while until case . : break continue eval exec exit export readonly return set shift times trap unset cd read " +
    "umask command type alias wait ulimit hash").split(" "),
);
