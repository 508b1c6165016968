/**
 * `baton publish` and `baton subscribe` as a first-time user types them, with `baton pubsub serve` behind them and no
 * client ID.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { hostname } from "node:os";
import { BatonSession, type Running } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { ownUserName } from "../../../src/base/support/user_name.ts";
import { startRole } from "../../support/session_talker.ts";

setDefaultTimeout(120_000);

const me = `${ownUserName()}@${hostname()}`;

let session: BatonSession;
let serving: Running;
let topics = 0;

async function serve(): Promise<Running> {
  const running = session.start('exec "$baton" pubsub serve');
  await eventually(() => /serves/.test(running.stderr()) && /takes requests/.test(running.stderr()), {
    what: `serve: ${running.stderr()}`,
    withinMs: 30_000,
  });
  return running;
}

beforeAll(async () => {
  session = new BatonSession({ BATON_SERVERS: "embedded" });
  serving = await serve();
});
afterAll(() => session[Symbol.asyncDispose]());

const newTopic = () => `topic${++topics}`;
const run = (script: string) => session.run(script.replaceAll("@", '"$baton" '));
const start = (script: string) => session.start(script.replaceAll("@", '"$baton" '));

/** A subscriber, once it is subscribed. */
async function subscriber(words: string): Promise<Running> {
  const running = start(`exec @subscribe -v ${words}`);
  await eventually(() => running.stderr().includes("is subscribed to"), { what: running.stderr(), withinMs: 20_000 });
  return running;
}

async function stop(running: Running, signal: NodeJS.Signals = "SIGINT") {
  running.child.kill(signal);
  return await running.ended;
}

/** Runs a line on a terminal; what it printed there, stdout and stderr. */
const onTerminal = (line: string) =>
  run(
    `python3 -c 'import os, pty, sys; ` +
      `sys.exit(os.waitstatus_to_exitcode(pty.spawn(["/bin/sh", "-c", sys.argv[1]])))' ` +
      `'${line.replaceAll("@", '"$baton" ')}' </dev/null`,
  );

test("doctor counts the topics that it checks", async () => {
  const topic = newTopic();
  await run(`@publish ${topic} one 2>&-`);
  const { stderr } = await run("@doctor");
  expect(stderr).toMatch(/^baton: checked 0 locks, 0 elections and \d+ topics?: no problems found\n$/);
});

