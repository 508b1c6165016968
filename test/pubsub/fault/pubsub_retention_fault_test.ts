/**
 * Servers that give up what is more than so many messages, killed and handing topics over, under readers that lag, seek
 * and fall over: whoever was passed over was told so, by how much, and has lost nothing else.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { moveTopic } from "../../../src/pubsub/admin/move_topics.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { dose } from "../../support/dose.ts";
import { eventually } from "../../support/eventually.ts";
import { PubsubCluster } from "../../support/pubsub_cluster.ts";
import { seededRandom, testSeed } from "../../support/random.ts";
import { consume, type LifeOptions, publish } from "./pubsub/client_life.ts";
import type { ClientPlan } from "./pubsub/crew_plan.ts";
import { HistoryWriter, readHistory } from "./pubsub/history_file.ts";
import { judge, verdictText } from "./pubsub/judge.ts";

setDefaultTimeout(300_000);

const seed = testSeed();
const clock = systemClock();

test(`subscribers learn what retention removed, whatever happens to the servers [BATON_SEED=${seed}]`, async () => {
  const random = seededRandom(seed);
  await using cluster = await PubsubCluster.start({
    ...{ servers: 2, proxies: 1, as: "processes", sessionTimeoutMs: 2000 },
    serverWords: ["--retain-messages", "40"],
  });
  const folder = (name: string) => {
    const path = join(cluster.folder, name);
    mkdirSync(path);
    return path;
  };
  const history = folder("history");
  let put = 0;
  let phase: ReturnType<LifeOptions["phase"]> = "work";
  let isCalm = false;
  const calm = new Set<string>();
  {
    using writer = new HistoryWriter(join(history, "all.jsonl"));
    const options: LifeOptions = {
      clock,
      ...{ process: "all", stateDir: folder("state"), proxies: [cluster.proxy().endpoint], writer },
      ...{ phase: () => phase, isCalm: () => isCalm, calmed: (client) => void calm.add(client), troubled: () => {} },
      counted: (what, messages) => void (put += what === "put" ? messages : 0),
    };
    const plan = (id: string, more: Partial<ClientPlan> = {}): ClientPlan => ({
      ...{ id, role: "subscriber", topics: ["news"], timeoutMs: 5000, attemptMs: 1000, batch: 8, rate: 0 },
      ...{ churn: 0, seeks: 0, seed: Math.floor(random() * 2 ** 31), ...more },
    });
    const publishers = [1, 2].map((n) => publish(plan(`pub${n}`, { rate: 400, batch: 16 }), options));
    // One is fast, one is put somewhere else now and then, and one cannot keep up.
    const readers = [plan("fast", { batch: 64 }), plan("seeker", { seeks: 0.05 }), plan("slow", { batch: 1 })];
    const reading = Promise.all(readers.map((reader) => consume(reader, options)));
    reading.catch(() => {});
    const zk = await cluster.session();
    const more = async (messages: number) => {
      const wanted = put + messages;
      await eventually(() => put >= wanted, { withinMs: 60_000, what: "messages to be put" });
    };
    await more(200);
    for (let round = 0; round < dose({ gate: 4, full: 40 }); round++) {
      const owner = (await cluster.owners()).get("news") ?? "s1";
      const other = owner === "s1" ? "s2" : "s1";
      if (round % 2 === 0) await cluster.server(random() < 0.7 ? owner : other).restart();
      else await moveTopic(zk, cluster.path, { topic: "news", to: other }, { clock, withinMs: 5000 }).catch(() => {});
      await more(100 + Math.floor(random() * 200));
    }
    isCalm = true;
    await eventually(() => calm.size === 5, { withinMs: 120_000, what: "clients to be calm" });
    writer.healed();
    await more(50);
    phase = "end";
    await Promise.all(publishers);
    phase = "drain";
    await reading;
  }
  const told = readHistory(history);
  const verdict = judge(told, undefined, { retains: true });
  expect(verdict.violations.map(() => verdictText(verdict))).toEqual([]);
  console.log(`${put} put, ${verdict.deliveries} delivered to 3 readers; ${verdict.missed} were given up`);
  expect(verdict.missed).toBeGreaterThan(0);
  // The same history, were retention no reason.
  expect(judge(told).lost).toBeGreaterThan(0);
});
