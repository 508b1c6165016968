/**
 * The command line as hands know it from flock, timeout and xargs: aliases, plain seconds, a command without --,
 * options anywhere.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { BatonSession, type Running } from "../../support/baton_session.ts";
import { freePorts } from "../../support/free_ports.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
let holder: Running;
beforeAll(async () => {
  session = new BatonSession({ BATON_SERVERS: "embedded" });
  holder = session.start('exec "$baton" lock -q busy -- sh -c "touch held; exec sleep 600"');
  await session.made("held");
});
afterAll(async () => {
  holder.child.kill("SIGTERM");
  await session[Symbol.asyncDispose]();
});

const runs = async (line: string) => {
  const { code, stdout, stderr } = await session.run(`"$baton" ${line}`);
  return { code, stdout, stderr };
};

describe("a command", () => {
  test("begins with the first word after the name, and keeps its own options", async () => {
    expect(await runs("lock free printf '%s-%s' -n -w")).toEqual({ code: 0, stdout: "-n--w", stderr: "" });
    expect(await runs("lock free -w 5 sh -c 'echo $BATON_LOCK_NAME; exit 3'")).toMatchObject({
      code: 3,
      stdout: "free\n",
    });
    expect(await runs("elect boss --value v echo --json")).toMatchObject({ code: 0, stdout: "--json\n" });
    expect(await runs("barrier alone -N 1 echo -w")).toMatchObject({ code: 0, stdout: "-w\n" });
    expect(await runs("fence run --store f --token 1 echo --token 2")).toMatchObject({
      code: 0,
      stdout: "--token 2\n",
    });
    expect(await runs("retry-processor call --store store --no-stdin echo --name x")).toMatchObject({
      code: 0,
      stdout: "--name x\n",
    });
  });

  test("follows -- after several names", async () => {
    expect(await runs("lock b a -- sh -c 'echo \"$BATON_LOCK_NAME\"'")).toMatchObject({ code: 0, stdout: "a\nb\n" });
    // The last part of a command with a -- of its own never runs alone: here, not by env.
    const ended = await runs("lock -n a env echo -- sh -c 'echo ran alone'");
    expect([ended.code, ended.stdout]).toEqual([64, ""]);
    expect(ended.stderr).toContain('"env" is a program');
    expect(ended.stderr).toContain(
      "write -- before the command: baton lock … a -- env echo -- sh -c 'echo ran alone'.",
    );
    expect(ended.stderr).toContain("write -- twice: baton lock … a env echo -- -- sh -c 'echo ran alone'\n");
    expect(await runs("lock a -- env echo -- x")).toMatchObject({ code: 0, stdout: "-- x\n" });
    expect(await runs("lock a env -- -- sh -c 'echo \"$BATON_LOCK_NAME\"'")).toMatchObject({ stdout: "a\nenv\n" });
    // The same with the short PATH of cron, and a name that is a program only in the first place.
    expect(await session.run('PATH=/nowhere "$baton" lock -n a ls /tmp -- true')).toMatchObject({
      code: 64,
      stdout: "",
    });
    expect(await runs("lock env a -- true")).toMatchObject({ code: 0 });
    for (const words of ["elect e", "barrier b -N 1", "pool p --items i"]) {
      const refused = await runs(`${words} env echo -- echo ran alone`);
      expect([refused.code, refused.stdout]).toEqual([64, ""]);
      expect(refused.stderr).toContain(
        "if these words are a command that contains --, write another -- before the command",
      );
    }
    // A program that is not there: its words are taken for names, and stderr says so if the rest is no command either.
    const missing = await runs("lock a no-such-program x -- ./no-such-program");
    expect(missing.code).toBe(127);
    expect(missing.stderr).toContain('the words before -- are names of locks: "a", "no-such-program", "x"');
  });

  test("is a line for the shell after -c", async () => {
    expect(await runs("lock free -c 'echo one; echo two | tr a-z A-Z'")).toMatchObject({
      code: 0,
      stdout: "one\nTWO\n",
    });
    expect(await runs("lock -n --command 'exit 7' free")).toMatchObject({ code: 7 });
    expect(await runs("fence run --store f --token 1 -c 'echo $0'")).toMatchObject({ code: 0, stdout: "/bin/sh\n" });
    const both = await runs("lock free -c 'echo one' echo two");
    expect([both.code, both.stderr]).toEqual([64, expect.stringContaining('-c and the command "echo two"')]);
  });
});

describe("flock's options", () => {
  const busy: [line: string, code: number][] = [
    ["lock --nonblock busy true", 75],
    ["lock --nb -E 1 busy true", 1],
    ["lock -n --conflict-exit-code 9 busy true", 9],
    ["lock -w 0 busy true", 75],
    ["lock --wait 2 busy true", 75],
    ["lock --timeout 2.0 busy true", 75],
    ["lock --timeout=2 busy true", 75],
    ["lock -x -w2 busy -c true", 75],
    ["lock -e -n busy true", 75],
    ["lock -s -n busy true", 75],
    ["lock --verbose -n busy true", 75],
  ];
  for (const [line, code] of busy) {
    test(line, async () => {
      const ended = await runs(line);
      expect([ended.code, ended.stdout]).toEqual([code, ""]);
      expect(ended.stderr).toContain('Lock "busy"');
    });
  }

  const refused: [line: string, hint: string][] = [
    ["lock -u busy", "There is no option -u: a lock ends with its command; baton release NAME"],
    ["lock -F busy true", "There is no option -F: baton has to run beside the command"],
    ["lock --no-fork busy true", "leave the option out"],
    ["lock -x -s busy true", "-x and -s cannot be used together"],
    ["lock 9", "baton hold holds a lock over several steps of a script"],
  ];
  for (const [line, hint] of refused) {
    test(line, async () => {
      const ended = await runs(line);
      expect([ended.code, ended.stderr]).toEqual([64, expect.stringContaining(hint)]);
    });
  }
});

describe("a job of cron", () => {
  const cron = (line: string) =>
    session.run(
      `env -i HOME="$HOME" LOGNAME=root SHELL=/bin/sh PATH=/usr/bin:/bin BATON_KEEPER_DIR="$BATON_KEEPER_DIR" "$baton" ${line}`,
    );

  test("prints nothing with --skip: not when it runs, and not when it finds the lock busy", async () => {
    expect(await cron("lock --skip free true")).toMatchObject({ code: 0, stdout: "", stderr: "" });
    expect(await cron("lock --skip busy touch ran")).toMatchObject({ code: 0, stdout: "", stderr: "" });
    expect(await cron("lock --skip -w 2 busy touch ran")).toMatchObject({ code: 0, stdout: "", stderr: "" });
    expect((await cron("lock --skip -v busy touch ran")).stderr).toContain('Lock "busy" is busy');
    expect((await session.run("ls ran")).code).not.toBe(0);
    expect(await cron("lock --skip free sh -c 'echo bad >&2; exit 3'")).toMatchObject({ code: 3, stderr: "bad\n" });
    expect((await cron("lock --skip -E 9 busy true")).stderr).toContain("--skip and -E cannot be used together");
  });

  test("is told of servers that do not respond", async () => {
    const [port] = await freePorts(1);
    const ended = await cron(`lock --skip -z 127.0.0.1:${port} --connect-timeout 0.2 free true`);
    expect([ended.code, ended.stderr]).toEqual([69, expect.stringContaining("connection refused")]);
  });
});

/** Starts a process that stays, and waits until it has its name: until then it has that of the shell. */
const sleepInBackground =
  'sleep 600 >/dev/null 2>&1 & until [ "$(ps -o comm= -p $!)" = sleep ]; do kill -0 $! || break; done';

