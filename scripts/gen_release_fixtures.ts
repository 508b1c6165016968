/**
 * Writes what this version of baton stores and prints to test/fixtures/release_VERSION. upgrade_session_test.ts shows
 * that later versions read it. Run it once for each release, with the compiled binary, before the version is raised.
 */
import { execFileSync } from "node:child_process";
import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { readChildNames } from "../src/coordination/nodes/node_requests.ts";
import type { ZooKeeper } from "../src/protocols/zookeeper/zookeeper.ts";
import { BatonSession, type Running } from "../test/support/baton_session.ts";
import { eventually } from "../test/support/eventually.ts";
import { postgresProgram } from "../test/support/pooler.ts";
import { PostgresServer } from "../test/support/postgres_server.ts";
import { sessionZooKeeper, startRole } from "../test/support/session_talker.ts";

const fixtures = join(import.meta.dirname, "../test/fixtures");
const { version } = JSON.parse(readFileSync(join(import.meta.dirname, "../package.json"), "utf8"));
const target = join(fixtures, `release_${version}`);

/** A node as the tests create it again. */
interface WrittenNode {
  readonly path: string;
  readonly isEphemeral: boolean;
  readonly data: string;
}

async function readTree(zk: ZooKeeper, path: string): Promise<WrittenNode[]> {
  const { data, stat: { ephemeralOwner } } = await zk.getData(path);
  const nodes: WrittenNode[] = [{ path, isEphemeral: ephemeralOwner !== 0n, data: new TextDecoder().decode(data) }];
  for (const name of (await readChildNames(zk, path)).toSorted()) nodes.push(...await readTree(zk, `${path}/${name}`));
  return nodes;
}

/** Runs a script in the session, which must exit with one of these codes. */
async function run(session: BatonSession, script: string, codes: readonly number[] = [0]): Promise<void> {
  const { code, stdout, stderr } = await session.run(script);
  if (!codes.includes(code ?? -1)) throw new Error(`${script}: exit ${code}: ${stdout}${stderr}`);
}

async function stop(running: Running, signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
  running.child.kill(signal);
  await running.ended;
}

const runUntil = (file: string, started: string) =>
  `sh -c 'touch ${started}; while ! [ -e ${file} ]; do sleep 0.05; done'`;

/** Leaves nodes of each recipe: histories and results of what has ended, and holders and waiters of what runs. */
async function fillServers(session: BatonSession): Promise<readonly Running[]> {
  await run(session, '"$baton" lock nightly --history -- true && "$baton" lock nightly --history -- sh -c "exit 3"', [
    3,
  ]);
  await run(session, '"$baton" elect echo --value old:1 --history -- true');
  await run(session, '"$baton" lock ticked --tick "0 0 * * *" --timezone UTC --catch-up 1d -- true');
  await run(session, '"$baton" barrier maintenance --set --reason "disk swap"');
  await run(
    session,
    `"$baton" pool papers --items done,failed --done-ttl 3650d --total 2 --history -- sh -c '[ {} = done ]'`,
    [123],
  );
  const jobs = [
    `lock nightly --reason backup -- ${runUntil("end", "lock")}`,
    `lock -s tables -- ${runUntil("end", "shared")}`,
    `lock -N 2 gpu -- ${runUntil("end", "permit")}`,
    `elect echo --value db1:7000 -- ${runUntil("end", "leads")}`,
    `pool papers --items busy --done-ttl 3650d --total 2 -- ${runUntil("end", "works")}`,
  ].map((words) => session.start(`exec "$baton" ${words}`));
  for (const file of ["lock", "shared", "permit", "leads", "works"]) await session.made(file);
  const waiting = ["lock nightly -- true", "elect echo --value db2:7000 -- true", "barrier agents -N 2 -- true"]
    .map((words) => session.start(`exec "$baton" ${words}`));
  const hasWaiter = async (kind: string, name: string) =>
    JSON.parse((await session.run(`"$baton" who --kind ${kind} ${name} --json`)).stdout).waiters.length === 1;
  for (const [kind, name] of [["lock", "nightly"], ["election", "echo"], ["barrier", "agents"]] as const) {
    await eventually(() => hasWaiter(kind, name), { what: `a waiter of ${name}` });
  }
  return [...waiting, ...jobs];
}

