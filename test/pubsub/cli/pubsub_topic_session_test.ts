/**
 * What operators do at topics, with the binary: look, delete, have a client forgotten, give up what the disk has
 * damaged.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { BatonSession } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { startRole } from "../../support/session_talker.ts";

setDefaultTimeout(120_000);

let session: BatonSession;
beforeEach(() => session = new BatonSession({ BATON_SERVERS: "embedded", BATON_SESSION_TIMEOUT: "2s" }));
afterEach(() => session[Symbol.asyncDispose]());

const operator = (words: string) => session.run(`"$baton" pubsub ${words}`);
const client = (words: string) => session.run(`"$baton" pubsub client ${words}`);

const startServer = (more = "") => startRole(session, `server --id s1 --data-dir s1 ${more}`);
const startProxy = (more = "") => startRole(session, `proxy --listen tcp://127.0.0.1:0 ${more}`);

test("topics are listed, shown and deleted; a used one is not, and a new one of its name has other ids", async () => {
  await startServer();
  await startProxy();
  expect(await operator("topic ls")).toMatchObject({
    code: 0,
    stdout: "",
    stderr: expect.stringContaining("no topic"),
  });
  await client("alice subscribe news");
  await session.run('printf "1\\n2\\n" | "$baton" pubsub client bob put news --lines');
  expect((await operator("topic ls")).stdout).toMatch(/^TOPIC +SERVER +STATE +EPOCH\nnews +s1 +stored +1\n$/);
  const shown = (await operator("topic show news")).stdout;
  expect(shown).toMatch(/messages +1 to 2\n[^]*clients +2 of 100000, 0 without a session\n[^]*alice +0 +2\n/);
  const kept = await operator("topic delete news");
  expect(kept).toMatchObject({
    code: 64,
    stderr: expect.stringContaining('1 client is subscribed; "alice" has 2 undelivered messages'),
  });
  expect(await client("alice get news -n 2")).toMatchObject({ code: 0, stdout: "1\n2\n" });
  expect(await operator("topic delete news --accept-loss")).toMatchObject({ code: 0 });
  expect(await operator("topic show news")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("there is no topic"),
  });
  expect(await operator("topic delete news")).toMatchObject({ code: 1 });
  expect((await client("alice topics")).stdout).toBe("");
  expect(await client("alice get news")).toMatchObject({ code: 64 });
  await client("alice subscribe news");
  await session.run('echo again | "$baton" pubsub client bob put news -');
  const [again] = (await client("alice get news --json")).stdout.split("\n");
  expect(JSON.parse(again ?? "")).toMatchObject({ body: "again\n", id: String(2 ** 44 + 1) });
  for (const wrong of ["topic", "topic lss", "topic show", "topic show a b", "topic ls a", "topic ls --accept-loss"]) {
    expect([wrong, (await operator(wrong)).code]).toEqual([wrong, 64]);
  }
});

test("a client is forgotten if nothing is lost or the loss is accepted, and returns as a new one", async () => {
  await startServer();
  await startProxy();
  await client("alice subscribe news");
  await session.run('echo 1 | "$baton" pubsub client bob put news -');
  expect(await operator("server forget-client news alice")).toMatchObject({
    code: 64,
    stderr: expect.stringContaining("is subscribed"),
  });
  expect(await operator("server forget-client news bob")).toMatchObject({ code: 0 });
  expect(await operator("server forget-client news bob")).toMatchObject({ code: 1 });
  expect(await session.run('echo 2 | "$baton" pubsub client bob put news -')).toMatchObject({ code: 0, stderr: "" });
  expect(await client("alice get news -n 2")).toMatchObject({ code: 0, stdout: "1\n\n2\n\n" });
  expect(await operator("server forget-client news alice --accept-loss")).toMatchObject({ code: 0 });
  expect(await client("alice get news")).toMatchObject({ code: 64, stderr: expect.stringContaining("NOT_SUBSCRIBED") });
});

test("only who has the service's key does any of it, and a proxy passes nothing of it on", async () => {
  for (const name of ["service", "other"]) await session.run(`"$baton" pubsub keygen -q ${name}`);
  await startServer("--key service");
  await startProxy("--key service");
  await session.run('"$baton" pubsub client alice subscribe news --key service --service-key service.pub');
  expect(await operator("topic show news --key service")).toMatchObject({ code: 0 });
  for (const key of ["", "--key other"]) {
    for (
      const words of [
        "topic show news",
        "topic delete news --accept-loss",
        "server forget-client news alice --accept-loss",
      ]
    ) {
      expect([words, key, (await operator(`${words} ${key}`)).code]).toEqual([words, key, 69]);
    }
  }
});

test("what the disk has damaged is refused by name and counted, and is given up by an operator's word", async () => {
  const first = await startServer();
  const proxy = await startProxy();
  await client("alice subscribe news");
  for (const body of ["one", "damaged-by-the-disk", "three"]) {
    expect(await session.run(`printf ${body} | "$baton" pubsub client bob put news -`)).toMatchObject({ code: 0 });
  }
  first.child.kill("SIGTERM");
  await first.ended;
  const path = session.path("s1/topics.sqlite");
  const bytes = readFileSync(path);
  const at = bytes.indexOf("damaged-by-the-disk");
  expect(at).toBeGreaterThan(0);
  bytes[at] = (bytes[at] as number) ^ 1;
  writeFileSync(path, bytes);
  const named = 'row 2 of the messages of topic "news" is damaged (message 2)';
  expect(await operator("server verify --data-dir s1")).toMatchObject({ code: 74, stdout: `${named}\n` });
  expect(await operator("server backup copy --data-dir s1")).toMatchObject({
    code: 74,
    stderr: expect.stringContaining(named),
  });

  const server = await startServer("--metrics-listen 127.0.0.1:0");
  const page = /\/healthz and \/metrics are at (\S+)/.exec(server.stderr())?.[1];
  expect(await client("alice get news --until-empty")).toMatchObject({
    code: 74,
    stdout: "one\n",
    stderr: `baton: Cannot get from topic "news": DAMAGED, ${named}; to skip it: baton pubsub client alice seek news ` +
      "LAST-DAMAGED-ID; to give up the damaged data: baton pubsub topic repair news --accept-loss\n",
  });
  await eventually(() => server.stderr().includes(named));
  expect(await (await fetch(`http://${page}/metrics`)).text()).toContain("baton_pubsub_server_damaged_rows 1\n");
  expect(await operator("topic repair news --accept-loss")).toMatchObject({ code: 0, stdout: "given up: message 2\n" });
  expect(await client("alice get news --until-empty")).toMatchObject({
    code: 0,
    stdout: "three\n",
    stderr: expect.stringContaining('1 message of "news" was removed'),
  });
  server.child.kill("SIGTERM");
  await server.ended;
  expect(await operator("server verify --data-dir s1")).toMatchObject({ code: 0 });
  proxy.child.kill("SIGTERM");
});

test("a server whose only topic is damaged is not taken for an empty one; it names the damage", async () => {
  const first = await startServer();
  await startProxy();
  await client("alice subscribe only");
  first.child.kill("SIGTERM");
  await first.ended;
  const { DatabaseSync } = await import("node:sqlite");
  const store = new DatabaseSync(session.path("s1/topics.sqlite"));
  store.exec("UPDATE topics SET last = last + 7");
  store.close();
  const named = 'row 1 of the topics of this store (named "only") is damaged';
  expect((await operator("server verify --data-dir s1")).stdout).toContain(named);
  const server = await startServer();
  await eventually(() => server.stderr().includes(named));
  const next = "an operator restores its server from a backup, or deletes the topic: baton pubsub topic delete only";
  expect(await client("alice get only")).toMatchObject({ code: 74, stderr: expect.stringContaining(next) });
  expect(await client("alice subscribe new")).toMatchObject({ code: 0 });
  expect(await session.run('echo 1 | "$baton" pubsub client bob put new -')).toMatchObject({ code: 0 });
  expect(await client("alice get new")).toMatchObject({ code: 0, stdout: "1\n" });
  expect(await operator("topic delete only --accept-loss")).toMatchObject({ code: 0 });
});

test("of two operators one deletes a topic; a topic with a damaged row can only be given up", async () => {
  const first = await startServer();
  await startProxy();
  await client("alice subscribe news");
  const twice = await Promise.all([1, 2].map(() => operator("topic delete news --accept-loss")));
  expect(twice.map(({ code }) => code).sort()).toEqual([0, 1]);
  for (const topic of ["lost", "kept"]) await client(`alice subscribe ${topic}`);
  first.child.kill("SIGTERM");
  await first.ended;
  expect(await operator("topic delete lost --accept-loss")).toMatchObject({
    code: 69,
    stderr: expect.stringContaining('Cannot delete topic "lost": its owner, server "s1", is offline'),
  });
  const { DatabaseSync } = await import("node:sqlite");
  const store = new DatabaseSync(session.path("s1/topics.sqlite"));
  store.exec("UPDATE topics SET last = last + 7 WHERE name = CAST('lost' AS BLOB)");
  store.close();
  await startServer();
  for (const words of ["topic show lost", "topic repair lost --accept-loss", "server forget-client lost alice"]) {
    expect([words, await operator(words)]).toEqual([
      words,
      expect.objectContaining({ code: 74, stderr: expect.stringContaining("its data is missing or damaged") }),
    ]);
  }
  expect((await operator("topic repair lost --accept-loss")).stderr).toContain("topic delete TOPIC --accept-loss");
  expect(await operator("topic delete lost")).toMatchObject({
    code: 64,
    stderr: expect.stringContaining("missing or damaged; to delete it anyway: --accept-loss"),
  });
  expect(await operator("topic delete lost --accept-loss")).toMatchObject({ code: 0 });
  expect(await client("alice subscribe lost")).toMatchObject({ code: 0 });
  expect(await session.run('echo 1 | "$baton" pubsub client bob put lost -')).toMatchObject({ code: 0 });
  expect(await client("alice get lost")).toMatchObject({ code: 0, stdout: "1\n" });
});
