/** `baton barrier` as a user types it, and every exit code of it that can be reached from outside. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import process from "node:process";
import { BatonSession, type Running } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession());
afterAll(() => session[Symbol.asyncDispose]());

const members = (count: number, script: (index: number) => string): Running[] =>
  Array.from({ length: count }, (_, index) => session.start(script(index)));
const said = (running: Running, text: string) =>
  eventually(() => running.stderr().includes(text), { what: `"${text}"`, withinMs: 20_000 });

describe("a barrier", () => {
  test("runs the command in all members together, each with a rank, and gives each its own code", async () => {
    const script = 'echo in >> log; echo "$BATON_RANK/$BATON_SIZE $BATON_BARRIER_NAME $BATON_BARRIER_GENERATION"; ' +
      'echo "$BATON_FENCING_TOKEN" >> tokens; exit $BATON_RANK';
    const all = members(4, (index) => `"$baton" barrier -q --status-file status-${index} b -N 4 -- sh -c '${script}'`);
    const ended = await Promise.all(all.map((running) => running.ended));
    expect(ended.map(({ stdout }) => stdout.trim()).sort()).toEqual(["0/4 b 1", "1/4 b 1", "2/4 b 1", "3/4 b 1"]);
    for (const { code, stdout, stderr } of ended) {
      expect(stderr).toBe("");
      expect(String(code)).toBe(stdout.slice(0, 1));
    }
    expect(new Set(session.read("tokens").trim().split("\n")).size).toBe(1);
    const status = JSON.parse(session.read("status-0"));
    expect(status).toMatchObject({
      version: 1,
      command: "barrier",
      names: ["b"],
      reason: "command_exited",
      signal: null,
    });
    expect(status.fencing_tokens).toHaveLength(1);
  });

  test("leaves together: a member that is through early waits for the others", async () => {
    await session.run("mkfifo go");
    const [quick, slow] = members(
      2,
      (index) =>
        index === 0
          ? '"$baton" barrier -v l -N 2 -- true'
          : '"$baton" barrier -q l -N 2 -- sh -c "touch slow-in; cat go"',
    );
    if (quick === undefined || slow === undefined) throw new Error("no members");
    await said(quick, "has ended, waiting for the others");
    await session.made("slow-in");
    expect(quick.child.exitCode).toBeNull();
    await session.run("echo > go");
    expect((await quick.ended).code).toBe(0);
    expect((await slow.ended).code).toBe(0);
  });

  test("a signal that the command takes as a message changes nothing; one that ends it ends the wait too", async () => {
    await session.run("mkfifo told ended");
    const script = 'trap "echo heard; exec 3<&-; exit 4" USR1; touch in-u; : < told & wait; wait';
    const heard = session.start(`exec "$baton" barrier -v u -N 2 -- sh -c '${script}'`);
    const other = session.start('"$baton" barrier -q u -N 2 -- sh -c "cat ended"');
    await session.made("in-u");
    process.kill(heard.child.pid ?? 0, "SIGUSR1");
    await said(heard, "has ended, waiting for the others");
    await session.run("echo > ended");
    expect(await heard.ended).toMatchObject({ code: 4, signal: null, stdout: "heard\n" });
    expect((await other.ended).code).toBe(0);

    const asked = session.start("exec \"$baton\" barrier -q v -N 2 -- sh -c 'touch in-v; cat told'");
    const stays = session.start('"$baton" barrier -q v -N 2 -- sh -c "touch in-w; cat ended"');
    await Promise.all([session.made("in-v"), session.made("in-w")]);
    process.kill(asked.child.pid ?? 0, "SIGTERM");
    expect(await asked.ended).toMatchObject({ code: null, signal: "SIGTERM" });
    await session.run("echo > ended");
    expect((await stays.ended).code).toBe(0);
  });

  test("one more than needed starts with the next generation", async () => {
    const all = members(4, () => '"$baton" barrier -q n -N 2 -- sh -c \'echo "$BATON_BARRIER_GENERATION"\'');
    const generations = (await Promise.all(all.map((running) => running.ended))).map(({ stdout }) => stdout.trim());
    expect(new Set(generations).size).toBe(2);
  });

  test("a lock inside a member leaves it its rank", async () => {
    const script =
      `"$baton" barrier -q r -N 1 -- sh -c '"$baton" lock -q inner -- sh -c "echo \\$BATON_RANK/\\$BATON_SIZE"'`;
    expect(await session.run(script)).toMatchObject({ code: 0, stdout: "0/1\n" });
  });
});

describe("a rendezvous, which is a barrier without a command", () => {
  test("all calls end with 0 when the last has come, round after round", async () => {
    const [first, second] = members(2, () => '"$baton" barrier -q -v m3 -N 3; echo "$? $(ls m3-last 2>&1)"');
    if (first === undefined || second === undefined) throw new Error("no members");
    await Promise.all([first, second].map((running) => said(running, "of 3 are here")));
    const last = session.start('touch m3-last; "$baton" barrier -q --status-file m3-status m3 -N 3; echo $?');
    expect((await last.ended).stdout).toBe("0\n");
    for (const { ended } of [first, second]) expect((await ended).stdout).toBe("0 m3-last\n");
    expect(JSON.parse(session.read("m3-status"))).toMatchObject({ reason: "all_arrived", exit_code: 0 });
    const steps = 'for step in 1 2 3 4 5; do echo "$step" >> steps; "$baton" barrier -q steps -N 3 || exit; done';
    const ended = await Promise.all(members(3, () => steps).map((running) => running.ended));
    expect(ended.map(({ code, stderr }) => [code, stderr])).toEqual([[0, ""], [0, ""], [0, ""]]);
    expect(session.read("steps").trim().split("\n")).toEqual(
      [1, 2, 3, 4, 5].flatMap((step) => Array(3).fill(`${step}`)),
    );
  });

  test("shows on a terminal how many are here, and erases that when it ends", async () => {
    const waiting = session.start(`script -qec '"$baton" barrier m7 -N 2' /dev/null`, {
      ...{ TERM: "xterm", BATON_SERVERS: "embedded" },
    });
    const shown = '\r\x1b[Kbaton: waiting at barrier "m7": 1 of 2 are here';
    await eventually(() => waiting.stdout().includes(shown), { what: "the line", withinMs: 20_000 });
    expect((await session.run('"$baton" barrier -q m7 -N 2')).code).toBe(0);
    const { code, stdout } = await waiting.ended;
    expect([code, stdout.endsWith("\r\x1b[K"), stdout.includes("\n")]).toEqual([0, true, false]);
  });

  test("is 75 when they do not come in time, 82 when one is killed while it waits", async () => {
    expect(await session.run('"$baton" barrier -q m4 -N 2 -w 1s')).toMatchObject({ code: 75, stderr: "" });
    const other = session.start('"$baton" barrier -v m5 -N 3');
    await said(other, "1 of 3 are here");
    const killed = session.start('exec "$baton" barrier -v m5 -N 3');
    await said(killed, "2 of 3 are here");
    process.kill(killed.child.pid ?? 0, "SIGKILL");
    expect((await other.ended).code).toBe(82);
  });

  test("does not wait for a member that is still there; the next round does, until that one is dead", async () => {
    const running = session.start("exec \"$baton\" barrier -q m6 -N 2 -- sh -c '>m6; exec sleep 1000'");
    expect(await session.run('"$baton" barrier -q m6 -N 2')).toMatchObject({ code: 0, stderr: "" });
    await session.made("m6");
    expect(await session.run('"$baton" barrier m6 -N 1 -w 2s --servers embedded')).toMatchObject({
      code: 75,
      stderr: expect.stringContaining("the previous generation has not ended"),
    });
    const next = session.start('"$baton" barrier -q m6 -N 1');
    process.kill(running.child.pid ?? 0, "SIGKILL");
    expect((await next.ended).code).toBe(0);
    await running.ended;
  });
});

describe("a barrier that does not start", () => {
  test("75, or the code of -E, when the others do not come in time, and says who is there", async () => {
    const first = session.start('"$baton" barrier -q -v w -N 3 --on-member-lost wait --reason "part one" -- true');
    await said(first, "1 of 3 are here");
    const late = await session.run('"$baton" barrier w -N 3 --on-member-lost wait -w 2s --servers embedded -- true');
    expect(late).toMatchObject({ code: 75, stdout: "" });
    expect(late.stderr).toMatch(
      /^baton: Barrier "w" was not complete within 2 s: 2 of 3 are here: .* \(pid \d+, true\).* \(part one\), this one; 1 is missing\n$/,
    );
    expect(await session.run('"$baton" barrier -q alone -N 2 -w 2s -- true')).toMatchObject({
      code: 75,
      stderr: "",
    });
    process.kill(-(first.child.pid ?? 0), "SIGTERM");
    await first.ended;
  });

  test("82 for all others when one gives up, is stopped by a signal, or is killed", async () => {
    const cases = [
      ["gives-up", "-w 300ms", null, /it stopped waiting after 300/],
      ["stopped", "", "SIGTERM", /it was stopped/],
      ["killed", "--session-timeout 2s", "SIGKILL", /its session ended/],
    ] as const;
    for (const [name, options, signal, why] of cases) {
      const status = `status-${name}`;
      const other = session.start(`"$baton" barrier -v --status-file ${status} ${name} -N 3 -- touch ran-${name}`);
      await said(other, "1 of 3 are here");
      const lost = session.start(`exec "$baton" barrier -v ${name} -N 3 ${options} -- touch ran-${name}`);
      await said(lost, "2 of 3 are here");
      if (signal !== null) process.kill(lost.child.pid ?? 0, signal);
      expect(await lost.ended).toMatchObject(signal === null ? { code: 75 } : { code: null, signal });
      const { code, stderr } = await other.ended;
      expect([name, code]).toEqual([name, 82]);
      expect(stderr).toMatch(new RegExp(`Barrier "${name}" is broken: .* was lost before the start: ${why.source}`));
      expect(JSON.parse(session.read(status))).toMatchObject({
        reason: "barrier_broken",
        exit_code: 82,
        command_status: null,
      });
      expect((await session.run(`test -e ran-${name}`)).code).toBe(1);
    }
  });

  test("78 when it wants another number than those who wait, 64 for what does not fit together", async () => {
    const first = session.start('"$baton" barrier -q -v m -N 2 -- true');
    await said(first, "1 of 2 are here");
    const other = await session.run('"$baton" barrier -q m -N 3 -- true');
    expect(other).toMatchObject({
      code: 78,
      stderr: 'baton: Cannot enter barrier "m": the other participants wait for 2 parties, and this one for 3\n',
    });
    expect((await session.run('"$baton" barrier -q m -N 2 --scope cluster -- true')).code).toBe(78);
    expect((await session.run('"$baton" barrier -q m -N 2 -- true')).code).toBe(0);
    expect((await first.ended).code).toBe(0);
    for (
      const words of ["m -- true", "-N 2 -- true", "a b -N 2 -- true", "m -N 2 --", "m --set --lift", "m --wait -N 2"]
    ) {
      expect([words, (await session.run(`"$baton" barrier ${words}`)).code]).toEqual([words, 64]);
    }
    const nested = await session.run(`"$baton" barrier -q m -N 1 -- "$baton" barrier -q m -N 1 -- true`);
    expect([nested.code, nested.stderr]).toEqual([64, expect.stringContaining("already a member of barrier")]);
  });

  test("69 when no server answers, 127 when there is no such command", async () => {
    const nobody = '"$baton" barrier -q u -N 1 --servers unix:/nowhere/at/all --connect-timeout 200ms -- true';
    expect((await session.run(nobody)).code).toBe(69);
    expect((await session.run('"$baton" barrier -q c -N 1 -- no-such-command')).code).toBe(127);
  });
});

describe("a member that is lost after the start", () => {
  test("stops its command and exits with 79; the others end with their own code", async () => {
    await session.run("mkfifo end-0 end-1");
    const all = members(
      2,
      (index) =>
        `exec "$baton" barrier -q --session-timeout 2s --kill-after 100ms --status-file life-${index} s -N 2 -- ` +
        `sh -c 'echo $$ > pid-${index}; cat end-${index}; exit 5'`,
    );
    await Promise.all([session.made("pid-0"), session.made("pid-1")]);
    const [one, other] = all;
    if (one === undefined || other === undefined) throw new Error("no members");
    // One baton stands still for longer than its session lives; the guard ends its command.
    process.kill(one.child.pid ?? 0, "SIGSTOP");
    await session.run("echo > end-1");
    expect((await other.ended).code).toBe(5);
    process.kill(one.child.pid ?? 0, "SIGCONT");
    expect((await one.ended).code).toBe(79);
    expect(JSON.parse(session.read("life-0"))).toMatchObject({
      reason: "lock_lost",
      command_status: { signal: "SIGKILL" },
    });
  });

  test("79 when its session ends under it", async () => {
    await using own = new BatonSession();
    const running = own.start(
      '"$baton" barrier -q --session-timeout 2s s -N 1 -- sh -c "echo $$ > pid; while :; do sleep 0.1; done"',
    );
    await own.made("pid");
    process.kill(own.keeperPid() ?? 0, "SIGSTOP");
    const { code, stderr } = await running.ended;
    process.kill(own.keeperPid() ?? 0, "SIGCONT");
    expect(code).toBe(79);
    expect(stderr).toContain('Barrier "s" is lost');
  });
});

describe("a gate", () => {
  test("is waited at while it is closed, and open when nobody ever closed it", async () => {
    expect(await session.run('"$baton" barrier -q g --wait')).toMatchObject({ code: 0, stdout: "", stderr: "" });
    const set = '"$baton" barrier -q g --set --json --reason "disk swap"';
    expect((await session.run(set)).stdout).toBe('{"version":1,"name":"g","gate":"closed","changed":true}\n');
    expect((await session.run(set)).stdout).toBe('{"version":1,"name":"g","gate":"closed","changed":false}\n');
    // The process that has closed it has ended.
    expect((await session.run('"$baton" who g')).stdout).toMatch(/\nclosed +\S+@\S+ +\d+ .* disk swap\n$/);
    const late = await session.run('"$baton" barrier g --wait -w 2s --servers embedded');
    expect(late.code).toBe(75);
    expect(late.stderr).toMatch(
      /^baton: Gate "g" is closed and was not opened within 2 s; closed by .*: disk swap\n$/,
    );
    expect((await session.run('"$baton" barrier -q g --wait -w 0s')).code).toBe(75);
    const waiting = session.start('"$baton" barrier -q g --wait && touch through');
    expect((await session.run('"$baton" barrier -q g --lift')).code).toBe(0);
    expect((await waiting.ended).code).toBe(0);
    expect((await session.run('"$baton" barrier -q g --lift --json')).stdout).toContain('"changed":false');
  });
});
