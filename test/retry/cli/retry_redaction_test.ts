/** Dead letters leave the store without credentials by every way there is, and are redelivered with them. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { BatonSession } from "../../support/baton_session.ts";
import { FakeKafkaBroker } from "../../support/fake_kafka_broker.ts";
import { HttpBackend } from "../../support/http_backend.ts";
import { PubsubCluster } from "../../support/pubsub_cluster.ts";
import { RetryService } from "../../support/retry_service.ts";

setDefaultTimeout(60_000);

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

const secrets = ["tell-nobody-1", "tell-nobody-2", "tell-nobody-3", "tell-nobody-4", "tell-nobody-5"];
const options = "--max-retries 0 --redact-header x-key --redact-query token";

const pubsubEnv = () => ({ BATON_PUBSUB_PROXIES: cluster.proxy().endpoint });

/** A dead letter that has credentials wherever they can be. `letters`: where it is to go. */
async function deadLetter(backend: HttpBackend, letters = "store", more = ""): Promise<RetryService> {
  const service = await new RetryService(session).start(
    backend.url,
    `--dead-letter '${letters}' --proxies ${cluster.proxy().endpoint} ${options} ${more}`,
  );
  const [basic, cookie, key, token, password] = secrets;
  const answer = await service.post(`/in?token=${token}&kept=yes`, "body", {
    authorization: `Bearer ${basic}`,
    cookie: `s=${cookie}`,
    "x-key": `${key}`,
    referer: `http://me:${password}@there/`,
  });
  expect(answer.headers.has("baton-message-id")).toBe(true);
  await service.stop();
  const run = await session.run(
    `"$baton" retry-processor run --url ${backend.url} --store ${service.name} --once --dead-letter '${letters}' ${options} ${more}`,
    pubsubEnv(),
  );
  expect([run.code, run.stderr]).toEqual([0, expect.any(String)]);
  return service;
}

function expectRedacted(text: string): void {
  for (const secret of secrets) expect(text).not.toContain(secret);
  expect(text).toContain("/in?token=[redacted]&kept=yes");
  expect(text).toContain("http://[redacted]@there/");
  expect(text.split("[redacted]").length).toBe(6);
}

test("a file, a command, a topic and Kafka get no credentials", async () => {
  await using backend = await new HttpBackend((_, response) => void response.writeHead(500).end()).up();
  await deadLetter(backend, "file:dead.jsonl");
  expectRedacted(readFileSync(session.path("dead.jsonl"), "utf8"));

  await deadLetter(backend, "exec:cat >command.json");
  expectRedacted(readFileSync(session.path("command.json"), "utf8"));

  await using broker = await FakeKafkaBroker.start();
  await deadLetter(backend, `kafka://${broker.name}/Dead`);
  expectRedacted(broker.produced[0]?.batch.toString().replaceAll('\\"', '"') ?? "");

  const env = pubsubEnv();
  expect((await session.run('"$baton" pubsub client reader subscribe dead', env)).code).toBe(0);
  await deadLetter(backend, "topic:dead");
  expectRedacted((await session.run('"$baton" pubsub client reader get dead', env)).stdout);
});

test("show and export have none, and all with --redact none; redrive sends them", async () => {
  let works = false;
  await using backend = await new HttpBackend((_, response) => void response.writeHead(works ? 200 : 500).end()).up();
  const service = await deadLetter(backend);
  for (const words of ["show 1 --json", "dlq show 1 --json", "dlq export"]) {
    const say = (more: string) => session.run(`"$baton" retry-processor ${words} --store ${service.name} ${more}`);
    expectRedacted((await say("--redact-header x-key --redact-query token")).stdout);
    const { stdout } = await say("--redact none");
    for (const secret of secrets) expect(stdout).toContain(secret);
    // What is redacted where nothing is said.
    expect((await say("")).stdout.split("[redacted]").length).toBe(4);
  }
  expect((await session.run(`"$baton" retry-processor show 1 --store ${service.name} --redact-query token`)).stdout)
    .toContain(
      "POST /in?token=[redacted]&kept=yes",
    );
  works = true;
  await session.run(`"$baton" retry-processor dlq redrive --all --store ${service.name}`);
  await session.run(`"$baton" retry-processor run --url ${backend.url} --store ${service.name} --once`);
  expect(backend.received.length).toBe(2);
  const [basic, cookie, key, token, password] = secrets;
  expect(backend.received.at(-1)).toMatchObject({
    url: `/in?token=${token}&kept=yes`,
    headers: {
      authorization: `Bearer ${basic}`,
      cookie: `s=${cookie}`,
      "x-key": `${key}`,
      referer: `http://me:${password}@there/`,
    },
  });
  expect((await service.states())["done"]).toBe(1);
});

test("a file gets all of it with --redact none", async () => {
  await using backend = await new HttpBackend((_, response) => void response.writeHead(500).end()).up();
  await deadLetter(backend, "file:whole.jsonl", "--redact none");
  const line = readFileSync(session.path("whole.jsonl"), "utf8");
  for (const secret of secrets) expect(line).toContain(secret);
});

test("what cannot be a header's name is refused where it stands", async () => {
  const env = { BATON_RETRY_REDACT_HEADERS: "a b" };
  const ended = await session.run(
    '"$baton" retry-processor run --once --store named --create --dead-letter file:x',
    env,
  );
  expect([ended.code, ended.stderr]).toEqual([
    78,
    expect.stringContaining('BATON_RETRY_REDACT_HEADERS: "a b" is not a valid header name'),
  ]);
});
