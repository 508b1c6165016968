/** A server's data directory, and which server it belongs to: written once, so that a store is never served under another name. */
import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { join } from "node:path";
import { BatonError, messageOf } from "../../../errors.ts";

const fileName = "server_id";

/** Throws CANNOT_CREATE. */
export function makeDataDir(dataDir: string): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  } catch (thrown) {
    throw new BatonError("CANNOT_CREATE", `Cannot make the data directory ${dataDir}: ${messageOf(thrown)}`, {
      cause: thrown,
    });
  }
}

/** Of a store that is open. Throws CONFIG when it is another server's, IO when that cannot be read or written. */
export function claimDataDir(dataDir: string, id: string): void {
  const path = join(dataDir, fileName);
  const owner = readOwner(path);
  if (owner === id) return;
  if (owner !== null) {
    throw new BatonError(
      "CONFIG",
      `Cannot serve ${dataDir} as "${id}": it belongs to the server "${owner}", and its topics are known by that name`,
    );
  }
  try {
    const file = openSync(`${path}.new`, "w", 0o600);
    writeSync(file, `${JSON.stringify(id)}\n`);
    fsyncSync(file);
    closeSync(file);
    renameSync(`${path}.new`, path);
    const folder = openSync(dataDir, "r");
    fsyncSync(folder);
    closeSync(folder);
  } catch (thrown) {
    throw new BatonError("IO", `Cannot write ${path}: ${messageOf(thrown)}`, { cause: thrown });
  }
}

/** Null where nobody has claimed it. */
function readOwner(path: string): string | null {
  try {
    const owner: unknown = JSON.parse(readFileSync(path, "utf8"));
    if (typeof owner === "string") return owner;
    throw new Error("it does not name a server");
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw new BatonError("IO", `Cannot read ${path}: ${messageOf(thrown)}`, { cause: thrown });
  }
}
