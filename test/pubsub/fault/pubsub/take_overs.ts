/**
 * How soon the topics of a server that has died are served again by others: the promise is one session timeout and two
 * seconds.
 */
import { performance } from "node:perf_hooks";
import { readAnnouncement } from "../../../../src/pubsub/ownership/process_announcement.ts";
import { moveTopic } from "../../../../src/pubsub/admin/move_topics.ts";
import { systemClock } from "../../../../src/base/support/clock.ts";
import { connectToZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../../src/protocols/zookeeper/hosts.ts";
import { ProxyClient } from "../../../support/proxy_client.ts";
import type { Role } from "./service.ts";
import type { World } from "./world.ts";

export interface TakeOver {
  readonly server: string;
  readonly how: "killed" | "stopped" | "cut off";
  readonly topics: number;
  /** From its death until its session had ended. Milliseconds. */
  readonly sessionMs: number;
  /**
   * From its death until the last of its topics was served, without what this process was kept waiting. Milliseconds.
   */
  readonly tookMs: number;
}

/** Beyond the session timeout. */
export const takeOverMsMax = 2000;
const beatMs = 25;
const moveMsMax = 60_000;

/** Each server dies once. A topic is moved to it before, if it has none. */
export async function takeOvers(world: World): Promise<TakeOver[]> {
  const results: TakeOver[] = [];
  for (const [place, server] of world.service.servers.entries()) {
    const how = (["killed", "stopped", "cut off"] as const)[place % 3] ?? "killed";
    const [topic = ""] = world.topics;
    {
      await using zk = await connectToZooKeeper({ servers: parseZooKeeperServers(world.backend.servers) });
      const move = { clock: systemClock(), withinMs: moveMsMax };
      await moveTopic(zk, world.service.path, { topic, to: server.id }, move);
    }
    await world.wait(500); // the node is watched
    const topics = world.topics.filter((name) => name === topic || world.watch.owners.get(name) === server.id);
    const times = await servedAgain(world, server, how, topics);
    results.push({ server: server.id, how, topics: topics.length, ...times });
  }
  return results;
}

async function servedAgain(
  world: World,
  server: Role,
  how: TakeOver["how"],
  topics: readonly string[],
): Promise<Pick<TakeOver, "sessionMs" | "tookMs">> {
  await using zk = await connectToZooKeeper({ servers: parseZooKeeperServers(world.backend.servers) });
  let [lateMs, lastMs] = [0, performance.now()];
  const beat = setInterval(() => {
    const nowMs = performance.now();
    lateMs += Math.max(0, nowMs - lastMs - 2 * beatMs);
    lastMs = nowMs;
  }, beatMs);
  const startMs = performance.now();
  try {
    if (how === "killed") await server.kill();
    else if (how === "stopped") server.node.pause();
    else for (const proxy of server.coordination) proxy.blackHole("requests");
    const sinceMs = () => Math.round(performance.now() - startMs - lateMs);
    const sessionEnd = async () => {
      while (await readAnnouncement(zk, world.service.path.server(server.id)) !== null) await world.wait(beatMs);
      return sinceMs();
    };
    const [sessionMs] = await Promise.all([sessionEnd(), ...topics.map((topic) => served(world, topic, server))]);
    return { sessionMs, tookMs: sinceMs() };
  } finally {
    clearInterval(beat);
    if (how === "killed") await server.revive();
    else server.node.resume();
    server.heal();
  }
}

/** Resolves when another server answers. */
async function served(world: World, topic: string, { id }: Role): Promise<void> {
  const relay = world.service.proxies[0]?.relay;
  await using client = new ProxyClient(relay?.endpoint ?? "");
  const endMs = performance.now() + moveMsMax;
  while (performance.now() < endMs) {
    const answer = await client.say({ name: "INFO", sender: "doctor", topic, headers: {} }, 1000).catch(() => null);
    const isServed = answer !== null && ["OK", "NOT_SUBSCRIBED"].includes(answer.status) && answer.sender !== id;
    if (isServed) return;
    await world.wait(beatMs);
  }
  throw new Error(`"${topic}" is not served ${moveMsMax} ms after the death of ${id}`);
}
