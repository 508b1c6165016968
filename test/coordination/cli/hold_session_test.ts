/** `baton hold` and `baton release` in scripts of every shell that is here, with the binary. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import process from "node:process";
import { listProcesses, readProcess } from "../../../src/base/process/proc/process_table.ts";
import { keeper } from "../../support/backends.ts";
import { BatonSession, type Running } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { canBeOthers } from "../../support/other_user.ts";
import { QuietTime } from "../../support/quiet_time.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession());
afterAll(() => session[Symbol.asyncDispose]());

/** Those of install_peers, which differ in what they fork for `$(…)`, `(…)` and a last command. */
const shells = ["dash", "bash", "zsh", "mksh", "ksh93"].filter((shell) =>
  existsSync(`/bin/${shell}`) || existsSync(`/usr/bin/${shell}`)
);

/** A line of a script that goes on when it has the lock. */
const taking = (words: string) => `held=$("$baton" hold -q --pid $$ ${words}) || exit; eval "$held"`;
/**
 * Waits until the holder process has seen what the script has started: it knows a subshell by its parents only, looks
 * every 50 ms, and sleeps between two looks.
 */
const seen = "holder=/proc/$(echo $BATON_LEASE | cut -d/ -f3)/status; sleeps() " +
  "{ sed -n s/^voluntary_ctxt_switches:.//p $holder; }; before=$(sleeps); sleep 0.4; " +
  "while [ $(sleeps) -lt $((before + 8)) ]; do sleep 0.05; done";
const isAlive = (pid: number) => readProcess(pid)?.dead === false;
const gone = (...pids: number[]) => eventually(() => !pids.some(isAlive), { what: `${pids} to end`, withinMs: 10_000 });
/** What has no mark and lost its parent is ended by hand: docs/limits.md. */
const kill = (...pids: number[]) => pids.filter(isAlive).forEach((pid) => process.kill(pid, "SIGKILL"));
const holderOf = (session: BatonSession, file = "lease") => Number(session.read(file).split("/")[2]);
const who = async (name: string) => JSON.parse((await session.run(`"$baton" who --json ${name}`)).stdout);

/** One that writes down who it is, has something in the background, and stays. `pids`: all of it. */
async function holding(
  session: BatonSession,
  name: string,
  options = "",
): Promise<{ running: Running; pids: number[] }> {
  const cloaked = "env -i sleep 60"; // below the script, without its cookie
  const running = session.start(
    `${taking(`${name} ${options}`)}; sleep 60 & a=$!; setsid sleep 60 & b=$!; ${cloaked} & c=$!
     (while :; do sleep 0.05; done) & echo $$ $a $b $c $! >pids.${name}; echo $BATON_LEASE >lease; ${seen}
     >up.${name}; wait`,
  );
  await session.made(`up.${name}`);
  return { running, pids: session.read(`pids.${name}`).trim().split(" ").map(Number) };
}

