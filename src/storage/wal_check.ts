/**
 * Whether SQLite's write-ahead log is whole. SQLite reads it up to the first frame that does not fit and takes that for its
 * end, as after a crash; where a bit has flipped, it leaves out what was acknowledged since, and says nothing. Two things tell
 * the one from the other: a frame that goes on from a commit was written only after that commit had been flushed, and the index
 * beside the log, which outlives a killed process, says how far it went. Reads only. Source: SQLite's "WAL-mode File Format".
 */
import { closeSync, existsSync, fstatSync, openSync, readSync } from "node:fs";
import { blockFor } from "../support/block_for.ts";

const logHeaderBytes = 32;
const frameHeaderBytes = 24;
/** The last bit says in which order the checksums read the bytes. */
const magic = 0x377f0682;
const triesMax = 10;
/** Between two looks at a log that seems damaged, in milliseconds. */
const pauseMs = 3;

/** Salts, checksums and the like, as pairs of 32-bit numbers. */
type Pair = readonly [number, number];

interface LogHeader {
  readonly pageBytes: number;
  readonly salts: Pair;
  readonly sums: Pair;
  readonly isBigEndian: boolean;
}

/** A sentence about the damage in the log beside the database, or null: when it is whole, and when there is none. */
export function damageInLog(databasePath: string): string | null {
  for (let tries = 0;; tries++) {
    // The index first: a process that writes meanwhile only adds to the log, or begins it again, under another header.
    const index = bytesOf(`${databasePath}-shm`);
    const log = bytesOf(`${databasePath}-wal`);
    const damage = log === null ? null : strangeLog(databasePath, log) ?? damageIn(log, index);
    if (damage === null || tries === triesMax) return damage;
    // A log that another process writes meanwhile is read in parts of different moments; real damage stays.
    blockFor(pauseMs);
  }
}

/**
 * A database that has never had a log says so (its header's write version): such a one was put beside this log, which SQLite would
 * write into it all the same. "WAL-mode File Format", "Database File Format" 1.3.3.
 */
function strangeLog(databasePath: string, log: Uint8Array): string | null {
  const writeVersionAt = 18;
  const hasLog = bytesOf(databasePath, writeVersionAt + 1)?.[writeVersionAt] !== 1;
  return hasLog || headerOf(log) === "none"
    ? null
    : "the log beside it is that of the file that was here before: remove what ends in -wal and -shm";
}

/** The same of a log's bytes, and those of its index. */
export function damageIn(log: Uint8Array, index: Uint8Array | null): string | null {
  const header = headerOf(log);
  if (header === "none") return null;
  if (header === null) return "the log's header is damaged, so that nothing of the log can be read";
  const frames = new Frames(log, header);
  const whole = frames.wholeCount();
  const indexed = index === null ? 0 : framesIndexed(index, header);
  if (indexed > whole) return `the log is damaged in frame ${whole + 1}: its index knows of ${indexed}`;
  const later = frames.laterCommit(whole + 1);
  return later === null
    ? null
    : `the log is damaged in frame ${whole + 1}: frame ${later}, a commit after it, had been stored`;
}

class Frames {
  readonly #log: Uint8Array;
  readonly #view: DataView;
  readonly #header: LogHeader;
  readonly #frameBytes: number;
  readonly #count: number;

  constructor(log: Uint8Array, header: LogHeader) {
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

  /** The first commit from `damaged` on that another frame goes on from; null when there is none. */
  laterCommit(damaged: number): number | null {
    for (let frame = damaged; frame < this.#count; frame++) {
      const isCommit = this.#view.getUint32(this.#at(frame) + 4) !== 0;
      if (isCommit && this.#goesOn(frame + 1)) return frame;
      if (frame > damaged && !this.#hasSalts(frame)) return null; // of an earlier time
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
function headerOf(log: Uint8Array): LogHeader | "none" | null {
  const bytes = log.subarray(0, logHeaderBytes);
  if (bytes.byteLength < logHeaderBytes || bytes.every((byte) => byte === 0)) return "none";
  const view = viewOf(bytes);
  const isBigEndian = (view.getUint32(0) & 1) === 1;
  const sums = pairAt(view, 24);
  if ((view.getUint32(0) & ~1) !== magic) return null;
  if (!isSame(summed(bytes.subarray(0, 24), [0, 0], isBigEndian), sums)) return null;
  return { pageBytes: view.getUint32(8), salts: pairAt(view, 16), sums, isBigEndian };
}

/** How many frames of this log the index knows of; 0 when it is of another, or does not fit itself. */
function framesIndexed(index: Uint8Array, { salts }: LogHeader): number {
  const headerBytes = 48;
  if (index.byteLength < headerBytes) return 0;
  const view = viewOf(index);
  const isNative = (at: number) => view.getUint32(at, true); // as the machine that wrote it, which is this one's kind
  if (!isSame(summed(index.subarray(0, 40), [0, 0], false), [isNative(40), isNative(44)])) return 0;
  return isSame(pairAt(view, 32), salts) ? isNative(16) : 0;
}

/** SQLite's checksum of pairs of 32-bit words, going on from `before`. */
function summed(bytes: Uint8Array, before: Pair, isBigEndian: boolean): Pair {
  const view = viewOf(bytes);
  let [first, second] = before;
  for (let at = 0; at < bytes.byteLength; at += 8) {
    first = (first + view.getUint32(at, !isBigEndian) + second) >>> 0;
    second = (second + view.getUint32(at + 4, !isBigEndian) + first) >>> 0;
  }
  return [first, second];
}

function pairAt(view: DataView, at: number): Pair {
  return [view.getUint32(at), view.getUint32(at + 4)];
}

function isSame(left: Pair, right: Pair): boolean {
  return left[0] === right[0] && left[1] === right[1];
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** The file's bytes, so many from its beginning at most; null when there is no such file. */
function bytesOf(path: string, bytesMax = Infinity): Uint8Array | null {
  if (!existsSync(path)) return null;
  const file = openSync(path, "r");
  try {
    const bytes = new Uint8Array(Math.min(fstatSync(file).size, bytesMax));
    return bytes.subarray(0, readSync(file, bytes, 0, bytes.byteLength, 0));
  } finally {
    closeSync(file);
  }
}