describe("the first lines", () => {
  test("each published line arrives as a message, and later calls go on where the last one ended", async () => {
    const topic = newTopic();
    const first = await subscriber(`${topic} -n 2`);
    expect(await run(`@publish ${topic} "disk full" second`)).toMatchObject({ code: 0, stdout: "", stderr: "" });
    expect(await first.ended).toMatchObject({ code: 0, stdout: "disk full\nsecond\n" });
    await run(`printf 'a\\nb\\n' | @publish ${topic} --lines -; printf 'a\\nb\\n' | @publish ${topic} -`);
    await run(
      `printf 'x\\ny' >file; @publish ${topic} -f file; @publish ${topic} -f file --lines; @publish ${topic} -- -v`,
    );
    const rest = await run(`@subscribe ${topic} --until-empty --json`);
    const bodies = rest.stdout.trim().split("\n").map((line) => JSON.parse(line).body);
    expect(bodies).toEqual(["a", "b", "a\nb\n", "x\ny", "x", "y", "-v"]);
    expect(await run(`@subscribe ${topic} -w 100ms`)).toMatchObject({ code: 1, stdout: "" });
    expect(await run(`@subscribe ${topic} --until-empty`)).toMatchObject({ code: 0, stdout: "" });
  });

  test("from cron and from a login shell it is one subscription, whatever the environment says", async () => {
    const topic = newTopic();
    await run(`@subscribe ${topic} --until-empty; @publish ${topic} hello`);
    const bare = ["BATON_KEEPER_DIR", "BATON_PUBSUB_STATE_DIR", "BATON_SERVERS"].map((name) => `${name}="$${name}"`);
    const cron = await run(`env -i ${bare.join(" ")} USER=x LOGNAME=x HOME=/ @subscribe ${topic} --until-empty`);
    expect(cron).toMatchObject({ code: 0, stdout: "hello\n", stderr: "" });
    expect((await run(`@pubsub topic show ${topic} --json`)).stdout).toContain(`"client":"${me}"`);
  });

  test("the subscription ends when it is told to, and not before", async () => {
    const topic = newTopic();
    expect((await stop(await subscriber(topic))).signal).toBe("SIGINT");
    await run(`@publish ${topic} kept`);
    expect((await run(`@subscribe ${topic} --until-empty`)).stdout).toBe("kept\n");
    expect(await run(`@subscribe ${topic} --unsubscribe`)).toMatchObject({ code: 0, stderr: "" });
    expect(JSON.parse((await run(`@publish ${topic} lost --json`)).stdout)).toMatchObject({ without_subscribers: 1 });
    expect(await run(`@subscribe ${topic} --until-empty`)).toMatchObject({ code: 0, stdout: "" });
  });

  test("the subscription of another ID is not ended silently; a repeated end succeeds", async () => {
    const topic = newTopic();
    await run(`@subscribe ${topic} --id alerts --until-empty`);
    const stderr = `baton: Client "alerst" is not subscribed to topic "${topic}"; ` +
      `to see its clients: baton pubsub topic show ${topic}\n`;
    for (const words of ["subscribe @ --id alerst --unsubscribe", "pubsub client alerst unsubscribe @"]) {
      const end = () => session.run(`"$baton" ${words.replace("@", topic)}`);
      for (const refused of [await end(), await end()]) expect(refused).toMatchObject({ code: 64, stderr });
    }
    const nowhere = await run(`@subscribe ${topic}x --id alerts --unsubscribe`);
    expect(nowhere.code).toBe(64);
    expect(nowhere.stderr).toContain(`there is no topic "${topic}x"`);
    expect(nowhere.stderr).not.toContain("to subscribe");
    // An operator without the state ends the subscription of a machine that is gone: the second call takes over.
    const end = async () => (await run(`@subscribe ${topic} --id alerts --unsubscribe --state-dir elsewhere`)).code;
    expect([await end(), await end(), await end()]).toEqual([84, 0, 0]);
  });

  test("a topic without subscribers: said on stderr and in JSON", async () => {
    const topic = newTopic();
    const sentence =
      `2 messages reached no client: topic "${topic}" has no subscriber; to subscribe: baton subscribe ${topic}`;
    expect(await run(`@publish ${topic} a b`)).toMatchObject({ code: 0, stdout: "", stderr: `baton: ${sentence}\n` });
    expect(await run(`@publish ${topic} a b -q`)).toMatchObject({ code: 0, stderr: "" });
    expect((await onTerminal(`@publish ${topic} a b`)).stdout).toContain(sentence);
    expect((await onTerminal(`@publish ${topic} a b -q`)).stdout).not.toContain("reached");
    expect(JSON.parse((await run(`@publish ${topic} a b --json`)).stdout)).toEqual({
      ...{ version: 1, topic, messages: 2, without_subscribers: 2, loss: null },
    });
    await run(`@subscribe ${topic} --until-empty`);
    expect(JSON.parse((await run(`@publish ${topic} a --json`)).stdout)).toMatchObject({ without_subscribers: 0 });
    expect((await onTerminal(`@publish ${topic} a b`)).stdout).not.toContain("reached");
    expect((await run(`echo c | @pubsub client bob put ${topic} - --json`)).stdout).toContain(
      '"without_subscribers":0',
    );
  });

  test("a call that creates the topic says so, once, with the command that ends the subscription", async () => {
    const topic = newTopic();
    const sentence = (id: string, options: string) =>
      `baton: topic "${topic}" did not exist and was created: "${id}" is subscribed to "${topic}", 0 messages wait; ` +
      `the subscription stays until: baton subscribe ${topic}${options} --unsubscribe\n`;
    const first = await run(`@subscribe ${topic} --id a1 --until-empty`);
    expect(first).toMatchObject({ code: 0, stdout: "", stderr: sentence("a1", " --id a1") });
    for (const words of ["--id a1", "--id a2", ""]) {
      const again = await run(`@subscribe ${topic} ${words} --until-empty`);
      expect(again).toMatchObject({ code: 0, stderr: "" });
    }
    expect(await run(`@subscribe ${newTopic()} --until-empty -q`)).toMatchObject({ code: 0, stderr: "" });
  });

  test("a terminal is told that the subscription stays", async () => {
    const topic = newTopic();
    const said = (await onTerminal(`@subscribe ${topic} --until-empty`)).stdout;
    expect(said).toContain(`"${me}" is subscribed to "${topic}", 0 messages wait; the subscription stays until: `);
    expect(said).toContain(`baton subscribe ${topic} --unsubscribe`);
  });
});

