/** `baton check`, by sessions with the binary. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import process from "node:process";
import { listChildProcesses } from "../../../src/base/process/proc/process_table.ts";
import { BatonSession } from "../../support/baton_session.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession());
afterAll(() => session[Symbol.asyncDispose]());

const under = (command: string, options = "") => `"$baton" lock -q ${options} c d -- sh -c '${command}'`;

test("held: the milliseconds that are left for certain, and 0", async () => {
  const ended = await session.run(under('"$baton" check', "--session-timeout 8s"));
  expect(ended).toMatchObject({ code: 0, stderr: "" });
  const left = Number(ended.stdout);
  // T less its margin of 500 ms, less what has passed since the keeper was last heard of.
  expect([left > 4000, left <= 7500]).toEqual([true, true]);
  expect(await session.run(under('"$baton" check -q'))).toMatchObject({ code: 0, stdout: "" });
  const json = JSON.parse((await session.run(under('"$baton" check --json'))).stdout);
  expect(json).toEqual({ version: 1, names: ["c", "d"], held: true, remaining_ms: expect.any(Number) });
});

test("less than is wanted is 79, with what is left", async () => {
  expect(await session.run(under('"$baton" check --at-least 1s -q'))).toMatchObject({ code: 0 });
  const ended = await session.run(under('"$baton" check --at-least 1m'));
  expect(ended).toMatchObject({ code: 79, stdout: "" });
  expect(ended.stderr).toMatch(/^baton: "c", "d" is held for certain for \d.*s, less than the 1 m of --at-least\n$/);
});

test("a leader's command is told the same", async () => {
  expect(await session.run(`"$baton" elect -q --value v e -- sh -c '"$baton" check -q'`)).toMatchObject({ code: 0 });
});

test("in a lock inside a lock it is the inner one's", async () => {
  const inner = `"$baton" lock -q --session-timeout 3s inner -- "$baton" check`;
  const ended = await session.run(`"$baton" lock -q --session-timeout 20s outer -- ${inner}`);
  expect(Number(ended.stdout)).toBeLessThan(2600);
});

test("when baton and its guard stand still, it says when the time is over", async () => {
  const holder = session.start(
    `exec ${
      under(
        'echo $$ >job; touch held; read -r _ <go; "$baton" check; echo $? >code; touch written',
        "--session-timeout 2s",
      )
    }`,
  );
  await session.run("mkfifo go");
  await session.made("held");
  const baton = holder.child.pid ?? 0;
  const frozen = [baton, ...listChildProcesses(baton)].filter((pid) => pid !== Number(session.read("job")));
  expect(frozen).toHaveLength(2);
  for (const pid of frozen) process.kill(pid, "SIGSTOP");
  // Another has it: the servers have ended the first one's session.
  expect(await session.run('"$baton" lock -q -w 20s --session-timeout 2s c -- true')).toMatchObject({ code: 0 });
  await session.run("echo go >go");
  await session.made("written");
  for (const pid of frozen) process.kill(pid, "SIGCONT");
  await holder.ended;
  expect(session.read("code").trim()).toBe("79");
});

test("without baton's own word the server is asked", async () => {
  const asked = await session.run(under('BATON_LEASE= "$baton" check --json'));
  expect(JSON.parse(asked.stdout)).toEqual({ version: 1, names: ["c", "d"], held: true, remaining_ms: null });
  const wanted = await session.run(under('BATON_LEASE= "$baton" check --at-least 1s'));
  expect(wanted).toMatchObject({ code: 79, stdout: "" });
  const others = await session.run(under('BATON_LEASE= BATON_LOCK_COOKIE=abc "$baton" check -q'));
  expect(others).toMatchObject({ code: 79 });
});

test("a baton that is gone holds nothing, and neither does another process in its place", async () => {
  expect(await session.run(under('BATON_LEASE=/proc/1/fd/99999 "$baton" check -q'))).toMatchObject({ code: 79 });
  expect(await session.run(under('echo other >note; BATON_LEASE=$PWD/note "$baton" check -q'))).toMatchObject({
    code: 79,
  });
});

test("whatever is in its place is neither waited for nor emptied", async () => {
  const other = session.start("mkfifo pipe; exec 9<>pipe; echo kept >&9; echo $$ >other; exec sleep 60");
  const note = `/proc/${(await session.said("other")).trim()}/fd/9`;
  expect(await session.run(under(`BATON_LEASE=${note} timeout -s KILL 5 "$baton" check -q`))).toMatchObject({
    code: 79,
  });
  expect(await session.run(`timeout -s KILL 5 head -n 1 ${note}`)).toMatchObject({ stdout: "kept\n" });
  other.child.kill();
  expect(await session.run(under('BATON_LEASE=/dev/zero timeout -s KILL 5 "$baton" check -q'))).toMatchObject({
    code: 79,
  });
  expect(await session.run(under('BATON_LEASE=. timeout -s KILL 5 "$baton" check -q'))).toMatchObject({ code: 79 });
});

test("outside a lock there is nothing to check", async () => {
  expect(await session.run('"$baton" check')).toMatchObject({ code: 64, stdout: "" });
  expect(await session.run(under('"$baton" check x'))).toMatchObject({ code: 64 });
});