describe("processes that the command leaves in the background", () => {
  test("are stopped, and one line says so", async () => {
    const ended = await runs(`lock free sh -c '${sleepInBackground}; echo $! >left'`);
    expect(ended.code).toBe(0);
    const pid = session.read("left").trim();
    expect(ended.stderr).toBe(`baton: stopped 1 process that the command left running (${pid}, sleep)\n`);
    expect((await session.run(`kill -0 ${pid}`)).code).not.toBe(0);
    expect(await runs("lock -q free sh -c 'sleep 600 & sleep 600 &'")).toEqual({ code: 0, stdout: "", stderr: "" });
    const two = await runs(`lock free sh -c '${sleepInBackground}; ${sleepInBackground}; exit 3'`);
    expect(two.code).toBe(3);
    expect(two.stderr).toMatch(
      /^baton: stopped 2 processes that the command left running \(\d+, sleep; \d+, sleep\)\n$/,
    );
  });

  test("are named with the item of a pool, and by retry-processor call", async () => {
    const item = await runs(`pool --items 'a b' left sh -c '${sleepInBackground}'`);
    expect([item.code, item.stderr]).toEqual([
      0,
      expect.stringMatching(/^baton: stopped 1 process that the command of item "a b" left running \(\d+, sleep\)$/m),
    ]);
    const call = await runs(`retry-processor call --store store --no-stdin sh -c '${sleepInBackground}'`);
    expect([call.code, call.stderr]).toEqual([
      0,
      expect.stringMatching(/^baton: stopped 1 process that the command left running \(\d+, sleep\)$/m),
    ]);
  });

  test("continue without the lock with --leave-running, flock's -o", async () => {
    for (const flag of ["--leave-running", "-o", "--close"]) {
      const ended = await runs(`lock ${flag} free sh -c 'sleep 600 >/dev/null 2>&1 & echo $! >left'`);
      const pid = session.read("left").trim();
      expect([flag, ended.code, ended.stderr]).toEqual([
        flag,
        0,
        `baton: the lock ends with the command; 1 process that it left running continues without the lock (${pid}, sleep)\n`,
      ]);
      expect((await runs("lock -n free echo free")).stdout).toBe("free\n");
      expect((await session.run(`kill ${pid}`)).code).toBe(0);
    }
  });

  test("are not those that end with it", async () => {
    expect((await runs("lock free sh -c 'seq 1 100000 | head -1'")).stderr).toBe("");
  });
});

