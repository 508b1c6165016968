/**
 * What a command sees of the process that has started baton: the same as without baton, whatever starts it. Rows of
 * src/base/process/spawn/shell_start.ts.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import process from "node:process";
import { BatonSession, type Running } from "../../support/baton_session.ts";
import { leaveTick } from "../../support/left_tick.ts";

setDefaultTimeout(60_000);

/** Starts a program in a state that no process has by default. */
const start = `import os, resource, signal, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (300, min(4000, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
resource.setrlimit(resource.RLIMIT_CORE, (0, 4096))
resource.setrlimit(resource.RLIMIT_STACK, (4 << 20, 64 << 20))
os.umask(0o027)
os.nice(3)
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
open("/proc/self/oom_score_adj", "w").write("9")
open("/proc/self/timerslack_ns", "w").write("60000")
for number in (signal.SIGPIPE, signal.SIGXFSZ): signal.signal(number, signal.SIG_DFL)
for name in sys.argv[1].split(","):
    if name: signal.signal(getattr(signal, name), signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
os.execvp(sys.argv[2], sys.argv[2:])
`;

/** Writes what it sees into the file that it is given. */
const probe = `#!/bin/sh
for fd in /proc/$$/fd/*; do descriptors="$descriptors \${fd##*/}"; done
{
  echo "soft limit of open files: $(ulimit -Sn)"
  echo "hard limit of open files: $(ulimit -Hn)"
  echo "core dumps: $(ulimit -Sc) $(ulimit -Hc)"
  echo "stack: $(ulimit -Ss) $(ulimit -Hs)"
  echo "umask: $(umask)"
  echo "niceness: $(cut -d ' ' -f 19 /proc/self/stat)"
  echo "processors: $(grep ^Cpus_allowed: /proc/self/status)"
  echo "out-of-memory score: $(cat /proc/self/oom_score_adj)"
  echo "timer slack: $(cat /proc/self/timerslack_ns)"
  echo "personality: $(cat /proc/self/personality)"
  echo "core dump filter: $(cat /proc/self/coredump_filter)"
  echo "huge pages: $(grep ^THP /proc/self/status)"
  echo "new privileges: $(grep -E '^(NoNewPrivs|Seccomp|CapEff):' /proc/self/status | tr -s '\\n\\t' '  ')"
  echo "blocked signals: $(grep ^SigBlk: /proc/self/status)"
  echo "ignored signals: $(grep ^SigIgn: /proc/self/status)"
  echo "non-blocking output: $(awk '/^flags:/ { print int($2 / 4000) % 2 }' /proc/$$/fdinfo/1 /proc/$$/fdinfo/2 | tr '\\n' ' ')"
  echo "working directory: $(pwd -P)"
  echo "descriptors:$descriptors"
  echo "variables: $(tr '\\0' '\\n' </proc/$$/environ | grep -Ev '^(BATON_|TRACE)' | sort | tr '\\n' ' ')"
} >"$1.new" 2>&1
mv "$1.new" "$1"
`;

const ignored = "SIGINT,SIGQUIT,SIGUSR1,SIGTSTP,SIGTTIN,SIGTTOU,SIGALRM,SIGCHLD";

const inState = `python3 start.py ${ignored}`;

