/**
 * Whether SQLite's write-ahead log is whole. SQLite reads it up to the first frame that does not fit and takes that for its
 * end, as after a crash; where a bit has flipped, it leaves out what was acknowledged since, and says nothing. Two things tell
 * the one from the other: a frame that goes on from a commit was written only after that commit had been flushed, and the index
 * beside the log, which outlives a killed process, says how far it went. Reads only. Source: SQLite's "WAL-mode File Format".
 *
 * Another process may write meanwhile, so that what one read returns was never in the file at one moment. A frame is damaged only
 * if it was known to be stored before it was read, and if the log has the same header after that. SQLite changes no frame of a
 * commit before it has begun the log again, and that begins with another header.
 */
import { closeSync, existsSync, fstatSync, openSync, readSync } from "node:fs";
import { blockFor } from "../support/write_whole.ts";

const logHeaderBytes = 32;
const frameHeaderBytes = 24;
/** The last bit says in which order the checksums read the bytes. */
const magic = 0x377f0682;
/** The index begins with two copies of its header, the second of which is written first. */
const indexHeaderBytes = 48;
/** A log that is begun again during each of these reads was copied into the database as often: no process needs its frames. */
const readsMax = 20;
/** One write of 32 bytes, which no signal cuts in two: a header that stays as it is through these reads is not being written. */
const headerReads = 10;
const pauseMs = 3;

/** Salts, checksums and the like, as pairs of 32-bit numbers. */
type NumberPair = readonly [number, number];

interface WalHeader {
  readonly pageBytes: number;
  readonly salts: NumberPair;
  readonly sums: NumberPair;
  readonly isBigEndian: boolean;
}

/** Frames that a log with these salts is known to have stored, up to and with the last of a commit; `why` for the message. */
interface StoredFrames {
  readonly salts: NumberPair;
  readonly count: number;
  readonly why: string;
}

/** The file's first bytes, at most this many; null when there is no such file. */
export type ReadFile = (path: string, bytesMax: number) => Uint8Array | null;

/**
 * A sentence about the damage in the log beside the database, or null: when it is whole, and when there is none. To be asked while
 * this process does not have the database open: closing a file ends all locks that the process has on it (fcntl(2)), SQLite's too.
 */
export function damageInLog(databasePath: string, read: ReadFile = bytesOf): string | null {
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
      blockFor(pauseMs);
      damagedHeaders = staysAsItIs() ? damagedHeaders + 1 : 0;
      if (damagedHeaders === headerReads) return "the log's header is damaged, so that nothing of the log can be read";
      continue;
    }
    const frames = new WalFrames(log, header);
    const whole = frames.wholeCount();
    const stored = [...framesIndexed(index), ...(seen === null ? [] : [seen])]
      .find(({ salts, count }) => isSame(salts, header.salts) && count > whole);
    if (stored !== undefined) {
      if (staysAsItIs()) return `the log is damaged in frame ${whole + 1}: ${stored.why}`;
      continue;
    }
    const later = frames.laterCommit(whole + 1);
    if (later === null) return null;
    // The frames before that commit may have been read before they were written, and it after that: now they are there.
    const why = `frame ${later}, a commit after it, had been stored`;
    seen = { salts: header.salts, count: later, why };
  }
  return null;
}

const otherFilesLog = "the log beside it is that of the file that was here before: remove what ends in -wal and -shm";

/**
 * A database that has never had a log says so (its header's write version): such a one was put beside this log, which SQLite would
 * write into it all the same. To be asked after the log was read. "Database File Format" 1.3.3.
 */
