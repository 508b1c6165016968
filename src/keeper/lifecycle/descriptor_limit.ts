/** How many connections there can be at all: past the system's limit nobody is accepted any more, and nobody is told. */
import { readFileSync } from "node:fs";

/** For the data, the listeners, the runtime, and connections on their way out. */
const otherDescriptors = 100;

/** Connections that this process has descriptors for; Infinity where the system does not say (all but Linux). */
export function connectionsPossible(limits: string = ownLimits()): number {
  const [, soft] = /^Max open files +(\d+) /m.exec(limits) ?? [];
  return soft === undefined ? Infinity : Math.max(1, Number(soft) - otherDescriptors);
}

function ownLimits(): string {
  try {
    return readFileSync("/proc/self/limits", "latin1");
  } catch {
    return "";
  }
}
