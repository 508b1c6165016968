/**
 * `baton pool` as people who know xargs and GNU parallel type it: a whole list in one call, its summary, progress and
 * job log.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { BatonSession, untilMade } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession({ BATON_SERVERS: "embedded" }));
afterAll(() => session[Symbol.asyncDispose]());

describe("how much one call runs", () => {
  test("a list: all of it, one item after the other, with a summary at the end", async () => {
    const ended = await session.run('"$baton" pool all --items a,b,c -- echo {}');
    expect(ended).toMatchObject({ code: 0, stdout: "a\nb\nc\n" });
    expect(ended.stderr).toMatch(/^baton: pool "all": 3 done, 0 failed, 0 skipped; \S+ m?s\n$/);
    expect(await session.run('"$baton" pool -q all --items a,b,c -- echo {}')).toMatchObject({
      code: 0,
      stdout: "a\nb\nc\n",
      stderr: "",
    });
  });

  test("standard input, also as @-, which other programs take", async () => {
    for (const source of ["-", "@-"]) {
      const ended = await session.run(`printf 'a\\nb\\n' | "$baton" pool -q stdin --items ${source} -- echo {}`);
      expect(ended).toMatchObject({ code: 0, stdout: "a\nb\n", stderr: "" });
    }
  });

  test("an item in a shell command is one text, also in quotation marks: nothing of it is run", async () => {
    const ended = await session.run(`"$baton" pool -q text --items '$(echo ran),a"b' -c 'printf "%s\\n" "<{}>" {}'`);
    expect(ended).toMatchObject({ code: 0, stdout: '<$(echo ran)>\n$(echo ran)\n<a"b>\na"b\n' });
    const refused = await session.run("\"$baton\" pool -q text --items a -c 'echo `basename {}`'");
    expect([refused.code, refused.stdout]).toEqual([64, ""]);
  });

  test("a list with --one-round, and a query: -j items, and nothing on stderr", async () => {
    for (const words of ["--one-round --items 1,2,3", "--query 'seq 3'"]) {
      expect(await session.run(`"$baton" pool round ${words} -- echo {}`)).toMatchObject({
        code: 0,
        stdout: "1\n",
        stderr: "",
      });
      expect((await session.run(`"$baton" pool round ${words} -j 2 -- echo {}`)).stdout).toHaveLength(4);
    }
    const all = await session.run('"$baton" pool round --query "seq 3" --loop -- echo {}');
    expect(all).toMatchObject({ code: 0, stdout: "1\n2\n3\n" });
  });

  test("from cron, with an empty environment, a good round is silent, and a bad one says what failed", async () => {
    const cron = `env -i HOME="$HOME" BATON_KEEPER_DIR="$BATON_KEEPER_DIR" BATON_SERVERS=embedded "$baton" pool cron`;
    expect(await session.run(`${cron} --query 'seq 2' -j 2 -- true`)).toMatchObject({
      code: 0,
      stdout: "",
      stderr: "",
    });
    const failed = await session.run(`${cron} --query 'seq 2' -j 2 -- false`);
    expect([failed.code, failed.stdout]).toEqual([123, ""]);
    expect(failed.stderr).toMatch(/\nbaton: pool "cron": 0 done, 2 failed \("[12]", "[12]"\), 0 skipped; /);
  });

  test("calls at the same time wait for each other's choice of items: none is refused", async () => {
    const calls = Array.from(
      { length: 8 },
      (_, index) => session.run(`"$baton" pool -q crowd --items i${index} -- echo`),
    );
    const ended = await Promise.all(calls);
    expect(ended.map(({ code, stdout, stderr }) => [code, stdout, stderr])).toEqual(
      ended.map((_, index) => [0, `i${index}\n`, ""]),
    );
  });

  test.each(["", "--done-ttl 1h"])("two shells with one list run each item once %s", async (more) => {
    await session.run("seq 40 > forty");
    const call = `"$baton" pool shells${more === "" ? "" : "-kept"} --items @forty ${more} -j 2 -- echo`;
    const ended = await Promise.all([session.run(call), session.run(call)]);
    expect(ended.flatMap(({ stdout }) => stdout.trim().split("\n")).map(Number).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 40 }, (_, index) => index + 1),
    );
    for (const { code } of ended) expect([0, 75]).toContain(code ?? NaN);
  });
});

test("an item that another call runs is left to it, and the summary says so", async () => {
  const other = session.start(`"$baton" pool -q both --items a -- sh -c 'touch both; ${untilMade("end-both")}'`);
  await session.made("both");
  const ended = await session.run('"$baton" pool both --items a,b -- echo');
  expect([ended.code, ended.stdout]).toEqual([0, "b\n"]);
  expect(ended.stderr).toMatch(
    /^baton: pool "both": 1 done, 0 failed, 0 skipped, 1 with other calls; .*\n$/,
  );
  await session.run("touch end-both");
  expect((await other.ended).code).toBe(0);
});

describe("the item in the command", () => {
  test("is its last argument where it has no place, and not where the command reads BATON_ITEM", async () => {
    expect((await session.run('"$baton" pool -q word --items "a b" -- printf "%s|" x')).stdout).toBe("x|a b|");
    expect((await session.run(`"$baton" pool -q word --items a -- sh -c 'echo "$# $BATON_ITEM"' sh`)).stdout).toBe(
      "0 a\n",
    );
  });

  test("is $1 in a line of the configuration file, where nothing is appended", async () => {
    writeFileSync(session.path("line.toml"), `[pool.component.line]\ncommand = 'echo "[$1]"; '\n`);
    const ended = await session.run(`"$baton" pool -q line --config line.toml --items 'a;b,touch hacked'`);
    expect(ended).toMatchObject({ code: 0, stdout: "[a;b]\n[touch hacked]\n" });
    expect((await session.run("ls hacked")).code).not.toBe(0);
  });
});

test("a line of -c is a shell command for each item, with the item as one word", async () => {
  const line = 'echo "in $1" > out-{}; cat out-{}';
  const ended = await session.run(`"$baton" pool -q line --items 'a b;c,$(touch hacked)' -c '${line}'`);
  expect(ended).toMatchObject({ code: 0, stdout: "in a b;c\nin $(touch hacked)\n" });
  expect((await session.run("ls hacked")).code).not.toBe(0);
  const both = await session.run(`"$baton" pool line --items a -c 'touch both' -- touch both`);
  expect([both.code, both.stderr]).toEqual([64, expect.stringContaining("cannot be used together")]);
});

describe("items that fail", () => {
  test("123, after all others have run; with --retries an item that is well in the end is no failure", async () => {
    const ended = await session.run(`"$baton" pool fails --items a,b,c -- sh -c 'echo $1; [ $1 != b ]' sh {}`);
    expect([ended.code, ended.stdout]).toEqual([123, "a\nb\nc\n"]);
    expect(ended.stderr).toMatch(
      /^baton: item "b" exited with 1\nbaton: pool "fails": 2 done, 1 failed \("b"\), 0 skipped; /,
    );
    const again = await session.run(
      `"$baton" pool again --items a --retries 2 -- sh -c '[ -e tried ] || { touch tried; exit 7; }' sh {}`,
    );
    expect(again.code).toBe(0);
    expect(again.stderr).toMatch(/^baton: item "a" exited with 7, try 1 of 3\nbaton: pool "again": 1 done, 0 failed, /);
  });

  test("a run that is stopped says how far it came", async () => {
    const running = session.start(
      `exec "$baton" pool stops --items a,b,c -- sh -c '[ $1 = a ] || { touch stops; exec sleep 600; }' sh {}`,
    );
    await session.made("stops");
    running.child.kill("SIGTERM");
    const { signal, stderr } = await running.ended;
    expect(signal).toBe("SIGTERM");
    expect(stderr).toContain('1 done, 1 failed ("b"), 0 skipped, 1 left; ');
  });
});

describe("--joblog", () => {
  const rows = (file: string) => session.read(file).trimEnd().split("\n").map((line) => line.split("\t"));

  test("has a line for each item, in the columns of GNU parallel", async () => {
    const script = "case $1 in b) exit 3 ;; c) kill -9 $$ ;; esac";
    const pool = `"$baton" pool -q log --items a,b,c --retries 1 --joblog log -- sh -c '${script}' sh {}`;
    expect((await session.run(pool)).code).toBe(123);
    const [header, ...lines] = rows("log");
    expect(header?.join(" ")).toBe("Seq Host Starttime JobRuntime Send Receive Exitval Signal Command");
    expect(lines.map(([sequence, host, , , send, receive, code, signal]) => [
      ...[sequence, host, send, receive, code, signal],
    ])).toEqual([
      ["1", hostname(), "0", "0", "0", "0"],
      ["2", hostname(), "0", "0", "3", "0"],
      ["3", hostname(), "0", "0", "137", "9"],
    ]);
    for (const [, , startedAt, runtime] of lines) {
      expect(Math.abs(Number(startedAt) * 1000 - Date.now())).toBeLessThan(600_000);
      expect(runtime).toMatch(/^ *\d+\.\d{3}$/);
    }
    // The command can be run again in a shell, as parallel --retry-failed does.
    await session.run(`awk -F '\\t' '$7 == 3 { print $9 }' log > failed`);
    expect((await session.run("sh failed")).code).toBe(3);
  });

  test("is appended to with +, and 73 where it cannot be made: then nothing runs", async () => {
    for (const item of ["a", "b"]) await session.run(`"$baton" pool -q log --items ${item} --joblog +more -- true`);
    expect(rows("more").map(([sequence]) => sequence)).toEqual(["Seq", "1", "1"]);
    for (const file of ["no/such", "/dev/full"]) {
      const ended = await session.run(`"$baton" pool log --items a --joblog ${file} -- touch never`);
      expect([ended.code, ended.stderr]).toEqual([73, expect.stringContaining(`Cannot write --joblog ${file}: `)]);
    }
    expect((await session.run("ls never")).code).not.toBe(0);
  });

  test("is complete with 0: 74 where a line could not be written", async () => {
    await session.run("mkfifo pipe");
    const reader = session.start("head -n 1 < pipe; touch gone");
    const ended = await session.run(`"$baton" pool log --items a --joblog pipe -- sh -c '${untilMade("gone")}'`);
    expect((await reader.ended).stdout).toContain("Seq\t");
    expect([ended.code, ended.stderr]).toEqual([74, expect.stringContaining("the results of some items are missing")]);
  });
});

test("on a terminal a long run shows items, rate, share and remaining time, and erases them at its end", async () => {
  const item = `case {} in 1 | 2) ;; *) ${untilMade("on")} ;; esac`;
  const running = session.start(
    `script -qec '"$baton" pool shows --items 1,2,3,4 --kill-after 1s -- sh -c "${item}"' /dev/null`,
    { TERM: "xterm" },
  );
  // deno-lint-ignore no-control-regex
  const line = /\r\u001b\[K2 of 4 items done, [\d.]+ (a second|a minute), 50 %, [\d.]+ \w+ left {2}/;
  await eventually(() => line.test(running.stdout()), { what: "the progress", withinMs: 30_000 });
  await session.run("touch on");
  const { code, stdout } = await running.ended;
  expect(code).toBe(0);
  // deno-lint-ignore no-control-regex
  expect(stdout).toMatch(/\r\u001b\[Kbaton: pool "shows": 4 done, 0 failed, 0 skipped; \S+ s\r?\n$/);
});
