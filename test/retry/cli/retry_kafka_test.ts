/**
 * Dead letters to Kafka, by the compiled binary: librdkafka's broker and consumer, and a scripted broker for what that
 * one never does.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import net from "node:net";
import process from "node:process";
import { kafkaErrors } from "../../../src/protocols/kafka/kafka_error_codes.ts";
import { BatonSession } from "../../support/baton_session.ts";
import { CertificateAuthority } from "../../support/certificate_authority.ts";
import { eventually } from "../../support/eventually.ts";
import { RetryShell } from "../../support/retry_shell.ts";
import { FakeKafkaBroker } from "../../support/fake_kafka_broker.ts";
import { freePorts } from "../../support/free_ports.ts";
import { MockKafka } from "../../support/kcat.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { seededRandom, testSeed } from "../../support/random.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession());
afterAll(() => session[Symbol.asyncDispose]());

/** A store of the test's own, and the place its dead letters go to. */
class Store extends RetryShell {
  constructor(place: string) {
    super(session, { BATON_RETRY_DEAD_LETTER: place });
  }
}

/** On a port where nobody was before: all that comes goes to `port`. */
async function forwarder(listenPort: number, port: number): Promise<AsyncDisposable> {
  const server = net.createServer((near) => {
    const far = net.connect(port, "127.0.0.1");
    near.on("error", () => far.destroy());
    far.on("error", () => near.destroy());
    near.pipe(far).pipe(near);
  });
  await new Promise<void>((resolve) => server.listen(listenPort, "127.0.0.1", resolve));
  return { [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())) };
}

