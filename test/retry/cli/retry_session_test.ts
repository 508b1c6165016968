/**
 * `baton retry-processor call`, `submit` and `run` as scripts use them: what is passed on, what is stored, every exit
 * code, kill -9.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { verifyRetryStore } from "../../../src/retry/queue/sqlite/verify_retry_store.ts";
import { BatonSession } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { RetryShell } from "../../support/retry_shell.ts";
import { isAlive } from "../../support/is_alive.ts";
import { QuietTime } from "../../support/quiet_time.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession());
afterAll(() => session[Symbol.asyncDispose]());

class Store extends RetryShell {
  constructor() {
    super(session);
  }

  rows(): Record<string, unknown>[] {
    const database = new DatabaseSync(`${this.folder}/messages.sqlite`);
    try {
      return database.prepare("SELECT seq, state, tries, crashes, reason, error FROM messages ORDER BY seq")
        .all() as Record<string, unknown>[];
    } finally {
      database.close();
    }
  }
}
const [waiting, inFlight, done, dead, dropped] = [0, 1, 2, 3, 4];

describe("call", () => {
  test("that works passes everything through and stores nothing", async () => {
    const store = new Store();
    const ended = await store.run(`printf 'a\\0b' | @retry call -- sh -c 'cat; echo said >&2'`);
    expect(ended).toMatchObject({ code: 0, stdout: "a\0b", stderr: "said\n" });
    expect(store.rows()).toEqual([]);
  });

  test("that fails is stored, and exits with 75; run delivers it with its words, folder and stdin", async () => {
    const store = new Store();
    await session.run("mkdir -p deep");
    writeFileSync(
      session.path("deep/send"),
      '#!/bin/sh\necho "$1 $(cat) $PWD $SECRET $BATON_MESSAGE_TRY"; [ -e ok ]\n',
    );
    const send = `cd deep && chmod +x send && printf hello | BATON_RETRY_STORE=../${store.name} SECRET=s`;
    const ended = await store.run(`${send} @retry call --interval 1ms -- ./send word`);
    expect(ended.code).toBe(75);
    expect(ended.stdout).toBe(`word hello ${session.path("deep")} s \n`);
    expect(ended.stderr).toMatch(
      /^baton: \.\/send exited with 1; stored in "\.\.\/store\d+" as \w{8}-1, next try in .*, but no processor is running: start one with baton retry-processor run/,
    );
    await session.run("touch deep/ok");
    const again = await store.run("@retry run --until-empty");
    expect(again).toMatchObject({ code: 0, stdout: `word hello ${session.path("deep")}  2\n` });
    expect(store.rows()).toMatchObject([{ state: done, tries: 2 }]);
  });

  test("whose failure is final is a dead letter at once, and its code is passed on", async () => {
    const store = new Store();
    for (const code of [64, 65, 77, 78]) {
      const ended = await store.run(`@retry call --no-stdin -- sh -c 'exit ${code}'`);
      expect([ended.code, ended.stderr]).toEqual([code, expect.stringContaining("dead letter")]);
    }
    expect((await store.run("@retry call --no-stdin -- ./nowhere")).code).toBe(127);
    expect((await store.run("@retry call --no-stdin -- /etc/passwd")).code).toBe(126);
    expect((await store.run("@retry call --no-stdin --no-retry-on 7 -- sh -c 'exit 7'")).code).toBe(7);
    expect((await store.run("@retry call --no-stdin --max-retries 0 -- false")).code).toBe(1);
    const dropping = await store.run("@retry call --no-stdin --dead-letter drop -- sh -c 'exit 64'");
    expect(dropping).toMatchObject({ code: 64, stderr: expect.stringContaining("dropped (final)") });
    expect(store.rows().map(({ state, reason }) => [state, reason])).toEqual([
      ...Array.from({ length: 7 }, () => [dead, "final"]),
      [dead, "exhausted"],
      [dropped, "final"],
    ]);
  });

  test("that runs too long is ended, and stored", async () => {
    const store = new Store();
    const ended = await store.run("@retry call --no-stdin --attempt-timeout 200ms -- sleep 60");
    expect(ended).toMatchObject({
      code: 75,
      stderr: expect.stringContaining("ran longer than 200 ms and was stopped; stored"),
    });
  });

  test("that cannot be stored says NOT STORED: 85 when it is full, else the command's own code", async () => {
    const store = new Store();
    expect((await store.run("@retry call --no-stdin --max-messages 1 -- false")).code).toBe(75);
    const full = await store.run("@retry call --no-stdin --max-messages 1 -- false");
    expect(full).toMatchObject({ code: 85, stderr: expect.stringContaining("NOT STORED: The message store in") });
    expect((await store.run("echo too long | @retry call --max-bytes 4B -- false")).code).toBe(85);
    const nowhere = await store.run("BATON_RETRY_STORE=/dev/null/x @retry call --no-stdin -- sh -c 'exit 9'");
    expect(nowhere).toMatchObject({ code: 9, stderr: expect.stringContaining("NOT STORED: Cannot create the folder") });
    const busy = await store.run("BATON_RETRY_STORE=/dev/null/x @retry call --no-stdin -- sh -c 'exit 75'");
    expect(busy).toMatchObject({ code: 74, stderr: expect.stringContaining("exited with 75; NOT STORED") });
    expect(store.rows().length).toBe(1);
  });

  test("that is interrupted stores nothing and dies of the signal; one that is terminated is stored", async () => {
    const store = new Store();
    for (const signal of ["INT", "TERM"] as const) {
      const running = store.start(`exec @retry call --no-stdin -- sh -c 'touch up${signal}; exec sleep 60'`);
      await session.made(`up${signal}`);
      running.child.kill(`SIG${signal}`);
      const ended = await running.ended;
      if (signal === "INT") {
        expect(ended).toMatchObject({ signal: "SIGINT", stderr: expect.stringContaining("NOT STORED") });
      } else {expect(ended).toMatchObject({
          code: 75,
          stderr: expect.stringContaining("was killed by SIGTERM; stored"),
        });}
    }
    expect(store.rows()).toMatchObject([{ state: waiting, error: "was killed by SIGTERM" }]);
  });

  test("around a lock that is held: what could not get it is tried again when it is free", async () => {
    const store = new Store();
    const holder = session.start(
      `exec "$baton" lock -q articles/7 -- sh -c 'touch held; while [ ! -e go ]; do sleep 0.02; done'`,
    );
    await session.made("held");
    const ended = await store.run(
      `echo body | @retry call --interval 50ms -- "$baton" lock -q -w 100ms articles/7 -- sh -c 'cat >propagated'`,
    );
    expect(ended.code).toBe(75);
    const running = store.start("exec @retry run --interval 50ms --max-retries 10000 --until-empty");
    await eventually(() => Number(store.rows()[0]?.["tries"]) >= 2, { withinMs: 20_000 });
    await session.run("touch go");
    expect((await running.ended).code).toBe(0);
    expect(session.read("propagated")).toBe("body\n");
    await holder.ended;
    expect(store.rows()).toMatchObject([{ state: done }]);
  });
});

describe("submit", () => {
  test("stores a file, stdin, or a message from each line, for a command of its own or for --exec", async () => {
    const store = new Store();
    const file = await store.run("printf one >f; @retry submit f");
    expect(file.stdout).toMatch(/^[0-9a-z]{8}-1\n$/);
    expect((await store.run("printf two | @retry submit - -- sh -c 'cat; echo; echo own'")).code).toBe(0);
    const lines = await store.run("printf '3\\n\\n5' | @retry submit --lines --json");
    expect(JSON.parse(lines.stdout)).toMatchObject({
      version: 1,
      name: "default",
      stored: 3,
      first: /-3$/.exec(lines.stdout)?.[0] ?? expect.any(String),
    });
    const ran = await store.run("@retry run --exec 'cat; echo .' --until-empty --order fifo");
    expect(ran).toMatchObject({ code: 0, stdout: "one.\ntwo.\n3.\n.\n5.\n" });
  });

  test("says how many lines are stored when the store is full", async () => {
    const store = new Store();
    const ended = await store.run("seq 2000 | @retry submit --lines --max-messages 1000");
    expect(ended.code).toBe(85);
    expect(ended.stderr).toContain("512 lines are stored, the rest is not");
    expect(store.rows().length).toBe(512);
    const json = await new Store().run("seq 2000 | @retry submit --lines --max-messages 1000 --json");
    expect([json.code, JSON.parse(json.stdout)]).toEqual([85, expect.objectContaining({ stored: 512 })]);
  });

  test("a run from a crontab is silent; -v says what waits, so that a user knows what is not due", async () => {
    const store = new Store();
    await store.run("@retry call -q --no-stdin --interval 1h -- false");
    expect(await store.run("@retry run --once")).toMatchObject({ code: 0, stdout: "", stderr: "" });
    const told = await store.run("@retry run --once -v");
    expect(told.stderr).toMatch(/1 message waits; the next try is due in (1 h|59 m)\n$/);
  });

  test("a message waits where an option was forgotten, and has a command with the next run", async () => {
    const store = new Store();
    const ended = await store.run("echo x | @retry submit --json; @retry run --once --max-retries 0");
    expect(ended.stderr).toMatch(
      /some messages have no command or URL of their own and are not tried: use --exec or --url\n$/,
    );
    expect(await store.run("@retry retry --all -q; @retry run --until-empty --max-retries 0")).toMatchObject({
      code: 0,
    });
    expect(store.rows()).toMatchObject([{ state: waiting, tries: 0, crashes: 0 }]);
    expect((await store.run("@retry retry --all -q; @retry run --once --exec cat")).stdout).toBe("x\n");
  });
});

describe("run", () => {
  test("tries N times more and then no more, keeping the gap", async () => {
    const store = new Store();
    await store.run("echo x | @retry call -- false");
    const ended = await store.run(
      "@retry run --exec 'date +%s%3N >>times; exit 3' --interval 100ms --max-retries 4 --until-empty",
    );
    expect(ended).toMatchObject({ code: 0, stderr: expect.stringContaining("is dead (exhausted) after 5 tries") });
    const times = session.read("times").trim().split("\n").map(Number);
    expect(times.length).toBe(4);
    for (const [at, time] of times.entries()) {
      if (at > 0) expect(time - (times[at - 1] ?? 0)).toBeGreaterThanOrEqual(99);
    }
  });

  test("--once tries what is due and ends; dead letters are left for later", async () => {
    const store = new Store();
    await store.run("seq 3 | @retry submit --lines");
    expect(await store.run("@retry run --once --exec '[ $(cat) != 2 ]' -j 3")).toMatchObject({ code: 0 });
    expect(store.rows().map(({ state }) => state)).toEqual([done, waiting, done]);
  });

  test("waits for the times of a schedule, which has five fields", async () => {
    const store = new Store();
    await store.run("echo x | @retry submit");
    expect(await store.run("@retry run --cron '* * * * * *' --exec true")).toMatchObject({
      code: 64,
      stderr: expect.stringContaining("five fields"),
    });
    // The next February 29 is not now; a message that has no schedule would be tried immediately.
    await store.run("timeout 1 @retry run --cron '0 0 29 2 *' --exec true || :");
    expect(store.rows()).toMatchObject([{ state: waiting, tries: 0 }]);
    expect((await store.run("@retry run --exec true --until-empty")).code).toBe(0);
  });

  test("a line that is not found ends it with 127, and one that is no program with 126, before any try", async () => {
    const store = new Store();
    await store.run("echo x | @retry submit");
    expect(await store.run("@retry run --exec './mistyped --flag'")).toMatchObject({
      code: 127,
      stderr: expect.stringContaining("--exec: Cannot run"),
    });
    expect((await store.run("@retry run --exec /etc/passwd")).code).toBe(126);
    expect(store.rows()).toMatchObject([{ state: waiting, tries: 0 }]);
  });

  test("lets what is under way end after SIGTERM, and ends it after the second", async () => {
    const store = new Store();
    await store.run("echo x | @retry submit");
    const gentle = store.start("exec @retry run --exec 'touch begun; while [ ! -e finish ]; do sleep 0.02; done'");
    await session.made("begun");
    gentle.child.kill("SIGTERM");
    await eventually(() => gentle.stderr().includes("SIGTERM: stopping after the tries in flight"));
    await session.run("touch finish");
    expect((await gentle.ended).code).toBe(0);
    expect(store.rows()).toMatchObject([{ state: done }]);
    await store.run("echo y | @retry submit");
    const hurried = store.start("exec @retry run --exec 'touch begun2; exec sleep 60'");
    await session.made("begun2");
    hurried.child.kill("SIGTERM");
    await eventually(() => hurried.stderr().includes("a second signal stops them"));
    hurried.child.kill("SIGINT"); // the same one at once is an echo
    expect((await hurried.ended).code).toBe(0);
    expect(store.rows()[1]).toMatchObject({ state: waiting, tries: 1, error: "was stopped because baton was stopped" });
  });

  test("kill -9 ends its tries, too; another processor repeats them after the lease, never beside them", async () => {
    const store = new Store();
    await store.run("seq 4 | @retry submit --lines");
    const section =
      "me=$(cat); mkdir lock$me || touch broken; echo $$ >pid$me; [ -e quick ] || sleep 60; rmdir lock$me";
    const first = store.start(`exec @retry run -j 4 --lease 2s --exec '${section}'`);
    await eventually(() => session.run("cat pid1 pid2 pid3 pid4 | wc -l").then(({ stdout }) => stdout.trim() === "4"), {
      withinMs: 15_000,
    });
    const pids = (await session.run("cat pid1 pid2 pid3 pid4")).stdout.trim().split("\n").map(Number);
    const alive = () => pids.filter((pid) => isAlive(pid));
    expect(alive().length).toBe(4);
    first.child.kill("SIGKILL");
    // 0.1 s on a machine that has time. What counts is that nobody else may try them before: the lease of 2 s, and 2 s
    // more.
    await eventually(() => alive().length === 0, { what: "the tries to be dead", withinMs: 4000 });
    expect(store.rows().map(({ state }) => state)).toEqual([inFlight, inFlight, inFlight, inFlight]);
    await session.run("rmdir lock1 lock2 lock3 lock4; touch quick");
    expect((await store.run("@retry run -j 4 --until-empty --interval 10ms --exec '" + section + "'")).code).toBe(0);
    expect(store.rows()).toMatchObject(Array.from({ length: 4 }, () => ({ state: done, tries: 1, crashes: 1 })));
    expect((await session.run("ls broken")).stdout).toBe("");
    expect(verifyRetryStore(store.folder).problems).toEqual([]);
  });

  test("a message that kills its processor is dead after --max-crashes; other messages are not affected", async () => {
    const store = new Store();
    await store.run("echo bad | @retry submit");
    const command =
      "@retry run --until-empty --lease 2s --interval 10ms --max-crashes 2 --exec 'kill -9 $PPID; sleep 60'";
    for (let crash = 0; crash < 2; crash++) expect((await store.run(`exec ${command}`)).signal).toBe("SIGKILL");
    await store.run("echo good | @retry submit");
    expect((await store.run("@retry run --until-empty --max-crashes 2 --exec true")).code).toBe(0);
    expect(store.rows()).toMatchObject([{ state: dead, reason: "crashed", tries: 0, crashes: 2 }, { state: done }]);
  });
});

describe("dead letters", () => {
  test("go to a file, each once, also those of call, and leave the store", async () => {
    const store = new Store();
    const place = "--dead-letter file:letters.jsonl";
    await store.run(
      `echo a | @retry call ${place} -- sh -c 'exit 64'; echo b | @retry call --interval 1ms ${place} -- false`,
    );
    expect(store.rows()).toMatchObject([{ state: dead }, { state: waiting }]);
    expect((await store.run(`@retry run ${place} --max-retries 1 --until-empty`)).code).toBe(0);
    const letters = session.read("letters.jsonl").trim().split("\n").map((line) => JSON.parse(line));
    expect(letters.map(({ reason, body, tries }) => [reason, atob(body), tries])).toEqual([
      ["final", "a\n", 1],
      ["exhausted", "b\n", 2],
    ]);
    expect((await store.run("@retry ls --state dead")).stdout).toContain("forwarded)");
    expect(verifyRetryStore(store.folder).problems).toEqual([]);
  });

  test("go to a line of shell; one that fails leaves them in the store, and says so", async () => {
    const store = new Store();
    const place = "--dead-letter 'exec:[ -e mail ] && cat >>mail'";
    await store.run(`echo a | @retry call ${place} -- sh -c 'exit 64'`);
    const kept = await store.run(`@retry run ${place} --until-empty`);
    expect(kept).toMatchObject({ code: 69, stderr: expect.stringContaining("exited with 1; it stays in the store") });
    expect((await store.run(`touch mail; @retry run ${place} --until-empty`)).code).toBe(0);
    expect(JSON.parse(session.read("mail"))).toMatchObject({ reason: "final", command: ["sh", "-c", "exit 64"] });
    expect((await store.run("@retry dlq redrive 1")).stderr).toContain("it was delivered to --dead-letter");
    expect(await store.run("@retry dlq redrive --all")).toMatchObject({
      code: 1,
      stderr: "baton: 0 messages are redriven\n" +
        "baton: 1 dead letter is not redriven: it was delivered to --dead-letter\n",
    });
    expect((await store.json("stats")).dead_letters).toMatchObject({ pending: 0, forwarded: 1 });
  });

  test("a line of shell that hangs keeps nobody who says so twice; its letter stays", async () => {
    const store = new Store();
    const place = "--dead-letter 'exec:echo $$ >mailer; exec sleep 600'";
    await store.run(`echo a | @retry call ${place} -- sh -c 'exit 64'`);
    const running = store.start(`exec @retry run ${place}`);
    const mailer = Number(await session.said("mailer"));
    running.child.kill("SIGTERM");
    await eventually(() => running.stderr().includes("a second signal stops them"));
    running.child.kill("SIGINT"); // the same one at once is an echo
    const quiet = new QuietTime();
    expect((await running.ended).code).toBe(0);
    expect(quiet.ms).toBeLessThan(6000);
    expect(isAlive(mailer)).toBe(false);
    expect((await store.run("@retry stats")).stdout).toContain("1 dead letter is not delivered to --dead-letter yet");
  });
});

describe("mistakes are told in words", () => {
  const cases: readonly [script: string, code: number, says: string][] = [
    ["@retry call", 64, "missing command"],
    ["@retry call x -- true", 64, 'unexpected argument "x"; put the command after --'],
    ["@retry call --name .x -- true", 64, '--name: ".x" is not a valid name of a message store'],
    ["@retry call --backoff list -- true", 64, "list needs --delays"],
    ["@retry call --delays 1s,soon -- true", 64, '"soon" is not a duration'],
    ["@retry call --delays 1s,,2s -- true", 64, '--delays: "1s,,2s" is not a list with a duration in each position'],
    ["@retry call --delays 1s --backoff exponential -- true", 64, "--delays: a list of delays needs --backoff list"],
    ["@retry call --delays 1s --backoff fixed -- true", 64, "but the backoff is fixed"],
    ["@retry run --exec true --method PUT", 64, "--method needs --url"],
    ["@retry run --exec true --header 'a: b'", 64, "--header needs --url"],
    ["@retry call --retry-on 700 -- true", 64, '--retry-on: "700" is not a code'],
    ["@retry call --dead-letter nowhere -- true", 64, '"nowhere" is not a destination for dead letters'],
    ["@retry call --interval -1s -- true", 64, '"-1s" is not a duration'],
    ["BATON_RETRY_MAX_RETRIES=many @retry call -- true", 78, "BATON_RETRY_MAX_RETRIES"],
    [
      "echo 12345 | @retry call --max-body 3B -- cat",
      65,
      "stdin is longer than the limit of 3 bytes (--max-body)",
    ],
    ["@retry run --rate fast", 64, '--rate: "fast" is not a rate'],
    ["@retry run --cron 'at noon'", 64, '--cron: "at noon" is not a schedule'],
    ["@retry run --once --cron '* * * * *'", 64, "only one of --once and --cron"],
    ["@retry run --exec true --url http://x/", 64, "only one of --exec, --url and --topic"],
    ["@retry run --url http://x/ --method GET", 64, "--method: GET has no body"],
    ["@retry run --url http://x/ --header 'Host: y'", 64, "Host is set for each message"],
    ["@retry submit a b", 64, 'unexpected argument "b"'],
    ["@retry submit ./nothing", 74, "Cannot read"],
    ["@retry submit <&-", 74, "Cannot read the message from stdin: it was closed"],
    ["@retry submit - <&-", 74, "it was closed"],
    ["@retry submit --lines <&-", 74, "it was closed"],
    ["@retry call -- touch ran <&-", 74, "call also has --no-stdin"],
    ["@retry submt", 64, 'did you mean "submit"?'],
  ];
  for (const [script, code, says] of cases) {
    test(script, async () => {
      const ended = await new Store().run(script);
      expect([ended.code, ended.stderr]).toEqual([code, expect.stringContaining(says)]);
    });
  }

  test("an empty message is one that is said to be: </dev/null, an empty pipe, --no-stdin", async () => {
    const store = new Store();
    const said = ["@retry submit </dev/null", "@retry submit - <>/dev/null", ": | @retry submit"];
    for (const script of said) expect([script, (await store.run(script)).code]).toEqual([script, 0]);
    expect((await store.run("@retry call --no-stdin -- true <&-")).code).toBe(0);
    expect(store.rows().length).toBe(3);
  });

  test("a store of another version, and a file that is no store", async () => {
    const store = new Store();
    await store.run("echo x | @retry submit");
    const database = new DatabaseSync(`${store.folder}/messages.sqlite`);
    database.exec("PRAGMA user_version = 99");
    database.close();
    const newer = await store.run("@retry call -- touch ran");
    expect(newer).toMatchObject({
      code: 78,
      stderr: expect.stringContaining("(format 99); this version of baton reads format 3"),
    });
    writeFileSync(
      `${store.folder}/messages.sqlite`,
      "no database at all, but long enough to be looked at as one".repeat(20),
    );
    for (const file of ["messages.sqlite-wal", "messages.sqlite-shm"]) await session.run(`rm -f ${store.name}/${file}`);
    expect((await store.run("@retry run")).code).toBe(74);
    expect((await session.run("ls ran")).stdout).toBe("");
  });
});