describe("--exec", () => {
  test("gets the bytes that were put, with a final newline only if there was one", async () => {
    const topic = newTopic();
    await run(`@subscribe ${topic} --until-empty`);
    await run(
      `printf 'one\\n' | @publish ${topic} -; printf 'a\\0b\\n\\n' | @publish ${topic} -; @publish ${topic} last ""`,
    );
    await run(`@subscribe ${topic} --until-empty --exec 'cat >$BATON_MESSAGE_ID'`);
    expect(["1", "2", "3", "4"].map((name) => session.read(name))).toEqual(["one\n", "a\0b\n\n", "last", ""]);
    await run(
      `printf 'x\\ny\\n' | @publish ${topic} --lines; @subscribe ${topic} --until-empty --lines --exec 'cat >>log'`,
    );
    expect(session.read("log")).toBe("x\ny\n");
  });

  test("that fails: its exit code, what to do next, and the message comes again", async () => {
    const topic = newTopic();
    await run(`@subscribe ${topic} --until-empty; @publish ${topic} a b`);
    const failed = await run(`@subscribe ${topic} --exec 'cat; exit 7'`);
    expect(failed).toMatchObject({ code: 7, stdout: "a" });
    expect(failed.stderr).toContain(
      `message 1 of "${topic}" is not acknowledged: the command exited with 7; it comes again`,
    );
    expect(failed.stderr).toContain(`baton retry-processor run --from-topic ${topic} --exec LINE`);
    expect(await run(`@subscribe ${topic} --until-empty --exec cat`)).toMatchObject({ code: 0, stdout: "ab" });
  });

  test("Ctrl-C while the command runs: it is ended, and the message comes again", async () => {
    const topic = newTopic();
    await run(`@subscribe ${topic} --until-empty; @publish ${topic} a`);
    const running = start(`exec @subscribe ${topic} --exec 'echo $$ >${topic}.pid; while :; do sleep 0.05; done'`);
    await session.said(`${topic}.pid`);
    expect((await stop(running)).signal).toBe("SIGINT");
    expect(await run(`@subscribe ${topic} -n 1`)).toMatchObject({ code: 0, stdout: "a\n" });
  });
});