describeWithPeer("kcat", "dead letters to Kafka", () => {
  let kafka: MockKafka;
  beforeAll(async () => kafka = await MockKafka.start());
  afterAll(() => kafka[Symbol.asyncDispose]());

  test("become records with id, body and headers that a consumer can read, and then leave the store", async () => {
    const store = new Store(`kafka://${kafka.address}/Letters?create=yes`);
    await store.run("printf 'körper\\n' | @retry call --interval 1ms --key art-7 -- sh -c 'exit 3'");
    await store.run("echo final | @retry call -- sh -c 'exit 64'");
    const ended = await store.run("@retry run --interval 1ms --max-retries 2 --until-empty");
    expect([ended.code, ended.stderr]).toEqual([0, expect.stringContaining("to --dead-letter")]);
    const { messages } = await store.json("ls --state dead");
    expect(messages.map(({ forwarding }: { forwarding: string }) => forwarding)).toEqual(["forwarded", "forwarded"]);
    const [first, second] = messages;
    const read = (await kafka.read("Letters")).sort((a, b) => (a.key < b.key ? -1 : 1));
    expect(read).toMatchObject([{ key: first.id, payload: "körper\n" }, { key: second.id, payload: "final\n" }]);
    expect(read[0]?.headers).toEqual({
      "baton-store": "default",
      "baton-key": "art-7",
      "baton-reason": "exhausted",
      "baton-tries": "3",
      "baton-crashes": "0",
      "baton-last-error": "exited with 3",
      "baton-first-at": first.first_at,
      "baton-last-at": first.last_at,
      "baton-command": '["sh","-c","exit 3"]',
      "baton-cwd": session.folder,
    });
  });

  test("stay in the store while no broker is there, which is told everywhere, and go when it is back", async () => {
    const [port = 0] = await freePorts(1);
    const store = new Store(`kafka://127.0.0.1:${port}/Later?create=yes`);
    await store.run("echo a | @retry call -- sh -c 'exit 64'");
    const running = store.start("exec @retry run --metrics-listen unix:$dir/metrics.sock");
    await eventually(() => running.stderr().includes("connection refused; dead letters stay in the store"));
    // Everybody else goes on.
    await store.run("echo b | @retry call --interval 1ms -- sh -c '[ -e go ] || { touch go; exit 1; }'");
    await eventually(() => store.done() === 1);
    await eventually(() => running.stderr().includes("dead letters stay in the store and are retried"));
    expect(await store.json("show 1")).toMatchObject({
      state: "dead",
      forwarding: "pending",
      forwarding_error: expect.stringContaining("No Kafka broker can be reached"),
    });
    const stats = await store.run("@retry stats");
    expect(stats.stdout).toContain(
      "1 dead letter is not delivered to --dead-letter yet: No Kafka broker can be reached",
    );
    const metrics = await session.run("curl -s --unix-socket metrics.sock http://x/metrics");
    expect(metrics.stdout).toMatch(
      /baton_retry_dead_letters_pending 1\n[^]*baton_retry_dead_letter_failures_total [1-9]/,
    );
    await using _ = await forwarder(port, kafka.port);
    await eventually(async () => (await store.json("show 1")).forwarding === "forwarded", { withinMs: 20_000 });
    expect((await kafka.read("Later")).map(({ payload }) => payload)).toEqual(["a\n"]);
    process.kill(running.child.pid ?? 0, "SIGTERM");
    expect((await running.ended).code).toBe(0);
  });

  test("to a topic that is not there end run before anything was tried, unless it is to be made", async () => {
    const store = new Store(`kafka://${kafka.address}/Nowhere`);
    await store.run("echo a | @retry call --interval 1ms -- false");
    const ended = await store.run("@retry run --until-empty");
    expect([ended.code, ended.stderr]).toEqual([
      78,
      expect.stringContaining('the Kafka topic "Nowhere": the topic does not exist'),
    ]);
    expect(await store.json("show 1")).toMatchObject({ state: "waiting", tries: 1 });
  });

  test("wait for a broker that hangs, while messages are tried", async () => {
    await using hanging = await MockKafka.start();
    const store = new Store(`kafka://${hanging.address}/Hangs?create=yes`);
    const running = store.start("exec @retry run --attempt-timeout 1s");
    await eventually(() => running.stderr().includes("tries the messages"));
    hanging.signal("SIGSTOP");
    await store.run(
      "echo a | @retry call -- sh -c 'exit 64'; echo b | @retry call --interval 1ms -- sh -c '[ -e went ] || { touch went; exit 1; }'",
    );
    await eventually(() => store.done() === 1);
    await eventually(async () => (await store.json("show 1")).forwarding_error !== null, { withinMs: 15_000 });
    hanging.signal("SIGCONT");
    await eventually(async () => (await store.json("show 1")).forwarding === "forwarded", { withinMs: 20_000 });
    const { id } = await store.json("show 1");
    expect(new Set((await hanging.read("Hangs")).map(({ key }) => key))).toEqual(new Set([id]));
    process.kill(running.child.pid ?? 0, "SIGTERM");
    await running.ended;
  });

  test("are there at least once, whenever the processor is killed, and never leave the store before", async () => {
    const seed = testSeed();
    const random = seededRandom(seed);
    const store = new Store(`kafka://${kafka.address}/Killed?create=yes`);
    const count = 80;
    await store.run(`seq ${count} | @retry submit --lines`);
    for (let round = 0; round < 2; round++) {
      const running = store.start("exec @retry run -j 8 --lease 2s --max-crashes 100 --max-retries 0 --exec 'exit 64'");
      await eventually(() => running.stderr().includes("tries the messages"));
      await eventually(
        () => running.stderr().split("delivered the dead letter").length > 1 + Math.floor(random() * 12),
        {
          withinMs: 20_000,
        },
      );
      process.kill(running.child.pid ?? 0, "SIGKILL");
      await running.ended;
      const left = (await store.json("ls --state dead --limit 1000")).messages.filter(
        ({ forwarding }: { forwarding: string }) => forwarding === "forwarded",
      );
      const there = new Set((await kafka.read("Killed")).map(({ key }) => key));
      expect([seed, left.filter(({ id }: { id: string }) => !there.has(id))]).toEqual([seed, []]);
    }
    await store.run("@retry run -j 8 --max-crashes 100 --max-retries 0 --until-empty --exec 'exit 64'");
    const read = await kafka.read("Killed");
    expect([seed, new Set(read.map(({ key }) => key)).size]).toEqual([seed, count]);
    expect(new Set(read.map(({ payload }) => payload)).size).toBe(count);
    // Each kill may leave one letter between the record and its note.
    expect(read.length).toBeLessThanOrEqual(count + 2);
  });
});

