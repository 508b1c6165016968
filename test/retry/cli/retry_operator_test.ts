/** What an operator does with stored messages, in a shell. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { BatonSession, type Ended } from "../../support/baton_session.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession());
afterAll(() => session[Symbol.asyncDispose]());

let stores = 0;
function newStore() {
  const env = { BATON_RETRY_STORE: `store${++stores}` };
  return (script: string): Promise<Ended> => session.run(script.replaceAll("@retry", '"$baton" retry-processor'), env);
}
const fails = (code: number, body = "x") => `echo ${body} | @retry call -q -- sh -c 'exit ${code}'`;

describe("look", () => {
  test("ls shows what is stored, by state and by condition; show has all of one, and its body", async () => {
    const run = newStore();
    await run(`${fails(3, "hello")}; ${fails(64)}; echo y | @retry submit --key k`);
    const all = (await run("@retry ls")).stdout.trimEnd().split("\n");
    expect(all.map((line) => line.split(/ {2,}/).slice(1, 3).join(" "))).toEqual([
      "STATE TRIES",
      "waiting 1",
      "dead (final) 1",
      "waiting 0",
    ]);
    expect((await run("@retry ls --state dead")).stdout).toContain("exited with 64");
    expect((await run("@retry ls --where key=k")).stdout.trimEnd().split("\n").length).toBe(2);
    expect((await run("@retry ls --limit 1")).stderr).toContain("there are more than 1");
    expect((await run("@retry ls --where key=none")).stderr).toContain("no matching message");
    expect((await run("@retry show 1 --body")).stdout).toBe("hello\n");
    expect((await run("@retry show 1")).stdout).toMatch(/command +sh -c exit 3/);
    expect(await run("@retry show 77")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("There is no message 77"),
    });
    const stats = await run("@retry stats");
    expect(stats.stdout).toMatch(/waiting +2 +8/);
    expect((await run("@retry verify")).stdout).toMatch(/no damage found in .*: 3 messages/);
  });

  test("explain prints the schedule", async () => {
    const run = newStore();
    const ended = await run("@retry explain --max-retries 3 --interval 3s --backoff exponential --jitter none");
    expect(ended.stdout.split("\n").map((line) => line.split(/ {2,}/).slice(0, 3).join(" | "))).toEqual([
      "TRY | AFTER THE PREVIOUS | AFTER THE FIRST",
      "1 | immediately | 0 ms",
      "2 | 3 s | 3 s",
      "3 | 6 s | 9 s",
      "4 | 12 s | 21 s",
      "then it is a dead letter: after 4 tries, 21 s after the first at the latest",
      "",
    ]);
    const limited = JSON.parse(
      (await run("@retry explain --interval 3s --max-retries 1000000 --max-elapsed 10s --json")).stdout,
    );
    expect(limited).toMatchObject({ max_tries: 4, min_total_ms: 9000, max_total_ms: 9000 });
  });
});

describe("change", () => {
  test("retry makes what waits due, cancel gives it up; what does not wait is refused with 1", async () => {
    const run = newStore();
    await run(`${fails(3)}; ${fails(3)}; ${fails(64)}`);
    expect(await run("@retry retry 1")).toMatchObject({ code: 0, stderr: "baton: 1 message is due now\n" });
    expect((await run("@retry run --once --exec true")).code).toBe(0);
    expect(JSON.parse((await run("@retry stats --json")).stdout).states).toMatchObject({
      done: { count: 1 },
      waiting: { count: 1 },
    });
    const refused = await run("@retry retry 1 3 99");
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain("1 was not due now: it is done");
    expect(refused.stderr).toMatch(/99 was not due now: there is no such message in "store\d+"/);
    expect((await run("@retry cancel --all")).stderr).toContain("1 message is cancelled");
    expect((await run("@retry cancel 2")).stderr).toContain("it is cancelled");
  });

  test("pause lets nothing be tried until resume", async () => {
    const run = newStore();
    await run("echo x | @retry submit; @retry pause");
    const hint = /paused: no tries until baton retry-processor resume --store store\d+ --name m5$/m;
    expect((await run("@retry stats --name m5")).stdout).toMatch(hint);
    expect((await run("@retry run --once --name m5 --exec true")).stderr).toMatch(hint);
    expect((await run("echo y | @retry submit --name m5 -- true")).stderr).toMatch(hint);
    const called = await run("echo z | @retry call --name m5 -- false");
    expect(called.stderr).toMatch(/ as \w{8}-\d+, the store is paused: no tries until .* --name m5, but no processor/);
    expect(called.stderr).not.toContain("next try in");
    await run("@retry cancel 2 3");
    expect(await run("@retry run --once --exec 'touch tried'")).toMatchObject({
      code: 0,
      stderr: expect.stringContaining("the store is paused: no tries until baton retry-processor resume"),
    });
    expect((await run("ls tried")).stdout).toBe("");
    expect((await run("@retry pause")).stderr).toMatch(/^baton: "store\d+" was already paused$/m);
    await run("@retry resume; @retry run --once --exec 'touch tried'");
    expect((await run("ls tried")).stdout).toBe("tried\n");
  });
});

describe("dlq", () => {
  test("redrives by id, by condition and all, exports and purges", async () => {
    const run = newStore();
    await run(`${fails(64, "a")}; ${fails(65, "b")}; ${fails(78, "c")}; ${fails(3)}`);
    expect((await run("@retry dlq ls")).stdout.trimEnd().split("\n").length).toBe(4);
    expect((await run("@retry dlq show 1 --body")).stdout).toBe("a\n");
    const exported = (await run("@retry dlq export")).stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
    expect(exported.map(({ body }) => atob(body))).toEqual(["a\n", "b\n", "c\n"]);
    expect((await run("@retry dlq redrive 1")).code).toBe(0);
    expect((await run("@retry dlq redrive 1 4")).code).toBe(1);
    expect((await run("@retry dlq redrive --all --where 'error=with 65' --rate 100/s")).stderr).toContain(
      "1 message is redriven",
    );
    await run("@retry run --exec true --until-empty --interval 1ms");
    expect((await run("@retry dlq purge --all")).stderr).toContain("1 message is purged");
    const { states } = JSON.parse((await run("@retry stats --json")).stdout);
    expect(states).toMatchObject({ done: { count: 3 }, dropped: { count: 1 }, dead: { count: 0 } });
  });

  test("a redrive with a rate takes its time", async () => {
    const run = newStore();
    await run(`for n in 1 2 3 4; do ${fails(64)}; done`);
    const ended = await run("@retry dlq redrive --all --rate 20/s");
    expect(ended).toMatchObject({ code: 0, stderr: "baton: 4 messages are redriven\n" });
    expect(ended.tookMs).toBeGreaterThan(150);
  });
});

describe("a run", () => {
  test("makes the store that it names only with --create", async () => {
    const run = newStore();
    expect(await run("@retry run --once --store made --create && @retry ls --store made -q")).toMatchObject({
      code: 0,
    });
    expect(await run("[ ! -e typo ] && ! @retry run --once --store typo && [ ! -e typo ]")).toMatchObject({ code: 0 });
  });

  test("delivers what a call without --dead-letter has left, and nothing that a call has kept", async () => {
    const run = newStore();
    await run("echo x | @retry call -- sh -c 'exit 65'");
    await run("echo y | @retry call --dead-letter store -- sh -c 'exit 65'");
    await run("echo z | @retry call --max-retries 0 -- false; @retry run --once");
    expect((await run("@retry dlq ls -q")).stdout).toMatch(/-1 +dead \(final\)[^]*-2 +dead \(final, kept\)/);
    expect(JSON.parse((await run("@retry stats --json")).stdout)).toMatchObject({
      dead_letters: { pending: 0, forwarded: 0 },
    });
    expect(await run("@retry run --once --dead-letter 'exec:cat >>mail'")).toMatchObject({ code: 0 });
    expect((await run("grep -o '\"id\":\"[^-]*-[0-9]*' mail | sed 's/.*-//'")).stdout).toBe("1\n3\n");
    expect((await run("@retry dlq redrive --all")).stderr).toContain("2 dead letters are not redriven");
    expect((await run("@retry ls -q --state waiting")).stdout).toMatch(/-2 +waiting /);
  });

  test("warns once of a failing sink", async () => {
    const run = newStore();
    const sink = "--dead-letter kafka://127.0.0.1:1/none";
    await run(`echo x | @retry call ${sink} -- sh -c 'exit 65'`);
    const failed = await run(`@retry run --once ${sink}`);
    expect(failed.code).toBe(69);
    expect(failed.stderr.match(/warning: .*No Kafka broker can be reached/g)?.length).toBe(1);
  });
});

describe("mistakes are told in words", () => {
  const cases: readonly [script: string, code: number, says: string][] = [
    ["@retry ls", 78, "There is no message store in"],
    ["@retry pause", 78, "There is no message store in"],
    ["@retry verify", 78, "There is no message store in"],
    ["@retry ls --state ded", 64, 'did you mean "dead"?'],
    ["@retry run --once --store typo", 78, "There is no message store in"],
    ["@retry run --until-empty --name typo", 78, "--create makes it"],
    ["@retry run --store typo", 78, "There is no message store in"],
    ["@retry ls --where reason=finel", 64, 'did you mean "final"?'],
    ["@retry dlq redrive --all --where reason=final,error=x,reason=none", 64, '"none" is not a reason'],
    ["@retry ls --where name=x", 64, '"name=x" is not a condition'],
    ["@retry show", 64, "show takes the id of one message"],
    ["@retry retry", 64, "takes ids of messages, or --all"],
    ["@retry retry 1 --all", 64, "not both"],
    ["@retry cancel 1 --where key=a", 64, "--where needs --all"],
    ["@retry dlq", 64, "dlq needs one of"],
    ["@retry dlq redrve", 64, 'did you mean "redrive"?'],
    ["@retry dlq redrive --all --rate 5", 64, "is not a rate"],
    ["@retry dlq purge --all --limit 1", 64, "dlq purge does not take --limit"],
    ["@retry dlq export --limit 1", 64, "dlq export does not take --limit"],
    ["@retry dlq ls --rate 1/s", 64, "dlq ls does not take --rate"],
    ["@retry explain x", 64, "takes options only"],
    ["@retry", 64, "COMMAND"],
  ];
  for (const [script, code, says] of cases) {
    test(script, async () => {
      const ended = await newStore()(script);
      expect([ended.code, ended.stderr]).toEqual([code, expect.stringContaining(says)]);
    });
  }
});

test("one message and one try are said as one", async () => {
  const script = "echo a | @retry submit --lines; @retry run --once --max-retries 0 --exec false; @retry verify";
  const { stdout, stderr } = await newStore()(script);
  expect(stderr).toContain("1 message is stored");
  expect(stderr).toContain("after 1 try;");
  expect(stdout).toMatch(/no damage found in .*: 1 message, 1 byte/);
});
