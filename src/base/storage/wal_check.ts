/**
 * Checks SQLite's write-ahead log. SQLite reads the log up to the first frame that does not fit, and takes that for the
 * end of the log, as after a crash. If a bit has flipped in that frame, SQLite silently omits everything acknowledged
 * since. Two facts reveal such a loss. SQLite writes a frame after a commit only when that commit has been flushed. The
 * index beside the log, which survives a killed process, tells how many frames there were. Source: SQLite's "WAL-mode
 * File Format".
 *
 * This module only reads. Another process may write at the same time, so one read may mix several states. A frame
 * therefore counts as damaged only if it was known to be stored before it was read, and if the log's header is still
 * the same afterwards. SQLite changes no frame of a commit before it restarts the log, which changes the header.
 */
import { closeSync, existsSync, fstatSync, openSync, readSync } from "node:fs";
import { blockThreadFor } from "../support/write_whole.ts";

const logHeaderBytes = 32;
const frameHeaderBytes = 24;
/** The first four bytes of a log, except their last bit. That bit tells the byte order of the checksums. */
const magic = 0x377f0682;
/**
 * The size of the index's header, in bytes. The index begins with two copies of it; SQLite writes the second copy
 * first.
 */
const indexHeaderBytes = 48;
/**
 * The most reads of the log. If the log was restarted during each read, its frames were copied into the database and
 * are not needed.
 */
const readsMax = 20;
/**
 * The number of reads after which an unchanged damaged header counts as damaged. SQLite writes a header with one call,
 * so a header that stays the same is not being written.
 */
const headerReads = 10;
const pauseMs = 3;

/** A pair of 32-bit numbers: a salt or a checksum. */
type NumberPair = readonly [number, number];

interface WalHeader {
  readonly pageBytes: number;
  readonly salts: NumberPair;
  readonly sums: NumberPair;
  readonly isBigEndian: boolean;
}

/**
 * Evidence that a log with these salts has stored at least `count` frames. `why` names the evidence in the message.
 */
interface StoredFrames {
  readonly salts: NumberPair;
  readonly count: number;
  readonly why: string;
}

/** Returns the first bytes of a file, at most `bytesMax`, or null if there is no file. */
export type ReadFileStart = (path: string, bytesMax: number) => Uint8Array | null;

/**
 * Returns a sentence about damage in the log beside the database, or null if the log is intact or missing. The caller
 * must not have the database open: closing a file releases all locks of the process on the file, including SQLite's
 * (fcntl(2)).
 */
export function findWalDamage(databasePath: string, read: ReadFileStart = bytesOf): string | null {
  const logPath = `${databasePath}-wal`;
  let seen: StoredFrames | null = null;
  let damagedHeaders = 0;
  for (let reads = 0; reads < readsMax; reads++) {
    const index = read(`${databasePath}-shm`, 2 * indexHeaderBytes);
    const log = read(logPath, Infinity);
    const header = log === null ? "none" : headerOf(log);
    if (log === null || header === "none") return null;
    if (isOfAnotherFile(databasePath, read)) return otherFilesLog;
    const staysAsItIs = () => hasHeaderOf(log, read(logPath, logHeaderBytes));
    if (header === null) {
      blockThreadFor(pauseMs);
      damagedHeaders = staysAsItIs() ? damagedHeaders + 1 : 0;
      if (damagedHeaders === headerReads) return "the log's header is damaged, so the log cannot be read";
      continue;
    }
    const frames = new WalFrames(log, header);
    const whole = frames.wholeCount();
    const stored = [...readIndexHeaders(index), ...(seen === null ? [] : [seen])]
      .find(({ salts, count }) => isSame(salts, header.salts) && count > whole);
    if (stored !== undefined) {
      if (staysAsItIs()) return `the log is damaged in frame ${whole + 1}: ${stored.why}`;
      continue;
    }
    const later = frames.findLaterCommit(whole + 1);
    if (later === null) return null;
    // Looks again, because the earlier frames may have been read before they were written; the next read must find
    // them.
    const why = `frame ${later}, a later commit, was stored`;
    seen = { salts: header.salts, count: later, why };
  }
  return null;
}

const otherFilesLog =
  "the log beside it belongs to a file that was here before: remove the files that end in -wal and -shm";

/**
 * Returns true if the log belongs to another database file: the header of this file says that it has never had a log,
 * but SQLite would use the log beside it. The caller must read the log first. "Database File Format" 1.3.3.
 */
function isOfAnotherFile(databasePath: string, read: ReadFileStart): boolean {
  const writeVersionAt = 18;
  return read(databasePath, writeVersionAt + 1)?.[writeVersionAt] === 1;
}

class WalFrames {
  readonly #log: Uint8Array;
  readonly #view: DataView;
  readonly #header: WalHeader;
  readonly #frameBytes: number;
  readonly #count: number;

  constructor(log: Uint8Array, header: WalHeader) {
    this.#log = log;
    this.#view = viewOf(log);
    this.#header = header;
    this.#frameBytes = frameHeaderBytes + header.pageBytes;
    this.#count = Math.floor((log.byteLength - logHeaderBytes) / this.#frameBytes);
  }

