/**
 * Every command of the table whose stdout is full or closed: the results are lost, which is exit code 74 and never
 * success.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { commandLoaders } from "../../../commands/products.ts";
import { BatonSession, type Ended, type Running, untilMade } from "../../support/baton_session.ts";
import { HttpBackend } from "../../support/http_backend.ts";

setDefaultTimeout(120_000);

const onStore = (...lines: readonly string[]) => lines.map((words) => `retry-processor ${words} --store store`);

// The lines that print results on stdout. Where there are none, the command prints on stderr, or its program prints.
const printing: Readonly<Record<string, readonly string[]>> = {
  lock: [],
  hold: ["hold NEW --pid $$"],
  release: [],
  elect: [],
  leader: ["leader e", "leader e --json", "leader e -w 1s"],
  forward: [],
  resign: [],
  barrier: ["barrier g --set --json", "barrier g --lift --json"],
  pool: ["pool status p", "pool status p --json"],
  who: ["who held", "who held --json", "who -l held"],
  ls: ["ls", "ls --json", "ls -l"],
  explain: ["explain l", "explain l --json"],
  history: ["history l", "history l --json"],
  cron: ["cron check jobs.cron --json", "cron next jobs.cron", "cron next jobs.cron --json"],
  break: [],
  metrics: ["metrics"],
  ui: [],
  check: [],
  doctor: ["doctor --json"],
  fence: [],
  publish: ["publish news x --json"],
  subscribe: [],
  "pubsub serve": [],
  "pubsub server": ["pubsub server ls", "pubsub server ls --topics", "pubsub server ls --json"],
  "pubsub topic": [
    "pubsub topic ls",
    "pubsub topic ls --json",
    "pubsub topic show news",
    "pubsub topic show news --json",
  ],
  "pubsub proxy": [],
  "pubsub client": [
    ...["pending news", "pending news --json", "topics", "topics --json", "info news", "info news --json"],
    ...["peek news", "peek news --json", "get news --ack manual", "put news jobs.cron --json"],
  ].map((words) => `pubsub client alice ${words}`),
  "pubsub keygen": ["pubsub keygen NEW --json"],
  "retry-processor call": [],
  "retry-processor submit": onStore("submit jobs.cron", "submit jobs.cron --json", "submit --lines jobs.cron --json"),
  "retry-processor run": [],
  "retry-processor serve": [],
  "retry-processor ls": onStore("ls", "ls --json"),
  "retry-processor show": onStore("show 1", "show 1 --json", "show 1 --body"),
  "retry-processor retry": onStore("retry 2 --json"),
  "retry-processor cancel": onStore("cancel 3 --json"),
  "retry-processor pause": onStore("pause --json"),
  "retry-processor resume": onStore("resume --json"),
  "retry-processor dlq": onStore("dlq ls", "dlq ls --json", "dlq show 1", "dlq export"),
  "retry-processor stats": onStore("stats", "stats --json"),
  "retry-processor verify": onStore("verify", "verify --json"),
  "retry-processor explain": ["retry-processor explain", "retry-processor explain --json"],
  keeper: ["keeper verify", "keeper verify --json"],
  completion: ["completion bash", "completion zsh", "completion fish"],
  config: ["config show", "config show --json", "config check --json"],
  version: ["version", "version --json", "--version"],
  help: ["help", "help lock", "help connection", "-h", "--help"],
};

/** They print until they are stopped. */
const endless = [
  ...["ui --listen 127.0.0.1:0", "who held --watch", "who held --watch --json", "ls --watch", "ls --watch --json"],
  ...["leader e --watch", "subscribe news --id alice", "subscribe news --id alice --json"],
  "pubsub client alice get news --follow",
];

const setUp = `
"$baton" lock -q l --history -- true
"$baton" pool -q p --items a --done-ttl 1d -- true
until "$baton" pubsub client alice subscribe news --timeout 1s; do :; done
for n in 1 2 3; do "$baton" publish news $n; done
echo x | "$baton" retry-processor call -q --store store --max-retries 0 -- false
for n in 2 3; do echo x | "$baton" retry-processor submit -q --store store; done
${untilMade("held")}; ${untilMade("led")}
`;

let session: BatonSession;
let services: readonly Running[];
beforeAll(async () => {
  session = new BatonSession();
  writeFileSync(session.path("jobs.cron"), "#baton name=job\n* * * * * true\n");
  services = [
    'exec "$baton" pubsub serve -q',
    `exec "$baton" lock -q held -- sh -c 'touch held; ${untilMade("over")}'`,
    `exec "$baton" elect -q e --value v -- sh -c 'touch led; ${untilMade("over")}'`,
  ].map((script) => session.start(script));
  expect(await session.run(setUp)).toMatchObject({ code: 0 });
});
afterAll(async () => {
  await session.run("touch over");
  for (const { child } of services) child.kill("SIGTERM");
  await Promise.all(services.map(({ ended }) => ended));
  await session[Symbol.asyncDispose]();
});

let made = 0;

/** Runs the line with its stdout, and without input. */
async function run(words: string, stdout: string): Promise<Ended> {
  return await session.run(`"$baton" ${words.replace("NEW", `new-${++made}`)} <&- ${stdout}`);
}

