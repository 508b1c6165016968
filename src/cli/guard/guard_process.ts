/** One guard process as baton sees it. */
import { type HelperProcess, startHelper } from "../child/helper_process.ts";

export type GuardProcess = HelperProcess;

export type StartGuardProcess = (onLine: (line: string) => void) => GuardProcess | Promise<GuardProcess>;

/** It keeps no folder busy, and says nothing but lines. */
export const startGuardProcess: StartGuardProcess = (onLine) =>
  startHelper({ words: ["__guard"], argv0: "lock-guard", cwd: "/" }, onLine);