describe("a script", () => {
  for (const shell of shells) {
    test(`of ${shell} holds it from hold to release, and knows what a command under baton lock knows`, async () => {
      const ended = await session.run(`${shell} -c '${taking("steps -w 10s --reason daily")}
        "$baton" check -q; echo check $?
        "$baton" who --json steps >who; echo $$ >pid
        "$baton" lock -q -n steps -- true 2>nested; echo nested $?
        "$baton" release steps; echo release $?
        "$baton" check -q; echo check $?
        "$baton" release steps 2>again; echo again $?
        echo $BATON_LOCK_NAME $BATON_LOCK_MODE $BATON_LOCK_SCOPE $((\${#BATON_FENCING_TOKEN} > 0))'`);
      // The script measures the length of the token, because mksh counts in 32 bits.
      expect(ended).toMatchObject({ code: 0, stderr: "" });
      expect(ended.stdout).toBe(
        "check 0\nnested 64\nrelease 0\ncheck 79\nagain 1\nsteps exclusive user 1\n",
      );
      expect(session.read("nested")).toMatch(/"steps" is already held by this command: .* or baton hold of that lock/);
      expect(session.read("again")).toMatch(/"steps" is not held by this script: it was released before/);
      const { holders } = JSON.parse(session.read("who"));
      expect(holders).toMatchObject([{ pid: Number(session.read("pid")), command: shell, reason: "daily" }]);
      expect((await who("steps")).holders).toEqual([]);
    });

    test(`of ${shell} gives it back at its end; what it left behind, also a subshell, is dead by then`, async () => {
      const left = `(while :; do :; done) & echo $! >left; sleep 60 & echo $! >>left; ${seen}; exit 0`;
      const ended = await session.run(`${shell} -c '${taking("ends")}; ${left}'`);
      expect(ended.code).toBe(0);
      const after = await session.run(
        `"$baton" lock -q ends -- sh -c 'for p in $(cat left); do grep -hs "^State:" /proc/$p/status; done; true'`,
      );
      expect(after.stdout.split("\n").filter((line) => line !== "" && !line.includes("Z"))).toEqual([]);
    });
  }

  for (const shell of shells) {
    test(`of ${shell} need not say which it is, and knows that it did not get the lock`, async () => {
      const ended = await session.run(
        `${shell} -c '(true; "$baton" hold -q whose | cat) >vars; eval "$(cat vars)"; "$baton" check -q; echo around $?
          f() { "$baton" check -q; echo function $?; }; f; x=$("$baton" release whose; echo release $?); echo $x
          held=$("$baton" hold -q whose) || exit; eval "$held"; "$baton" check -q; echo again $?
          eval "$("$baton" hold --bogus 2>/dev/null)" || echo failed $?
          (set -e; eval "$("$baton" hold --bogus 2>/dev/null)"; echo never); echo set -e $?'`,
      );
      expect(ended).toMatchObject({ code: 0, stderr: "" });
      expect(ended.stdout).toBe("around 0\nfunction 0\nrelease 0\nagain 0\nfailed 64\nset -e 64\n");
    });
  }

  test("that is killed frees it within moments, and leaves nothing of its own alive", async () => {
    const { pids: [script = 0, ...others] } = await holding(session, "killed");
    process.kill(script, "SIGKILL");
    const next = await session.run('"$baton" lock -q -w 5s killed -- true');
    expect(next).toMatchObject({ code: 0 });
    expect(next.quietMs).toBeLessThan(2000);
    const [plain = 0, daemon = 0, , copy = 0] = others;
    expect([plain, daemon, copy].filter(isAlive)).toEqual([]);
    kill(...others);
  });

  test("gets nothing while another holds it: lock's exit code, and nothing that eval takes for success", async () => {
    const { running, pids } = await holding(session, "busy");
    expect(await session.run(`${taking("busy -n")}; echo never`)).toMatchObject({ code: 75, stdout: "" });
    expect(await session.run(`${taking("busy -w 2s -E 3")}; echo never`)).toMatchObject({ code: 3, stdout: "" });
    const closed = await session.run('"$baton" hold -q free --pid $$ >&-; echo $?; "$baton" who -q free; echo $?');
    expect(closed).toMatchObject({ stdout: "74\n1\n" });
    expect(closed.stderr).toContain("stdout was closed");
    expect(await session.run('eval "$("$baton" hold -q -n busy --pid $$)" || echo failed $?'))
      .toMatchObject({ stdout: "failed 75\n" });
    expect(await session.run('eval "$("$baton" hold --bogus)" || echo failed $?')).toMatchObject({
      stdout: "failed 64\n",
    });
    kill(...pids);
    await running.ended;
  });

  test("may hold several, and release them in any order", async () => {
    const ended = await session.run(`${taking("a")}; ${taking("b")}; ${taking("c d")}
      "$baton" release a; echo $?; "$baton" check -q; echo $?; "$baton" release c; echo $?
      "$baton" release d c b; echo $?; ${taking("a")}; echo "$BATON_LOCK_COOKIE" | tr : '\\n' | wc -l`);
    expect(ended.stdout.split(/\s+/).filter(Boolean)).toEqual(["0", "0", "64", "0", "1"]);
    expect(ended.stderr).toMatch(/"c" was acquired together with "d": use baton release c d/);
    const again = await session.run(`${taking("c d")}; "$baton" release c d; "$baton" release c; echo $?`);
    expect(again).toMatchObject({ code: 0, stdout: "1\n" });
    expect(again.stderr).toBe(
      'baton: "c" is not held by this script: it was released before, or never acquired by baton hold\n',
    );
  });

  test("from cron, with next to no environment, excludes one from a login", async () => {
    const { running, pids } = await holding(session, "cron");
    const script = `held=$("$1" hold -q -n cron) || exit; echo never`;
    const bare = await session.run(
      `env -i BATON_KEEPER_DIR="$BATON_KEEPER_DIR" setsid -w sh -c '${script}' sh "$baton"`,
    );
    expect(bare).toMatchObject({ code: 75, stdout: "" });
    kill(...pids);
    await running.ended;
  });

  test("may read both of its outputs to the end: the holder keeps no pipe open", async () => {
    const ended = await session.run(
      `x=$("$baton" hold pipes --pid $$ 2>&1); y=$("$baton" hold pipes2 --pid $$ 2>&1 >f); echo read`,
    );
    expect(ended).toMatchObject({ code: 0, stdout: "read\n" });
    expect(ended.quietMs).toBeLessThan(5000);
  });

  test("is the one around a subshell without --pid; a program that is not a shell needs --pid", async () => {
    const ended = await session.run(
      `(true; "$baton" hold -q around | cat) >vars; eval "$(cat vars)"; sleep 0.3; "$baton" check -q; echo $?`,
    );
    expect(ended).toMatchObject({ code: 0, stdout: "0\n" });
    const stranger = await session.run('timeout 5 "$baton" hold -q around2');
    expect(stranger).toMatchObject({ code: 64 });
    expect(stranger.stderr).toMatch(/started by "timeout" \(pid \d+\), which is not a shell like sh: name the process/);
    expect(await session.run('"$baton" hold -q x --pid 1')).toMatchObject({ code: 78 });
    expect(await session.run('"$baton" hold -q x --pid $$ -- true')).toMatchObject({ code: 64 });
  });

  test("is a subshell by its process ID, which is read before $(…)", async () => {
    const script = 'x=$("$baton" hold -q own --pid $BASHPID); ' +
      '(me=$BASHPID; eval "$("$baton" hold -q own --pid $me)"; "$baton" check -q && echo held); ' +
      '"$baton" lock -q -w 30s own -- echo free';
    const ended = await session.run(`bash -c '${script}'`);
    expect(ended.stderr).toMatch(
      /is baton hold itself, .*; for a subshell, write me=\$BASHPID before it, and --pid \$me/,
    );
    expect(ended.stdout).toBe("held\nfree\n");
  });

  test("is no thread of a process, which may end long before that", async () => {
    const thread = readdirSync("/proc/self/task").find((id) => Number(id) !== process.pid);
    const ended = await session.run(`"$baton" hold thread --pid ${thread}`);
    expect(ended.stderr).toStartWith(
      `baton: --pid ${thread} is a thread of process ${process.pid}: use --pid ${process.pid}`,
    );
    expect(ended.code).toBe(64);
  });

  // They are seen outside of containers only.
  const kernels = listProcesses().flatMap((pid) => readProcess(pid) ?? []).find(({ isKernelThread }) => isKernelThread)
    ?.pid;
  test.if(kernels !== undefined)("is no kernel thread, which cannot be stopped", async () => {
    const ended = await session.run(`"$baton" hold kernel --pid ${kernels}`);
    expect(ended.stderr).toStartWith(`baton: --pid ${kernels} is a kernel thread, which cannot be stopped: `);
    expect(ended.code).toBe(64);
  });
});

