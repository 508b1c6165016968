/** Where there is no room for the files without a name that baton keeps in memory: a container's /dev/shm, say. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { BatonSession } from "../../support/baton_session.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession({ BATON_SERVERS: "embedded" }));
afterAll(() => session[Symbol.asyncDispose]());

const canMount = spawnSync("unshare", ["-rm", "mount", "-t", "tmpfs", "none", "/dev/shm"]).status === 0;
if (!canMount) console.error("MISSING: this user may not mount a tmpfs; the test of a full /dev/shm is left out");

test.skipIf(!canMount)("a full /dev/shm is in nobody's way", async () => {
  const script = `mount -t tmpfs -o size=4k none /dev/shm; dd if=/dev/zero of=/dev/shm/full bs=4k count=1 2>/dev/null
    "$baton" lock a -- "$baton" check -q; echo lock $?
    held=$("$baton" hold a --pid $$) || exit; eval "$held"; "$baton" check -q; echo hold $?; "$baton" release a; echo $?
    "$baton" pool a -q --items x -- env item={} "$baton" check -q; echo pool $?
    echo body | "$baton" retry-processor submit -q --store mail >id; "$baton" retry-processor run -q --store mail --once --exec cat`;
  const ended = await session.run(`unshare -rm sh -c '${script}'`);
  expect(ended.stdout).toBe("lock 0\nhold 0\n0\npool 0\nbody\n");
  expect(ended).toMatchObject({ code: 0, stderr: expect.not.stringContaining("internal error") });
});

test("where no file may be written at all a job runs, and asks the server; a script holds a lock", async () => {
  await session.run('"$baton" lock -q a -- true'); // the keeper may write
  const ended = await session.run(
    'ulimit -f 0; "$baton" lock a -- "$baton" check; echo lock $?; held=$("$baton" hold a --pid $$); echo hold $?',
  );
  expect(ended).toMatchObject({ code: 0, stdout: "lock 0\nhold 0\n" });
});
