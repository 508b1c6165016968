/**
 * Says to the job up to when its lock is held: a file without a name, in memory, that belongs to baton's process and is
 * gone with it. `baton check` reads it through /proc. Linux only.
 */
import { closeSync, constants, readSync, writeSync } from "node:fs";
import process from "node:process";
import type { Lease } from "../lease.ts";
import type { Clock } from "../../support/clock.ts";
import type { Libc } from "../libc.ts";
import { openThroughProc } from "../spawn/open_through_proc.ts";
import { openUnnamedFile } from "../spawn/unnamed_file.ts";

export class LeaseNote implements Disposable {
  readonly #fd: number;
  readonly #lease: Lease;
  readonly #clock: Clock;
  readonly #unsubscribe: () => void;

  private constructor(fd: number, { lease, clock, libc }: { lease: Lease; clock: Clock; libc: Libc }) {
    this.#fd = fd;
    this.#lease = lease;
    this.#clock = clock;
    this.#unsubscribe = lease.subscribe(() => this.#renew(libc));
  }

  /** Null where there can be no such file, or no clock to share: the job then has to ask the server. */
  static open(lease: Lease, { clock, libc }: { readonly clock: Clock; readonly libc: Libc | null }): LeaseNote | null {
    if (libc === null || process.platform !== "linux") return null;
    const fd = openUnnamedFile(noteOf(lease, clock, libc));
    return fd === null ? null : new LeaseNote(fd, { lease, clock, libc });
  }

  /** As long as this process lives. */
  get path(): string {
    return `/proc/${process.pid}/fd/${this.#fd}`;
  }

  [Symbol.dispose](): void {
    this.#unsubscribe();
    closeSync(this.#fd);
  }

  /** One that cannot be written says an earlier end, which is true as well. */
  #renew(libc: Libc): void {
    const bytes = noteOf(this.#lease, this.#clock, libc);
    try {
      writeSync(this.#fd, bytes, 0, bytes.length, 0);
    } catch {
      // its room is taken; what else there may be is no reason to stop a job
    }
  }
}

/** As bytes: Deno writes a text where the file happens to stand. */
function noteOf(lease: Lease, clock: Clock, libc: Libc): Uint8Array {
  clock.noticeSuspend();
  // The boot clock first: a pause between the two makes the end early.
  const endMs = libc.bootTimeMs() + lease.endMs() - clock.now();
  return new TextEncoder().encode(formatNote(lease.holderId, endMs));
}

/** One length, so that each is written over the one before; one write. */
function formatNote(holderId: string, endMs: number): string {
  return `baton-lease ${holderId} ${String(Math.floor(endMs)).padStart(20)}\n`;
}

/** More than a note has; another's file may be of any length. */
const noteBytesMax = 256;

/**
 * On the boot clock, in milliseconds: up to when `holderId` holds. Null when the file is gone, or what is there is another's:
 * then so is the lock. Throws what else the system says, such as EACCES.
 */
export function readLeaseNote(path: string, holderId: string): number | null {
  const fd = openThroughProc(path, constants.O_RDONLY);
  if (fd === null) return null;
  const bytes = Buffer.alloc(noteBytesMax);
  let text: string;
  try {
    text = bytes.toString("latin1", 0, readSync(fd, bytes, 0, noteBytesMax, 0));
  } finally {
    closeSync(fd);
  }
  const [, id, end] = /^baton-lease (\S+) +(-?\d+)\n$/.exec(text) ?? [];
  return id === holderId && end !== undefined ? Number(end) : null;
}