describe("the wait", () => {
  test("ends with baton hold, whatever ends that, and with the script; the queue is left", async () => {
    const { running, pids } = await holding(session, "queue");
    const waiters = async (count: number) =>
      await eventually(async () => (await who("queue")).waiters.length === count, { what: `${count} in the queue` });
    for (const signal of ["TERM", "KILL"] as const) {
      const waiting = session.start('"$baton" hold -q queue --pid $$ & echo $! >front; wait $!; echo $?');
      await waiters(1);
      process.kill(Number(session.read("front")), `SIG${signal}`);
      expect((await waiting.ended).stdout.trim().split("\n").at(-1)).toBe(signal === "TERM" ? "143" : "137");
      await waiters(0);
    }
    const orphan = session.start('held=$("$baton" hold -q queue --pid $$)');
    await waiters(1);
    process.kill(orphan.child.pid ?? 0, "SIGKILL");
    await waiters(0);
    kill(...pids);
    await running.ended;
  });
});

describe("the promise", () => {
  test("holder killed: the script and all below it are dead within a second", async () => {
    const { running, pids } = await holding(session, "holder-killed");
    const quiet = new QuietTime();
    process.kill(holderOf(session), "SIGKILL");
    await gone(...pids);
    expect(quiet.ms).toBeLessThan(1000);
    const { signal, stderr } = await running.ended;
    expect(signal).toBe("SIGKILL");
    expect(stderr).toMatch(/the hold of \S+\/holder-killed is lost: its holder process \(pid \d+\) has died; /);
  });

  test("holder stopped: they are dead when the next one has the lock", async () => {
    const { running, pids } = await holding(session, "holder-stopped", "--session-timeout 2s");
    const holder = holderOf(session);
    process.kill(holder, "SIGSTOP");
    expect(await session.run('"$baton" lock -q -w 20s holder-stopped -- true')).toMatchObject({ code: 0 });
    expect(pids.filter(isAlive)).toEqual([]);
    expect(running.stderr()).toContain(`its holder process (pid ${holder}) stood still, `);
    process.kill(holder, "SIGCONT");
    await gone(holder);
    expect((await running.ended).stderr).toMatch(/Lock "holder-stopped" is lost: .*; the script was stopped/);
  });

  test("holder stopped while the script ends: its program is dead before the next one has the lock", async () => {
    const running = session.start(
      `${taking("leaves --session-timeout 2s")}; echo $BATON_LEASE >lease.leaves; kill -STOP $(cut -d/ -f3 lease.leaves)
       sleep 60 >/dev/null 2>&1 & echo $! >left.leaves; exit 0`,
    );
    const left = Number(await session.said("left.leaves"));
    expect(isAlive(left)).toBe(true);
    expect(await session.run('"$baton" lock -q -w 20s leaves -- true')).toMatchObject({ code: 0 });
    expect(isAlive(left)).toBe(false);
    process.kill(holderOf(session, "lease.leaves"), "SIGCONT");
    await running.ended;
  });

  test("server gone: the script is told to stop, and is dead before the lease ends, without a release", async () => {
    const server = await keeper.start();
    try {
      await using own = new BatonSession({ BATON_SERVERS: server.servers });
      const running = own.start(
        `trap '"$baton" release lost; echo release $? >released; exit 7' TERM
         ${taking("lost --session-timeout 8s --kill-after 2s")}; sleep 60 & echo $! >child; >up; wait`,
      );
      await own.made("up");
      const quiet = new QuietTime();
      await server.kill();
      const ended = await running.ended;
      expect(quiet.ms).toBeLessThan(8000); // the session, which ends after the lease
      expect(ended.stderr).toMatch(/Lock "lost" is lost: .*; the script was stopped/);
      expect(own.read("released")).toBe("release 79\n");
      expect(isAlive(Number(own.read("child")))).toBe(false);
    } finally {
      await server.close();
    }
  });

  test("break: the script is stopped, and its release says that it was taken back", async () => {
    const running = session.start(
      `trap '"$baton" release -q broken; echo release $? >broken; exit 7' TERM; ${
        taking("broken")
      }; >up.broken; sleep 60 & wait`,
    );
    await session.made("up.broken");
    const [{ id }] = (await who("broken")).holders;
    expect(await session.run(`"$baton" break -q broken --holder ${id}`)).toMatchObject({ code: 0 });
    const ended = await running.ended;
    expect(ended.code).toBe(7);
    expect(session.read("broken")).toBe("release 80\n");
    expect(ended.stderr).toMatch(/was broken by .*; the script was stopped/);
  });

  test("break inside the script or command itself is refused, with what ends the lock", async () => {
    const ended = await session.run(`${taking("own")}; "$baton" break own; echo $?; "$baton" release own; echo $?`);
    expect(ended).toMatchObject({ code: 0, stdout: "64\n0\n" });
    expect(ended.stderr).toContain(
      '"own" is held by this script or shell, which would be stopped; release it with: baton release own;',
    );
    const nested = await session.run('"$baton" lock -q own sh -c \'"$baton" break own; echo $?\'');
    expect(nested).toMatchObject({ code: 0, stdout: "64\n" });
    expect(nested.stderr).toMatch(/end that command instead; or break it with --holder [0-9a-f]{8}\n/);
  });

  test("processes in the script's process group are not stopped; a descendant from before the lock is", async () => {
    const running = session.start(
      `sleep 60 & echo $! >neighbour; sh -c 'sleep 60 & echo $! >before; ${
        taking("group")
      }; echo $BATON_LEASE >lease; >up.group; sleep 60 & wait' & wait $!; echo $?; kill $(cat neighbour) && echo alive`,
    );
    await session.made("up.group");
    process.kill(holderOf(session), "SIGKILL");
    const ended = await running.ended;
    expect(ended.stdout).toBe("137\nalive\n");
    // The one before was below the script when it had to die, as it does soon after the script.
    await gone(Number(session.read("before")));
  });

  test("of many scripts at it again and again, some killed on the way, no two are ever inside", async () => {
    const crew = `for i in 1 2 3 4 5; do sh -c '${taking("crew -w 30s --session-timeout 4s")}
        mkdir inside || echo OVERLAP; sleep 0.0$1; rmdir inside; [ $2 = kill ] && kill -9 $$; "$baton" release -q crew' sh $i $1
      done; true`;
    const crews = await Promise.all(["kill", "", "kill", ""].map((how) => session.run(`set -- "${how}"; ${crew}`)));
    expect(crews.map(({ stdout }) => stdout).join("")).not.toContain("OVERLAP");
    expect(crews.every(({ code }) => code === 0)).toBe(true);
  });
});

