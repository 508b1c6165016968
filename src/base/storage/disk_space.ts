/** Computes how much space a database and its log can still take from their disk. Pure. */

export interface DiskSpace {
  /** Size of the file system, in bytes. */
  readonly bytes: number;
  /** The file system's free bytes for this user after the log and the open transaction are in the database. */
  readonly freeBytes: number;
  /** Bytes of used and of unused pages in the database. */
  readonly usedBytes: number;
  readonly unusedBytes: number;
}

/**
 * Returns the free bytes that remain when `bytes` more are written. They are on the disk twice: in the log, then in the
 * database.
 */
export function freeDiskBytesAfter(
  { freeBytes, unusedBytes }: Pick<DiskSpace, "freeBytes" | "unusedBytes">,
  bytes: number,
): number {
  return freeBytes - bytes - Math.max(0, bytes - unusedBytes);
}

/**
 * Returns the most bytes that can be added while `kept` bytes stay free; never less than 0. `logBytes` is the space
 * that the log has already.
 */
export function diskRoomBytes(
  { freeBytes, unusedBytes }: Pick<DiskSpace, "freeBytes" | "unusedBytes">,
  kept: number,
  logBytes: number,
): number {
  const left = freeBytes - kept;
  if (left < 0) return 0;
  const one = Math.min(unusedBytes, logBytes) + left;
  return Math.min(one, (left + unusedBytes + logBytes) / 2);
}