  /**
   * Returns how many frames from the beginning are intact. The checksum of each frame includes all frames before it.
   */
  wholeCount(): number {
    let frame = 1;
    while (frame <= this.#count && this.#continuesChecksum(frame)) frame++;
    return frame - 1;
  }

  /**
   * Returns the first commit at or after frame `damaged` that a valid frame follows, or null. A frame with a wrong
   * checksum counts as damaged only if a later commit exists, because the frame may belong to a rolled-back transaction
   * that is being overwritten.
   */
  findLaterCommit(damaged: number): number | null {
    let unsure: number | null = null;
    for (let frame = damaged; frame <= this.#count; frame++) {
      if (frame > damaged && !this.#hasSalts(frame)) return null; // a frame of an earlier log
      const isCommit = this.#view.getUint32(this.#offsetOf(frame) + 4) !== 0;
      if (!isCommit) continue;
      const isSure = this.#continuesChecksum(frame);
      if (isSure && unsure !== null) return unsure;
      if (frame === this.#count || !this.#continuesChecksum(frame + 1)) continue;
      if (isSure) return frame;
      unsure ??= frame;
    }
    return null;
  }

  /** Returns true if the frame's checksum follows from the stored checksum of the previous frame. */
  #continuesChecksum(frame: number): boolean {
    if (!this.#hasSalts(frame)) return false;
    const at = this.#offsetOf(frame);
    const before = frame === 1 ? this.#header.sums : pairAt(this.#view, this.#offsetOf(frame - 1) + 16);
    const { isBigEndian, pageBytes } = this.#header;
    const start = walChecksum(this.#log.subarray(at, at + 8), before, isBigEndian);
    const sums = walChecksum(
      this.#log.subarray(at + frameHeaderBytes, at + frameHeaderBytes + pageBytes),
      start,
      isBigEndian,
    );
    return isSame(sums, pairAt(this.#view, at + 16));
  }

  #hasSalts(frame: number): boolean {
    return isSame(pairAt(this.#view, this.#offsetOf(frame) + 8), this.#header.salts);
  }

  #offsetOf(frame: number): number {
    return logHeaderBytes + (frame - 1) * this.#frameBytes;
  }
}

/** Returns the log's header, null if it is damaged, or "none" if nothing was ever written to the log. */
function headerOf(log: Uint8Array): WalHeader | "none" | null {
  const bytes = log.subarray(0, logHeaderBytes);
  if (bytes.byteLength < logHeaderBytes || bytes.every((byte) => byte === 0)) return "none";
  const view = viewOf(bytes);
  const isBigEndian = (view.getUint32(0) & 1) === 1;
  const sums = pairAt(view, 24);
  if ((view.getUint32(0) & ~1) !== magic) return null;
  if (!isSame(walChecksum(bytes.subarray(0, 24), [0, 0], isBigEndian), sums)) return null;
  return { pageBytes: view.getUint32(8), salts: pairAt(view, 16), sums, isBigEndian };
}

function hasHeaderOf(log: Uint8Array, again: Uint8Array | null): boolean {
  return again !== null && Buffer.compare(log.subarray(0, logHeaderBytes), again.subarray(0, logHeaderBytes)) === 0;
}

/** Returns the evidence from each intact copy of the index's header. */
function readIndexHeaders(index: Uint8Array | null): StoredFrames[] {
  const copies = [0, indexHeaderBytes].map((at) => index?.subarray(at, at + indexHeaderBytes) ?? new Uint8Array());
  return copies.flatMap((copy) => {
    if (copy.byteLength < indexHeaderBytes) return [];
    const view = viewOf(copy);
    const native = (at: number) => view.getUint32(at, true); // in the byte order of the machine, which is little-endian
    if (!isSame(walChecksum(copy.subarray(0, 40), [0, 0], false), [native(40), native(44)])) return [];
    const count = native(16);
    return [{ salts: pairAt(view, 32), count, why: `its index lists ${count} frames` }];
  });
}

/** Computes SQLite's checksum over pairs of 32-bit words, continued from `before`. */
function walChecksum(bytes: Uint8Array, before: NumberPair, isBigEndian: boolean): NumberPair {
  const view = viewOf(bytes);
  // Uses signed numbers, because the loop takes ten times as long with unsigned numbers.
  let first = before[0] | 0;
  let second = before[1] | 0;
  for (let at = 0; at < bytes.byteLength; at += 8) {
    first = (first + view.getInt32(at, !isBigEndian) + second) | 0;
    second = (second + view.getInt32(at + 4, !isBigEndian) + first) | 0;
  }
  return [first >>> 0, second >>> 0];
}

function pairAt(view: DataView, at: number): NumberPair {
  return [view.getUint32(at), view.getUint32(at + 4)];
}

function isSame(left: NumberPair, right: NumberPair): boolean {
  return left[0] === right[0] && left[1] === right[1];
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function bytesOf(path: string, bytesMax: number): Uint8Array | null {
  if (!existsSync(path)) return null;
  let file: number;
  try {
    file = openSync(path, "r");
  } catch (thrown) {
    // The last process that closes the database removes its log.
    if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw thrown;
  }
  try {
    const bytes = new Uint8Array(Math.min(fstatSync(file).size, bytesMax));
    return bytes.subarray(0, readSync(file, bytes, 0, bytes.byteLength, 0));
  } finally {
    closeSync(file);
  }
}