async function expectLost(words: string): Promise<void> {
  for (
    const [stdout, why] of [[">/dev/full", "no space left on device"], [
      ">&-",
      "stdout was closed|it was closed when",
    ]] as const
  ) {
    const { code, stderr } = await run(words, stdout);
    const says = expect.stringMatching(new RegExp(`baton: Cannot (write to stdout|print the variables).*(${why})`));
    expect([words, stdout, code, stderr]).toEqual([words, stdout, 74, says]);
  }
}

test("the table has all commands", () => {
  expect(Object.keys(printing).sort()).toEqual(Object.keys(commandLoaders).sort());
});

test.each(Object.entries(printing))("results of %s", async (_command, lines) => {
  for (const words of lines) {
    const printed = await run(words, "");
    expect([words, printed.code, printed.stdout.length > 0]).toEqual([words, 0, true]);
    await expectLost(words);
  }
});

test.each(endless)("results without end: %s", async (words) => {
  await expectLost(words);
});

test("the help of every command", async () => {
  for (const command of Object.keys(commandLoaders)) {
    expect([command, (await run(`${command} --help`, ">&-")).code]).toEqual([command, 74]);
  }
});

test("a lock whose variables cannot be printed is released", async () => {
  await expectLost("hold full --pid $$");
  expect((await session.run('"$baton" who -q full')).code).toBe(1);
});

test("a script that exports dead letters before it drops them drops none that are lost", async () => {
  for (const stdout of [">&-", ">/dev/full"]) {
    const ended = await session.run(
      `"$baton" retry-processor dlq export --store store ${stdout} && "$baton" retry-processor dlq purge --all --store store`,
    );
    expect(ended.code).toBe(74);
  }
  expect(JSON.parse((await run("retry-processor dlq ls --json --store store", "")).stdout).messages).toHaveLength(1);
});

test("a response that cannot be printed is no success; a request that failed is stored as usual", async () => {
  let status = 200;
  await using backend = await new HttpBackend((_, response) => void response.writeHead(status).end("response")).up();
  for (const stdout of [">/dev/full", ">&-"]) {
    const call = async () =>
      (await session.run(`"$baton" retry-processor call -q --store calls --no-stdin --url ${backend.url}/ ${stdout}`))
        .code;
    status = 200;
    expect([stdout, await call()]).toEqual([stdout, 74]);
    status = 404;
    expect([stdout, await call()]).toEqual([stdout, 65]);
    status = 503;
    expect([stdout, await call()]).toEqual([stdout, 75]);
  }
  const { messages } = JSON.parse((await run("retry-processor ls --json --store calls", "")).stdout);
  expect(messages).toHaveLength(4);
  status = 200;
  const unread = await session.run(
    `rm -f gate; mkfifo gate; { read -r _ <gate; ` +
      `"$baton" retry-processor call --store calls --no-stdin --url ${backend.url}/; ` +
      "echo $? >code; } | { exec <&-; echo go >gate; }",
  );
  expect([unread.stderr, session.read("code")]).toEqual(["", "141\n"]);
});

test("a status report that cannot be written is no success; a failure keeps its code", async () => {
  const ended = await session.run('"$baton" lock -q s --status-file /dev/full -- true');
  expect([ended.code, ended.stderr]).toEqual([
    74,
    expect.stringContaining("Cannot write --status-file /dev/full: no space left on device"),
  ]);
  expect((await session.run('"$baton" lock -q s --status-fd 3 3>/dev/full -- true')).code).toBe(74);
  expect((await session.run('"$baton" lock -q s --status-file /dev/full -- sh -c "exit 3"')).code).toBe(3);
  expect((await session.run('"$baton" lock -q held -n --skip --status-file /dev/full -- true')).code).toBe(74);
});

test("a closed descriptor is no place for a status report, and nothing is run", async () => {
  for (const [fd, closed] of [[0, "<&-"], [1, ">&-"], [3, ""]] as const) {
    const ended = await session.run(`"$baton" lock -q s --status-fd ${fd} -- touch ran-${fd} ${closed}`);
    expect([ended.code, ended.stderr]).toEqual([64, expect.stringContaining(`descriptor ${fd} is not open`)]);
  }
  expect((await session.run('"$baton" lock -q s --status-fd 2 -- touch ran-2 2>&-; echo $?; ls ran-*')).stdout).toBe(
    "64\n",
  );
});

test("a descriptor that is open for reading only is no output", async () => {
  for (const stdout of ["1</dev/null", "1<jobs.cron", "1<&0"]) {
    const { code, stderr } = await session.run(`echo x | "$baton" version ${stdout}`);
    expect([stdout, code, stderr]).toEqual([stdout, 74, expect.stringContaining("bad file descriptor")]);
  }
});

test("messages and results are printed when no further file can be opened", async () => {
  // The guard takes 12 descriptors; the first of these jobs need the others.
  const items = Array.from({ length: 20 }, (_, index) => index).join(",");
  const ended = await session.run(`ulimit -n 24; exec "$baton" pool many --items ${items} -j 20 -- sh -c "sleep 0.2"`);
  expect([ended.code, ended.stderr]).toEqual([
    125,
    expect.stringMatching(/item "\d+": .*the limit of open files is reached/),
  ]);
});

test("a stderr that is full or closed changes no exit code", async () => {
  for (const stderr of ["2>/dev/full", "2>&-"]) {
    expect((await session.run(`"$baton" lock -v s -- true ${stderr}`)).code).toBe(0);
    expect((await session.run(`"$baton" who none ${stderr}`)).code).toBe(1);
  }
});
