/** Description of this process for others that read a lock. */
import { hostname } from "node:os";
import process from "node:process";
import type { HolderInfo } from "../coordination/holder_info.ts";
import { userName } from "../support/user_name.ts";

export function ownInfo(reason: string): HolderInfo {
  return { host: hostname(), pid: process.pid, user: userName(), argv0: process.argv0, reason };
}
