/** Topics and Kafka are reached by the retry processor wherever baton runs: compiled, under Bun, under Deno. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import { FakeKafkaBroker } from "../../support/fake_kafka_broker.ts";
import { PubsubCluster } from "../../support/pubsub_cluster.ts";
import { requireBinary, runtimes } from "../../support/runtimes.ts";

setDefaultTimeout(60_000);

const start = promisify(execFile);
let cluster: PubsubCluster;
beforeAll(async () => {
  requireBinary();
  cluster = await PubsubCluster.start();
});
afterAll(() => cluster[Symbol.asyncDispose]());

describe.each([...runtimes])("$name", ({ name, command: [executable = "", ...first] }) => {
  test("takes a message out of one topic, puts it into another, and a dead letter into Kafka", async () => {
    await using kafka = await FakeKafkaBroker.start();
    const folder = mkdtempSync(join(tmpdir(), "baton-places-"));
    const [from, to] = [`${name} in`, `${name} out`];
    const env = {
      PATH: process.env["PATH"],
      DENO_DIR: process.env["DENO_DIR"] ?? join(tmpdir(), "baton-deno-cache"),
      BATON_RETRY_STORE: join(folder, "store"),
      BATON_RETRY_DEAD_LETTER: `kafka://${kafka.name}/Dead`,
      BATON_PUBSUB_PROXIES: cluster.proxy().endpoint,
      BATON_PUBSUB_STATE_DIR: join(folder, "clients"),
    };
    const baton = async (...words: string[]) =>
      (await start(executable, [...first, ...words], { cwd: folder, env })).stdout;
    try {
      const client = (...words: string[]) => baton("pubsub", "client", "me", ...words);
      await client("subscribe", to);
      await baton("retry-processor", "run", "--from-topic", from, "--once", "--exec", "true"); // subscribes
      await client("put", from, import.meta.filename);
      await client("put", from, "/dev/null");
      await baton("retry-processor", "run", "--from-topic", from, "--once", "--topic", to);
      expect(await client("pending", to)).toBe("2\n");
      await client("put", from, "/dev/null");
      await baton("retry-processor", "run", "--from-topic", from, "--once", "--exec", "exit 64");
      expect(kafka.produced.length).toBe(1);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
