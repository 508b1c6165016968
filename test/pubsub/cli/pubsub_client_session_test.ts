/** Publishing and subscribing as a user types it: one machine, the embedded keeper, a server, a proxy, clients. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { BatonSession, type Running } from "../../support/baton_session.ts";
import { dose } from "../../support/dose.ts";
import { eventually } from "../../support/eventually.ts";
import { frozenPut } from "../../support/frozen_put.ts";
import { seededRandom, testSeed } from "../../support/random.ts";
import { startRole } from "../../support/session_talker.ts";

setDefaultTimeout(180_000);

let session: BatonSession;
beforeEach(() => session = new BatonSession({ BATON_PUBSUB_STATE_DIR: "state", BATON_SERVERS: "embedded" }));
afterEach(() => session[Symbol.asyncDispose]());

const startServer = (options = "") => startRole(session, `server --id s1 --data-dir s1 ${options}`);
const startProxy = (options = "") => startRole(session, `proxy --id p1 ${options}`);
const client = (words: string) => session.run(`"$baton" pubsub client ${words}`);

async function kill(running: Running): Promise<void> {
  running.child.kill("SIGKILL");
  await running.ended;
}

test("subscribe, put and get, in both orders of the words", async () => {
  await startServer();
  await startProxy();
  const ok = { code: 0, stdout: "", stderr: "" };
  expect(await client("alice subscribe news")).toMatchObject(ok);
  expect(await session.run('printf "a\\0b\\n" >report; "$baton" pubsub client bob put news report')).toMatchObject(ok);
  expect(await session.run('printf "one\\ntwo\\n\\nfour" | "$baton" pubsub client put news --lines --id bob'))
    .toMatchObject(ok);
  expect(await client("alice pending news")).toMatchObject({ code: 0, stdout: "5\n" });
  expect(await client("alice peek news")).toMatchObject({ code: 0, stdout: "a\0b\n" });
  expect(await client("alice get news")).toMatchObject({ code: 0, stdout: "a\0b\n", stderr: "" });
  expect(await client("get news --id alice")).toMatchObject({ code: 0, stdout: "one" });
  expect(await client("alice get news -n 2")).toMatchObject({ code: 0, stdout: "two\n\n" });
  expect(await client("alice get news --until-empty")).toMatchObject({ code: 0, stdout: "four\n" });
  expect(await client("alice get news")).toMatchObject({ code: 1, stdout: "" });
  expect(await client("alice seek news start")).toMatchObject(ok);
  expect(await client("alice topics")).toMatchObject({ code: 0, stdout: "news\n" });
  expect(await client("alice unsubscribe news")).toMatchObject(ok);
  expect(await client("alice get news")).toMatchObject({ code: 64, stderr: expect.stringContaining("NOT_SUBSCRIBED") });
});

test("a message goes to a program, and comes again, marked, until it is acknowledged", async () => {
  await startServer();
  await startProxy();
  await client("alice subscribe news");
  await session.run('printf "1\\n2\\n3\\n" | "$baton" pubsub client bob put news --lines');
  const say = "printf '%s %s ' $BATON_MESSAGE_ID $BATON_REDELIVERED; cat; echo";
  const failed = await client(`alice get news --follow --exec "${say}; exit 9"`.replaceAll("$", "\\$"));
  expect(failed).toMatchObject({ code: 9, stdout: "1 0 1\n" });
  expect(await client(`alice get news --until-empty --exec "${say}"`.replaceAll("$", "\\$"))).toMatchObject({
    code: 0,
    stdout: "1 1 1\n2 0 2\n3 0 3\n",
  });
  await session.run('echo more | "$baton" pubsub client bob put news -');
  const shown = await client("alice get news --ack manual --json");
  expect(JSON.parse(shown.stdout)).toMatchObject({ id: "4", body: "more\n", redelivered: false });
  expect(JSON.parse((await client("alice get news --ack manual --json")).stdout)).toMatchObject({ redelivered: true });
  expect(await client("alice ack news 5")).toMatchObject({ code: 64 });
  expect(await client("alice ack news 4")).toMatchObject({ code: 0 });
  expect(await client("alice get news --ack manual")).toMatchObject({ code: 1 });
});

test("what a put ends with when it cannot be done", async () => {
  const put = '"$baton" pubsub client bob put news - --timeout 1s';
  expect(await session.run(`echo x | ${put}`)).toMatchObject({ code: 69, stderr: expect.stringContaining("no proxy") });
  await startProxy();
  expect(await session.run(`echo x | ${put}`)).toMatchObject({
    code: 69,
    stderr: expect.stringContaining("definitely"),
  });
  const server = await startServer("--max-pending 2");
  await client("alice subscribe news");
  expect(await session.run(`echo x | ${put}; echo y | ${put}`)).toMatchObject({ code: 0 });
  expect(await session.run(`echo z | ${put}`)).toMatchObject({ code: 85 });
  expect(await client("alice get news -n 2")).toMatchObject({ stdout: "x\n\ny\n\n" });
  await client("alice get news");

  server.child.kill("SIGSTOP");
  // Nothing is put before the topic knows the client.
  expect(await session.run(`echo x | ${put}`)).toMatchObject({
    code: 69,
    stderr: expect.stringContaining("definitely not done"),
  });
  server.child.kill("SIGCONT");
  const get = '"$baton" pubsub client alice get news --wait 20s';
  const stopped = frozenPut({ put: `${put} --lines`, get, pid: server.child.pid });
  expect(await session.run(stopped)).toMatchObject({ code: 76, stderr: expect.stringContaining("--resume") });
  server.child.kill("SIGCONT");
  expect(await client("bob put news --resume")).toMatchObject({ code: 0 });
  expect(await client("bob put news --resume")).toMatchObject({ code: 0 });
  expect(await client("alice get news --until-empty")).toMatchObject({ stdout: "x\n" });
});

test("messages from files, from parts between NULs, and under a key of one's own, into a folder", async () => {
  await startServer();
  await startProxy();
  await client("alice subscribe news");
  const put = async (words: string) => expect(await session.run(words)).toMatchObject({ code: 0, stderr: "" });
  await put('printf a >a; printf b >b; "$baton" pubsub client bob put news --files a b');
  await put('printf "c\\nc\\0d" | "$baton" pubsub client bob put news --null');
  for (const id of ["bob", "bob"]) await put(`"$baton" pubsub client ${id} put news a --msg-id k1`);
  const reused = await client("bob put news b --msg-id k1");
  expect(reused).toMatchObject({ code: 65, stderr: expect.stringContaining("COUNTER_REUSE") });
  expect(await client("alice get news --until-empty --out-dir inbox")).toMatchObject({ code: 0, stdout: "" });
  const names = readdirSync(session.path("inbox")).filter((name) => !name.startsWith(".")).sort();
  expect(names.map((name) => session.read(`inbox/${name}`))).toEqual(["a", "b", "c\nc", "d", "a"]);
  expect(names).toEqual(["1", "2", "3", "4", "5"]);
  expect(await client("alice get else --out-dir inbox")).toMatchObject({
    code: 64,
    stderr: expect.stringContaining("belongs"),
  });
  expect(await client("alice get news --out-dir a/inbox")).toMatchObject({ code: 73 });
  expect(await client("bob put news nowhere")).toMatchObject({ code: 74 });
  expect(await session.run('truncate -s 67108865 big; "$baton" pubsub client bob put news big')).toMatchObject({
    code: 65,
  });
  expect(await client("bob put news --lines --files a")).toMatchObject({ code: 64 });
});

test("the paper's file and named proxies are enough: the coordination service is not asked", async () => {
  await startServer();
  await startProxy("--listen ipc://$dir/proxy");
  await session.run('echo "ipc://$dir/proxy" >addresses');
  const away = { BATON_SERVERS: "127.0.0.1:1" };
  const subscribe = '"$baton" pubsub client alice subscribe news --proxies-file addresses';
  expect(await session.run(subscribe, away)).toMatchObject({ code: 0, stderr: "" });
  const named = { ...away, BATON_PUBSUB_PROXIES: `ipc://${session.path("gone")},ipc://${session.path("proxy")}` };
  expect(await session.run('echo x | "$baton" pubsub client bob put news -', named)).toMatchObject({ code: 0 });
  expect(await session.run('"$baton" pubsub client alice get news', named)).toMatchObject({ code: 0, stdout: "x\n" });
});

test("what is resumed goes on behind what was put, and is refused where that has changed", async () => {
  await startServer("--max-pending 3");
  await startProxy();
  await client("alice subscribe news");
  await session.run("seq 1 8 >lines; echo whole >whole");
  const put = '"$baton" pubsub client bob put news --lines lines';
  expect(await session.run("seq 1 3 >lines; " + put)).toMatchObject({ code: 0 });
  expect(await session.run("seq 1 5 >lines; " + put + " --resume")).toMatchObject({ code: 85 });
  expect(await client("alice get news --until-empty")).toMatchObject({ stdout: "1\n2\n3\n" });
  await client("alice get news");
  expect(await session.run(put + " --resume")).toMatchObject({ code: 0 });
  expect(await session.run(put + " --resume")).toMatchObject({ code: 0, stderr: expect.stringContaining("nothing") });
  expect(await client("alice get news --until-empty")).toMatchObject({ stdout: "4\n5\n" });
  await client("alice get news");
  expect(await session.run("seq 2 9 >lines; " + put + " --resume")).toMatchObject({ code: 65 });
  // More lines at once than may wait: they would never have room.
  expect(await session.run('seq 1 8 | "$baton" pubsub client bob put news --lines')).toMatchObject({ code: 0 });
  expect(await session.run('echo 9 | "$baton" pubsub client bob put news --lines')).toMatchObject({ code: 85 });
  expect(await client("alice get news --until-empty")).toMatchObject({ stdout: "1\n2\n3\n4\n5\n6\n7\n8\n" });
  await client("alice get news");
  for (let time = 0; time < 2; time++) {
    expect(await client("bob put news whole --resume")).toMatchObject({ code: 0 });
    expect(await client("alice get news")).toMatchObject(time === 0 ? { code: 0, stdout: "whole\n" } : { code: 1 });
  }
});

test("each input has its own position: what is resumed is put once, despite other puts and kills", async () => {
  const server = await startServer();
  await startProxy();
  await client("alice subscribe news");
  await session.run("seq 1 5 >a; seq 11 15 >b; echo x >x; echo y >y; echo z >z; ln -s a link");
  const put = (words: string) => client(`bob put news ${words} --resume --timeout 2s`);
  const nothing = { code: 0, stderr: expect.stringContaining("nothing was left to put") };
  const arrived = async (...lines: (number | string)[]) => {
    const got = await client("alice get news --until-empty");
    expect(got.stdout.split("\n").filter((line) => line !== "")).toEqual(lines.map(String));
  };
  expect(await put("--lines a")).toMatchObject({ code: 0, stderr: "" });
  expect(await put("--lines b")).toMatchObject({ code: 0, stderr: "" });
  await session.run("seq 6 7 >>a; seq 16 17 >>b");
  for (const words of ["--lines a", "--lines ./b"]) expect(await put(words)).toMatchObject({ code: 0, stderr: "" });
  for (const words of ["--lines a", "--lines b", "--lines $PWD/a"]) expect(await put(words)).toMatchObject(nothing);
  await arrived(1, 2, 3, 4, 5, 11, 12, 13, 14, 15, 6, 7, 16, 17);
  // Another name is another input, and what is in another form is, too; a beginning that has changed is refused.
  expect(await put("--lines link")).toMatchObject({ code: 0, stderr: "" });
  await arrived(1, 2, 3, 4, 5, 6, 7);
  expect(await session.run('seq 2 9 >a; "$baton" pubsub client bob put news --lines a --resume')).toMatchObject({
    code: 65,
  });
  expect(await put("--lines b")).toMatchObject(nothing);

  // Of files each has its own: what came to the list is put, and what has changed since is another message.
  expect(await put("--files x z")).toMatchObject({ code: 0, stderr: "" });
  expect(await put("--files x y z x")).toMatchObject({ code: 0, stderr: "" });
  expect(await put("y")).toMatchObject(nothing);
  await session.run("echo y2 >y");
  for (let time = 0; time < 2; time++) expect((await put("--files x y z x")).code).toBe(0);
  await arrived("x", "z", "y", "x", "y2");

  // Killed in the middle of one, and another one put before it is gone on with.
  await session.run("seq 1 3000 >long; seq 5001 5010 >short");
  const first = session.start('exec "$baton" pubsub client bob put news --lines long --resume');
  await eventually(async () => Number((await client("alice pending news")).stdout) > 0, {
    withinMs: 20_000,
    everyMs: 1,
  });
  await kill(first);
  server.child.kill("SIGSTOP");
  expect((await client("bob put news --lines short --resume --timeout 500ms")).code).not.toBe(0);
  server.child.kill("SIGCONT");
  for (const input of ["long", "short"]) expect(await put(`--lines ${input} --timeout 20s`)).toMatchObject({ code: 0 });
  for (const input of ["long", "short"]) expect(await put(`--lines ${input}`)).toMatchObject(nothing);
  const got = (await client("alice get news --until-empty")).stdout.trim().split("\n").map(Number);
  const lines = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => from + at);
  expect(got.filter((line) => line < 5000)).toEqual(lines(1, 3000));
  expect(got.filter((line) => line > 5000)).toEqual(lines(5001, 5010));
});

test("a client id is one process at a time, and a state that was lost is fenced once", async () => {
  await startServer();
  await startProxy();
  await client("alice subscribe news");
  const follower = session.start('exec "$baton" pubsub client alice get news --follow');
  await eventually(async () => (await client("alice get news --timeout 100ms")).code === 75, {
    what: "alice to be busy",
  });
  follower.child.kill("SIGTERM");
  expect((await follower.ended).signal).toBe("SIGTERM");
  for (let time = 0; time < 3; time++) await session.run('echo x | "$baton" pubsub client bob put news -');
  await session.run("rm -r state");
  const put = 'echo y | "$baton" pubsub client bob put news -';
  expect(await session.run(put)).toMatchObject({
    code: 84,
    stderr: expect.stringContaining("the next call takes over\n"),
  });
  expect(await session.run(put)).toMatchObject({ code: 0 });
  // Where an input was is not known any more either.
  await session.run("rm -r state; echo z >input");
  const warned = { code: 84, stderr: expect.stringContaining("check first what the topic contains") };
  expect(await client("bob put news --lines input --resume")).toMatchObject(warned);
});

test("server, proxy, publisher and subscriber are killed again and again: every line is there, once", async () => {
  const seed = testSeed();
  console.log(`seed ${seed}`);
  const random = seededRandom(seed);
  // Whoever comes back waits for the end of the session that was killed.
  const short = "--session-timeout 2s";
  let [server, proxy] = [await startServer(short), await startProxy(short)];
  await client("alice subscribe news");
  const [rounds, count] = [dose({ gate: 8, full: 40 }), dose({ gate: 2000, full: 40_000 })];
  await session.run(`seq 1 ${count} >lines`);
  const put = 'exec "$baton" pubsub client bob put news --lines lines --resume';
  const get = 'exec "$baton" pubsub client alice get news --follow --out-dir inbox';
  const inbox = session.path("inbox");
  const files = () => existsSync(inbox) ? readdirSync(inbox).filter((name) => /^\d+$/.test(name)) : [];
  const arrived = (lines: number) =>
    eventually(() => files().length >= lines, { what: `${lines} lines to be there`, withinMs: 60_000, everyMs: 20 });
  let [publisher, subscriber] = [session.start(put), session.start(get)];
  let isDone = false;
  for (let round = 0; round < rounds; round++) {
    // Every other time at once: while what was killed before has only just come back.
    const more = random() < 0.5 ? 0 : Math.ceil(random() * count * 2 / rounds);
    await arrived(Math.min(count, files().length + more));
    const victim = ["publisher", "subscriber", "server", "proxy"][round % 4];
    if (victim === "publisher") {
      isDone = publisher.child.exitCode === 0;
      await kill(publisher);
      if (!isDone) publisher = session.start(put);
    } else if (victim === "subscriber") {
      await kill(subscriber);
      subscriber = session.start(get);
    } else if (victim === "server") {
      await kill(server);
      server = await startServer(short);
    } else {
      await kill(proxy);
      proxy = await startProxy(short);
    }
  }
  expect((await publisher.ended).code).toBe(0);
  await arrived(count);
  await kill(subscriber);
  expect((await client("alice get news --out-dir inbox")).code).toBe(1);
  const lines = files().sort((a, b) => Number(a) - Number(b)).map((name) => readFileSync(join(inbox, name), "utf8"));
  expect(lines).toEqual(Array.from({ length: count }, (_, index) => String(index + 1)));
});
