/** Topics as source, target and dead letter of the compiled binary's retry processor, with a server and a proxy. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import process from "node:process";
import { verifyRetryStore } from "../../../src/retry/queue/sqlite/verify_retry_store.ts";
import { BatonSession, type Ended, type Running } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { RetryShell, written } from "../../support/retry_shell.ts";
import { PubsubCluster } from "../../support/pubsub_cluster.ts";
import { seededRandom, testSeed } from "../../support/random.ts";
import { HttpBackend } from "../../support/http_backend.ts";

setDefaultTimeout(90_000);

let session: BatonSession;
let cluster: PubsubCluster;
beforeAll(async () => {
  session = new BatonSession();
  cluster = await PubsubCluster.start();
});
afterAll(async () => {
  await session[Symbol.asyncDispose]();
  await cluster[Symbol.asyncDispose]();
});

class Store extends RetryShell {
  constructor(env: Readonly<Record<string, string>> = {}) {
    super(session, {
      BATON_PUBSUB_PROXIES: cluster.proxy().endpoint,
      ...env,
    });
  }

  problems(): readonly string[] {
    return verifyRetryStore(this.folder).problems;
  }
}

async function stopped(running: Running): Promise<Ended> {
  process.kill(running.child.pid ?? 0, "SIGTERM");
  return await running.ended;
}

function isRunning(running: Running): Promise<boolean> {
  return eventually(() => running.stderr().includes("tries the messages"), { withinMs: 15_000 });
}

describe("a topic", () => {
  test("as source and target: each message arrives once, however often the processor is killed", async () => {
    const seed = testSeed();
    const random = seededRandom(seed);
    const store = new Store();
    const count = 200;
    const words = "exec @retry run --from-topic in --topic out -j 8 --lease 2s --max-crashes 100 --interval 10ms";
    // The source subscribes, which makes the topic; nobody subscribes to the target: that ends it.
    expect(await store.run(words)).toMatchObject({ code: 78, stderr: expect.stringContaining("has no subscriber") });
    expect((await store.run("@client reader subscribe out && @client writer subscribe in")).code).toBe(0);
    const first = store.start(words);
    await isRunning(first);
    await eventually(
      async () =>
        Number(
          (await store.run("@client writer info in --json | grep -o 'subscribers\":[0-9]*' | cut -d: -f2")).stdout,
        ) === 2,
      { withinMs: 10_000 },
    );
    const putting = store.run(`seq ${count} | @client writer put in --lines`);
    let running = first;
    for (let kill = 0; kill < 3; kill++) {
      const enough = Math.min(count, store.done() + 1 + random() * 40);
      await eventually(() => store.done() >= enough, { withinMs: 20_000 });
      process.kill(running.child.pid ?? 0, "SIGKILL");
      await running.ended;
      running = store.start(words);
      await isRunning(running);
    }
    expect((await putting).code).toBe(0);
    await eventually(() => store.done() === count, { withinMs: 30_000 });
    expect((await stopped(running)).code).toBe(0);
    const read = await store.run("@client reader get out --until-empty --lines");
    const numbers = read.stdout.trim().split("\n").map(Number).sort((a, b) => a - b);
    expect([seed, numbers]).toEqual([seed, Array.from({ length: count }, (_, at) => at + 1)]);
    expect(store.problems()).toEqual([]);
  });

  test("as dead letter: each once though the processor is killed, as JSON, and then it leaves the store", async () => {
    const store = new Store({ BATON_RETRY_DEAD_LETTER: "topic:dead" });
    await store.run("seq 40 | @retry submit --lines");
    const words = "@retry run -j 8 --lease 2s --max-crashes 100 --max-retries 0 --exec 'exit 9'";
    expect(await store.run(`exec ${words}`)).toMatchObject({
      code: 78,
      stderr: expect.stringContaining("has no subscriber"),
    });
    expect(await store.json("stats")).toMatchObject({ states: { waiting: { count: 40 } } });
    await store.run("@client undertaker subscribe dead");
    for (let kill = 1; kill <= 2; kill++) {
      const running = store.start(`exec ${words}`);
      await eventually(() => running.stderr().split("delivered the dead letter").length > 4 * kill, {
        withinMs: 20_000,
      });
      process.kill(running.child.pid ?? 0, "SIGKILL");
      await running.ended;
    }
    expect((await store.run(`${words} --until-empty`)).code).toBe(0);
    const letters = (await store.run("@client undertaker get dead --until-empty --lines")).stdout.trim().split("\n")
      .map((line) => JSON.parse(line));
    expect(letters.map(({ body }) => Number(atob(body))).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 40 }, (_, at) => at + 1),
    );
    expect(letters[0]).toMatchObject({ version: 1, reason: "exhausted", tries: 1, last_error: "exited with 9" });
    expect(await store.json("stats")).toMatchObject({ dead_letters: { pending: 0, error: null } });
  });

  test("as source of serve: what is put there goes to the backend", async () => {
    const store = new Store();
    await using backend = new HttpBackend();
    await backend.up();
    const running = store.start(
      `exec @retry serve --listen 127.0.0.1:0 --url ${backend.url}/ --from-topic web --interval 10ms`,
    );
    await eventually(
      async () =>
        (await store.run("@client w put web - </dev/null; @client w info web")).stdout.includes("subscribers\t1"),
      { withinMs: 15_000 },
    );
    await store.run("echo from-topic | @client w put web -");
    await eventually(() => backend.received.some(({ body }) => body === "from-topic\n"), { withinMs: 15_000 });
    expect((await stopped(running)).code).toBe(0);
  });

  test("that cannot be reached: what is there is tried, said and kept; it goes on when the proxy is back", async () => {
    const store = new Store({ BATON_RETRY_DEAD_LETTER: "topic:away.dead" });
    const deadly = "@retry run --once --dead-letter topic:away.dead --max-retries 0 --exec false";
    await store.run("@client reader subscribe away; @client reader subscribe away.dead; echo a | @retry submit");
    await cluster.proxy().stop();
    try {
      const running = store.start(
        "exec @retry run --topic away --from-topic away.in --interval 100ms --attempt-timeout 1s --max-retries 1000",
      );
      await isRunning(running);
      expect(running.stderr()).toContain("--topic: ");
      expect(running.stderr()).toContain("--dead-letter: ");
      await eventually(async () => (await store.json("show 1")).tries > 0, { withinMs: 20_000 });
      expect((await store.json("show 1")).last_error).toContain('put the message into topic "away"');
      // Not for as long as a request may take, which is a minute: whoever started them has others to start.
      const beganMs = performance.now();
      const lettered = new Store();
      const [once] = await Promise.all([
        new Store({ BATON_RETRY_DEAD_LETTER: "store" }).run("@retry run --once --from-topic away.in --exec true"),
        lettered.run(`echo a | @retry submit && ${deadly}`),
      ]);
      expect([once.code, once.stderr]).toEqual([69, expect.stringContaining('topic "away.in": no response')]);
      expect(performance.now() - beganMs).toBeLessThan(20_000);
      expect(await lettered.json("stats")).toMatchObject({ dead_letters: { pending: 1 } });
      await cluster.proxy().restart();
      await eventually(async () => (await store.json("show 1")).state === "done", { withinMs: 30_000 });
      expect((await stopped(running)).code).toBe(0);
    } finally {
      await cluster.proxy().restart();
    }
    const read = await store.run("@client reader get away --until-empty");
    expect(read.stdout).toBe("a\n\n");
  });

  test("is put into by one processor of a store at a time; the next goes on when that one is gone", async () => {
    const store = new Store();
    await store.run("@client reader subscribe turns");
    const words = "exec @retry run --topic turns";
    const first = store.start(words);
    await isRunning(first);
    const busy = await store.run("@retry run --topic turns --once");
    expect([busy.code, busy.stderr]).toEqual([75, expect.stringContaining("is using it")]);
    const second = store.start(words);
    await eventually(() => second.stderr().includes("waiting until it ends"), { withinMs: 15_000 });
    process.kill(first.child.pid ?? 0, "SIGKILL");
    await isRunning(second);
    await store.run("echo b | @retry submit");
    await eventually(() => store.done() === 1, { withinMs: 15_000 });
    await stopped(second);
  });
});

test("a client that is refused is told so, and its processor ends with 77 and no message tried", async () => {
  const secure = new BatonSession({ BATON_SERVERS: "embedded" });
  await using _ = secure;
  const serve = async (words: string) => {
    const running = secure.start(`exec "$baton" pubsub ${words}`);
    return await eventually(() => / at (tcp:\/\/[\d.]+:\d+)/.exec(running.stderr())?.[1], { withinMs: 20_000 });
  };
  for (const name of ["service", "retry"]) await secure.run(`"$baton" pubsub keygen -q ${name}`);
  const key = (await secure.run('"$baton" pubsub keygen --public retry')).stdout.trim();
  writeFileSync(secure.path("clients"), `${key} reader,stock,stock.source open get,put\n`);
  await serve("server --id s1 --data-dir s1 --key service");
  const proxy = await serve("proxy --listen tcp://127.0.0.1:0 --key service --clients clients");
  const keys = `--key retry --service-key service.pub --proxies ${proxy}`;
  const run = (words: string) =>
    secure.run(
      written(
        `BATON_RETRY_STORE=store ${
          words.startsWith("@client") ? words : `@retry run ${words} --client-id stock`
        } ${keys}`,
      ),
    );
  expect((await run("@client reader subscribe open")).code).toBe(0);
  await secure.run(written("echo a | BATON_RETRY_STORE=store @retry submit"));
  for (
    const words of [
      "--topic closed",
      "--dead-letter topic:open --exec true",
      "--from-topic closed --cron '0 0 1 1 *' --exec true",
    ]
  ) {
    const ended = await run(`${words} --attempt-timeout 5s`);
    expect([words, ended.code, ended.stderr]).toEqual([words, 77, expect.stringContaining("DENIED")]);
  }
  const shown = await secure.run(written("BATON_RETRY_STORE=store @retry show 1 --json"));
  expect(JSON.parse(shown.stdout)).toMatchObject({ state: "waiting", tries: 0 });
  expect((await run("--topic open --until-empty")).code).toBe(0);
});

test("two stores under one client's name: who was there first ends with 84 when the other has taken over", async () => {
  const [store, other] = [new Store(), new Store()];
  await store.run("@client reader subscribe fenced");
  const words = "@retry run --topic fenced --client-id same";
  const running = store.start(`exec ${words}`);
  await isRunning(running);
  await store.run("echo a | @retry submit");
  await eventually(() => store.done() === 1, { withinMs: 15_000 });
  await other.run("echo b | @retry submit");
  expect(await other.run(`${words} --once`)).toMatchObject({ code: 84, stderr: expect.stringContaining("FENCED") });
  expect((await other.run(`${words} --once`)).code).toBe(0);
  await store.run("echo c | @retry submit");
  expect(await running.ended).toMatchObject({
    code: 84,
    stderr: expect.stringContaining("was taken over by session 2"),
  });
  expect(await store.json("show 2")).toMatchObject({ state: "waiting", tries: 0 });
});

describe("topics that are written wrong", () => {
  const cases: readonly [words: string, code: number, says: string][] = [
    ["run --topic a --exec true", 64, "only one of --exec, --url and --topic"],
    ["run --topic '' --once", 64, "topic"],
    ["run --dead-letter topic: --once", 64, "is not a destination for dead letters"],
    ["run --topic a --key nowhere --once", 64, "--service-key"],
    ["run --from-topic a --proxies foo --exec true", 64, '--proxies: Cannot use "foo" as an endpoint'],
  ];
  for (const [words, code, says] of cases) {
    test(words, async () => {
      const ended = await new Store().run(`@retry ${words}`);
      expect([ended.code, ended.stderr]).toEqual([code, expect.stringContaining(says)]);
      expect(ended.stderr).not.toContain("tries the messages");
    });
  }
});
