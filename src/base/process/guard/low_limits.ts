/**
 * Finds resource limits that are too low for the runtime. With such a limit, a guard ends before it can work, and may
 * not report why. Pure.
 */

const neededKiB = 4 * 1024 * 1024;

/**
 * The limits to check: the name of each limit in /proc/PID/limits, and the option of the shell's ulimit, which uses
 * KiB.
 */
const limits = [["Max address space", "-v"], ["Max data size", "-d"]] as const;

/**
 * Returns `; ulimit -v is 2000000 KiB, …` for each limit that is too low. `text` is the content of /proc/PID/limits.
 */
export function describeLowLimits(text: string): string {
  const lines = text.split("\n");
  return limits.map(([name, option]) => {
    const [soft] = lines.find((line) => line.startsWith(name))?.slice(name.length).trim().split(" ") ?? [];
    const kib = Math.floor(Number(soft) / 1024); // NaN for "unlimited"
    return kib < neededKiB ? `; ulimit ${option} is ${kib} KiB, and baton needs ${neededKiB} KiB` : "";
  }).join("");
}
