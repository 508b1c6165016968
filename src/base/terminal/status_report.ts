/**
 * Writes the report of `--status-fd` and `--status-file`: one JSON line that says exactly how a call of baton ended.
 * Opens both targets before the call does anything: a call that cannot report does nothing.
 */
import { closeSync, fstatSync, readFileSync } from "node:fs";
import { BatonError, systemCallErrorReason } from "../errors.ts";
import { wasStreamClosedAtStart } from "../process/spawn/inherited_descriptors.ts";
import { openOutputFile } from "../support/open_output.ts";
import { writeAllBytes } from "../support/write_whole.ts";

/** The report of a call, in version 1. 64-bit numbers are decimal texts. */
export interface CommandStatusReport {
  readonly version: 1;
  readonly command: string;
  readonly names: readonly string[];
  /**
   * One of command_exited, command_signaled, all_arrived and stopped_by_signal, or an error code in lower case, such as
   * lock_busy.
   */
  readonly reason: string;
  /** The exit code of baton; null if `signal` ended baton. */
  readonly exit_code: number | null;
  /** The signal that stopped baton while it waited, or that ended the command and then baton. */
  readonly signal: string | null;
  /** How the command ended; null if no command ran. */
  readonly command_status: { readonly code: number | null; readonly signal: string | null } | null;
  /** The fencing tokens in the order of the names; null if the lock was not acquired. */
  readonly fencing_tokens: readonly string[] | null;
  readonly waited_ms: number | null;
  readonly held_ms: number | null;
  /** The number of items in each state, for a pool; other reports do not have it. */
  readonly items?: Readonly<Record<"claimed" | "done" | "failed" | "busy" | "skipped" | "remaining", number>>;
  readonly message: string | null;
}

export interface StatusReportTargets {
  readonly fd?: number | undefined;
  readonly file?: string | undefined;
  /**
   * The descriptors that were open when the process started. baton opened all other descriptors itself, so they are not
   * valid targets.
   */
  readonly inheritedFds: readonly number[];
}

/**
 * Writes the report. The constructor throws USAGE for a descriptor that is not open for writing, and CANNOT_CREATE if
 * it cannot create the file.
 */
export class StatusReportWriter implements Disposable {
  readonly #fds = new Map<string, number>();
  readonly #own: number | null;

  constructor(targets: StatusReportTargets) {
    const { fd, file } = targets;
    if (fd !== undefined) {
      if ((fd > 2 ? !targets.inheritedFds.includes(fd) : wasStreamClosedAtStart(fd)) || !isOpen(fd)) {
        throw new BatonError(
          "USAGE",
          `--status-fd ${fd}: descriptor ${fd} is not open; open it in the shell with ${fd}>FILE`,
        );
      }
      if (isReadOnly(fd)) {
        throw new BatonError(
          "USAGE",
          `--status-fd ${fd}: descriptor ${fd} is open for reading only; open it in the shell with ${fd}>FILE`,
        );
      }
      this.#fds.set(`--status-fd ${fd}`, fd);
    }
    this.#own = file === undefined ? null : create(file);
    if (this.#own !== null) this.#fds.set(`--status-file ${file}`, this.#own);
  }

  /**
   * Writes the report to each target. Returns error messages instead of throwing, because the command has already
   * ended.
   */
  write(report: CommandStatusReport): string[] {
    const line = JSON.stringify(report) + "\n";
    return [...this.#fds].flatMap(([option, fd]) => {
      try {
        writeAllBytes(fd, line);
        return [];
      } catch (thrown) {
        return [`Cannot write ${option}: ${systemCallErrorReason(thrown)}; the report of this call is lost`];
      }
    });
  }

  [Symbol.dispose](): void {
    if (this.#own !== null) closeSync(this.#own);
  }
}

/** O_ACCMODE and O_RDONLY of open(2). */
const accessModes = 3;
const readOnly = 0;

function isOpen(fd: number): boolean {
  try {
    fstatSync(fd);
    return true;
  } catch {
    return false;
  }
}

/**
 * Returns true if /proc shows that a descriptor is open for reading only. Without this check, writing the report would
 * fail only after the command has run.
 */
function isReadOnly(fd: number): boolean {
  try {
    const [, flags = ""] = /^flags:\s*([0-7]+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "latin1")) ?? [];
    return flags !== "" && (Number.parseInt(flags, 8) & accessModes) === readOnly;
  } catch {
    return false;
  }
}

function create(file: string): number {
  try {
    return openOutputFile(file, "replace");
  } catch (thrown) {
    throw new BatonError(
      "CANNOT_CREATE",
      `--status-file ${file}: cannot create the file: ${systemCallErrorReason(thrown)}`,
      {
        cause: thrown,
      },
    );
  }
}
