/**
 * `baton pool` where nothing can be claimed: --total is used up, others run it on other terms, the job around it is in
 * its way.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { BatonSession, untilMade } from "../../support/baton_session.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession({ BATON_SERVERS: "embedded" }));
afterAll(() => session[Symbol.asyncDispose]());

test("64: the job around it holds the component, for which it would wait for ever", async () => {
  for (const words of ["", "-w 30s"]) {
    const nested = await session.run(`"$baton" lock nest -- "$baton" pool nest ${words} --items a -- true`);
    expect(nested).toMatchObject({
      code: 64,
      stderr: expect.stringContaining(
        '"nest" is already held by this command: it runs under a baton lock or baton hold of that lock',
      ),
    });
  }
  const inner = `"$baton" pool nest --one-round --items a,b -- printenv BATON_ITEM`;
  const inside = await session.run(`"$baton" pool nest --one-round --items a,b -- ${inner}`);
  expect(inside).toMatchObject({ code: 0, stdout: "b\n" });
});

test("75: items are free, and as many as --total allows run already", async () => {
  const working = session.start(
    `"$baton" pool full --items a --total 1 -- sh -c 'touch full; ${untilMade("end-full")}'`,
  );
  await session.made("full");
  for (const words of ["--one-round", "-w 0s", "-w 700ms --loop"]) {
    const none = await session.run(`"$baton" pool full --items b,c --total 1 ${words} --status-fd 1 -- echo ran {}`);
    expect([none.code, none.stderr]).toEqual([
      75,
      'baton: no item of pool "full" can start: 1 item runs already, the limit of --total; 2 items are left\n',
    ]);
    expect(JSON.parse(none.stdout)).toMatchObject({ reason: "nothing_free", items: { claimed: 0, remaining: 2 } });
  }
  const other = await session.run('"$baton" pool full --items b --total 2 -- echo ran {}');
  expect([other.code, other.stdout]).toEqual([78, ""]);
  expect(other.stderr).toMatch(
    /^baton: Cannot run pool "full" at the same time as \S+@\S+ \(pid \d+, sh\): it runs with --total 2 here and with --total 1 there; use the same .*\n$/,
  );
  const none = await session.run('"$baton" pool full --items b --status-fd 1 -- echo ran {}');
  expect([none.code, none.stderr]).toEqual([
    78,
    expect.stringContaining("it runs without --total here and with --total 1"),
  ]);
  expect(JSON.parse(none.stdout)).toMatchObject({ reason: "limit_mismatch", exit_code: 78 });
  await session.run("touch end-full");
  expect((await working.ended).code).toBe(0);
  expect(await session.run('"$baton" pool full --items b --total 2 -- echo ran {}')).toMatchObject({
    code: 0,
    stdout: "ran b\n",
  });
});

test("two calls under one --total leave nothing undone, and wait for each other's permits", async () => {
  for (const words of ["--total 1 -j 2", "--total 2 -j 2 --done-ttl 1h", "--total 3 -j 2 --done-ttl 1h"]) {
    const name = words.replaceAll(/[^0-9]/g, "-");
    const call = `exec "$baton" pool -q t${name} --items @hundred ${words} -- sh -c 'echo {} >> ran${name}'`;
    await session.run("seq 100 > hundred");
    const ended = await Promise.all([session.run(call), session.run(call)]);
    expect(ended.map(({ code, stderr }) => [code, stderr])).toEqual([[0, ""], [0, ""]]);
    expect(new Set(session.read(`ran${name}`).trim().split("\n")).size).toBe(100);
  }
});

test("78: a machine without the configuration of the others runs nothing, and says what differs", async () => {
  const paths = '[pool]\\ncomponent_path = "/SBOI/{component}"\\nitem_path = "/{component}/{item}"\\n';
  await session.run(`printf '${paths}' > with.toml; : > without.toml`);
  const call = (config: string, words: string) => `"$baton" pool paper --config ${config}.toml ${words}`;
  for (const [first, second] of [["with", "without"], ["without", "with"]] as const) {
    const working = session.start(
      "exec " + call(first, `--items a -- sh -c 'touch ${first}; ${untilMade(`end-${first}`)}'`),
    );
    await session.made(first);
    for (const words of ["--items a", "--items b -w 30s", "--query 'touch never; echo a'"]) {
      const refused = await session.run(call(second, `${words} -- touch never`));
      expect([refused.code, refused.stdout]).toEqual([78, ""]);
      const pid = /^baton: Cannot run pool "paper" at the same time as \S+@\S+ \(pid (\d+), sh\): /.exec(refused.stderr)
        ?.[1];
      expect(Number(pid)).toBe(working.child.pid ?? NaN);
      const [here, there] = [second, first].map((one) => one === "with" ? "/" : "{root}/locks/");
      expect(refused.stderr).toContain(`pool.item_path is "${here}{component}`);
      expect(refused.stderr).toContain(`" here and "${there}{component}`);
      expect(refused.stderr.trimEnd()).toEndWith("baton config show --origin prints the origin of the path here");
    }
    const looked = (config: string, words = "") =>
      session.run(`"$baton" pool status paper --config ${config}.toml ${words}`);
    expect((await looked(second)).stderr).toMatch(
      /^baton: \S+@\S+ \(pid \d+, sh\) runs pool "paper" with other lock paths, so its items are not shown: pool.item_path /,
    );
    expect(JSON.parse((await looked(second, "--json")).stdout)).toMatchObject({
      conflicting_run: { pid: working.child.pid, item_path: expect.stringContaining("{item}") },
    });
    expect(await looked(first)).toMatchObject({ stderr: "", stdout: expect.stringContaining("running") });
    expect(JSON.parse((await looked(first, "--json")).stdout)).toMatchObject({ conflicting_run: null });
    const same = await session.run(call(first, "--items b -- echo ran {}"));
    expect(same).toMatchObject({ code: 0, stdout: "ran b\n" });
    await session.run(`touch end-${first}`);
    expect((await working.ended).code).toBe(0);
    expect(await session.run(call(second, "--items b -- echo ran {}"))).toMatchObject({ code: 0, stdout: "ran b\n" });
  }
  expect((await session.run("ls never")).code).not.toBe(0);
});
