import process from "node:process";

/** Returns the processor time of this process in milliseconds. Unlike elapsed time, it does not grow on a busy machine. */
export function processorTimeMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