const rows = [...probe.matchAll(/^ {2}echo "([^:]+):/gm)].map(([, row = ""]) => row);

/** How each starter is called, to run \`./probe FILE\`. */
const starters: Readonly<Record<string, (file: string) => string>> = {
  "lock": (file) => `@baton lock -q l -- ./probe ${file}`,
  "elect": (file) => `@baton elect -q e -- ./probe ${file}`,
  "elect --on-elected": (file) => `@baton elect -q e --on-elected 'exec ./probe ${file}' -- true`,
  "elect --health": (file) =>
    `@baton elect -q e --health 'test -e ${file} || exec ./probe ${file}' --health-interval 50ms -- sh -c 'until test -e ${file}; do sleep 0.02; done'`,
  "barrier": (file) => `@baton barrier -q b -N 1 -- ./probe ${file}`,
  "pool": (file) => `@baton pool -q p --items ${file} -- ./probe`,
  "pool with many jobs": (file) => `@baton pool -q p --items ${file} -j 200 -- ./probe`,
  "pool --query": (file) => `@baton pool -q p --query 'exec ./probe ${file}' -- true`,
  "fence run": (file) => `@baton fence run --store tokens --token 1 ./probe ${file}`,
  "retry-processor call": (file) => `@baton retry-processor call -q --store s --no-stdin -- ./probe ${file}`,
  "retry-processor run": (file) =>
    `"$baton" retry-processor submit -q --store s -- ./probe ${file} </dev/null && @baton retry-processor run --store s --until-empty`,
  "subscribe --exec": (file) =>
    `"$baton" publish -q t ${file} && @baton subscribe -q t --until-empty --exec './probe ${file}'`,
  "cron": (file) =>
    `@baton cron "$dir/probe.cron" --splay 0 & until test -e ${file}; do sleep 0.05; done; kill -TERM $!; wait`,
};

let session: BatonSession;
let service: Running;
/** Each file has a line for each row. */
const seen = new Map<string, string[]>();

beforeAll(async () => {
  session = new BatonSession({ BATON_SERVERS: "embedded", TZ: "UTC" });
  writeFileSync(session.path("start.py"), start);
  writeFileSync(session.path("probe"), probe);
  chmodSync(session.path("probe"), 0o755);
  service = session.start('exec "$baton" pubsub serve -q');
  await session.run('until "$baton" subscribe -q t --until-empty; do sleep 0.1; done');
  await leaveTick(session, "cron");
  writeFileSync(
    session.path("probe.cron"),
    `#baton name=cron catch-up=1h retry=1 retry-delay=0\n* * * * * cd ${session.folder}; exec ./probe of-cron\n`,
  );
  await see("without", (file) => `@ ./probe ${file}`);
  for (const [name, call] of Object.entries(starters)) await see(name, call);
}, 120_000);
afterAll(async () => {
  service.child.kill("SIGTERM");
  await service.ended;
  await session[Symbol.asyncDispose]();
});

async function see(name: string, call: (file: string) => string): Promise<void> {
  const file = `of-${name.replaceAll(/[^a-z]+/g, "-")}`;
  const ended = await session.run(
    call(file).replaceAll(/@(baton)?/g, (_, word) => `${inState} ${word ? '"$baton"' : ""}`),
  );
  try {
    seen.set(name, readFileSync(session.path(file), "utf8").split("\n"));
  } catch {
    throw new Error(`${name} has not run its command: ${JSON.stringify(ended)}`);
  }
}

describe.each(Object.keys(starters))("a command of baton %s has the same", (name) => {
  test.each(rows)("%s", (row) => {
    const of = (starter: string) => seen.get(starter)?.find((line) => line.startsWith(`${row}:`));
    expect(of("without")).toBeDefined();
    // The command of fence run holds the store by a descriptor. Jobs of cron have the variables that crontab(5)
    // describes.
    if (`${name} ${row}` === "fence run descriptors" || `${name} ${row}` === "cron variables") return;
    expect(of(name)).toBe(of("without"));
  });
});

test("a command ignores neither the signal with which baton stops it, nor SIGPIPE", async () => {
  const call =
    `exec python3 start.py SIGINT,SIGTERM,SIGPIPE "$baton" lock -q l --signal INT -- grep SigIgn /proc/self/status`;
  expect((await session.run(call)).stdout).toBe("SigIgn:\t0000000000004000\n");
});

describe.each([
  "lock -q l",
  "elect -q e",
  "barrier -q b -N 1",
  "pool -q p --items a",
  "fence run --store tokens --token 1",
])(
  "a command of baton %s",
  (starter) => {
    test.each([["stdin", 0, "<&-"], ["stdout", 1, ">&-"], ["stderr", 2, "2>&-"]])(
      "has a closed %s if baton has",
      async (_, fd, closed) => {
        if (fd === 0 && starter.startsWith("pool")) return; // /dev/null, because its jobs share stdin
        const report = `for fd in 0 1 2; do if [ -e /proc/$$/fd/$fd ]; then echo $fd >&7; fi; done`;
        const ended = await session.run(`"$baton" ${starter} -- sh -c '${report}' ${closed} 7>open; cat open`);
        expect(ended.stdout).toBe([0, 1, 2].filter((other) => other !== fd).map((other) => `${other}\n`).join(""));
      },
    );
  },
);

test("a program that writes to a closed stdout fails under baton as without it", async () => {
  expect((await session.run('"$baton" lock -q l -- cat start.py >&-')).code).toBe(1);
});

test("hooks of a baton whose stderr is closed run", async () => {
  const hooks = "--on-elected 'echo x; touch elected' --on-deposed 'touch deposed'";
  expect((await session.run(`"$baton" elect -q e ${hooks} -- true <&- >&- 2>&-; ls elected deposed`)).code).toBe(0);
});

test.each([
  ["fence run", '@baton fence run --store tokens --token 1 -- sh -c "exit 7"', 7],
  ["subscribe --exec", `"$baton" publish -q t x && @baton subscribe -q t --until-empty --exec 'cat >got'`, 0],
  ["pool status --query", "@baton pool status p --query 'echo a'", 0],
])("%s knows how its command has ended when SIGCHLD was ignored", async (_, call, code) => {
  const ended = await session.run(call.replace("@baton", 'python3 start.py SIGCHLD "$baton"'));
  expect(ended).toMatchObject({ code, stderr: "" });
});

test("descriptors above the limit of open files are passed on, and the command has the limit", async () => {
  const call =
    `exec bash -c 'exec 150</dev/null; ulimit -Sn 60; exec "$baton" lock -q l -- sh -c "ulimit -Sn; test -e /proc/self/fd/150 && echo open"'`;
  expect(await session.run(call)).toMatchObject({ code: 0, stdout: "60\nopen\n" });
});

test("commands that are started at the same time above the limit of open files have the limit, too", async () => {
  const call =
    `exec bash -c 'exec 150</dev/null; ulimit -Sn 60; exec "$baton" pool -q p -j 4 --items 1,2,3,4 -- sh -c "ulimit -Sn"'`;
  expect(await session.run(call)).toMatchObject({ code: 0, stdout: "60\n60\n60\n60\n" });
});

test("a keeper that a command has started may open as many files as the hard limit allows", () => {
  const limits = readFileSync(`/proc/${session.keeperPid()}/limits`, "utf8");
  const [, soft, hard] = /^Max open files\s+(\d+)\s+(\d+)/m.exec(limits) ?? [];
  expect(Number(soft)).toBe(Math.min(Number(hard), 1 << 20));
  expect(process.platform).toBe("linux");
});
