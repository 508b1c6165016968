/** What is not known of a script is not its end: its lock would be given to others while it runs. */
import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const source = (path: string) => fileURLToPath(new URL(`../../../../src/${path}`, import.meta.url));

/** Has every descriptor that it may have, so that nothing more can be read. */
const program = `
  import { closeSync, openSync } from "node:fs";
  
  import { isProcessAlive, isSameProcessAlive, readProcess } from ${
  JSON.stringify(source("base/process/proc/process_table.ts"))
};
  import { JobProcessFinder } from ${JSON.stringify(source("base/process/proc/known_processes.ts"))};
  const startTicks = readProcess(process.pid).startTicks;
  const known = new JobProcessFinder("nobody's", { pid: process.pid, startTicks });
  const checks = () => [isSameProcessAlive({ pid: process.pid, startTicks }), isProcessAlive(process.pid)];
  const others = [{ pid: process.pid, startTicks: 1 }, { pid: 0x7fffffff, startTicks }];
  const before = [...checks(), ...others.map(isSameProcessAlive)];
  const taken = [];
  try { for (;;) taken.push(openSync("/dev/null", "r")); } catch {}
  const full = checks();
  const row = readProcess(process.pid);
  known.rememberDescendants();
  taken.forEach((fd) => closeSync(fd));
  console.log(JSON.stringify([before, row, full, known.find(null).alive[0] === process.pid]));
`;

test.if(process.platform === "linux")("where no file can be opened any more, no process counts as ended", () => {
  const run = spawnSync("sh", ["-c", 'ulimit -n 64; exec "$0" -e "$1"', process.execPath, program], {
    encoding: "utf8",
  });
  expect(run.stderr).toBe("");
  expect(JSON.parse(run.stdout)).toEqual([[true, true, false, false], null, [true, true], true]);
});