describe("two processes of one user at the same time", () => {
  test("publishers do not wait for each other, even for a stream, nor do subscribers of two topics", async () => {
    const [topic, other] = [newTopic(), newTopic()];
    const [one, two] = [await subscriber(topic), await subscriber(other)];
    await run(`mkfifo ${topic}.lines`);
    const stream = start(`exec @publish ${topic} --lines - <${topic}.lines`);
    const feed = start(`exec 3>${topic}.lines; echo first >&3; while ! [ -e ${topic}.end ]; do sleep 0.05; done`);
    await eventually(() => one.stdout() === "first\n", { what: "the stream", withinMs: 20_000 });
    const all = Array.from({ length: 4 }, (_, at) => run(`@publish ${topic} m${at} && @publish ${other} o${at}`));
    for (const ended of await Promise.all(all)) expect(ended).toMatchObject({ code: 0, stderr: "" });
    await eventually(() => [one, two].every(({ stdout }) => stdout().split("\n").filter(Boolean).length >= 4));
    await run(`touch ${topic}.end`);
    expect((await stream.ended).code).toBe(0);
    await feed.ended;
    await Promise.all([stop(one), stop(two)]);
    expect(one.stdout().split("\n").filter(Boolean).sort()).toEqual(["first", "m0", "m1", "m2", "m3"]);
  });

  test("a second subscriber learns which process it waits for, ends with 75, and gets all by another ID", async () => {
    const topic = newTopic();
    const first = await subscriber(topic);
    const busy = await run(`@subscribe ${topic} --until-empty -w 100ms --timeout 5s`);
    const who = process.platform === "linux" ? `process ${first.child.pid} is using it` : "is using it";
    expect(busy).toMatchObject({ code: 75, stdout: "" });
    expect(busy.stderr).toContain(
      `waiting up to 5 s (--timeout) for client ID "${me}": ${who} in this topic; with another --id both run`,
    );
    expect(busy.stderr).toContain(
      `Cannot use client ID "${me}": ${who}, and has not ended within 5 s; --timeout sets this limit`,
    );
    const second = await subscriber(`${topic} --id other -n 1`);
    await run(`@publish ${topic} both`);
    expect((await second.ended).stdout).toBe("both\n");
    await eventually(() => first.stdout() === "both\n");
    await stop(first);
  });

  test("files that are resumed are put once, however many calls run at the same time", async () => {
    const topic = newTopic();
    await run(`@subscribe ${topic} --until-empty; seq 100 >${topic}.log`);
    const resume = () => run(`@publish ${topic} -f ${topic}.log --lines --resume -q`);
    const ends = await Promise.all([resume(), resume(), resume()]);
    expect(ends.map(({ code }) => code)).toEqual([0, 0, 0]);
    await run(`seq 101 110 >>${topic}.log`);
    await resume();
    const had = (await run(`@subscribe ${topic} --until-empty`)).stdout.trim().split("\n");
    expect(had).toEqual(Array.from({ length: 110 }, (_, at) => String(at + 1)));
  });
});

test("a log that grows, is renamed, and is truncated: each complete line is published once", async () => {
  const topic = newTopic();
  const log = `${topic}.log`;
  const resume = (change: string) => run(`${change}; @publish ${topic} -f ${log} --lines --resume`);
  await run(`@subscribe ${topic} --until-empty`);
  expect(await resume(`printf 'one\ntw' >${log}`)).toMatchObject({
    code: 0,
    stderr: expect.stringContaining("has no newline yet; --resume puts it when it has one"),
  });
  expect(await resume(`echo o >>${log}`)).toMatchObject({ code: 0, stderr: "" });
  const renamed = await resume(`echo three >>${log}; mv ${log} ${log}.1; echo four >${log}`);
  expect(renamed).toMatchObject({ code: 0, stderr: expect.stringContaining(`the old one is ${session.path(log)}.1`) });
  const absent = await resume(`mv ${log} ${log}.0`);
  expect(absent).toMatchObject({ code: 0, stderr: expect.stringContaining(`${log} is not there yet`) });
  await run(`mv ${log}.0 ${log}`);
  const truncated = await resume(`echo five >>${log}; cp ${log} ${log}-1; echo six >${log}`);
  expect(truncated).toMatchObject({
    code: 0,
    stderr: expect.stringContaining(`the old one is ${session.path(log)}-1`),
  });
  const changed = await resume(`echo 6 >other; echo six >>other; mv other ${log}`);
  const advice = /: (mv .*? && touch .*?);/.exec(changed.stderr)?.[1] ?? "false";
  expect(changed.code).toBe(65);
  expect(await resume(advice)).toMatchObject({ code: 0 });
  expect(await resume(`echo seven >>${log}`)).toMatchObject({ code: 0, stderr: "" });
  expect((await run(`@subscribe ${topic} --until-empty`)).stdout).toBe("one\ntwo\nthree\nfour\nfive\nsix\nseven\n");
});

