/** `baton pool status`: what it lists, for people and for programs, and what it cannot see. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { BatonSession, untilMade } from "../../support/baton_session.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession({ BATON_SERVERS: "embedded" }));
afterAll(() => session[Symbol.asyncDispose]());

const lines = (text: string) => text.split("\n").filter((line) => line !== "");

test("status lists what is free, running, done and failed, as a table and for programs", async () => {
  await session.run(`"$baton" pool look --items good,bad -q --done-ttl 1h -- sh -c '[ {} = good ]'`);
  const running = session.start(`"$baton" pool look --items on -- sh -c 'touch look; ${untilMade("end-look")}'`);
  await session.made("look");
  const table = await session.run('"$baton" pool status look --items good,bad,on,new');
  const [totals, ...rows] = lines(table.stdout);
  expect(totals).toBe("4 items: 1 done, 1 failed, 1 running, 1 free");
  expect(rows.map((line) => line.split(/ +/).slice(0, 2).join(" "))).toEqual([
    "ITEM STATE",
    "good done",
    "bad failed",
    "on running",
    "new free",
  ]);
  const { stdout } = await session.run("\"$baton\" pool status look --query 'echo good; echo on' --json");
  expect(JSON.parse(stdout)).toMatchObject({
    version: 1,
    component: "look",
    component_holder: null,
    counts: { free: 0, running: 1, done: 1, failed: 0 },
    items: [{ item: "good", state: "done", holder: null, last_result: { result: "done", what: "exited with 0" } }, {
      item: "on",
      state: "running",
      holder: { command: "sh" },
    }],
  });
  await session.run("touch end-look");
  await running.ended;
});

test("JSON status shows the last possible date for a --done-ttl without end", async () => {
  const run = '"$baton" pool -q eternal --items a --done-ttl 100000000d -- touch';
  await session.run(`${run} eternal; ${run} again`);
  expect((await session.run("ls again")).code).not.toBe(0);
  const { stdout, stderr } = await session.run('"$baton" pool status eternal --json');
  expect([JSON.parse(stdout).items[0].last_result.until, stderr]).toEqual(["9999-12-31T23:59:59.999Z", ""]);
});

test("status prints the holder of the component's lock on stderr, and not with --quiet", async () => {
  const running = session.start(
    `"$baton" pool choosing --query "touch choosing; ${untilMade("end-choosing")}; echo a" -- true`,
  );
  await session.made("choosing");
  const told = await session.run('"$baton" pool status choosing');
  expect(told).toMatchObject({ code: 0, stdout: "" });
  expect(told.stderr).toMatch(
    /^baton: \S+@\S+ \(pid \d+, \S+\) holds the lock of pool "choosing" \(for \d.*s\) and may be choosing .*\nbaton: no item of pool "choosing" is running, /,
  );
  expect(await session.run('"$baton" pool status choosing -q')).toMatchObject({ code: 0, stdout: "", stderr: "" });
  const { stdout, stderr } = await session.run('"$baton" pool status choosing --json');
  expect([JSON.parse(stdout).component_holder.pid, stderr]).toEqual([expect.any(Number), ""]);
  await session.run("touch end-choosing");
  await running.ended;
  expect((await session.run('"$baton" pool status choosing')).stderr).toStartWith(
    'baton: no item of pool "choosing" is running, ',
  );
});

test("results stored under another template are shown, and can be cleared", async () => {
  await session.run('"$baton" pool -q moved --items a,b --done-ttl 1h -- true');
  const env = { BATON_POOL_ITEM_PATH: "/moved/{1}-{2}" };
  const status = await session.run('"$baton" pool status -q moved', env);
  expect([status.code, lines(status.stdout).map((line) => line.slice(0, 8))]).toEqual([
    0,
    ["2 items:", "ITEM  ST", "a     do", "b     do"],
  ]);
  expect(await session.run('"$baton" pool clear -q moved --items a', env)).toMatchObject({ code: 0, stderr: "" });
  expect(lines((await session.run('"$baton" pool status -q moved', env)).stdout)).toHaveLength(3);
  expect((await session.run('"$baton" pool status moved --items a', env)).code).toBe(65);
});
