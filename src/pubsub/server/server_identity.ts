/**
 * A server's data directory, and which server it belongs to: written once, so that a store is never served under another name,
 * and a copy never beside what it was copied from. The file names itself by its inode, which a copy does not share.
 */
import { closeSync, fstatSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { join } from "node:path";
import { BatonError, messageOf } from "../../errors.ts";
import { flushPath } from "../../storage/durable_file.ts";

const fileName = "server_id";

interface DataDirClaim {
  readonly id: string;
  /** Of the file itself; null in a backup. */
  readonly inode: string | null;
}

/** Throws CANNOT_CREATE. */
export function makeDataDir(dataDir: string): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  } catch (thrown) {
    throw new BatonError("CANNOT_CREATE", `Cannot create the data directory ${dataDir}: ${messageOf(thrown)}`, {
      cause: thrown,
    });
  }
}

/**
 * Of a store that is open. `wasMoved`: whoever starts the server says that nothing else is left of this store. Throws CONFIG when
 * it is another server's or a copy, IO when that cannot be read or written.
 */
export function claimDataDir(dataDir: string, id: string, { wasMoved }: { readonly wasMoved: boolean }): void {
  const claim = readClaim(dataDir);
  if (claim !== null && claim.id !== id) {
    throw new BatonError(
      "CONFIG",
      `Cannot serve ${dataDir} as "${id}": it belongs to the server "${claim.id}", and its topics are known by that name`,
    );
  }
  if (claim !== null && claim.inode === inodeOf(dataDir)) return;
  if (claim !== null && !wasMoved) {
    throw new BatonError(
      "CONFIG",
      `Cannot serve ${dataDir}: it is a copy, or a backup, of the data of "${id}". Two of them would response for the same ` +
        "topics; --moved says that the other one is never started again",
    );
  }
  writeClaim(dataDir, id, { isBackup: false });
}

/** Of a backup in `target`: it is served only when somebody says that it is in the place of what it was made of. */
export function markBackup(dataDir: string, target: string): void {
  const claim = readClaim(dataDir);
  if (claim !== null) writeClaim(target, claim.id, { isBackup: true });
}

function writeClaim(dataDir: string, id: string, { isBackup }: { readonly isBackup: boolean }): void {
  const path = join(dataDir, fileName);
  try {
    const file = openSync(`${path}.new`, "w", 0o600);
    const claim: DataDirClaim = { id, inode: isBackup ? null : String(fstatSync(file, { bigint: true }).ino) };
    writeSync(file, `${JSON.stringify(claim)}\n`);
    fsyncSync(file);
    closeSync(file);
    renameSync(`${path}.new`, path);
    flushPath(dataDir);
  } catch (thrown) {
    throw new BatonError("IO", `Cannot write ${path}: ${messageOf(thrown)}`, { cause: thrown });
  }
}

/** Null where nobody has claimed it. */
function readClaim(dataDir: string): DataDirClaim | null {
  const path = join(dataDir, fileName);
  try {
    const { id, inode } = JSON.parse(readFileSync(path, "utf8")) as Record<string, unknown>;
    if (typeof id === "string") return { id, inode: typeof inode === "string" ? inode : null };
    throw new Error("it does not name a server");
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw new BatonError("IO", `Cannot read ${path}: ${messageOf(thrown)}`, { cause: thrown });
  }
}

function inodeOf(dataDir: string): string {
  const file = openSync(join(dataDir, fileName), "r");
  try {
    return String(fstatSync(file, { bigint: true }).ino);
  } finally {
    closeSync(file);
  }
}
