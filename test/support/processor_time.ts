import process from "node:process";

/** Returns the processor time of this process in milliseconds. A busy machine does not lengthen it. */
export function processorTimeMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
