/** Describes processes that SIGKILL does not end, because they belong to another user or wait in the kernel. */
import process from "node:process";
import { findUserName } from "../../support/user_name.ts";
import { isProcessAlive, processName, readProcessFile } from "./process_table.ts";

const namedMax = 5;

/**
 * Returns a text such as `cannot be stopped: pid 812 sudo (root)`; empty if none of the processes is alive. A negative
 * pid stands for a process group.
 */
export function describeUnstoppableProcesses(pids: readonly number[]): string {
  const described = pids.slice(0, namedMax).map(describe).filter(Boolean);
  if (described.length === 0) return "";
  const more = pids.length - namedMax;
  return `cannot be stopped: ${described.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

function describe(pid: number): string {
  if (pid < 0) return `a process of group ${-pid} that /proc does not show`;
  if (!isProcessAlive(pid)) return "";
  const status = readProcessFile(pid, "status");
  const isInKernel = /^State:\tD/m.test(status);
  if (!isInKernel && isKillPending(status)) return "";
  const uid = effectiveUserIdIn(status);
  const why = isUnstoppableByKernel(isInKernel, uid, process.geteuid?.() ?? 0)
    ? "waits in the kernel"
    : uid === null
    ? ""
    : findUserName(String(uid)) ?? `user ${uid}`;
  const name = processName(pid).replaceAll(/[^ -~]/g, "?"); // any user may have chosen it
  return ["pid", pid, name, why && `(${why})`].filter(Boolean).join(" ");
}

/**
 * Returns true if the kernel, not a missing permission, keeps the process alive. A process of another user may also
 * wait in the kernel for a moment, but what protects it from the signal is its owner.
 */
export function isUnstoppableByKernel(isInKernel: boolean, uid: number | null, ownUid: number): boolean {
  return isInKernel && (ownUid === 0 || uid === null || uid === ownUid);
}

/** Returns the number of the process's effective user; null if it is not known. */
function effectiveUserIdIn(status: string): number | null {
  const uid = /^Uid:\t\d+\t(\d+)/m.exec(status)?.[1];
  return uid === undefined ? null : Number(uid);
}

/** Returns true if a SIGKILL (bit 8) waits for the process, which then dies as soon as it gets a processor. */
export function isKillPending(status: string): boolean {
  return /^(SigPnd|ShdPnd):\t[0-9a-f]*[13579bdf][0-9a-f]{2}$/m.test(status);
}