/** Three messages in a topic, of which the subscriber has acknowledged the first. */
async function fillTopic(session: BatonSession, topic: string): Promise<void> {
  await run(session, `"$baton" subscribe ${topic} --id alice -w 2s`, [0, 1]);
  await run(session, `for m in one two three; do "$baton" publish ${topic} $m --id bob || exit; done`);
  await run(session, `[ "$("$baton" subscribe ${topic} --id alice -n 1)" = one ]`);
}

/** One message in each state: done, to be retried, dead, in flight, and two of one key that wait. */
async function fillRetryStore(session: BatonSession, store: string): Promise<void> {
  const retry = (words: string) => `"$baton" retry-processor ${words} --name orders --store ${store}`;
  const judge = "read line; case $line in done) exit 0;; later) exit 75;; *) exit 65;; esac";
  const migrate = store.startsWith("postgres:") ? "--migrate" : "";
  await run(session, `printf 'done\\nlater\\nbad\\n' | ${retry("submit")} ${migrate} --lines -- sh -c '${judge}'`);
  await run(session, `${retry("run --once --dead-letter file:/nowhere/letters.jsonl")}`, [0, 69]);
  await run(
    session,
    `rm -f flies; printf flying | ${retry("submit")} -- sh -c 'touch flies; while ! [ -e end ]; do sleep 0.1; done'`,
  );
  const processor = session.start(`exec ${retry("run")}`);
  await session.made("flies");
  await stop(processor, "SIGKILL");
  await run(
    session,
    `for m in a1 a2; do printf $m | ${retry("submit --key a")} -- true || exit; done; ${retry("pause")}`,
  );
}

/** Fills the tables of topics and of retries, which share a schema, and dumps them. */
async function writeDatabase(session: BatonSession): Promise<void> {
  await using server = await PostgresServer.start();
  const serving = await startRole(session, `server --id s1 --migrate --store ${server.url}`);
  const proxy = await startRole(session, "proxy");
  await fillTopic(session, "parcels");
  for (const role of [proxy, serving]) await stop(role);
  await fillRetryStore(session, server.url);
  const words = ["--inserts", "--no-owner", "--schema=baton", "-h", server.folder, "-p", `${server.port}`];
  const dump = execFileSync(postgresProgram("pg_dump"), [...words, "-U", "baton", "postgres"], { encoding: "utf8" });
  // Another release of PostgreSQL would not know all settings.
  const noise = /^(--|\\|SET (transaction|idle_session)_timeout|$)/;
  writeFileSync(join(target, "database.sql"), dump.split("\n").filter((line) => !noise.test(line)).join("\n") + "\n");
}

async function writeNodes(session: BatonSession): Promise<void> {
  const zk = await sessionZooKeeper(session);
  const lines = (await readTree(zk, "/baton")).map((node) => JSON.stringify(node));
  await zk.close();
  writeFileSync(join(target, "nodes.jsonl"), `${lines.join("\n")}\n`);
}

async function writeFolders(session: BatonSession): Promise<void> {
  const keeper = session.keeperPid() ?? 0;
  process.kill(keeper, "SIGTERM");
  await eventually(() => !existsSync(`/proc/${keeper}`), { what: "the end of the keeper", withinMs: 15_000 });
  mkdirSync(join(target, "keeper"));
  copyFileSync(join(session.keeperFolder, "keeper.sqlite"), join(target, "keeper/keeper.sqlite"));
  for (const name of ["topics", "client-states", "retry"]) {
    cpSync(session.path(name), join(target, name), { recursive: true });
  }
}

function writeOutput(): void {
  const lines = readdirSync(join(fixtures, "json")).toSorted().map((file) =>
    JSON.stringify([file, JSON.parse(readFileSync(join(fixtures, "json", file), "utf8"))])
  );
  writeFileSync(join(target, "json_output.jsonl"), `${lines.join("\n")}\n`);
}

if (existsSync(join(target, "keeper"))) throw new Error(`${target} exists: what a release wrote never changes`);
mkdirSync(target, { recursive: true });
writeOutput();
await using session = new BatonSession({ BATON_SERVERS: "embedded" });
const jobs = await fillServers(session);
const service = await startRole(session, 'serve --data-dir "$dir/topics"');
await fillTopic(session, "orders");
await writeNodes(session);
await stop(service);
for (const job of jobs) await stop(job);
await fillRetryStore(session, "$dir/retry");
await writeDatabase(session);
await writeFolders(session);
