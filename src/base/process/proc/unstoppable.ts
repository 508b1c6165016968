/** Describes processes that SIGKILL does not end, because they belong to another user or wait in the kernel. */
import process from "node:process";
import { processSystem } from "../../support/own_process.ts";
import { findUserName } from "../../support/user_name.ts";
import { processName, readProcessOrUnknown } from "./process_table.ts";

const describedMax = 5;
/** SIGKILL in the masks of /proc/PID/status. */
const sigkillBit = 1n << 8n;

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
  const { uid, isDying } = readStatus(pid);
  const isInKernel = row !== "unknown" && row.isInKernel;
  if (isDying && !isInKernel) return "";
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

interface ProcessStatus {
  /** The number of the process's effective user; null if it is not known. */
  readonly uid: number | null;
  /** True if a SIGKILL waits for the process: on a busy machine it has not yet been scheduled since. */
  readonly isDying: boolean;
}

function readStatus(pid: number): ProcessStatus {
  try {
    const text = processSystem.readText(`/proc/${pid}/status`);
    const uid = /^Uid:\t\d+\t(\d+)/m.exec(text)?.[1];
    return { uid: uid === undefined ? null : Number(uid), isDying: isKillPending(text) };
  } catch {
    return { uid: null, isDying: false };
  }
}

/** Returns true if the text of a /proc/PID/status shows that a SIGKILL has been sent and not yet handled. */
export function isKillPending(status: string): boolean {
  const pending = [...status.matchAll(/^(?:SigPnd|ShdPnd):\t([0-9a-f]+)$/gm)];
  return pending.some(([, mask]) => (BigInt(`0x${mask}`) & sigkillBit) !== 0n);
}