describe("a variable that baton does not have", () => {
  const wrong = { BATON_SERVRES: "zk1:2181,secret", BATON_SCOPE: "x", BATON_LOCK_KILL_AFTER: "soon" };

  test("is a warning on every command, without its value", async () => {
    for (const line of ["lock free true", "ls", "who busy", "keeper verify --json", "help lock"]) {
      const { stderr } = await session.run(`BATON_SERVRES=secret "$baton" ${line}`);
      expect([line, stderr]).toEqual([
        line,
        expect.stringContaining(
          'baton: warning: BATON_SERVRES: baton has no such variable, did you mean "BATON_SERVERS"?\n',
        ),
      ]);
      expect(stderr).not.toContain("secret");
    }
    const quiet = await session.run('BATON_SERVRES=secret BATON_WHATEVER_IT_IS=x "$baton" -q lock free true');
    expect(quiet.stderr).toBe(
      'baton: warning: BATON_SERVRES: baton has no such variable, did you mean "BATON_SERVERS"?\n',
    );
    // The variables that baton itself sets are known.
    expect((await runs('lock free "$baton" lock inner "$baton" who busy')).stderr).toBe("");
  });

  test("is an error in config check, which lists all mistakes", async () => {
    const checked = await session.run('"$baton" config check', wrong);
    expect(checked.code).toBe(78);
    expect(checked.stderr.split("\n").sort()).toEqual([
      "",
      'baton: BATON_LOCK_KILL_AFTER: "soon" is not a duration: write seconds, or a number with a unit, such as ' +
      "250ms, 5m or 2h",
      'baton: BATON_SCOPE: "x" is not one of user, machine, cluster',
      'baton: BATON_SERVRES: baton has no such variable, did you mean "BATON_SERVERS"?',
    ]);
    const shown = await session.run('"$baton" config show', { BATON_SERVRES: "x" });
    expect([shown.code, shown.stderr]).toEqual([0, expect.stringContaining("warning: BATON_SERVRES")]);
  });
});

