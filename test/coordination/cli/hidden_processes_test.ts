/**
 * Jobs with processes of another user (sudo, setuid), which baton may not end, where /proc shows each user its own
 * processes only. It needs root, to be both.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { chmodSync } from "node:fs";
import process from "node:process";
import { isGuardProcess } from "../../../src/base/process/guard/guard.ts";
import { listChildProcesses, readProcess } from "../../../src/base/process/proc/process_table.ts";
import { BatonSession } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { canBeOthers } from "../../support/other_user.ts";

setDefaultTimeout(60_000);

const mountsProc = ["-m", "sh", "-c", "mount -t proc -o hidepid=2 proc /proc"];
const canHide = canBeOthers("jobs of another user are not tried") && spawnSync("unshare", mountsProc).status === 0;
if (!canHide) console.error("MISSING: no /proc that hides processes can be mounted here");

let session: BatonSession;
beforeEach(async () => {
  session = new BatonSession({ BATON_SERVERS: "embedded" });
  if (!canHide) return;
  chmodSync(session.folder, 0o1777);
  // As sudo is: it may become root. The project's own folder may be closed to others.
  await session.run('cp "$(command -v setpriv)" asroot && chmod 4755 asroot; cp "$baton" baton; chmod 755 baton');
});
afterEach(async () => {
  if (canHide) await session.run("for pid in $(cat pids 2>&-); do kill -9 $pid; done");
  await session[Symbol.asyncDispose]();
});

const other = "setpriv --reuid=64871 --regid=64871 --clear-groups";
const hidden = (words: string) =>
  `exec unshare -m sh -c 'mount -t proc -o hidepid=2 proc /proc && exec ${other} ./baton "$@"' sh ${words}`;
const asRoot = (more: string) => `./asroot --reuid=0 sh -c "echo \\$\\$ >>pids; ${more}"`;
const sleeper = asRoot("exec sleep 600");

test.skipIf(!canHide)(
  "what is left of a job as another user is no job that has ended: baton waits for it",
  async () => {
    const baton = session.start(
      hidden(
        `lock x --session-timeout 4s --kill-after 100ms -- sh -c 'setsid ${sleeper} >&- 2>&- & until [ -e pids ]; do sleep 0.01; done'`,
      ),
    );
    const job = Number(await session.said("pids"));
    await eventually(() => baton.stderr().includes(`the command cannot be stopped: pid ${job};`), { withinMs: 15_000 });
    expect((await session.run(`${other} ./baton lock -n x -- true`)).code).toBe(75);
    process.kill(job, "SIGKILL");
    expect((await baton.ended).code).toBe(0);
  },
);

test.skipIf(!canHide)("one of several jobs ends beside another one's that runs as another user", async () => {
  const long = asRoot("until [ -e go ]; do sleep 0.01; done");
  const job = `if [ $1 = a ]; then ${long}; else until [ -e pids ]; do sleep 0.01; done; touch $1; fi`;
  const pool = session.start(hidden(`pool p --items a,b,c --jobs 2 -- sh -c '${job}' sh {}`));
  await session.made("c"); // there was room for it when b was over
  await session.run("touch go");
  expect((await pool.ended).code).toBe(0);
});

for (const [how, command] of [["in its group", sleeper], ["in a session of its own", `setsid ${sleeper} & wait`]]) {
  test.skipIf(!canHide)(
    `a killed baton's lock is not given on while another user's process ${how} may run`,
    async () => {
      const baton = session.start(hidden(`lock x --session-timeout 60s -- sh -c '${command}'`));
      const job = Number(await session.said("pids"));
      const guards = listChildProcesses(baton.child.pid ?? 0).filter(isGuardProcess);
      expect(guards).toHaveLength(1);
      process.kill(baton.child.pid ?? 0, "SIGKILL");
      await eventually(
        () => guards.every((guard) => readProcess(guard)?.dead !== false) || baton.stderr().includes("its guard keeps"),
        { withinMs: 20_000 },
      );
      expect(readProcess(job)?.dead).toBe(false);
      const next = await session.run(`${other} ./baton lock -n x -- true`);
      expect(next.code).toBe(75);
    },
  );
}
