/** `baton pubsub server` and its operator's words, as typed. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { PubsubPath } from "../../../src/pubsub/ownership/pubsub_path.ts";
import { topicNodeAfterAssignment, topicNodeAfterConfirmation } from "../../../src/pubsub/ownership/topic_node.ts";
import { TopicNodes } from "../../../src/pubsub/ownership/topic_nodes.ts";
import { BatonSession, type Running } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { ScriptedServer } from "../../support/scripted_server.ts";
import { sessionTalker, sessionZooKeeper, startRole } from "../../support/session_talker.ts";
import { bytesOf, textOf } from "../../support/pubsub_talker.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession({ BATON_SERVERS: "embedded", BATON_SESSION_TIMEOUT: "2s" }));
afterAll(() => session[Symbol.asyncDispose]());

const serve = (words: string) => startRole(session, `server ${words}`);

async function stopped(running: Running): Promise<number | null> {
  running.child.kill("SIGTERM");
  return (await running.ended).code;
}

const code = async (script: string) => (await session.run(script)).code;

test("says when it serves, refuses data in use and a name in use, and ends with 0 when stopped", async () => {
  const one = await serve("--id s1 --data-dir s1");
  expect(one.stderr()).toMatch(/"s1" serves \S+\/s1 at tcp:\/\/127\.0\.0\.1:\d+, for all users of this machine\n/);
  const busy = await session.run('"$baton" pubsub server --id s1 --data-dir s1');
  expect([busy.code, busy.stderr]).toEqual([75, expect.stringContaining("Another server uses")]);
  const taken = await session.run('"$baton" pubsub server --id s1 --data-dir other');
  expect([taken.code, taken.stderr]).toEqual([78, expect.stringContaining("another process uses this id")]);
  expect(taken.stderr).toMatch(/Cannot announce "s1" yet: its id is in use, at tcp:\S+; waiting up to \d+ s/);
  expect(await stopped(one)).toBe(0);
  const renamed = await session.run('"$baton" pubsub server --id s2 --data-dir s1');
  expect([renamed.code, renamed.stderr]).toEqual([78, expect.stringContaining('it belongs to the server "s1"')]);
  // The refused start has not given the folder to "s1".
  expect(await stopped(await serve("--id s5 --data-dir other"))).toBe(0);
});

test("a server that owns topics leaves an empty folder as it was", async () => {
  await session.run('"$baton" pubsub server ls');
  await using zk = await sessionZooKeeper(session);
  const nodes = new TopicNodes(zk, new PubsubPath());
  await nodes.create("lost", topicNodeAfterConfirmation(topicNodeAfterAssignment("e1", "i")));
  await nodes.countForOwner("lost", "e1");
  const start = await session.run('mkdir mistyped; "$baton" pubsub server --id e1 --data-dir mistyped');
  expect([start.code, start.stderr]).toEqual([78, expect.stringContaining('it is empty, but 1 topic belongs to "e1"')]);
  expect((await session.run("ls -A mistyped")).stdout).toBe("");
  expect(await code('"$baton" pubsub server --id e1 --data-dir missing/folder')).toBe(78);
  expect(await code("test -e missing")).toBe(1);
  expect(await stopped(await serve("--id e2 --data-dir mistyped"))).toBe(0);
  expect(await code('"$baton" pubsub server forget e1 --accept-loss')).toBe(0);
});

test("SIGINT during a move says at once that the handoff goes on, how to look at it and how to undo it", async () => {
  await session.run('"$baton" pubsub server ls');
  await using zk = await sessionZooKeeper(session);
  const path = new PubsubPath();
  await new TopicNodes(zk, path).create("a b", topicNodeAfterConfirmation(topicNodeAfterAssignment("m1", "i")));
  const asked = Promise.withResolvers<void>();
  await using _owner = await ScriptedServer.start(zk, path, {
    id: "m1",
    answer: () => {
      asked.resolve();
      return new Promise(() => {}); // the handoff goes on
    },
  });
  const planned = await session.run(`"$baton" pubsub server move 'a b' --to m2 --dry-run --json`);
  expect(JSON.parse(planned.stdout).moves).toEqual([
    { topic: "a b", from: "m1", to: "m2", outcome: "planned", why: null },
  ]);
  const none = await session.run('"$baton" pubsub server move none --to m2 --dry-run --json');
  expect([none.code, JSON.parse(none.stdout).moves]).toEqual([
    1,
    [{ topic: "none", from: null, to: "m2", outcome: "no topic", why: null }],
  ]);
  const move = session.start(`exec "$baton" pubsub server move 'a b' --to m2 --json`);
  await asked.promise;
  move.child.kill("SIGINT");
  const { signal, stdout, stderr } = await move.ended;
  const why = 'server "m1" goes on with the handoff. baton pubsub server ls --topics shows the owner, ' +
    "and this undoes the move: baton pubsub server move 'a b' --to m1";
  expect(signal).toBe("SIGINT");
  expect(JSON.parse(stdout).moves).toEqual([{ topic: "a b", from: "m1", to: "m2", outcome: "unknown", why }]);
  expect(stderr).toBe(`baton: It is unknown whether topic "a b" was moved to "m2": ${why}\n`);
});

test("each way of not starting has its number", async () => {
  expect(await code('"$baton" pubsub server')).toBe(64);
  expect(await code('"$baton" pubsub server --id s1')).toBe(64);
  expect(await code('"$baton" pubsub server lss')).toBe(64);
  expect(await code('"$baton" pubsub server --id s1 --data-dir x --listen nonsense')).toBe(64);
  expect(await code('"$baton" pubsub server --id s1 --data-dir x --servers 127.0.0.1:1 --connect-timeout 200ms')).toBe(
    69,
  );
  expect(await code('"$baton" pubsub server --id s1 --data-dir x --insecure --listen tcp://192.0.2.1:1')).toBe(73);
  expect(await code('touch file; "$baton" pubsub server --id s1 --data-dir file/x')).toBe(73);
  expect(await code('"$baton" pubsub server verify --data-dir nowhere')).toBe(78);
  expect(await code('"$baton" pubsub server forget s1')).toBe(64);
  expect(await code('"$baton" pubsub server move news --to s1')).toBe(1);
  expect(await code('"$baton" pubsub server drain s9')).toBe(1);
});

test("an operator lists and moves topics, drains a server, backs up its data, and forgets a lost one", async () => {
  const one = await serve("--id o1 --data-dir o1 --metrics-listen unix:$dir/metrics");
  const two = await serve("--id o2 --data-dir o2");
  await using talker = await sessionTalker(session);
  const { say } = talker;
  for (const topic of ["news", "a/b c"]) {
    await say.ask({ name: "SUBSCRIBE", sender: "alice", topic });
    await say.ask({ name: "PUT", sender: "bob", topic, counter: 1, body: bytesOf(topic) });
  }
  const listed = await session.run('"$baton" pubsub server ls --topics');
  expect(listed.stdout).toMatch(/o1 +serving +tcp:\S+ +1\no2 +serving +tcp:\S+ +1\n/);
  expect(listed.stdout).toMatch(/news +o1 +stored +1\n/);
  expect(await code('"$baton" pubsub server move news --to o2')).toBe(0);
  expect(await code('"$baton" pubsub server move news --to o2')).toBe(0);
  for (const more of ["", "--json -q"]) {
    const kept = await session.run(`"$baton" pubsub server move news --to o9 ${more}`);
    expect([kept.code, kept.stderr]).toEqual([
      69,
      expect.stringMatching(/^baton: Cannot move topic "news" to "o9": .*"o9"/),
    ]);
  }
  const none = await session.run('"$baton" pubsub server move nothing --to o2');
  expect([none.code, none.stderr]).toEqual([1, 'baton: Cannot move topic "nothing" to "o2": there is no such topic\n']);
  expect((await session.run('"$baton" pubsub server rebalance --dry-run')).stdout).toMatch(/planned/);
  expect(await code('"$baton" pubsub server rebalance')).toBe(0);
  expect((await session.run('"$baton" pubsub server drain o1 --dry-run')).stdout).toMatch(/o1 +o2 +planned/);
  expect(await code('"$baton" pubsub server drain o1')).toBe(0);
  const overview = async () => (await session.run('"$baton" pubsub server ls')).stdout;
  expect(await overview()).toMatch(/o1 +draining +tcp:\S+ +0\no2 +serving +tcp:\S+ +2\n/);
  expect((await session.run('curl -s --unix-socket "$dir/metrics" http://localhost/metrics')).stdout).toContain(
    "baton_pubsub_server_draining 1\n",
  );
  // It would have the fewest, and be given the next; nor is the other one drained into it, or balanced with it.
  await say.ask({ name: "SUBSCRIBE", sender: "alice", topic: "new" });
  expect(await overview()).toMatch(/o1 +draining +tcp:\S+ +0\no2 +serving +tcp:\S+ +3\n/);
  expect(await code('"$baton" pubsub server drain o2')).toBe(69);
  expect((await session.run('"$baton" pubsub server rebalance')).stderr).toContain("nothing to move");
  expect(await code('"$baton" pubsub server drain o1 --undo')).toBe(0);
  expect(await code('"$baton" pubsub server drain o9 --undo')).toBe(1);
  await say.ask({ name: "SUBSCRIBE", sender: "alice", topic: "newer" });
  expect(await overview()).toMatch(/o1 +serving +tcp:\S+ +1\no2 +serving +tcp:\S+ +3\n/);
  expect(await code('"$baton" pubsub server drain o1')).toBe(0);
  expect(textOf((await say.ask({ name: "GET", sender: "alice", topic: "news", last: -1 })).body)).toBe("news");

  expect(await code('"$baton" pubsub server backup copy --data-dir o2')).toBe(0);
  expect(await code('"$baton" pubsub server backup copy --data-dir o2')).toBe(73);
  const verified = await session.run('"$baton" pubsub server verify --data-dir copy');
  expect([verified.code, verified.stdout]).toEqual([0, expect.stringMatching(/copy is whole: 4 topics, 2 messages/)]);

  expect(await code('"$baton" pubsub server forget o2 --accept-loss')).toBe(75);
  two.child.kill("SIGKILL");
  await two.ended;
  const forgotten = await eventually(async () => {
    // It gives its lock back within T/3, also where the disk takes its time.
    const ended = await session.run('"$baton" pubsub server forget o2 --accept-loss --session-timeout 10s');
    return ended.code !== 75 && ended;
  }, { withinMs: 20_000 });
  expect([forgotten.code, forgotten.stdout.trim().split("\n").sort(), forgotten.stderr]).toEqual([0, [
    "lost a/b c",
    "lost new",
    "lost newer",
    "lost news",
  ], expect.stringContaining("topics that begin again, empty: 4")]);
  // What is started again takes topics again.
  expect(await stopped(one)).toBe(0);
  expect(await overview()).not.toContain("o1");
  const again = await serve("--id o1 --data-dir o1");
  expect(await overview()).toMatch(/o1 +serving/);
  expect((await say.ask({ name: "PUT", sender: "bob", topic: "news", counter: 1, body: bytesOf("x") })).status).toBe(
    "OK",
  );
  expect(await stopped(again)).toBe(0);
});

test("a copy or a backup of a server's data is served only if an operator says that the other is gone", async () => {
  const one = await serve("--id c1 --data-dir c1");
  expect(await code('"$baton" pubsub server backup c1-backup --data-dir c1')).toBe(0);
  expect(await stopped(one)).toBe(0);
  await session.run("cp -a c1 c1-copy");
  for (const folder of ["c1-copy", "c1-backup"]) {
    const refused = await session.run(`"$baton" pubsub server --id c1 --data-dir ${folder}`);
    expect([folder, refused.code, refused.stderr]).toEqual([folder, 78, expect.stringContaining("it is a copy")]);
  }
  const { stderr } = await session.run('"$baton" pubsub server --id c1 --data-dir c1-copy');
  expect(stderr).toMatch(/start it once with: baton pubsub server --id c1 --data-dir \S*c1-copy --moved\n/);
  await session.run("mv c1 c1-renamed");
  expect(await stopped(await serve("--id c1 --data-dir c1-copy --moved"))).toBe(0);
  expect(await stopped(await serve("--id c1 --data-dir c1-copy"))).toBe(0);
  // What was served since the others were made may have messages that they do not have.
  for (const folder of ["c1-renamed", "c1-backup"]) {
    const refused = await session.run(`"$baton" pubsub server --id c1 --data-dir ${folder} --moved`);
    expect([folder, refused.code, refused.stderr]).toEqual([folder, 78, expect.stringContaining("an older copy")]);
  }
});

test("a backup that is put back is refused, and gone on from when somebody accepts what that loses", async () => {
  expect(await stopped(await serve("--id r1 --data-dir empty"))).toBe(0);
  const one = await serve("--id r1 --data-dir r1");
  await using talker = await sessionTalker(session);
  const { say } = talker;
  const put = (counter: number) =>
    say.ask({
      name: "PUT",
      sender: "bob",
      topic: "kept",
      counter,
      body: bytesOf(`body ${counter}`),
      headers: { version: 1 },
    });
  const get = (sender: string, last: number) =>
    say.ask({ name: "GET", sender, topic: "kept", last, headers: { max: 10 } });
  for (const sender of ["alice", "carol"]) await say.ask({ name: "SUBSCRIBE", sender, topic: "kept" });
  for (const counter of [1, 2, 3]) expect((await put(counter)).status).toBe("OK");
  expect((await get("alice", 3)).status).toBe("NO_MESSAGE");
  expect(await code('"$baton" pubsub server backup r1-backup --data-dir r1')).toBe(0);
  expect((await put(4)).headers?.ids).toEqual([{ first: 4, last: 4 }]);
  expect((await get("alice", 3)).batch?.map(textOf)).toEqual(["body 4"]);
  await say.ask({ name: "SUBSCRIBE", sender: "alice", topic: "later" });
  expect(await code('"$baton" pubsub server restore --id r1 --data-dir r1-backup --accept-loss')).toBe(75);
  expect(await stopped(one)).toBe(0);

  const restore = '"$baton" pubsub server restore --id r1 --data-dir r1-backup';
  const refused = await session.run('"$baton" pubsub server --id r1 --data-dir r1-backup --moved');
  expect([refused.code, refused.stderr]).toEqual([78, expect.stringContaining("pubsub server restore --id r1")]);
  expect(await code(restore)).toBe(64);
  expect(await code('"$baton" pubsub server restore --id r1 --data-dir nowhere --accept-loss')).toBe(78);
  // A store without topics: going on from that would give up all.
  expect(await code('"$baton" pubsub server --id r1 --data-dir empty')).toBe(78);
  const empty = await session.run('"$baton" pubsub server restore --id r1 --data-dir empty --accept-loss');
  expect([empty.code, empty.stderr]).toEqual([78, expect.stringContaining("Cannot restore this data directory")]);
  const restored = await eventually(async () => {
    const ended = await session.run(`${restore} --accept-loss`);
    return ended.code !== 75 && ended;
  }, { withinMs: 20_000 });
  expect([restored.code, restored.stdout]).toEqual([0, "restored kept\nlost later\n"]);

  const again = await serve("--id r1 --data-dir r1-backup");
  // What it has counts on: alice had everything, carol nothing, and counters are known.
  expect((await get("alice", 4)).status).toBe("NO_MESSAGE");
  const had = await get("carol", -1);
  expect([had.batch?.map(textOf), had.headers?.missed]).toEqual([["body 1", "body 2", "body 3"], undefined]);
  expect((await put(3)).headers?.ids).toEqual([{ first: 3, last: 3 }]);
  // What was lost is put again as something new, under a number that was never used.
  const id = (await put(4)).headers?.ids?.[0]?.first ?? 0;
  expect(id).toBeGreaterThan(2 ** 43);
  for (const [sender, last] of [["alice", 4], ["carol", 3]] as const) {
    const next = await get(sender, last);
    expect([next.batch?.map(textOf), next.headers?.ids, next.headers?.missed]).toEqual([
      ["body 4"],
      [{ first: id, last: id }],
      undefined,
    ]);
  }
  expect(await stopped(again)).toBe(0);
  // The lost data, found again, is older now.
  const late = await session.run('"$baton" pubsub server --id r1 --data-dir r1');
  expect([late.code, late.stderr]).toEqual([78, expect.stringContaining("an older copy")]);
});

test("logs for programs are an object to a line", async () => {
  const one = await serve("--id j1 --data-dir j1 --log json");
  expect(await stopped(one)).toBe(0);
  const events = one.stderr().trim().split("\n").map((line) => JSON.parse(line).event);
  expect(events).toEqual(["serving", "stopping", "left"]);
});