test("rotations and late lines: the files are published in order, and 65 tells of a missing one", async () => {
  const topic = newTopic();
  const log = `${topic}.log`;
  const resume = (change: string) => run(`${change}; @publish ${topic} -f ${log} --lines --resume -q`);
  await run(`@subscribe ${topic} --until-empty`);
  expect(await resume(`echo 1 >${log}`)).toMatchObject({ code: 0 });
  const rotate = `mv -f ${log}.1 ${log}.2 2>/dev/null; mv ${log} ${log}.1`;
  const twice = `echo 2 >>${log}; ${rotate}; echo 3 >${log}; ${rotate}; echo 4 >${log}`;
  expect(await resume(twice)).toMatchObject({ code: 0, stderr: "" });
  expect(await resume(`echo late >>${log}.1`)).toMatchObject({ code: 0, stderr: "" });
  const lost = await resume(`echo 5 >>${log}; ${rotate}; rm ${log}.*; echo 6 >${log}`);
  expect(lost).toMatchObject({ code: 65, stderr: expect.stringContaining("tail -n +2 OLD-FILE") });
  expect((await run(`@subscribe ${topic} --until-empty`)).stdout).toBe("1\n2\n3\n4\nlate\n6\n");
});

test("rotations that give the newest file the highest number: each line is published once", async () => {
  const topic = newTopic();
  const log = `${topic}.log`;
  const resume = (change: string) => run(`${change}; sleep 1.1; @publish ${topic} -f ${log} --lines --resume`);
  const rotate = (number: number) =>
    `mv ${log} ${log}.${number}; gzip -c ${log}.${number} >${log}.${number}.gz; rm ${log}.${number}`;
  await run(`@subscribe ${topic} --until-empty`);
  expect(await resume(`seq 1 3 >>${log}`)).toMatchObject({ code: 0 });
  expect(await resume(`${rotate(1)}; seq 4 5 >>${log}`)).toMatchObject({ code: 0 });
  expect(await resume(`${rotate(2)}; seq 6 7 >>${log}`)).toMatchObject({ code: 0 });
  const twice = await resume(`${rotate(3)}; seq 8 9 >>${log}; ${rotate(4)}; seq 10 11 >>${log}`);
  expect(twice).toMatchObject({ code: 0 });
  expect((await run(`@subscribe ${topic} --until-empty`)).stdout).toBe("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n");
});

test("the shell completes the names of topics, whatever is in them", async () => {
  await run("@subscribe 'größe 1' --until-empty; @subscribe groß --until-empty");
  for (const command of ["publish", "subscribe"]) {
    expect((await run(`@__complete ${command} gr`)).stdout).toBe("words\ngroß\ngröße 1\n");
  }
});

describe("mistakes", () => {
  test("in the words", async () => {
    const mistakes: readonly [words: string, says: string][] = [
      ["publish", "publish: missing TOPIC, as in: baton publish TOPIC MESSAGE"],
      ["publish news", "publish: missing MESSAGE, as in: "],
      ["publish news - more", "- is stdin, and must be the only MESSAGE"],
      ["publish news text -f file", 'use only one of -f "file" and MESSAGE "text"'],
      ["publish news text --lines", '--lines splits stdin (-) or a file (-f FILE), not "text"'],
      ["publish news --lines --null", "use only one of --lines and --null"],
      ["publish news a b --msg-id x", "--msg-id is for a single message"],
      ["subscribe", "subscribe: missing TOPIC, as in: baton subscribe news"],
      ["subscribe news sport", 'unexpected argument "sport"; it takes one TOPIC'],
      ["subscribe news --exec true --out-dir in", "subscribe: use only one of --out-dir, --exec"],
      ["subscribe news --exec ''", "--exec"],
      ["pubsub serve more", 'unexpected argument "more"'],
      ["pubsub serve --servers zk1:2181", "baton pubsub serve is for one machine, but the servers are zk1:2181"],
    ];
    for (const [words, says] of mistakes) {
      const ended = await run(`@${words} </dev/null`);
      expect([words, ended.code, ended.stdout, ended.stderr]).toEqual([words, 64, "", expect.stringContaining(says)]);
    }
  });

  test("nothing runs: the command that starts it is named immediately", async () => {
    await using own = new BatonSession({ BATON_SERVERS: "embedded" });
    for (const words of ["publish news hello", "subscribe news --until-empty"]) {
      const running = own.start(`exec "$baton" ${words} --timeout 3s`);
      const { code, stderr } = await running.ended;
      expect([words, code]).toEqual([words, 69]);
      expect(stderr).toContain(
        "still trying: no proxy is running; to start the service on this machine: baton pubsub serve",
      );
    }
  });
});