describe("a broker that refuses", () => {
  test("one letter keeps no other back; it stays in the store and says why", async () => {
    await using broker = await FakeKafkaBroker.start();
    broker.onProduce = ({ bytes }) => (bytes > 10_000 ? kafkaErrors.MESSAGE_TOO_LARGE : 0);
    const store = new Store(`kafka://${broker.name}/Dead`);
    await store.run(
      "head -c 20000 /dev/zero | @retry call -- sh -c 'exit 64'; echo small | @retry call -- sh -c 'exit 64'",
    );
    const ended = await store.run("@retry run --until-empty");
    expect([ended.code, ended.stderr]).toEqual([
      69,
      expect.stringContaining("MESSAGE_TOO_LARGE); it stays in the store and is retried"),
    ]);
    expect(ended.stderr).toContain("1 dead letter is still in the store, not delivered to --dead-letter: ");
    expect(await store.json("show 1")).toMatchObject({
      forwarding: "pending",
      forwarding_error: expect.stringContaining("MESSAGE_TOO_LARGE"),
    });
    expect(await store.json("show 2")).toMatchObject({ forwarding: "forwarded", forwarding_error: null });
  });

  test.each(["--once", "--until-empty"])("for a moment has the letter within the same run %s", async (until) => {
    await using broker = await FakeKafkaBroker.start();
    broker.errors.producer.push(14, 15, 16, 15);
    broker.errors.view.push(5, 7);
    broker.onProduce = () => broker.produced.length < 3 ? kafkaErrors.NOT_ENOUGH_REPLICAS : 0;
    const store = new Store(`kafka://${broker.name}/Dead`);
    await store.run("echo a | @retry call -- sh -c 'exit 64'");
    const ended = await store.run(`@retry run ${until}`);
    expect([ended.code, ended.stderr]).toEqual([0, expect.stringContaining("to --dead-letter")]);
    expect(await store.json("show 1")).toMatchObject({ forwarding: "forwarded", forwarding_error: null });
  });

  test.each(["--once", "--until-empty"])("for good ends run %s with 69, and the letter stays", async (until) => {
    await using broker = await FakeKafkaBroker.start();
    broker.onProduce = () => kafkaErrors.NOT_ENOUGH_REPLICAS;
    const store = new Store(`kafka://${broker.name}/Dead`);
    await store.run(
      "echo a | @retry call -- sh -c 'exit 64'; echo b | @retry call --interval 1ms -- sh -c '[ -e b ] || { touch b; exit 1; }'",
    );
    const ended = await store.run(`sleep 0.01; @retry run ${until} --attempt-timeout 500ms`);
    expect([ended.code, ended.stderr]).toEqual([69, expect.stringContaining("NOT_ENOUGH_REPLICAS")]);
    expect(await store.json("show 1")).toMatchObject({ state: "dead", forwarding: "pending" });
    broker.onProduce = () => 0;
    expect((await store.run(`@retry run ${until}`)).code).toBe(0);
    expect(await store.json("show 1")).toMatchObject({ forwarding: "forwarded" });
  });

  test("the user is told apart from one that is not there", async () => {
    await using broker = await FakeKafkaBroker.start();
    broker.password = "secret";
    writeFileSync(session.path("password"), "wrong\n");
    const store = new Store(`kafka://${broker.name}/Dead?user=me&password-file=password`);
    await store.run("echo a | @retry call -- sh -c 'exit 64'");
    const refused = await store.run("@retry run --until-empty");
    expect([refused.code, refused.stderr]).toEqual([
      77,
      expect.stringContaining('refuses the user "me": wrong password'),
    ]);
    writeFileSync(session.path("password"), "secret\n");
    expect((await store.run("@retry run --until-empty")).code).toBe(0);
    expect(broker.produced.length).toBe(1);
  });
});

test("over TLS a broker is believed whose certificate is the named authority's, and no other", async () => {
  const authority = await CertificateAuthority.start(session.folder, "authority");
  const other = await CertificateAuthority.start(session.folder, "other");
  const { cert, key } = await authority.issue("broker", { names: "IP:127.0.0.1" });
  const tls = { cert: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") };
  await using broker = await FakeKafkaBroker.start({ tls });
  const store = new Store(`kafka://${broker.name}/Dead?ca=${other.ca}`);
  await store.run("echo a | @retry call -- sh -c 'exit 64'");
  await store.run("@retry run --once");
  expect(await store.json("show 1")).toMatchObject({
    forwarding: "pending",
    forwarding_error: expect.stringContaining("certificate"),
  });
  expect(broker.produced.length).toBe(0);
  await store.run(`@retry run --once --dead-letter 'kafka://${broker.name}/Dead?ca=${authority.ca}'`);
  expect([(await store.json("show 1")).forwarding, broker.produced.length]).toEqual(["forwarded", 1]);
});

test("what is wrong with the topic's words or files is said with its code", async () => {
  const store = new Store("store");
  const cases: readonly [place: string, code: number, says: string][] = [
    ["kafka://broker/a/b", 64, '"a/b" is not a valid topic name'],
    ["kafka://broker/Dead?user=me&password-file=/nowhere/x", 78, "Cannot read the Kafka password file"],
    ["kafka://broker/Dead?ca=/nowhere/x", 78, "/nowhere/x"],
  ];
  for (const [place, code, says] of cases) {
    const ended = await store.run(`@retry run --once --dead-letter '${place}'`);
    expect([place, ended.code, ended.stderr]).toEqual([place, code, expect.stringContaining(says)]);
  }
});
