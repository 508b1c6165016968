/** Computes how much space a database and its log can still take from their disk. Pure. */

export interface DiskSpace {
  readonly bytes: number;
  /** The number of bytes that this user will have free when the log and the open transaction are in the database. */
  readonly freeBytes: number;
  /** The bytes in the database's used pages, and in its free pages, which the database will fill first. */
  readonly usedBytes: number;
  readonly unusedBytes: number;
}

/**
 * Returns how many bytes stay free after `bytes` more are written. Each byte needs space twice: first in the log, then
 * in the database.
 */
export function freeDiskBytesAfterWrite(
  { freeBytes, unusedBytes }: Pick<DiskSpace, "freeBytes" | "unusedBytes">,
  bytes: number,
): number {
  return freeBytes - bytes - Math.max(0, bytes - unusedBytes);
}

/**
 * Returns how many bytes can be added if `kept` bytes must stay free; never less than 0. `logBytes` is the current size
 * of the log.
 */
export function writableDiskBytes(
  { freeBytes, unusedBytes }: Pick<DiskSpace, "freeBytes" | "unusedBytes">,
  kept: number,
  logBytes: number,
): number {
  const left = freeBytes - kept;
  if (left < 0) return 0;
  const one = Math.min(unusedBytes, logBytes) + left;
  return Math.min(one, (left + unusedBytes + logBytes) / 2);
}