describe("pubsub serve", () => {
  test("a second one is refused; after a kill -9 the next one has all messages", async () => {
    const topic = newTopic();
    expect(await run("@pubsub serve")).toMatchObject({ code: 75 });
    await run(`@subscribe ${topic} --until-empty; @publish ${topic} kept`);
    serving.child.kill("SIGKILL");
    await serving.ended;
    serving = await serve();
    expect(await run(`@subscribe ${topic} -n 1`)).toMatchObject({ code: 0, stdout: "kept\n" });
  });

  test("a subscriber outlives an outage that is longer than its time limit", async () => {
    const topic = newTopic();
    const follower = await subscriber(`${topic} -n 1 --timeout 1s --retry-timeout 500ms`);
    await stop(serving, "SIGTERM");
    await eventually(() => follower.stderr().includes("; trying again"), { what: "a try to end", withinMs: 60_000 });
    serving = await serve();
    await run(`@publish ${topic} late`);
    expect(await follower.ended).toMatchObject({ code: 0, stdout: "late\n" });
    expect(follower.stderr().match(/trying again|responds again/g)).toEqual(["trying again", "responds again"]);
  });

  test("SIGTERM ends both roles", async () => {
    const { code, stderr } = await stop(serving, "SIGTERM");
    expect(code).toBe(0);
    for (const role of ["server", "proxy"]) expect(stderr).toContain(`baton pubsub ${role}: `);
    expect(stderr.match(/has left/g)?.length).toBe(2);
    serving = await serve();
  });
});

test("a put whose outcome is unknown is resumed by publish --resume, once", async () => {
  await using own = new BatonSession({ BATON_SERVERS: "embedded", BATON_SESSION_TIMEOUT: "4s" });
  for (const role of ["server --id s1 --data-dir s1", "proxy --id p1"]) {
    const running = await startRole(own, role);
    if (role.startsWith("server")) await own.run(`echo ${running.child.pid} >server.pid`);
  }
  await own.run('"$baton" subscribe news --until-empty; mkfifo lines');
  const script = [
    '"$baton" publish news --lines - --timeout 1s <lines &',
    "put=$!; exec 3>lines; echo first >&3",
    '"$baton" subscribe news -n 1 >had; kill -STOP $(cat server.pid); echo second >&3; exec 3>&-; wait $put',
  ];
  const unknown = await own.run(script.join("\n"));
  expect(unknown).toMatchObject({ code: 76, stderr: expect.stringContaining("baton publish news --resume") });
  await own.run("kill -CONT $(cat server.pid)");
  // A call in between neither takes the ID with the unknown outcome nor forgets it.
  const between = await own.run('"$baton" publish news third');
  expect(between).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('1 earlier message for "news" is unknown'),
  });
  expect(await own.run('"$baton" publish news --resume')).toMatchObject({
    code: 0,
    stderr: expect.stringContaining("put 1 message again; each is stored once"),
  });
  expect(await own.run('"$baton" publish news --resume')).toMatchObject({ code: 0, stderr: "" });
  const had = (await own.run('"$baton" subscribe news --until-empty')).stdout.trim().split("\n").sort();
  expect(had).toEqual(["second", "third"]);
});
