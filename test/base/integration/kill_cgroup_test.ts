/** A cgroup that is made to end a job, on a machine where this user may make one. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { KillCgroup } from "../../../src/base/process/proc/stop_rounds.ts";
import { isProcessAlive } from "../../../src/base/process/proc/process_table.ts";
import { newGuid } from "../../../src/base/support/guid.ts";
import { eventually } from "../../support/eventually.ts";

setDefaultTimeout(20_000);

/** This process's own cgroup of version 2, where folders can be made in it. */
function ownFolder(): string | null {
  try {
    const path = /^0::(.*)$/m.exec(readFileSync("/proc/self/cgroup", "utf8"))?.[1] ?? "";
    const mount = / \/ (\S+) .* - cgroup2 /.exec(readFileSync("/proc/self/mountinfo", "utf8"))?.[1] ?? "";
    const probe = join(mount, path, `baton-test-${newGuid()}`);
    mkdirSync(probe);
    rmdirSync(probe);
    return join(mount, path);
  } catch {
    return null;
  }
}

const folder = ownFolder();
if (folder === null) console.error("MISSING: no cgroup v2 that this user may write; none is used to end a job");
const left = (cookie: string) => readdirSync(folder ?? "").filter((name) => name.includes(cookie));

test.skipIf(folder === null)("what is in it dies with all that it has started since, and it is removed", async () => {
  const cookie = newGuid();
  const job = Bun.spawn(["sh", "-c", "read go; setsid sleep 1000 >&- & echo $!; wait"], {
    stdin: "pipe",
    stdout: "pipe",
  });
  const cgroup = new KillCgroup(cookie);
  cgroup.add([job.pid]);
  expect(left(cookie)).toHaveLength(1);
  job.stdin.write("go\n");
  await job.stdin.end();
  const daemon = Number(new TextDecoder().decode((await job.stdout.getReader().read()).value));
  expect(isProcessAlive(daemon)).toBe(true);
  cgroup.kill();
  await job.exited;
  await eventually(() => !isProcessAlive(daemon));
  await eventually(() => {
    cgroup.close();
    return left(cookie).length === 0;
  });
});

test.skipIf(folder === null)("what has died already is no reason to fail, nor is what was never used", () => {
  const cookie = newGuid();
  const cgroup = new KillCgroup(cookie);
  cgroup.close();
  expect(left(cookie)).toEqual([]);
  cgroup.add([0x3ffffff]);
  cgroup.kill();
  cgroup.close();
  expect(left(cookie)).toEqual([]);
  expect(existsSync(folder ?? "")).toBe(true);
});
