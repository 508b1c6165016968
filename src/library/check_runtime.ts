/** Refuses to run with a version of Node.js that is too old. Each entry of the library imports this module first. */
import process from "node:process";
import { BatonError } from "../base/errors.ts";

checkNodeVersion("baton", [22, 0]);

/**
 * Throws CONFIG if the Node.js of this process has no SQLite module. `what` names the part of the library that needs
 * SQLite.
 */
export function checkSqlite(what: string): void {
  checkNodeVersion(what, [22, 13]);
}

function checkNodeVersion(what: string, [major, minor]: readonly [number, number]): void {
  if ("Bun" in globalThis || "Deno" in globalThis) return;
  const [ownMajor = 0, ownMinor = 0] = process.versions.node.split(".").map(Number);
  if (ownMajor > major || (ownMajor === major && ownMinor >= minor)) return;
  const needed = minor === 0 ? major : `${major}.${minor}`;
  throw new BatonError("CONFIG", `${what} needs Node.js ${needed} or later, and this is ${process.version}`);
}
