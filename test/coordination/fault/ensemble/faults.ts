/**
 * What happens to an ensemble under its clients. None of it lasts so long that a session may be lost by it that looks
 * elsewhere.
 */
import type { ZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper.ts";
import type { RunningBackend, ServerNode } from "../../../support/backends.ts";
import { systemClock } from "../../../../src/base/support/clock.ts";
import { sleep } from "../../../../src/base/support/deadline.ts";
import { serversThatEnded } from "../../../support/backend.ts";
import { eventually } from "../../../support/eventually.ts";
import { fourLetterWord } from "../../../support/four_letter_word.ts";
import type { Partition } from "../../../support/partition.ts";
import { RawClient } from "../../../support/raw_client.ts";
import { shuffled } from "../../../support/random.ts";
import type { Way } from "./way.ts";

export interface EnsembleFaultContext {
  readonly ensemble: RunningBackend;
  readonly partition: Partition;
  /** Of all clients. The first one's watches are what is looked at afterwards. */
  readonly ways: readonly Way[];
  /** All of them, and that which makes the changes. */
  readonly sessions: readonly ZooKeeper[];
  readonly sessionTimeoutMs: number;
  readonly random: () => number;
  /** How long a fault lasts is part of what it is: a share of T, by chance between these two. */
  last(from: number, to: number): Promise<void>;
}

export interface EnsembleFault {
  readonly name: string;
  /** Does it, and heals it. */
  apply(context: EnsembleFaultContext): Promise<void>;
}

/**
 * Of T: how long a leader may stand still, since it ends sessions that it has heard of nothing for T. A session that
 * asks for nothing is heard of every T/3.
 */
const standMax = 0.6;

export const ensembleFaults: readonly EnsembleFault[] = [
  {
    name: "the server that the watches are at is killed",
    async apply(context) {
      const node = connected(context);
      await node.kill();
      await context.last(0.1, 0.5);
      await node.restart();
    },
  },
  {
    name: "the server that the watches are at stands still",
    async apply(context) {
      const node = connected(context);
      node.pause();
      await context.last(0.2, standMax);
      node.resume();
    },
  },
  {
    // No session lives so long that does not leave it.
    name: "a server stands still for longer than T",
    async apply(context) {
      const node = connected(context);
      node.pause();
      await context.last(1.2, 1.6);
      // Of the two that are left one may lead without the other's knowledge until initLimit is over (ZooKeeper 3.8.0).
      // A leader that wakes has heard of no session for longer than T: if there is no other one yet it ends them all,
      // and whoever knocks at its door just then is told that his session has ended in any case.
      await whole({ nodes: context.ensemble.nodes.filter((one) => one !== node) });
      await allConnected(context.sessions, context.sessionTimeoutMs);
      node.resume();
    },
  },
  {
    name: "the leader is killed",
    async apply({ ensemble, last }) {
      const leader = await ensemble.leader();
      await leader.kill();
      await last(0.1, 0.5);
      await leader.restart();
    },
  },
  {
    name: "the leader stands still",
    async apply({ ensemble, last }) {
      const leader = await ensemble.leader();
      leader.pause();
      await last(0.2, standMax);
      leader.resume();
    },
  },
  {
    name: "the quorum is lost, and comes back",
    async apply({ ensemble, random, last }) {
      const two = shuffled(ensemble.nodes, random).slice(0, 2);
      await Promise.all(two.map((node) => node.kill()));
      await last(0.1, 0.4);
      await Promise.all(two.map((node) => node.restart()));
    },
  },
  {
    name: "all servers stand still",
    async apply({ ensemble, last }) {
      ensemble.pause();
      await last(0.1, standMax);
      ensemble.resume();
    },
  },
  {
    name: "a follower is cut off from the others",
    async apply({ ensemble, partition, ways, last }) {
      const leader = ensemble.nodes.indexOf(await ensemble.leader());
      const at = ways[0]?.at ?? -1;
      partition.isolate(at >= 0 && at !== leader ? at : (leader + 1) % ensemble.nodes.length);
      await last(0.3, 0.9);
      partition.heal();
    },
  },
  {
    name: "the leader is cut off from the others",
    async apply({ ensemble, partition, last }) {
      partition.isolate(ensemble.nodes.indexOf(await ensemble.leader()));
      await last(0.3, 0.9);
      partition.heal();
    },
  },
  {
    name: "all servers are started anew, one after the other",
    async apply({ ensemble, random }) {
      for (const node of shuffled(ensemble.nodes, random)) {
        await node.restart();
        await whole(ensemble);
      }
    },
  },
  {
    name: "connections are cut, again and again",
    async apply({ ways, random, last }) {
      for (let times = 0; times < 8; times++) {
        for (const { proxies } of ways) if (random() < 0.7) proxies.forEach((proxy) => proxy.cut());
        await last(0, 0.05);
      }
    },
  },
  {
    name: "connections end in the middle of a frame",
    async apply({ ways, random, last }) {
      for (let times = 0; times < 8; times++) {
        const direction = random() < 0.7 ? "replies" : "requests";
        const nth = Math.floor(random() * 4);
        for (const { proxies } of ways) {
          for (const proxy of proxies) void proxy.onFrame({ direction, nth, action: "tear", matching: () => true });
        }
        await last(0, 0.05);
      }
      for (const { proxies } of ways) proxies.forEach((proxy) => proxy.heal());
    },
  },
  {
    name: "nothing passes between clients and servers",
    async apply({ ways, random, last }) {
      const hole = (["both", "requests", "replies"] as const)[Math.floor(random() * 3)] ?? "both";
      for (const { proxies } of ways) proxies.forEach((proxy) => proxy.blackHole(hole));
      await last(0.2, 0.6);
      for (const { proxies } of ways) proxies.forEach((proxy) => proxy.heal());
    },
  },
];

function connected({ ensemble, ways }: EnsembleFaultContext): ServerNode {
  const node = ensemble.nodes[Math.max(0, ways[0]?.at ?? 0)];
  if (node === undefined) throw new Error("The ensemble has no servers");
  return node;
}

/** Nobody is on the way to a server, or at one that does not answer. */
export async function allConnected(sessions: readonly ZooKeeper[], withinMs: number): Promise<void> {
  const what = "all sessions to be connected";
  await eventually(() => sessions.every(({ session }) => session.state === "connected"), { withinMs, what });
}

/** An ensemble that is well gives a session in less. Milliseconds. */
const answerMsMax = 6000;

/**
 * Whether somebody else than the client under test, at the leader itself, is given a session, which is a write. After
 * all of its servers stood still, ZooKeeper 3.8.0 may have a leader and two followers, and commit nothing until the
 * leader is started anew: followers that come back to a leader that has not noticed leave its open proposals without
 * their acknowledgements.
 */
export async function commits(ensemble: RunningBackend): Promise<boolean> {
  const given = ensemble.leader().then(({ address }) => RawClient.connect(address)).then(async (client) => {
    await client.close();
    return true;
  }, () => false);
  return await Promise.race([given, sleep(systemClock(), answerMsMax).then(() => false)]);
}

/** A server ended that nobody killed. */
export class ServerEnded extends Error {}

/**
 * Waits until all of these servers serve, and are one ensemble. Throws ServerEnded with the last words of one that
 * ended by itself.
 */
export async function whole({ nodes }: Pick<RunningBackend, "nodes">): Promise<void> {
  const isServing = async ({ address }: ServerNode) => /^Mode: /m.test(await fourLetterWord(address, "srvr", 500));
  const areServing = async () => (await Promise.all(nodes.map(isServing))).every(Boolean);
  await eventually(async () => serversThatEnded(nodes).length > 0 || await areServing(), {
    withinMs: 30_000,
    what: "all servers to serve",
    everyMs: 30,
  });
  const [ended] = serversThatEnded(nodes);
  if (ended !== undefined) throw new ServerEnded(ended);
}

/** Starts all servers again, and waits until they serve. */
export async function startAnew(ensemble: RunningBackend): Promise<void> {
  await ensemble.restart();
  await whole(ensemble);
}
