/** One guard process as baton sees it. */
import { readFileSync } from "node:fs";
import { type HelperProcess, startHelper } from "../spawn/helper_process.ts";

export type GuardProcess = HelperProcess;

export type StartGuardProcess = (onLine: (line: string) => void) => GuardProcess | Promise<GuardProcess>;

const [guardName, guardWord] = ["lock-guard", "__guard"];

/** Starts in /, so that it keeps no directory busy. */
export const startGuardProcess: StartGuardProcess = (onLine) =>
  startHelper({ args: [guardWord], argv0: guardName, cwd: "/" }, onLine);

/** Whether the process is a guard. False when it is gone. */
export function isGuardProcess(pid: number): boolean {
  try {
    const words = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1);
    return words[0] === guardName && words.at(-1) === guardWord;
  } catch {
    return false;
  }
}
