/** Describes processes that SIGKILL does not end, because they belong to another user or wait in the kernel. */
import process from "node:process";
import { processSystem } from "../../support/own_process.ts";
import { findUserName } from "../../support/user_name.ts";
import { processName, readProcessOrUnknown } from "./process_table.ts";

const describedMax = 5;

/**
 * Returns a text such as `cannot be stopped: pid 812 sudo (root)`; empty if none of the processes is alive. A negative
 * pid stands for a process group.
 */
export function describeUnstoppableProcesses(pids: readonly number[]): string {
  const described = pids.slice(0, describedMax).map(describe).filter((text) => text !== "");
  if (described.length === 0) return "";
  const more = pids.length - describedMax;
  return `cannot be stopped: ${described.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

function describe(pid: number): string {
  if (pid < 0) return `a process of group ${-pid} that /proc does not show`;
  const row = readProcessOrUnknown(pid);
  if (row === null || (row !== "unknown" && row.dead)) return "";
  const uid = effectiveUserIdOf(pid);
  const isInKernel = row !== "unknown" && row.isInKernel;
  const why = isUnstoppableByKernel({ isInKernel, uid, ownUid: process.geteuid?.() ?? 0 })
    ? "waits in the kernel"
    : uid === null
    ? ""
    : findUserName(String(uid)) ?? `user ${uid}`;
  const name = processName(pid).replaceAll(/[^ -~]/g, "?"); // any user may have chosen it
  return ["pid", pid, name, why === "" ? "" : `(${why})`].filter((word) => word !== "").join(" ");
}

/**
 * Returns true if the kernel, not a missing permission, keeps the process alive. A process of another user may also
 * wait in the kernel for a moment, but what protects it from the signal is its owner.
 */
export function isUnstoppableByKernel(
  { isInKernel, uid, ownUid }: { readonly isInKernel: boolean; readonly uid: number | null; readonly ownUid: number },
): boolean {
  return isInKernel && (ownUid === 0 || uid === null || uid === ownUid);
}

/** Returns the number of the process's effective user; null if it is not known. */
function effectiveUserIdOf(pid: number): number | null {
  try {
    const uid = /^Uid:\t\d+\t(\d+)/m.exec(processSystem.readText(`/proc/${pid}/status`))?.[1];
    return uid === undefined ? null : Number(uid);
  } catch {
    return null;
  }
}
