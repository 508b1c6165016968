/**
 * The lease note is a file without a name, in memory, that tells the command's processes how long the lock is held. The
 * file belongs to baton's process and disappears with it. `baton check` reads the note through /proc. Linux only.
 */
import { closeSync, writeSync } from "node:fs";
import process from "node:process";
import type { Lease } from "../lease.ts";
import type { Clock } from "../../support/clock.ts";
import type { Libc } from "../libc.ts";
import { openUnnamedFile } from "../spawn/unnamed_file.ts";

export class LeaseNoteFile implements Disposable {
  readonly #fd: number;
  readonly #unsubscribe: () => void;
  /** The path for other processes, valid while this process lives. */
  readonly path: string;

  private constructor(fd: number, { lease, clock, libc }: { lease: Lease; clock: Clock; libc: Libc }) {
    this.#fd = fd;
    this.path = `/proc/${process.pid}/fd/${fd}`;
    this.#unsubscribe = lease.subscribe(() => this.#renew(noteOf(lease, clock, libc)));
  }

  /**
   * Opens a note. Returns null if the system has no such files or no shared clock; the command must then ask the
   * server.
   */
  static open(
    lease: Lease,
    { clock, libc }: { readonly clock: Clock; readonly libc: Libc | null },
  ): LeaseNoteFile | null {
    if (libc === null || process.platform !== "linux") return null;
    const fd = openUnnamedFile(noteOf(lease, clock, libc));
    return fd === null ? null : new LeaseNoteFile(fd, { lease, clock, libc });
  }

  [Symbol.dispose](): void {
    this.#unsubscribe();
    closeSync(this.#fd);
  }

  /**
   * Writes the new end of the lease. If writing fails, the note keeps the previous end, which is earlier and therefore
   * safe.
   */
  #renew(bytes: Uint8Array): void {
    try {
      writeSync(this.#fd, bytes, 0, bytes.length, 0);
    } catch {
      // the space is allocated already, and no other error is a reason to stop a command
    }
  }
}

/** Returns the note as bytes, because Deno would write a string at the file's current position. */
function noteOf(lease: Lease, clock: Clock, libc: Libc): Uint8Array {
  clock.noticeSuspend();
  // Reads the boot clock before the other clock: a pause between the two makes the end earlier, which is safe.
  const endMs = libc.bootTimeMs() + lease.endMs() - clock.now();
  return new TextEncoder().encode(formatNote(lease.holderId, endMs));
}

/** Returns the text of a note. All notes have the same length, so that one write replaces the previous note. */
function formatNote(holderId: string, endMs: number): string {
  return `baton-lease ${holderId} ${String(Math.floor(endMs)).padStart(20)}\n`;
}
