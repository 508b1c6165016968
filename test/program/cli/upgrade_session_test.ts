/** What release 0.1.0 has written is read by this version, or refused in words. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { allJsonShapes } from "../../../scripts/docs/json_shapes.ts";
import type { BatonSession, Running } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { PostgresServer } from "../../support/postgres_server.ts";
import {
  createReleaseHolders,
  readReleaseFile,
  readReleaseLines,
  releaseSession,
} from "../../support/release_fixture.ts";
import { runsNightly } from "../../support/tier.ts";
import { sessionZooKeeper, startRole } from "../../support/session_talker.ts";

setDefaultTimeout(60_000);

async function json(session: BatonSession, words: string) {
  const { code, stdout, stderr } = await session.run(`"$baton" ${words} --json`);
  if (stdout === "") throw new Error(`${words}: exit ${code}: ${stderr}`);
  return JSON.parse(stdout);
}

async function stop(role: Running): Promise<void> {
  role.child.kill("SIGTERM");
  await role.ended;
}

const output = async (session: BatonSession, words: string) => (await session.run(`"$baton" ${words}`)).stdout;

test("a keeper continues with the data: histories, gates, results of pools, and larger fencing tokens", async () => {
  await using session = releaseSession();
  const { records, counters } = await json(session, "history nightly");
  expect(records.map(({ result }: { result: string }) => result)).toEqual(["done", "failed"]);
  expect(counters.results).toMatchObject({ done: 1, failed: 1 });
  expect((await json(session, "history --kind election echo")).records).toMatchObject([{ result: "done" }]);
  expect((await json(session, "history ticked")).records).toMatchObject([{ result: "done", attempt: 1 }]);
  expect((await json(session, "who --kind gate maintenance")).holders).toMatchObject([{ reason: "disk swap" }]);
  expect((await session.run('"$baton" pool papers --items done --done-ttl 3650d --total 2 -- touch again')).code).toBe(
    0,
  );
  expect((await session.run("[ -e again ]")).code).toBe(1);
  const before = BigInt(records[1].fencing_token ?? records[1].token);
  const after = await output(session, `lock nightly -- sh -c 'echo "$BATON_FENCING_TOKEN"'`);
  expect(BigInt(after.trim())).toBeGreaterThan(before);
});

test("topics, subscribers and publishers continue: each message once, none twice", async () => {
  await using session = releaseSession();
  const server = await startRole(session, 'server --id local --data-dir "$dir/topics" --moved');
  const proxy = await startRole(session, "proxy");
  expect((await session.run('"$baton" publish orders four --id bob')).code).toBe(0);
  expect(await output(session, "subscribe orders --id alice -n 3")).toBe("two\nthree\nfour\n");
  for (const role of [proxy, server]) await stop(role);
  expect(await json(session, 'pubsub server verify --data-dir "$dir/topics"')).toMatchObject({
    messages: 3,
    problems: [],
  });
});

test("holders and waiters of the release, and those of this version, share the locks", async () => {
  await using session = releaseSession();
  await session.run('"$baton" who nightly'); // starts the keeper
  const zk = await sessionZooKeeper(session);
  await createReleaseHolders(zk, "/baton/locks");
  await createReleaseHolders(zk, "/baton/elections");
  await createReleaseHolders(zk, "/baton/barriers");
  expect(await json(session, "who nightly")).toMatchObject({
    holders: [{ reason: "backup", mode: "exclusive" }],
    waiters: [{ place: 1 }],
  });
  expect(await session.run('"$baton" lock -n nightly -- true')).toMatchObject({
    code: 75,
    stderr: expect.stringContaining("backup"),
  });
  expect((await session.run('"$baton" lock -n tables -- true')).code).toBe(75);
  expect((await session.run('"$baton" lock -ns tables -- true')).code).toBe(0);
  expect((await session.run('"$baton" lock -n -N 3 gpu -- true')).code).toBe(78);
  expect(await output(session, `lock -n -N 2 gpu -- sh -c 'echo "$BATON_LOCK_SLOT"'`)).toBe("1\n");
  expect(await json(session, "leader echo")).toMatchObject({ leader: { value: "db1:7000", index: 2 } });
  expect(await json(session, "who --kind barrier agents")).toMatchObject({ holders: [{ command: "true" }] });
  expect((await session.run('"$baton" pool papers --items busy --done-ttl 3650d --total 2 -- true')).code).toBe(75);

  const waiting = session.start('exec "$baton" lock nightly -- true');
  await eventually(async () => (await json(session, "who nightly")).waiters.length === 2);
  const holders = "/baton/locks/nightly/h";
  const [older = "", newer = ""] = readReleaseLines<{ path: string; data: string }>("nodes.jsonl")
    .filter(({ path }) => path.startsWith(`${holders}/`))
    .toSorted((left, right) => JSON.parse(left.data).sinceMs - JSON.parse(right.data).sinceMs)
    .map(({ path }) => path);
  await zk.delete(older, -1);
  // The lock was granted to the release's waiter in advance.
  expect(await json(session, "who nightly")).toMatchObject({ waiters: [{ place: 1 }] });
  expect(waiting.child.exitCode).toBeNull();
  const queue = (await zk.getChildren("/baton/locks/nightly/q")).children.find((name) =>
    name.includes(newer.slice(-32))
  );
  await zk.multi([
    { type: "delete", path: newer, version: -1 },
    { type: "delete", path: `/baton/locks/nightly/q/${queue}`, version: -1 },
  ]);
  expect((await waiting.ended).code).toBe(0);
  await zk.close();
});

const stores = {
  locks: { file: "keeper/keeper.sqlite", words: 'keeper verify --data-dir "$dir/keeper"' },
  topics: { file: "topics/topics.sqlite", words: 'pubsub server verify --data-dir "$dir/topics"' },
  retries: { file: "retry/messages.sqlite", words: 'retry-processor stats --name orders --store "$dir/retry"' },
} as const;

for (const [name, { file, words }] of Object.entries(stores)) {
  test(`${name} of the release are read, and those of a newer version are refused in one sentence`, async () => {
    await using session = releaseSession();
    expect(await session.run(`"$baton" ${words}`)).toMatchObject({ code: 0, stderr: "" });
    {
      using database = new DatabaseSync(session.path(file));
      database.exec("PRAGMA user_version = 99");
    }
    const { code, stderr } = await session.run(`"$baton" ${words}`);
    expect([code, stderr]).toEqual([
      78,
      expect.stringMatching(
        /^baton: .* was written by a newer version \(format 99\); this version of baton reads format \d: use the newer version\n$/,
      ),
    ]);
  });
}

describeWithPeer("postgres", "a database of the release", () => {
  test.if(runsNightly)("is read, and refused in one sentence when a newer version has migrated it", async () => {
    await using server = await PostgresServer.start();
    await server.sql(readReleaseFile("database.sql"));
    await using session = releaseSession();
    const store = `--store ${server.url} --moved`;
    const serving = await startRole(session, `server --id s1 ${store}`);
    const proxy = await startRole(session, "proxy");
    expect(await output(session, "subscribe parcels --id alice -n 2")).toBe("two\nthree\n");
    for (const role of [proxy, serving]) await stop(role);
    const stats = `"$baton" retry-processor stats --name orders ${store}`;
    expect((await session.run(stats)).code).toBe(0);
    await server.sql("UPDATE baton.store SET format = 99");
    for (const command of [`"$baton" pubsub server --id s1 ${store}`, stats]) {
      const { code, stderr } = await session.run(command);
      expect([code, stderr]).toEqual([
        78,
        expect.stringMatching(
          /were written by a newer version \(format 99\); this version of baton reads format 1: use the newer version\n$/,
        ),
      ]);
    }
  });
});

test("a configuration file with the settings of the release is valid", async () => {
  await using session = releaseSession();
  const tls = join(import.meta.dirname, "../../fixtures/tls");
  for (const name of ["ca.pem", "client.pem", "client_key.pem", "server.pem", "server_key.pem"]) {
    copyFileSync(join(tls, name), session.path(name));
    chmodSync(session.path(name), 0o600);
  }
  writeFileSync(session.path("credentials"), "digest baton:secret\n", { mode: 0o600 });
  writeFileSync(session.path("config.toml"), readReleaseFile("config.toml").replaceAll("/etc/baton", session.folder));
  const { code, stderr } = await session.run('env -u BATON_SERVERS "$baton" config check --config config.toml');
  expect([code, stderr]).toEqual([0, "baton: the configuration is valid; checked config.toml\n"]);
});

/** Lists the fields of an object with their types, as `holders.0.pid: number`. */
function fieldsOf(value: unknown, path = ""): string[] {
  if (typeof value !== "object" || value === null) return [`${path}: ${value === null ? "null" : typeof value}`];
  return Object.entries(value).flatMap(([key, inner]) => fieldsOf(inner, path === "" ? key : `${path}.${key}`));
}

test("each field that the release printed with --json is printed by this version, with its type", () => {
  const goldens = new Set(allJsonShapes.flatMap((shape) => shape.goldens));
  for (const [file, value] of readReleaseLines<[string, unknown]>("json_output.jsonl")) {
    expect(goldens).toContain(file.replace(".json", ""));
    const today = readFileSync(join(import.meta.dirname, "../../fixtures/json", file), "utf8");
    expect([file, ...fieldsOf(JSON.parse(today))]).toEqual(expect.arrayContaining([file, ...fieldsOf(value)]));
  }
});
