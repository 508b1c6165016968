/**
 * Every exit code that docs/retry_semantics.md gives to a command is reached, by the binary, and no other code is
 * promised.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { DatabaseSync } from "node:sqlite";
import { sqliteRetryTables } from "../../../src/retry/queue/sqlite/retry_tables.ts";
import { BatonSession, type Running } from "../../support/baton_session.ts";
import { isFullDose } from "../../support/dose.ts";
import { documentedExitCodes } from "../../support/documented_codes.ts";
import { eventually } from "../../support/eventually.ts";
import { HttpBackend } from "../../support/http_backend.ts";

setDefaultTimeout(120_000);

const documented = ["`call`", "`submit`", "`run`", "`serve`", "an operator's command"] as const;
type Role = (typeof documented)[number];
/** How the line above each role's list of codes begins. */
const headings: Readonly<Record<Role, RegExp>> = {
  "`call`": /^`call` \(.*/,
  "`submit`": /^`submit`/,
  "`run`": /^`run` \(`serve` has only 77 of these\)/,
  "`serve`": /^`run` \(`serve` has only 77 of these\)/,
  "an operator's command": /^Operator commands .*/,
};

/** Reached so far. */
const reached = new Map<Role, Set<number>>(documented.map((role) => [role, new Set()]));

/**
 * Takes longer than a gate has, needs to be root, a disk that fails
 * (test/retry/fault/retry_storage_fault_test.ts), or a broker that refuses (test/retry/cli/retry_kafka_test.ts).
 */
const slow: readonly (readonly [Role, number])[] = [
  ["`submit`", 75],
  ["an operator's command", 75],
  ["`call`", 76],
  ["`call`", 83],
  ["`run`", 83],
  ["`run`", 77],
  ["`serve`", 77],
];

let session: BatonSession;
beforeAll(async () => {
  session = new BatonSession({ BATON_RETRY_STORE: "store" });
  await session.run('for s in store newer; do echo x | "$baton" retry-processor submit --store $s; done');
  spoilt("newer", "PRAGMA user_version = 99");
});
afterAll(() => session[Symbol.asyncDispose]());

async function expectCodes(role: Role, codes: readonly (readonly [number, string])[], own = session): Promise<void> {
  for (const [code, script] of codes) {
    const ended = await own.run(script.replaceAll("@retry", '"$baton" retry-processor'));
    expect([script, ended.code, ended.stderr]).toEqual([script, code, expect.anything()]);
    reached.get(role)?.add(code);
  }
}

async function started(words: string, says: RegExp): Promise<Running> {
  const running = session.start(`exec "$baton" retry-processor ${words}`);
  await eventually(() => says.test(running.stderr()), { what: words, withinMs: 30_000 });
  return running;
}

async function told(role: Role, running: Running): Promise<void> {
  running.child.kill("SIGTERM");
  expect((await running.ended).code).toBe(0);
  reached.get(role)?.add(0);
}

/** A store that another version, and one that something else has written into. */
function spoilt(name: string, sql: string): void {
  const database = new DatabaseSync(session.path(`${name}/messages.sqlite`));
  database.exec(sql);
  database.close();
}

test("of call", async () => {
  const call = "@retry call --store calls --no-stdin";
  await expectCodes("`call`", [
    [0, `${call} -- true`],
    [75, `${call} -- false`],
    [64, "@retry call"],
    [65, "echo 12345 | @retry call --store calls --max-body 3B -- true"],
    [74, "@retry call --store calls -- true <&-"],
    [85, `${call} --max-messages 1 -- false`],
    [78, "@retry call --no-stdin --store newer -- true"],
    [69, "@retry call --no-stdin --store /dev/null/x --url http://127.0.0.1:1/"],
  ]);
  await using backend = await new HttpBackend(({ url }, response) => {
    response.writeHead(Number(url.slice(1))).end();
  }).up();
  await expectCodes("`call`", [[65, `${call} --url ${backend.url}/404`], [77, `${call} --url ${backend.url}/403`]]);
  // The command's own.
  for (const code of [9, 77]) {
    const words = code === 9 ? "--store /dev/null/x" : "--store calls";
    expect((await session.run(`"$baton" retry-processor call --no-stdin ${words} -- sh -c 'exit ${code}'`)).code).toBe(
      code,
    );
  }
});

test("of submit", async () => {
  await expectCodes("`submit`", [
    [0, "echo x | @retry submit"],
    [64, "@retry submit a b"],
    [65, "echo 12345 | @retry submit --max-body 3B"],
    [73, "echo x | @retry submit --store /dev/null/x"],
    [74, "@retry submit ./nothing"],
    [78, "echo x | @retry submit --store newer"],
    [85, "echo x | @retry submit --max-messages 1"],
  ]);
});

test("of run and serve", async () => {
  // One of its own for each: what was in flight when the first one failed waits for its lease.
  for (const word of ["run", "serve"]) {
    for (const name of [`tampered.${word}`, `damaged.${word}`]) {
      await session.run(`echo x | "$baton" retry-processor submit --store ${name}`);
    }
    // With a checksum that matches: no disk did this.
    const head = '{"kind":"http"}';
    const sum = sqliteRetryTables.bodies.checksumOfRow({ seq: 1, head, body: new TextEncoder().encode("x\n") });
    spoilt(`tampered.${word}`, `UPDATE bodies SET head = '${head}', sum = ${sum}`);
    spoilt(`damaged.${word}`, "UPDATE store SET paused = 1");
  }
  const url = "--url http://127.0.0.1:1/";
  const both: [number, string][] = [
    [64, "--rate fast"],
    [70, "--store tampered."],
    [73, "--store /dev/null/x"],
    [73, "--metrics-listen unix:/nowhere/socket"],
    [74, "--store damaged."],
    [78, "--store newer"],
  ];
  await told("`run`", await started("run --exec true", /tries the messages/));
  await told("`serve`", await started(`serve ${url}`, /serves http/));
  for (const word of ["run", "serve"] as const) {
    const codes = both.map(([code, words]) =>
      [code, `@retry ${word} ${url} ${words.replace(/\.$/, `.${word}`)}`] as const
    );
    await expectCodes(`\`${word}\``, codes);
  }
  await session.run(
    '"$baton" retry-processor call --store letters --dead-letter "exec:exit 1" --no-stdin -- sh -c "exit 64"',
  );
  await expectCodes("`run`", [
    [69, "@retry run --store letters --once --max-retries 0 --dead-letter 'exec:exit 1'"],
    [126, "@retry run --exec /etc/passwd"],
    [127, "@retry run --exec ./mistyped"],
    // Its file is none to be run any more once it reads its configuration: nobody can start it a second time, as a
    // guard.
    [
      125,
      `echo x | @retry submit; cp "$baton" b; mkfifo conf; ./b retry-processor run --exec true --config conf &
       exec 3>conf; chmod -x b; exec 3>&-; wait $!`,
    ],
  ]);
});

test("of an operator's command", async () => {
  await session.run(`echo x | "$baton" retry-processor submit --store broken`);
  spoilt("broken", "DELETE FROM bodies");
  await expectCodes("an operator's command", [
    [0, "@retry ls"],
    [1, "@retry show 999"],
    [1, "@retry dlq redrive 999"],
    [64, "@retry dlq redrive"],
    [74, "@retry verify --store broken"],
    [78, "@retry stats --store nowhere"],
  ]);
});

test.skipIf(!isFullDose)("of a store that another process keeps for longer than anybody waits", async () => {
  const database = new DatabaseSync(session.path("store/messages.sqlite"));
  try {
    database.exec("BEGIN IMMEDIATE");
    await Promise.all([
      expectCodes("`submit`", [[75, "echo x | @retry submit"]]),
      expectCodes("an operator's command", [[75, "@retry pause"]]),
    ]);
  } finally {
    database.close();
  }
});

const needsRoot = test.skipIf(!isFullDose || process.getuid?.() !== 0);

needsRoot("of a command that cannot be killed, where there are several users", async () => {
  // Another user's process; root without the right to kill others leaves it alone.
  const line = (name: string) => `setpriv --reuid 65534 --clear-groups sleep 60 >log 2>&1 & echo $! >${name}; wait`;
  const powerless = "exec setpriv --bounding-set=-kill --inh-caps=-kill";
  const quick = "--attempt-timeout 500ms --kill-after 200ms";
  await session.run(`echo x | "$baton" retry-processor submit --store unkillable`);
  await Promise.all([
    expectCodes("`run`", [[
      83,
      `${powerless} @retry run --store unkillable --lease 2s ${quick} --exec '${line("one")}'`,
    ]]),
    expectCodes("`call`", [[83, `${powerless} @retry call --no-stdin ${quick} -- sh -c '${line("two")}'`]]),
  ]);
  for (const name of ["one", "two"]) {
    const pid = Number(await session.said(name));
    expect(statSync(`/proc/${pid}`).uid).toBe(65534);
    process.kill(pid, "SIGKILL");
  }
});

test("the documentation promises what was reached, and nothing else", () => {
  const page = readFileSync(join(import.meta.dir, "../../../docs/retry_semantics.md"), "utf8");
  const [, shared = ""] = /^All commands: (.*?) Other codes/ms.exec(page) ?? [];
  const common = [...shared.matchAll(/\b\d+\b/g)].map(Number);
  expect(common).toContain(64);
  for (const role of documented) {
    // The list of `run` says which of its codes `serve` has.
    const own = role === "`serve`" ? [77] : documentedExitCodes(page, headings[role]);
    const isSlow = (code: number) => slow.some(([of, number]) => of === role && number === code);
    const found = [...reached.get(role) ?? []].sort((a, b) => a - b);
    expect([role, found.filter((code) => !own.includes(code) && !common.includes(code))]).toEqual([role, []]);
    expect([role, own.filter((code) => !isSlow(code) && !found.includes(code))]).toEqual([role, []]);
    expect(own).not.toEqual([]);
  }
});
