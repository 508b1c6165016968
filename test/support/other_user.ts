/** Whether a test can be somebody else as well: only root with setpriv can. */
import { spawnSync } from "node:child_process";
import process from "node:process";

/** Says aloud what is left out when it cannot. */
export function canBeOthers(leftOut: string): boolean {
  const can = process.getuid?.() === 0 && spawnSync("setpriv", ["--version"]).status === 0;
  if (!can) console.error(`SKIPPED: only root with setpriv can be another user; ${leftOut}`);
  return can;
}
