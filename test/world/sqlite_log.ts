/**
 * The files of SQLite on a disk that loses its power in the middle of a commit or checkpoint:
 * https://www.sqlite.org/fileformat2.html#the_write_ahead_log
 */
import { readFileSync } from "node:fs";
import type { Chance } from "./chance.ts";

export const sectorBytes = 512;
export const logHeaderBytes = 32;
const frameHeaderBytes = 24;
const frameBytes = frameHeaderBytes + 4096;

/** Positions in the index of the log. */
const indexHeader = { frames: 16, salt: 32, bytes: 40 };

/** The end of the valid frames, and the salt that makes them valid. */
export interface LogEnd {
  readonly salt: string;
  readonly bytes: number;
}

export const emptyLog: LogEnd = { salt: "", bytes: logHeaderBytes };

/**
 * Finds the end of the log of an open database by its index: what a commit that was torn has left behind it does not
 * count. https://www.sqlite.org/walformat.html#the_wal_index_header
 */
export function findLogEnd(databasePath: string): LogEnd {
  const index = readIfThere(`${databasePath}-shm`)?.subarray(0, indexHeader.bytes);
  if (index === undefined || index.byteLength < indexHeader.bytes) return emptyLog;
  const frames = new DataView(index.buffer, index.byteOffset).getUint32(indexHeader.frames, true);
  return {
    salt: index.slice(indexHeader.salt, indexHeader.bytes).toHex(),
    bytes: logHeaderBytes + frames * frameBytes,
  };
}

/**
 * The first byte that a commit has written. SQLite flushes the header of a log that begins again before it writes
 * frames.
 */
export function startOfCommit(before: LogEnd, after: LogEnd): number {
  return after.salt === before.salt ? before.bytes : logHeaderBytes;
}

/**
 * Whether the disk has kept all sectors of a commit; otherwise takes some from the log. What is drawn does not depend
 * on the number of pages: versions of SQLite differ in it.
 */
export function keepsCommit(
  log: Uint8Array,
  { from, to }: { readonly from: number; readonly to: number },
  { chance, nowMs }: { readonly chance: Chance; readonly nowMs: number },
): boolean {
  const kind = chance.oneOf(["kept", "lost", "torn", "torn"]);
  const sectors = chance.fork(`cut at ${nowMs}`);
  if (kind === "kept") return true;
  if (kind === "lost") log.fill(0, from, to);
  const likelihood = sectors.oneOf([0, 0.4, 0.9]);
  for (let at = from; at < to;) {
    const end = Math.min(to, (Math.floor(at / sectorBytes) + 1) * sectorBytes);
    if (sectors.is(likelihood)) log.fill(0, at, end);
    at = end;
  }
  // At least the sector with the header of a frame: the rest of a page may be zeros anyway.
  const header = from + sectors.whole(0, (to - from) / frameBytes - 1) * frameBytes;
  log.fill(0, header, header + frameHeaderBytes);
  return false;
}

/** A file whose change is not flushed: any of the sectors are new. It may have lost its new length. */
export function tornFile(before: Uint8Array, after: Uint8Array, chance: Chance): Uint8Array {
  const mixed = new Uint8Array(Math.max(before.byteLength, after.byteLength));
  mixed.set(before);
  let bytes = before.byteLength;
  const kept = chance.oneOf([0.3, 0.7, 0.95]);
  for (let at = 0; at < after.byteLength; at += sectorBytes) {
    if (!chance.is(kept)) continue;
    const sector = after.subarray(at, at + sectorBytes);
    mixed.set(sector, at);
    bytes = Math.max(bytes, at + sector.byteLength);
  }
  return mixed.subarray(0, bytes);
}

export function readIfThere(path: string): Uint8Array<ArrayBuffer> | null {
  try {
    return new Uint8Array(readFileSync(path));
  } catch {
    return null;
  }
}
