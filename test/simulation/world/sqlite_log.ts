/** The files of SQLite on a disk that loses its power in the middle of a commit or checkpoint: https://www.sqlite.org/fileformat2.html#the_write_ahead_log */
import { readFileSync } from "node:fs";
import type { Chance } from "./chance.ts";

export const sectorBytes = 512;
export const logHeaderBytes = 32;
export const frameHeaderBytes = 24;
export const frameBytes = frameHeaderBytes + 4096;

/**
 * Whether the disk has kept all sectors of a commit; otherwise takes some from the log. What is drawn does not depend on the number of
 * pages: versions of SQLite differ in it.
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
