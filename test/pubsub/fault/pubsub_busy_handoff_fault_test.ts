/**
 * Handoffs of a topic that is put to and got from all the while, between server processes either of which is killed at
 * a step that chance decides, with what it had not synced: everything that was answered OK is there once, and in order.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectToZooKeeper } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../src/protocols/zookeeper/hosts.ts";
import { PubsubPath } from "../../../src/pubsub/ownership/pubsub_path.ts";
import { verifyTopicStore } from "../../../src/pubsub/store/sqlite/verify_topic_store.ts";
import { dose } from "../../support/dose.ts";
import { eventually } from "../../support/eventually.ts";
import { FaultyServer } from "../../support/faulty_server.ts";
import { startKeeperProcess } from "../../support/keeper_server.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { PubsubTalker } from "../../support/pubsub_talker.ts";
import { seededRandom, testSeed } from "../../support/random.ts";
import { durableSteps } from "../../support/storage_faults/storage_faults.ts";
import { TopicTraffic } from "../../support/topic_traffic.ts";

setDefaultTimeout(1_200_000);

const seed = testSeed();
const rounds = dose({ gate: 5, full: 100 });
const stepsMax = 150;
const topic = "news";

describeWithPeer("cc", `handoffs of a busy topic [BATON_SEED=${seed}]`, () => {
  test("owner or receiver is killed during the handoff: nothing answered is lost or stored twice", async () => {
    const random = seededRandom(seed);
    const folder = mkdtempSync(join(tmpdir(), "baton-handoff-"));
    const backend = await startKeeperProcess();
    const zk = await connectToZooKeeper({ servers: parseZooKeeperServers(backend.servers) });
    const servers = ["s1", "s2"].map((id) => new FaultyServer(id, folder, backend.servers, { sockets: true }));
    const say = await PubsubTalker.start(zk, new PubsubPath("/baton"));
    say.attemptMs = 400;
    let moved = 0;
    try {
      for (const server of servers) await server.start();
      const traffic = new TopicTraffic(say, topic);
      await traffic.begin(["p", "q", "r"]);
      for (let round = 0; round < rounds; round++) {
        const answered = traffic.answered;
        await eventually(() => traffic.answered > answered + 20, { withinMs: 60_000, what: "requests to be answered" });
        const { id: from, endpoint } = await say.endpoint(topic);
        const to = from === "s1" ? "s2" : "s1";
        const target = servers[random() < 0.5 ? 0 : 1] as FaultyServer;
        target.faults.killAt(1 + Math.floor(random() * stepsMax), [...durableSteps, "send", "receive"]);
        const merge = { name: "MERGE", sender: "op", topic, address: to, headers: {} } as const;
        say.say(endpoint, merge, 10_000).then(({ status }) => moved += status === "OK" ? 1 : 0, () => {});
        // Who has little to do takes few steps.
        await target.ended(2000).catch(() => target.kill());
        target.faults.losePower(random() < 0.3 ? undefined : random);
        target.faults.killAt(0);
        expect(await target.start()).toBe(true);
      }
      expect(await traffic.finish()).toEqual([]);
      for (const server of servers) await server.stop();
      for (const { dataDir } of servers) expect(verifyTopicStore(dataDir).problems).toEqual([]);
      console.log(`${traffic.puts} puts, ${rounds} kills, ${moved} handoffs ended before theirs`);
    } finally {
      await say[Symbol.asyncDispose]();
      for (const server of servers) await server[Symbol.asyncDispose]();
      await zk.close();
      await backend.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