function isOfAnotherFile(databasePath: string, read: ReadFile): boolean {
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

  /** Frames from the beginning up to the first that does not go on from the one before. */
  wholeCount(): number {
    let frame = 1;
    while (frame <= this.#count && this.#goesOn(frame)) frame++;
    return frame - 1;
  }

  /**
   * The first commit from `damaged` on that another frame goes on from; null when there is none. A frame whose own checksum does not
   * match is taken for a commit only if there is a later one: it may be a frame of a transaction that was rolled back, which the
   * header of a commit is just written over.
   */
  laterCommit(damaged: number): number | null {
    let unsure: number | null = null;
    for (let frame = damaged; frame <= this.#count; frame++) {
      if (frame > damaged && !this.#hasSalts(frame)) return null; // of an earlier time
      const isCommit = this.#view.getUint32(this.#at(frame) + 4) !== 0;
      if (!isCommit) continue;
      const isSure = this.#goesOn(frame);
      if (isSure && unsure !== null) return unsure;
      if (frame === this.#count || !this.#goesOn(frame + 1)) continue;
      if (isSure) return frame;
      unsure ??= frame;
    }
    return null;
  }

  /** Whether the frame's checksum is the one that follows from the one before it, as that stands there. */
  #goesOn(frame: number): boolean {
    if (!this.#hasSalts(frame)) return false;
    const at = this.#at(frame);
    const before = frame === 1 ? this.#header.sums : pairAt(this.#view, this.#at(frame - 1) + 16);
    const { isBigEndian, pageBytes } = this.#header;
    const start = summed(this.#log.subarray(at, at + 8), before, isBigEndian);
    const sums = summed(
      this.#log.subarray(at + frameHeaderBytes, at + frameHeaderBytes + pageBytes),
      start,
      isBigEndian,
    );
    return isSame(sums, pairAt(this.#view, at + 16));
  }

  #hasSalts(frame: number): boolean {
    return isSame(pairAt(this.#view, this.#at(frame) + 8), this.#header.salts);
  }

  #at(frame: number): number {
    return logHeaderBytes + (frame - 1) * this.#frameBytes;
  }
}

/** Null: it does not fit itself. None: nothing was ever written, or all of it is kept free for later. */
function headerOf(log: Uint8Array): WalHeader | "none" | null {
  const bytes = log.subarray(0, logHeaderBytes);
  if (bytes.byteLength < logHeaderBytes || bytes.every((byte) => byte === 0)) return "none";
  const view = viewOf(bytes);
  const isBigEndian = (view.getUint32(0) & 1) === 1;
  const sums = pairAt(view, 24);
  if ((view.getUint32(0) & ~1) !== magic) return null;
  if (!isSame(summed(bytes.subarray(0, 24), [0, 0], isBigEndian), sums)) return null;
  return { pageBytes: view.getUint32(8), salts: pairAt(view, 16), sums, isBigEndian };
}

function hasHeaderOf(log: Uint8Array, again: Uint8Array | null): boolean {
  return again !== null && Buffer.compare(log.subarray(0, logHeaderBytes), again.subarray(0, logHeaderBytes)) === 0;
}

/** What each copy of the index's header says, if its checksum matches. */
function framesIndexed(index: Uint8Array | null): StoredFrames[] {
  const copies = [0, indexHeaderBytes].map((at) => index?.subarray(at, at + indexHeaderBytes) ?? new Uint8Array());
  return copies.flatMap((copy) => {
    if (copy.byteLength < indexHeaderBytes) return [];
    const view = viewOf(copy);
    const native = (at: number) => view.getUint32(at, true); // as the machine that wrote it, which is this one's kind
    if (!isSame(summed(copy.subarray(0, 40), [0, 0], false), [native(40), native(44)])) return [];
    const count = native(16);
    return [{ salts: pairAt(view, 32), count, why: `its index knows of ${count}` }];
  });
}

/** SQLite's checksum of pairs of 32-bit words, going on from `before`. */
function summed(bytes: Uint8Array, before: NumberPair, isBigEndian: boolean): NumberPair {
  const view = viewOf(bytes);
  let [first, second] = before;
  for (let at = 0; at < bytes.byteLength; at += 8) {
    first = (first + view.getUint32(at, !isBigEndian) + second) >>> 0;
    second = (second + view.getUint32(at + 4, !isBigEndian) + first) >>> 0;
  }
  return [first, second];
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