describe("release", () => {
  const busy = "sleep 60 & a=$!; (while :; do sleep 0.05; done) & b=$!; echo $a $b >left; " +
    'until [ "$(cat /proc/$a/comm)" = sleep ]; do sleep 0.01; done';

  test("names what still runs and lets it be", async () => {
    const ended = await session.run(`${taking("warns")}; ${busy}; "$baton" release warns; kill $a $b && echo both`);
    expect(ended).toMatchObject({ code: 0, stdout: "both\n" });
    const [sleeper] = session.read("left").split(" ");
    expect(ended.stderr).toContain(`"warns" released; processes that were started under it still run: `);
    expect(ended.stderr).toContain(`${sleeper} (sleep 60)`);
  });

  test("--stop-processes stops them first, but neither the script nor the requester", async () => {
    const ended = await session.run(
      `${
        taking("sweeps --kill-after 300ms")
      }; (trap "" TERM; sleep 60; sleep 60) & ${busy}; ("$baton" release --stop-processes sweeps | cat; echo out); jobs -r | wc -l`,
    );
    expect(ended.stdout.replaceAll(/\s+/g, " ")).toBe("out 0 ");
    expect((await who("sweeps")).holders).toEqual([]);
  });

  test("from inside another lock neither names nor ends the guard of that", async () => {
    const inner =
      'guard() { pgrep -P $PPID -f __guard; }; g=$(guard); "$baton" release $1 inner; echo $?; [ "$g" = "$(guard)" ]';
    for (const flag of ["", "--stop-processes"]) {
      const ended = await session.run(`${taking("inner")}; "$baton" lock -q inside -- sh -c '${inner}' sh ${flag}`);
      expect(ended).toMatchObject({ code: 0, stdout: "0\n", stderr: "" });
      expect(ended.quietMs).toBeLessThan(4000); // --kill-after is five seconds
    }
  });

  test("waits for a holder that stands still, and says so when that or the server does not answer", async () => {
    const late = await session.run(
      `${taking("still")}; holder=$(echo $BATON_LEASE | cut -d/ -f3); kill -STOP $holder
       "$baton" release -w 300ms still; echo $?; kill -CONT $holder; "$baton" release still; echo $?`,
    );
    expect(late).toMatchObject({ code: 0, stdout: "76\n0\n" });
    expect(late.stderr).toMatch(
      /^baton: Cannot tell whether "still" was released: its holder process \(pid \d+\) has not /,
    );
    const server = await keeper.start();
    try {
      await using own = new BatonSession({ BATON_SERVERS: server.servers });
      const running = own.start(
        `${
          taking("down --session-timeout 3s")
        }; >up; while [ ! -e go ]; do sleep 0.02; done; "$baton" release down; echo $?`,
      );
      await own.made("up");
      await server.kill();
      await own.run(">go");
      const ended = await running.ended;
      expect(ended.stdout).toBe("76\n");
      expect(ended.stderr).toMatch(/Cannot tell whether "down" was released/);
    } finally {
      await server.close();
    }
  });

  test("outside a hold there is nothing to release", async () => {
    const ended = await session.run('"$baton" release x');
    expect(ended).toMatchObject({ code: 1, stdout: "" });
    expect(ended.stderr).toMatch(
      /"x" is not held by this script: it was released before, or never acquired by baton hold/,
    );
    expect(await session.run('"$baton" release')).toMatchObject({ code: 64 });
  });

  test("finds a hold of this script or of an ancestor without its variables, and no other script's", async () => {
    const silent = (name: string) => `"$baton" hold -q --pid $$ ${name} >/dev/null || exit`;
    const own = await session.run(`${silent("own")}; "$baton" release own; echo $?; "$baton" lock -qn own echo free`);
    expect(own).toMatchObject({ code: 0, stdout: "0\nfree\n", stderr: "" });
    const below = await session.run(
      `${silent("'two words' other")}; sh -c '(env -i PATH="$PATH" "$baton" release other "two words"; echo $?)'`,
    );
    expect(below).toMatchObject({ code: 0, stdout: "0\n", stderr: "" });
    const some = await session.run(`${silent("a b")}; "$baton" release a`);
    expect([some.code, some.stderr]).toEqual([64, expect.stringContaining('acquired together with "b"')]);
    const stranger = session.start(`${silent("strange")}; >strange; while [ ! -e end ]; do sleep 0.02; done`);
    await session.made("strange");
    expect(await session.run('"$baton" release strange')).toMatchObject({ code: 1 });
    await session.run(">end");
    expect((await stranger.ended).code).toBe(0);
  });

  test("of two holds of one name it releases that of the nearest ancestor", async () => {
    const shared = '"$baton" hold -q -s --pid $$ rows >/dev/null || exit';
    const ended = await session.run(
      `${shared}; sh -c '${shared}; "$baton" release rows; "$baton" who -q rows | grep -c holds'; "$baton" release rows; echo $?`,
    );
    expect(ended.stdout).toBe("1\n0\n");
  });
});

