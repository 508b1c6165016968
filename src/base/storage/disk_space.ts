/** Computes how much space a database and its log can still take from their disk. Pure. */

export interface DiskSpace {
  readonly bytes: number;
  /** The bytes that this user will have free when the log and the open transaction are in the database. */
  readonly freeBytes: number;
  /** Bytes of the database's used pages, and of its free pages, which it will fill first. */
  readonly usedBytes: number;
  readonly unusedBytes: number;
}

/**
 * Returns how many bytes stay free after `bytes` more are written. Each byte needs space twice: in the log, and then in
 * the database.
 */
export function freeDiskBytesAfterWrite(
  { freeBytes, unusedBytes }: Pick<DiskSpace, "freeBytes" | "unusedBytes">,
  bytes: number,
): number {
  return freeBytes - bytes - Math.max(0, bytes - unusedBytes);
}

/**
 * Returns how many bytes can be added while `kept` bytes stay free; never less than 0. `logBytes` is the log's present
 * size.
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