describe("a plain number is seconds", () => {
  test("in options, variables and files", async () => {
    writeFileSync(
      session.path("seconds.toml"),
      "[lock]\nforeground.wait = 1.5\nkill_after = 1\n[session]\ntimeout = 5\n",
    );
    expect(await runs("lock --config seconds.toml busy true")).toMatchObject({ code: 75 });
    expect((await session.run('BATON_LOCK_FOREGROUND_WAIT=1.5 "$baton" lock busy true')).code).toBe(75);
    const shown = await runs("config show --config seconds.toml");
    expect(shown.stdout).toMatch(/session\.timeout +5s\n/);
    expect(shown.stdout).toMatch(/lock\.kill_after +1s\n/);
    expect(shown.stdout).toMatch(/lock\.foreground\.wait +1500ms\n/);
  });

  test("-w means the same in every command: the longest wait, in seconds, then 75", async () => {
    expect(await runs("leader -w 2 nobody")).toMatchObject({ code: 75 });
    expect(await runs("leader --wait 2 nobody")).toMatchObject({ code: 75 });
    expect(await runs("leader nobody")).toMatchObject({ code: 1 });
    expect(await runs("barrier two -N 2 -w 2 true")).toMatchObject({ code: 75 });
    expect(await runs("barrier two -N 2 --timeout 2 true")).toMatchObject({ code: 75 });
    expect(await runs("lock --max-hold 0.2 free sleep 60")).toMatchObject({ code: 124 });
  });

  test("-w forever overrides a limit of the configuration", async () => {
    const env = { BATON_LOCK_FOREGROUND_WAIT: "1.5" };
    const waiting = session.start('exec "$baton" lock -v -w forever busy true', env);
    const reached = await session.run('"$baton" lock busy true', env);
    expect(reached.code).toBe(75);
    expect(waiting.child.exitCode).toBeNull();
    waiting.child.kill("SIGTERM");
    expect((await waiting.ended).signal).toBe("SIGTERM");
  });
});

describe("options before the command", () => {
  test("are those of all or many commands", async () => {
    expect(await runs("-q lock -n busy true")).toEqual({ code: 75, stdout: "", stderr: "" });
    expect(JSON.parse((await runs("--json who busy")).stdout)).toMatchObject({ name: "busy" });
    expect((await runs("-v --servers embedded lock free true")).stderr).toContain('"free" is locked');
    expect(await runs("--root /elsewhere -q lock -n busy echo got")).toMatchObject({ code: 0, stdout: "got\n" });
    // The option after the command is the last one, and wins.
    expect(await runs("--root /elsewhere lock -q -n --root /baton busy true")).toMatchObject({ code: 75 });
    expect(await runs("-q retry-processor stats --store store --json")).toMatchObject({ code: 0 });
  });

  test("others are refused with the place where they belong", async () => {
    const ended = await runs("-v -n lock busy true");
    expect([ended.code, ended.stderr]).toEqual([
      64,
      "baton: -n is an option of single commands, which follows the command, as in: baton lock -n …\nbaton: see: baton --help\n",
    ]);
    expect((await runs("--json lock busy true")).stderr).toContain("There is no option --json");
    const bytes = await session.run(`"$baton" --root "/$(printf 'caf\\351')" who busy`);
    expect([bytes.code, bytes.stderr]).toEqual([64, expect.stringContaining('"/caf\\xe9": it is not valid UTF-8')]);
  });
});