test("at a prompt, where no shell reads the variables, hold takes nothing and prints the line to type", async () => {
  const typed = await session.run(`script -qec '"$baton" hold -w 5 "two words"' /dev/null </dev/null`);
  const stdout = typed.stdout.replaceAll("\r", "");
  expect(typed.code).toBe(64);
  expect(stdout).toContain(`Type: eval "$(baton hold -w 5 'two words')".`);
  expect(stdout).toContain("baton release 'two words'");
  expect(stdout).not.toContain("export");
  expect(stdout).not.toContain("(exit");
  expect((await session.run('"$baton" who -q "two words"')).code).toBe(1);
  const evaluated = await session.run(
    `script -qec 'eval "$("$baton" hold -q prompt)"; "$baton" release prompt; echo "released $?"' /dev/null </dev/null`,
  );
  expect(evaluated.stdout).toContain("released 0");
});

test("--status-file says what was had, or why not", async () => {
  await session.run(`${taking("status --status-file had")}; ${taking("status2 --status-fd 3 3>fd")}`);
  expect(JSON.parse(session.read("had"))).toMatchObject({
    command: "hold",
    names: ["status"],
    reason: "held",
    exit_code: 0,
  });
  expect(JSON.parse(session.read("fd"))).toMatchObject({ names: ["status2"], fencing_tokens: [expect.any(String)] });
});

const isRoot = canBeOthers("a folder that may not be entered is not tried");

test.skipIf(!isRoot)("a script that stands in a folder which its user may not enter gets its lock", async () => {
  await session.run('mkdir -m 1777 open; mkdir -m 700 closed; chmod 755 .; cp "$baton" baton; chmod 755 baton');
  const script = 'held=$("$dir/baton" hold -q x) || exit; eval "$held"; "$dir/baton" release x';
  const asOther = `exec setpriv --reuid=64871 --regid=64871 --clear-groups sh -c '${script}'`;
  const { code, stderr } = await session.run(`cd closed; BATON_KEEPER_DIR=$dir/open/keeper ${asOther}`);
  expect([code, stderr]).toEqual([0, ""]);
});
