/** `baton pool` as cron and people use it: what it runs, what the jobs learn, signals, and each exit code. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { appendFileSync } from "node:fs";
import process from "node:process";
import { readProcess } from "../../../src/base/process/proc/process_table.ts";
import { BatonSession, type Ended, untilMade } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession({ BATON_SERVERS: "embedded" }));
afterAll(() => session[Symbol.asyncDispose]());

const lines = (text: string) => text.split("\n").filter((line) => line !== "");

describe("what is run", () => {
  test("a job for each item, with the item in its words and its environment, under a lock of its own", async () => {
    const ended = await session.run(
      `"$baton" pool words --items 'a,b c' -j 2 -- sh -c 'echo "$1 $BATON_ITEM $BATON_POOL_NAME $BATON_LOCK_NAME $BATON_FENCING_TOKEN"' sh {}/{item}`,
    );
    expect([ended.code, ended.stderr]).toEqual([
      0,
      expect.stringMatching(/^baton: pool "words": 2 done, 0 failed, 0 skipped; \S+ m?s\n$/),
    ]);
    const found = lines(ended.stdout).sort();
    expect(found[0]).toMatch(/^a\/a a words words\/a \d+$/);
    expect(found[1]).toMatch(/^b c\/b c b c words words\/b c \d+$/);
    expect(new Set(found.map((line) => line.split(" ").at(-1))).size).toBe(2);
  });

  test("items from standard input, a file, and a query that runs under the component's lock", async () => {
    const each = "-- echo";
    expect((await session.run(`printf 'x\\n\\ny\\nx\\n' | "$baton" pool in --items - ${each} {}`)).stdout).toBe(
      "x\ny\n",
    );
    expect((await session.run(`printf 'x\\r\\ny' > list; "$baton" pool in --items @list ${each} {}`)).stdout).toBe(
      "x\ny\n",
    );
    const query = `--query '"$baton" who in >/dev/null && echo held'`;
    expect((await session.run(`"$baton" pool in ${query} ${each} {}`)).stdout).toBe("held\n");
  });

  test("items from standard input start as they come; a bad line ends the call after the running items", async () => {
    const running = session.start(
      `mkfifo come; "$baton" pool come --items - -j 2 -c 'touch ran-{}; ${untilMade("go-{}")}' <come & ` +
        `exec 9>come; echo a >&9; ${untilMade("ran-a")}; "$baton" who -q --kind lock come; echo component $?; ` +
        `printf 'b\\na\\n' >&9; ${untilMade("ran-b")}; touch go-b; printf 'c\\nd\\t\\n' >&9; ` +
        `sleep 0.2; touch go-a go-c; wait $!`,
    );
    const { code, stdout, stderr } = await running.ended;
    expect([code, stdout]).toEqual([65, "component 1\n"]); // the list is not locked
    expect(stderr).toContain("standard input, line 5: ");
    expect(stderr).toMatch(/pool "come": [23] done, 0 failed/);
  });

  test("a standard input that was closed is no empty list", async () => {
    const closed = await session.run('"$baton" pool closed --items - -- echo {} <&-');
    expect(closed).toMatchObject({ code: 74, stdout: "" });
    expect(closed.stderr).toContain("it is closed; use </dev/null for an empty list");
    expect((await session.run('"$baton" pool closed --items - -- echo {} </dev/null')).code).not.toBe(74);
  });

  test("the jobs read nothing: what is on standard input is not theirs", async () => {
    expect((await session.run('seq 3 | "$baton" pool stdin --items - -- sh -c cat')).stdout).toBe("");
  });

  test("the paths of the newspaper's components come from templates in the configuration", async () => {
    await session.run(
      `printf '[pool]\\ncomponent_path = "/SBOI/{component}"\\nitem_path = "/{component}/B{1}-RT{2}"\\n' > baton.toml`,
    );
    const ended = await session.run(
      `"$baton" pool SampleComponent --config baton.toml --items '400022028241 1' -- sh -c 'echo $BATON_LOCK_PATH'`,
    );
    expect(ended).toMatchObject({ code: 0, stdout: "/SampleComponent/B400022028241-RT1\n" });
  });

  test("what a job leaves behind is dead when its lock is free, while another job runs on", async () => {
    const script = `if [ $BATON_ITEM = a ]; then setsid sleep 1000 & echo $! > left; touch a; ${
      untilMade("end-a")
    }; else ${untilMade("end-b")}; fi`;
    const running = session.start(`"$baton" pool behind --items a,b -j 2 -- sh -c '${script}'`);
    await session.made("a");
    const left = Number(session.read("left"));
    expect((await session.run('"$baton" lock -n behind/a -- true')).code).toBe(75);
    await session.run("touch end-a");
    expect((await session.run('"$baton" lock -w 10s behind/a -- true')).code).toBe(0);
    expect(readProcess(left)?.dead ?? true).toBe(true);
    expect((await session.run('"$baton" who -q behind/b')).code).toBe(0);
    await session.run("touch end-b");
    expect((await running.ended).code).toBe(0);
  });
});

describe("output", () => {
  // The job of b ends first. The job of a ends when baton has noticed that: until then the process of b is a zombie.
  const mixed = "-c 'printf 1{}; until [ -e {}2 ]; do sleep 0.01; done; " +
    "while kill -0 $(cat {}2) 2>/dev/null; do sleep 0.01; done; " +
    "echo 2{}; echo err {} >/dev/stderr; echo $$ >ended; mv ended a2'";

  test("a job's output comes in one piece, each stream to its own; with --tag each line has its item", async () => {
    const grouped = await session.run(`"$baton" pool out --items a,b -j 2 ${mixed} & touch b2; wait $!`);
    expect([grouped.code, grouped.stdout]).toEqual([0, "1b2b\n1a2a\n"]);
    expect(lines(grouped.stderr).slice(0, 2)).toEqual(["err b", "err a"]);
    const tagged = await session.run(`"$baton" pool out --items a,b --tag -c 'echo {}1; printf {}2'`);
    expect([tagged.code, tagged.stdout]).toEqual([0, "a\ta1\na\ta2\nb\tb1\nb\tb2\n"]);
    const raw = '"$baton" pool out --items a --tag --output raw -- true';
    expect(await session.run(raw)).toMatchObject({
      code: 64,
      stderr: expect.stringContaining("--tag needs --output group or lines"),
    });
  });

  test("a reader that has gone ends the call by SIGPIPE, and the items that ran are recorded", async () => {
    const ended = await session.run(
      `{ "$baton" pool gone --items "$(seq -s, 50)" -j 2 --done-ttl 1h -c 'seq 9'; echo $? >rc; } | head -1`,
    );
    expect([ended.stdout, session.read("rc")]).toEqual(["1\n", "141\n"]);
    const status = await session.run('"$baton" pool status gone');
    // As with raw, SIGPIPE may have ended one.
    expect(status.stdout).toMatch(/^\d+ items?: [1-9]\d* done, \d+ failed, 0 running\n/);
  });

  test("a reader that does not read holds back new jobs, not the end of an item", async () => {
    const running = session.start(
      `mkfifo slow; { until [ -e read ]; do sleep 0.01; done; cat; } <slow & ` +
        `"$baton" pool slow --items 1,2,3,4,5,6 -j 2 --done-ttl 1h -c 'seq 20000; echo >>ran' >slow; echo $? >rc; wait`,
    );
    const status = async () => (await session.run('"$baton" pool status slow')).stdout;
    // An item may have started before the second one ended.
    await eventually(async () => /^[23] items: [23] done, 0 failed, 0 running/.test(await status()), {
      withinMs: 30_000,
    });
    expect(session.read("ran").length).toBeLessThanOrEqual(3);
    await session.run("touch read");
    const { stdout } = await running.ended;
    expect([lines(stdout).length, session.read("rc")]).toEqual([120_000, "0\n"]);
  });

  test("a signal ends running commands, and what they have written is printed", async () => {
    const running = session.start(
      `"$baton" pool cut --items a,b -j 2 -c 'echo begun {}; touch begun-{}; ${
        untilMade("never")
      }' & echo $! >pid; wait $!`,
    );
    await Promise.all([session.made("begun-a"), session.made("begun-b")]);
    process.kill(Number(session.read("pid")), "SIGTERM");
    const { code, stdout } = await running.ended;
    expect([code, lines(stdout).sort()]).toEqual([143, ["begun a", "begun b"]]);
  });
});

describe("exit codes", () => {
  test("0: all good, nothing to do, all done before", async () => {
    expect((await session.run('"$baton" pool zero --items a,b -j 2 --done-ttl 1h -- true')).code).toBe(0);
    expect(await session.run('"$baton" pool zero --items a,b -j 2 --done-ttl 1h -- echo again')).toMatchObject({
      code: 0,
      stdout: "",
    });
    expect((await session.run('"$baton" pool zero --query : -- false')).code).toBe(0);
  });

  test("123: some have failed, and which is said", async () => {
    const ended = await session.run(`"$baton" pool one --items a,b,c -j 3 -- sh -c '[ {} = b ] || exit 3; kill -9 $$'`);
    expect(ended.code).toBe(123);
    expect(lines(ended.stderr).sort()).toEqual([
      'baton: item "a" exited with 3',
      'baton: item "b" ended by SIGKILL',
      'baton: item "c" exited with 3',
      expect.stringMatching(/^baton: pool "one": 0 done, 3 failed \(("[abc]"(, )?){3}\), 0 skipped; /),
    ]);
  });

  test("--on-failure runs once for each item that has failed after its last try", async () => {
    const line = 'echo "$BATON_FAILURE_NAME $BATON_ITEM $BATON_FAILURE_EXIT_CODE" >>told; cat >told-$BATON_ITEM';
    const call = `"$baton" pool t --items a,b,c --retries 1 -j 2 --on-failure '${line}' -c`;
    expect((await session.run(`${call} 'test {} = a || exit 3'`)).code).toBe(123);
    expect(lines(session.read("told")).sort()).toEqual(["t b 3", "t c 3"]);
    expect(session.read("told-c")).toMatch(/^name: t\nitem: c\nresult: failed\n/);
  });

  test("64, 65, 74, 78: a wrong command line, a bad item, a query that fails, a template that cannot be", async () => {
    expect((await session.run('"$baton" pool bad -- true')).code).toBe(64);
    const long = await session.run('"$baton" pool bad --items "$(head -c 300 /dev/zero | tr "\\0" x)" -- true');
    expect(long.code).toBe(65);
    expect(long.stderr).toMatch(/^baton: --items, item 1: .* it has 304 bytes, the maximum is 255\n$/);
    expect(await session.run("\"$baton\" pool bad --query 'echo a; exit 3' -- touch never")).toMatchObject({
      code: 74,
      stderr: 'baton: --query "echo a; exit 3" failed: it exited with 3\n',
    });
    // The time limit also holds for the lock of the component.
    expect(await session.run('"$baton" pool bad --query "sleep 1000" --query-timeout 1s -- touch never'))
      .toMatchObject({
        code: 74,
        stderr: 'baton: --query "sleep 1000" failed: it was stopped after 1 s (--query-timeout)\n',
      });
    expect((await session.run("\"$baton\" pool bad --query 'yes | tr -d \\\\n' -- touch never")).code).toBe(65);
    for (const operation of ["status", "clear"]) {
      expect(await session.run(`"$baton" pool ${operation} bad --query 'echo a; echo why >&2; exit 3'`)).toMatchObject({
        code: 74,
        stdout: "",
        stderr: 'why\nbaton: --query "echo a; echo why >&2; exit 3" failed: it exited with 3\n',
      });
      const slow = await session.run(`"$baton" pool ${operation} bad --query "sleep 1000; :" --query-timeout 50ms`);
      expect([slow.code, slow.stderr]).toEqual([
        74,
        'baton: --query "sleep 1000; :" failed: it was stopped after 50 ms (--query-timeout)\n',
      ]);
      expect((await session.run(`"$baton" pool ${operation} bad --query 'yes | tr -d \\\\n'`)).code).toBe(65);
    }
    expect(await session.run('"$baton" pool bad --items @ -- true')).toMatchObject({ code: 64 });
    expect((await session.run('"$baton" pool bad --items a -- true', { BATON_POOL_ITEM_PATH: "/x" })).code).toBe(78);
    const total = session.start(
      `"$baton" pool bad --items a --total 2 -- sh -c 'touch total; ${untilMade("end-total")}'`,
    );
    await session.made("total");
    expect((await session.run('"$baton" pool bad --items b --total 3 -- true')).code).toBe(78);
    await session.run("touch end-total");
    expect((await total.ended).code).toBe(0);
  });

  test("75: others work on all there is; 81: the component is locked", async () => {
    const working = session.start(`"$baton" pool busy --items a -- sh -c 'touch working; ${untilMade("end-working")}'`);
    await session.made("working");
    expect(await session.run('"$baton" pool busy --items a -- true')).toMatchObject({
      code: 75,
      stderr: 'baton: no item of pool "busy" is free; other calls process 1 item\n',
    });
    const listing = session.start(`"$baton" pool busy --query 'touch listing; ${untilMade("end-listing")}' -- true`);
    await session.made("listing");
    const skipped = await session.run('"$baton" pool busy -w 0s --items b -- true');
    expect(skipped.code).toBe(81);
    expect(skipped.stderr).toMatch(/^baton: pool "busy": another call is choosing items: \S+@\S+ \(pid \d+, true\)\n$/);
    const late = await session.run('"$baton" pool busy -w 700ms --items b -- true');
    expect([late.code, late.stderr]).toEqual([
      81,
      expect.stringMatching(/another call is choosing items: .*; waited 700 ms\n$/),
    ]);
    const tired = await session.run('"$baton" pool busy --query "echo b" --query-timeout 500ms -- true');
    expect([tired.code, tired.stderr]).toEqual([81, expect.stringContaining("; waited 500 ms")]);
    const waiting = ["-w 30s --items b1", "--items b2", "--query 'echo b3' --loop"].map((words) =>
      session.start(`"$baton" pool -q busy ${words} -- sh -c 'echo {} >> busy-ran'`)
    );
    await eventually(async () =>
      (JSON.parse((await session.run('"$baton" who busy --json')).stdout) as { waiters: unknown[] }).waiters.length ===
        3
    );
    await session.run("touch end-listing end-working");
    expect((await Promise.all(waiting.map(({ ended }) => ended))).map(({ code, stderr }) => [code, stderr])).toEqual(
      waiting.map(() => [0, ""]),
    );
    expect(lines(session.read("busy-ran")).sort()).toEqual(["b1", "b2", "b3"]);
    expect([(await listing.ended).code, (await working.ended).code]).toEqual([0, 0]);
  });

  test("81: the component is held by a command that chooses no items, which may take long", async () => {
    const keeping = session.start(`exec "$baton" lock kept -- sh -c 'touch kept; ${untilMade("end-kept")}'`);
    await session.made("kept");
    const skipped = await session.run('"$baton" pool kept --items a -- true');
    expect([skipped.code, skipped.stderr]).toEqual([
      81,
      expect.stringMatching(/^baton: pool "kept" is busy: held for .* by \S+ \(pid \d+, sh\).*\n$/),
    ]);
    const waiting = session.start('"$baton" pool kept -w 30s --items a -- echo');
    await session.run("touch end-kept");
    expect(await waiting.ended).toMatchObject({ code: 0, stdout: "a\n" });
    expect((await keeping.ended).code).toBe(0);
  });

  test("79: the keeper is gone, and all jobs are stopped in time", async () => {
    await using own = new BatonSession({ BATON_SERVERS: "embedded", BATON_SESSION_TIMEOUT: "2s" });
    const running = own.start(
      `"$baton" pool lost --items a,b,c -j 2 -- sh -c 'echo $$ >> pids; exec sleep 1000' 2>&1`,
    );
    await eventually(() => lines(own.read("pids")).length === 2, { withinMs: 15_000 });
    const keeper = own.keeperPid() ?? NaN;
    process.kill(keeper, "SIGSTOP");
    const { code, stdout } = await running.ended;
    process.kill(keeper, "SIGKILL");
    expect(code).toBe(79);
    expect(lines(stdout).filter((line) => /^baton: item "[ab]": .* is lost: /.test(line)).length).toBe(2);
    expect(lines(own.read("pids")).length).toBe(2);
    for (const pid of lines(own.read("pids"))) expect(() => process.kill(Number(pid), 0)).toThrow();
  });

  test("80: a job's lock was asked back, and the others went on", async () => {
    const running = session.start(
      `"$baton" pool back --items a,b -j 2 -- sh -c 'touch back-{}; if [ {} = a ]; then exec sleep 1000; else ${
        untilMade("end-back")
      }; fi'`,
    );
    await session.made("back-a");
    await session.made("back-b");
    const id = (JSON.parse((await session.run('"$baton" who back/a --json')).stdout) as { holders: { id: string }[] })
      .holders[0]?.id;
    expect((await session.run(`"$baton" break back/a --holder ${id}`)).code).toBe(0);
    await session.run("touch end-back");
    expect((await running.ended).code).toBe(80);
  });

  test("126, 127: the command cannot be run, and no other item is tried", async () => {
    const missing = await session.run('"$baton" pool cannot --items a,b,c -- ./missing {}');
    expect([missing.code, lines(missing.stderr)]).toEqual([
      127,
      [expect.stringContaining('item "a": '), expect.stringContaining('0 done, 1 failed ("a"), 0 skipped, 2 left')],
    ]);
    expect((await session.run('touch plain; "$baton" pool cannot --items a,b -- ./plain {}')).code).toBe(126);
    expect((await session.run('"$baton" pool cannot --items ./no,true -- {}')).code).toBe(127);
  });

  test("an item that runs longer than --max-hold is stopped and has failed", async () => {
    const ended = await session.run('"$baton" pool limit --items 1000 --max-hold 50ms --retries 1 -- sleep 1000 {}s');
    expect(ended.code).toBe(123);
    expect(lines(ended.stderr).slice(0, -1)).toEqual(
      [1, 2].map((attempt) => expect.stringContaining(`, try ${attempt} of 2`)),
    );
  });
});

describe("signals", () => {
  const job = (file: string) =>
    `sh -c 'trap "echo {} stopped; exit 9" TERM INT; touch ${file}-{}; ${untilMade(`end-${file}`)}; echo {} ended'`;

  test("TERM goes to the jobs, nothing new is taken, and baton dies of it when they are gone", async () => {
    const running = session.start(`exec "$baton" pool term --items a,b,c -j 2 -- ${job("term")}`);
    await session.made("term-a");
    await session.made("term-b");
    running.child.kill("SIGTERM");
    const ended = await running.ended;
    expect(ended.signal).toBe("SIGTERM");
    expect(lines(ended.stdout).sort()).toEqual(["a stopped", "b stopped"]);
    expect((await session.run('"$baton" pool status term --items a,b,c --json')).stdout).toContain('"free":3');
  });

  test("with --drain what runs ends as it will, nothing new is taken, and the exit code is the items'", async () => {
    const running = session.start(`exec "$baton" pool drain --items a,b,c -j 2 --drain -- ${job("drain")}`);
    await session.made("drain-a");
    await session.made("drain-b");
    running.child.kill("SIGTERM");
    await eventually(async () => (await session.run('"$baton" lock -n drain/a -- true')).code === 75);
    await session.run("touch end-drain");
    const ended = await running.ended;
    expect(ended).toMatchObject({ code: 0, signal: null });
    expect(lines(ended.stdout).sort()).toEqual(["a ended", "b ended"]);
  });

  test("with --drain the second signal is passed on", async () => {
    const running = session.start(`exec "$baton" pool twice --items a,b --drain -- ${job("twice")}`);
    await session.made("twice-a");
    running.child.kill("SIGTERM");
    await eventually(() => running.stderr().includes("no new items are started"));
    running.child.kill("SIGINT"); // the same one at once is an echo
    expect((await running.ended).stdout).toBe("a stopped\n");
  });

  test("TERM while the items are listed ends the query, runs nothing, and leaves nothing locked", async () => {
    for (const flag of ["", "--drain"]) {
      const running = session.start(
        `exec "$baton" pool query ${flag} --query 'touch query; exec sleep 1000' -- touch never`,
      );
      await session.made("query");
      running.child.kill("SIGTERM");
      expect((await running.ended).signal).toBe("SIGTERM");
      expect((await session.run('rm query; "$baton" lock -n query -- true')).code).toBe(0);
    }
  });

  test("when baton is killed the guard ends the jobs", async () => {
    const running = session.start(
      `exec "$baton" pool kill --items a,b -j 2 -- sh -c 'echo $$ >> killed; exec sleep 1000'`,
    );
    const pids = await eventually(() => {
      const found = lines(session.read("killed"));
      return found.length === 2 && found.map(Number);
    }, { withinMs: 15_000 });
    running.child.kill("SIGKILL");
    await running.ended;
    // Dead, whether process 1 has taken their status by now or not.
    await eventually(() => pids.every((pid) => readProcess(pid)?.dead ?? true));
  });
});

describe("reports", () => {
  test("--status-file says what became of the items", async () => {
    await session.run(`"$baton" pool report --items a,b,c -q --status-file report -- sh -c '[ {} != b ]'`);
    expect(JSON.parse(session.read("report"))).toMatchObject({
      version: 1,
      command: "pool",
      names: ["report"],
      reason: "failed",
      exit_code: 123,
      items: { claimed: 3, done: 2, failed: 1, busy: 0, skipped: 0 },
    });
  });
});

test("clear lets items run again, all or the given ones, and leaves nothing of an unused component", async () => {
  const run = '"$baton" pool past --items a,b,c -j 3 --done-ttl 1h -- sh -c \'echo "$1" >> past\' sh {}';
  await session.run(`${run}; "$baton" pool clear past --items b; ${run}`);
  expect(lines(session.read("past")).sort()).toEqual(["a", "b", "b", "c"]);
  const all = await session.run(
    '"$baton" pool clear past && "$baton" pool clear -q past && "$baton" pool clear past',
  );
  expect([all.code, all.stdout]).toEqual([0, ""]);
  expect(all.stderr).toBe(
    'baton: cleared 3 results of pool "past"\nbaton: pool "past" has no results to clear\n',
  );
  expect(lines((await session.run(`"$baton" ls --json`)).stdout).join()).not.toContain('"past"');
  const wrong = await session.run('"$baton" pool clear; "$baton" pool clear past --json');
  expect(wrong.stderr).toContain("as in: baton pool clear COMPONENT");
  expect(wrong.stderr).toContain("--json is for baton pool status");
});

test("300 items over six processes: none runs twice at once, and with --done-ttl each once", async () => {
  await session.run("seq 300 > many");
  // What a job writes in one go no other can come between.
  const script = 'echo "$1 start" >> log; echo "$1 end" >> log';
  const pool = `"$baton" pool many -w 60s --items @many -j 2 --done-ttl 1h -- sh -c '${script}' sh {}`;
  appendFileSync(session.path("log"), "");
  const ended = await Promise.all(Array.from({ length: 6 }, () => session.run(pool)));
  expectEnds(ended);
  const running = new Set<string>();
  const ran: number[] = [];
  for (const line of lines(session.read("log"))) {
    const [item = "", event] = line.split(" ");
    if (event === "start") {
      expect(running.has(item)).toBe(false);
      running.add(item);
      ran.push(Number(item));
    } else expect(running.delete(item)).toBe(true);
  }
  expect(running.size).toBe(0);
  expect(ran.sort((one, other) => one - other)).toEqual(Array.from({ length: 300 }, (_, index) => index + 1));
});

test("the same items again and again in six processes, without a memory: still none twice at once", async () => {
  const script = 'mkdir "busy-$1" || exit 3; echo "$1" >> again; rmdir "busy-$1"';
  const pool = `"$baton" pool again -w 60s --query 'seq 10' --loop -j 2 -- sh -c '${script}' sh {}`;
  const ended = await Promise.all(Array.from({ length: 6 }, () => session.run(pool)));
  expectEnds(ended);
  expect(lines(session.read("again")).length).toBeGreaterThanOrEqual(10);
});

/** A call has nothing to do when other calls process all remaining items. */
function expectEnds(ended: readonly Ended[]): void {
  expect(ended.map(({ code }) => code)).toContain(0);
  for (const { code, stderr } of ended) {
    if (code === 75) expect(stderr).toMatch(/^baton: no item of pool ".*" is free; other calls process .*\n$/);
    else expect([code, stderr]).toEqual([0, expect.stringMatching(/^baton: pool "\w+": \d+ done, 0 failed, .*\n$/)]);
  }
}
