/** `baton who`, `ls` and `break`, as operators use them. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { BatonSession } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession({ BATON_SERVERS: "embedded", BATON_RETRY_STORE: "/none" }));
afterAll(() => session[Symbol.asyncDispose]());

async function whoOf(name: string) {
  return JSON.parse((await session.run(`"$baton" who ${name} --json`)).stdout);
}

test("a name that nothing has: exit 1, and nothing on stdout", async () => {
  expect(await session.run('"$baton" who nosuch')).toMatchObject({
    code: 1,
    stdout: "",
    stderr: 'baton: nothing has the name "nosuch"; a lock of this name is free\n',
  });
  expect(await session.run('"$baton" who --kind lock nosuch')).toMatchObject({
    code: 1,
    stderr: 'baton: lock "nosuch" is free\n',
  });
  await session.run('"$baton" elect -q --value v voted -- true');
  expect(await session.run('"$baton" who voted')).toMatchObject({ code: 1, stderr: 'baton: "voted" has no leader\n' });
});

test("a lock that nobody holds is free: exit 1, nothing on stdout", async () => {
  await session.run('"$baton" lock -q free -- true');
  expect(await session.run('"$baton" who free')).toMatchObject({
    code: 1,
    stdout: "",
    stderr: 'baton: lock "free" is free\n',
  });
  expect(await whoOf("free")).toEqual({
    version: 1,
    kind: "lock",
    name: "free",
    path: "/baton/locks/free",
    scope: "user",
    limit: null,
    holders: [],
    waiters: [],
  });
});

test("-v says whose locks these are where no servers are named; in a pipe nothing else does", async () => {
  const ended = await session.run('env -u BATON_SERVERS "$baton" who -v free');
  expect(ended.stderr).toStartWith("baton: scope: this user's processes on this machine only; ");
  for (const quietly of ["who free", "who free --json", "ls"]) {
    expect((await session.run(`env -u BATON_SERVERS "$baton" ${quietly}`)).stderr).not.toContain("scope");
  }
});

test("a published command is cut short: what is there for people must not keep a job from its lock", async () => {
  const ended = await session.run(
    `"$baton" lock --publish-command long -- sh -c '"$baton" who long --json' sh $(seq 1 2000)`,
  );
  expect(ended.code).toBe(0);
  const [{ command }] = JSON.parse(ended.stdout).holders;
  expect(command).toStartWith('sh -c "$baton" who long --json sh 1 2 3 ');
  expect(command).toHaveLength(1001);
  expect(command).toEndWith("…");
});

describe("holders and waiters", () => {
  test("come in their order, with what they say of themselves and no more", async () => {
    const holder = session.start(
      'exec "$baton" lock --reason load crowd -- sh -c "touch held; while [ ! -e go ]; do sleep 0.05; done; : secret-word"',
    );
    await session.made("held");
    const late = session.start('exec "$baton" lock --priority background --publish-command crowd -- sh -c "exit 0"');
    await eventually(async () => (await whoOf("crowd")).waiters.length === 1);
    const early = session.start('exec "$baton" lock --priority 7 crowd -- true');
    await eventually(async () => (await whoOf("crowd")).waiters.length === 2);

    const who = await whoOf("crowd");
    expect(who.holders).toMatchObject([{ mode: "exclusive", command: "sh", reason: "load", pid: holder.child.pid }]);
    expect(who.holders[0].fencing_token).toMatch(/^\d+$/);
    expect(Date.parse(who.holders[0].since)).toBeLessThanOrEqual(Date.now());
    expect(who.waiters).toMatchObject([
      { place: 1, priority: 7, command: "true" },
      { place: 2, priority: 200, command: "sh -c exit 0" },
    ]);
    const table = await session.run('"$baton" who crowd');
    expect(table.code).toBe(0);
    expect(table.stdout.split("\n").map((line) => line.split(/ {2,}/)[0])).toEqual([
      "STATE",
      "holds",
      "waits",
      "waits",
      "",
    ]);
    expect(table.stdout).not.toContain("secret-word");
    expect((await session.run('"$baton" ls')).stdout).toMatch(/^KIND +NAME +HOLD +WAIT\nlock +crowd +1 +2\n$/);
    expect(JSON.parse((await session.run('"$baton" ls --json')).stdout)).toMatchObject({
      version: 1,
      scope: "user",
      locks: [{ name: "crowd", holders: 1, waiters: 2 }],
      elections: [],
      barriers: [],
      gates: [],
      pools: [],
    });

    await session.run("touch go");
    for (const running of [holder, early, late]) expect((await running.ended).code).toBe(0);
  });

  test("a reason cannot move the cursor of whoever reads it", async () => {
    const script = `"$baton" lock --reason "$(printf 'a\\033[2Jb')" evil -- "$baton" who evil`;
    const ended = await session.run(script);
    expect(ended.stdout).toContain("a\ufffd[2Jb");
    expect(ended.stdout).not.toContain("\x1b");
  });
});

describe("other kinds", () => {
  const look = async (words: string) => (await session.run(`"$baton" ${words}`)).stdout;

  test("a name is what is in use; of two kinds the lock is shown, and --kind chooses the other one", async () => {
    const script =
      `"$baton" elect -q twice --value a:1 -- sh -c '"$baton" who twice; "$baton" who --kind lock twice; echo $?; "$baton" lock twice -- "$baton" who twice'`;
    const ended = await session.run(script);
    expect(ended.stderr).toBe(
      'baton: lock "twice" is free; there is an election of this name: baton who --kind election twice\n',
    );
    expect(ended.stdout).toMatch(
      /^STATE .*\nleads +\S+@\S+ .* a:1 .*\n1\nSTATE .*\nholds +\S+@\S+ .*exclusive .*\n$/,
    );
    expect(await session.run('"$baton" lock -q only -- "$baton" leader only')).toMatchObject({
      code: 1,
      stderr: 'baton: "only" has no leader; there is a lock of this name: baton who only\n',
    });
    expect(await session.run('"$baton" who twice')).toMatchObject({ code: 1, stderr: 'baton: lock "twice" is free\n' });
  });

  test("an election: its leader with what it offers, and its candidates", async () => {
    const leader = session.start(
      'exec "$baton" elect -q echo --value a:1 -- sh -c "touch leads; while [ ! -e end ]; do sleep 0.05; done"',
    );
    await session.made("leads");
    const other = session.start('exec "$baton" elect -q echo --value b:2 --priority 7 -- true');
    await eventually(async () => (await look("who --kind election echo")).split("\n").length === 4);
    const [, leads = "", waits = ""] = (await look("who --kind election echo")).split("\n");
    expect(leads).toMatch(/^leads +\S+ \(pid \d+, sh\) +.* a:1 +[0-9a-z]+$/);
    expect(waits).toMatch(/^waits +\S+ \(pid \d+, true\) +.* b:2, priority 7 +[0-9a-z]+$/);
    expect(await look("ls")).toMatch(/^KIND +NAME +HOLD +WAIT\nelection +echo +1 +1\n$/);
    await session.run("touch end");
    for (const running of [leader, other]) expect((await running.ended).code).toBe(0);
    expect(await session.run('"$baton" who --kind election echo')).toMatchObject({
      code: 1,
      stdout: "",
      stderr: 'baton: "echo" has no leader\n',
    });
    expect(await look("ls")).toBe("");
    expect(await look("ls --all --kind election")).toMatch(/\nelection +echo +0 +0\n/);
  });

  test("a barrier: who waits for the start, then who runs, with ranks", async () => {
    const first = session.start(
      'exec "$baton" barrier -q meet -N 2 -- sh -c "while [ ! -e part ]; do sleep 0.05; done"',
    );
    await eventually(async () => (await look("ls")).includes("meet"));
    const waiting = await session.run('"$baton" who --kind barrier meet');
    expect(waiting).toMatchObject({ code: 1, stderr: 'baton: barrier "meet" has no running members\n' });
    expect(waiting.stdout).toMatch(/\nwaits +\S+ \(pid \d+, sh\) /);
    expect(JSON.parse(await look("who --kind barrier meet --json"))).toMatchObject({
      limit: 2,
      waiters: [{ place: 1 }],
    });
    const second = session.start(
      'exec "$baton" barrier -q meet -N 2 -- sh -c "while [ ! -e part ]; do sleep 0.05; done"',
    );
    await eventually(async () => (await look("ls")).match(/barrier +meet +2 +0/));
    const { holders } = JSON.parse(await look("who --kind barrier meet --json"));
    expect(holders.map((one: { rank: number }) => one.rank)).toEqual([0, 1]);
    expect(holders[0].fencing_token).toBe(holders[1].fencing_token);
    expect(await look("who --kind barrier meet")).toMatch(/\nruns .* rank 0 .*\nruns .* rank 1 /);
    await session.run("touch part");
    for (const running of [first, second]) expect((await running.ended).code).toBe(0);
  });

  test("a gate: who closed it and why; a pool: how many jobs run", async () => {
    await session.run('"$baton" barrier maint --set --reason "disk swap"');
    expect(await look("who --kind gate maint")).toMatch(/\nclosed +\S+ .* disk swap\n$/);
    expect(await look("ls")).toMatch(/\ngate +maint +1 +0\n/);
    await session.run('"$baton" barrier maint --lift');
    expect(await session.run('"$baton" who --kind gate maint')).toMatchObject({
      code: 1,
      stderr: 'baton: gate "maint" is open\n',
    });
    const pool = `printf 'a\\n' | "$baton" pool -q comp --items - --total 2 -- sh -c '"$baton" ls'`;
    expect((await session.run(pool)).stdout).toMatch(/\nlock +comp\/a +1 +0\n(.*\n)*pool +comp +1 +0\n/);
  });

  test("a schedule, a pool with results, and a topic are shown by their names; 1, because nothing runs", async () => {
    await session.run('"$baton" lock daily --tick "0 0 * * *" --timezone UTC --catch-up 1d -- true');
    await session.run('"$baton" pool work --items a --done-ttl 1h -- true');
    const shown = async (name: string) => (await session.run(`"$baton" who ${name}; echo $?`)).stdout;
    expect(await shown("daily")).toMatch(/^SCHEDULE OF +TICKS .*\ndaily +0 0 \* \* \* \(UTC\) +in .*\n1\n$/);
    expect(await shown("work")).toMatch(/^KIND +NAME .*RESULTS\npool +work +0 +0 +1 done, 0 failed\n1\n$/);
    const service = session.start('exec "$baton" pubsub serve -q');
    await session.becomesTrue('"$baton" publish -q news one');
    expect(await shown("news")).toMatch(/^TOPIC .*\nnews +local .*\n1\n$/);
    service.child.kill();
    await service.ended;
  });
});

describe("break", () => {
  test("needs no --holder if there is one holder, or none", async () => {
    const free = await session.run('"$baton" break any');
    expect(free).toMatchObject({ code: 1, stderr: 'baton: Cannot break lock "any": no process holds it\n' });
    const elected = await session.run(`"$baton" elect -q led -- sh -c '"$baton" break led'`);
    expect(elected.stderr).toBe(
      'baton: Cannot break lock "led": no process holds it; there is an election of this name: baton resign led\n',
    );
    const holder = session.start('exec "$baton" lock one -- sh -c ">one; exec sleep 60"');
    await session.made("one");
    const broken = await session.run('"$baton" break one --reason maintenance');
    expect(broken).toMatchObject({ code: 0, stderr: expect.stringContaining('has released "one"') });
    const ended = await holder.ended;
    expect([ended.code, ended.stderr]).toEqual([80, expect.stringContaining('reason "maintenance"')]);
  });

  test("with several holders prints the options to choose from, and asks none; each of them works", async () => {
    const hold = (name: string) =>
      session.start(`exec "$baton" lock -N 2 some --reason '${name}' -- sh -c ">some-${name}; exec sleep 60"`);
    const held = [hold("a"), hold("b")];
    await Promise.all([session.made("some-a"), session.made("some-b")]);
    const asked = await session.run('"$baton" break some');
    expect([asked.code, asked.stdout]).toEqual([64, ""]);
    const [first, ...rest] = asked.stderr.trimEnd().split("\n");
    const choices = rest.filter((line) => line.startsWith("  "));
    expect(first).toBe('baton: Lock "some" has 2 holders; run the same command with one of these options:');
    expect(choices.map((line) => /reason "(.)"$/.exec(line)?.[1]).sort()).toEqual(["a", "b"]);
    expect((await whoOf("some")).holders).toMatchObject([{ revoke: null }, { revoke: null }]);
    for (const line of choices) {
      const [option = "", id = ""] = line.trim().split(" ");
      expect(await session.run(`"$baton" break -q some ${option} ${id}`)).toMatchObject({ code: 0, stderr: "" });
    }
    expect((await Promise.all(held.map(({ ended }) => ended))).map(({ code }) => code)).toEqual([80, 80]);
  });

  test("is 1 for a holder that does not exist", async () => {
    const nobody = await session.run('"$baton" break any --holder abcd');
    expect(nobody).toMatchObject({ code: 1, stderr: 'baton: Lock "any" has no holder "abcd": no process holds it\n' });
  });

  test("is 75 when the holder's command takes longer to stop than the wait", async () => {
    const holder = session.start(
      `exec "$baton" lock slow -- sh -c 'trap : TERM; touch slow; while [ ! -e stop ]; do sleep 0.05; done'`,
    );
    await session.made("slow");
    const id = (await whoOf("slow")).holders[0].id;
    const broken = await session.run(`"$baton" break slow --holder ${id} --wait 100ms`);
    expect(broken.code).toBe(75);
    expect(broken.stderr).toContain('was asked to release "slow" and has not done so within 100 ms');
    expect((await whoOf("slow")).holders[0].revoke).toMatchObject({ reason: "" });
    await session.run("touch stop");
    expect((await holder.ended).code).toBe(80);
  });

  test("--force takes it from a holder that does not answer, once its time is over", async () => {
    const holder = session.start(
      'exec "$baton" lock --session-timeout 2s stuck -- sh -c "touch stuck; exec sleep 60"',
    );
    await session.made("stuck");
    const id = (await whoOf("stuck")).holders[0].id;
    holder.child.kill("SIGSTOP");
    const broken = await session.run(`"$baton" break stuck --holder ${id} --force`);
    expect(broken.code).toBe(0);
    expect((await session.run('"$baton" lock -n stuck -- true')).code).toBe(0);
    holder.child.kill("SIGCONT");
    expect((await holder.ended).code).toBe(79);
  });
});
