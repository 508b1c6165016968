/** Whether something is left of a job has to be seen also when no file can be opened any more. */
import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const table = fileURLToPath(new URL("../../../../src/base/process/proc/process_table.ts", import.meta.url));

const program = `
  import { spawn } from "node:child_process";
  import { openSync } from "node:fs";
  import { listChildProcesses, checkFirstThreadHasChild } from ${JSON.stringify(table)};
  const child = spawn("sleep", ["60"], { stdio: "ignore" });
  checkFirstThreadHasChild(child.pid);
  try { for (;;) openSync("/dev/null", "r"); } catch {}
  console.log(listChildProcesses(process.pid).includes(child.pid));
  child.kill("SIGKILL");
`;

test.if(process.platform === "linux")("a child is seen where no file can be opened any more", () => {
  const run = spawnSync("sh", ["-c", 'ulimit -n 64; exec "$0" -e "$1"', process.execPath, program], {
    encoding: "utf8",
  });
  expect([run.stdout, run.stderr]).toEqual(["true\n", ""]);
});
