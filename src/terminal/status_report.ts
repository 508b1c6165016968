/**
 * One JSON line that says for certain what an exit code can only hint at, for `--status-fd` and `--status-file`. Both are
 * opened before anything else happens, so that a call that cannot report does nothing.
 */
import { closeSync, fstatSync, openSync, readFileSync } from "node:fs";
import { BatonError, messageOf } from "../errors.ts";
import { writeWhole } from "../support/write_whole.ts";

/** Version 1. Numbers of 64 bits are decimal texts. */
export interface StatusReport {
  readonly version: 1;
  readonly command: string;
  readonly names: readonly string[];
  /** child_exited, child_signaled, stopped_by_signal, or a failure's name in small letters: lock_busy, lock_lost … */
  readonly reason: string;
  /** What baton exits with; null when it dies of `signal`. */
  readonly exit_code: number | null;
  /** The signal that stopped baton while it waited. */
  readonly signal: string | null;
  /** The child's end; null when none ran. */
  readonly child: { readonly code: number | null; readonly signal: string | null } | null;
  /** In the order of the names; null when the lock was not had. */
  readonly fencing_tokens: readonly string[] | null;
  readonly waited_ms: number | null;
  readonly held_ms: number | null;
  /** Of a pool: what became of its items. */
  readonly items?: Readonly<Record<"claimed" | "done" | "failed" | "busy" | "skipped" | "remaining", number>>;
  /** The sentence on stderr, if there was one. */
  readonly message: string | null;
}

export interface StatusTargets {
  readonly fd?: number | undefined;
  readonly file?: string | undefined;
  /** Descriptors that were open when the process started; one that baton opened itself is nobody's report. */
  readonly inheritedFds: readonly number[];
}

/** Where the report goes. Throws USAGE for a descriptor that is not open for writing, CANNOT_CREATE for a file that cannot be. */
export class StatusWriter implements Disposable {
  readonly #fds: number[] = [];
  readonly #own: number | null;

  constructor(targets: StatusTargets) {
    const { fd, file } = targets;
    if (fd !== undefined) {
      if ((fd > 2 && !targets.inheritedFds.includes(fd)) || !isOpen(fd)) {
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
      this.#fds.push(fd);
    }
    this.#own = file === undefined ? null : create(file);
    if (this.#own !== null) this.#fds.push(this.#own);
  }

  /** Writes one line to each target. Returns what went wrong instead of throwing: the job itself is over. */
  write(report: StatusReport): string[] {
    const line = JSON.stringify(report) + "\n";
    return this.#fds.flatMap((fd) => {
      try {
        writeWhole(fd, line);
        return [];
      } catch (thrown) {
        return [`Cannot write the status: ${messageOf(thrown)}`];
      }
    });
  }

  [Symbol.dispose](): void {
    if (this.#own !== null) closeSync(this.#own);
  }
}

/** open(2): O_ACCMODE, O_RDONLY. */
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

/** Open for reading only: the status could not be written, and that would be noticed when the job is over. Linux tells. */
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
    return openSync(file, "w", 0o666);
  } catch (thrown) {
    throw new BatonError("CANNOT_CREATE", `--status-file ${file}: it cannot be created: ${messageOf(thrown)}`, {
      cause: thrown,
    });
  }
}
