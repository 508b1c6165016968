/** What is done to a campaign's service and clients. Each does it and, after a while, takes it back. */
import { connect as dialRaw } from "node:net";
import { DealerSocket } from "../../../../src/protocols/zeromq/dealer_socket.ts";
import { connectToZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../../src/protocols/zookeeper/hosts.ts";
import { moveTopic } from "../../../../src/pubsub/admin/move_topics.ts";
import { systemClock } from "../../../../src/base/support/clock.ts";
import type { RunningBackend } from "../../../support/backends.ts";
import { commits } from "../../../coordination/fault/ensemble/faults.ts";
import { malformed } from "./malformed.ts";
import type { Role } from "./service.ts";
import { Worker } from "./worker.ts";
import type { Impairment } from "./zmtp_relay.ts";
import { pick, span, toOne, type World } from "./world.ts";

export interface PubsubFault {
  readonly name: string;
  /** How often it comes, compared with others. */
  readonly weight: number;
  /** Ensembles only. */
  readonly needsLeader?: boolean;
  /** It lasts for more than ten seconds. */
  readonly isSlow?: boolean;
  /** A client does not know any more what it has been told. */
  readonly losesState?: boolean;
  /** Resolves when it is over, with whom it hit; null: there was nobody to hit. */
  readonly apply: (world: World) => Promise<string | null>;
}

/** Hits one role that is free. */
function onRole(act: (world: World, role: Role) => Promise<void>, kind?: Role["kind"]): PubsubFault["apply"] {
  return async (world) => {
    let name: string | null = null;
    const roles = world.service.roles.filter((role) => kind === undefined || role.kind === kind);
    await toOne(world, roles, async (role) => {
      name = role.id;
      await act(world, role);
    });
    return name;
  };
}

/** Stops a role for a part of the session timeout. */
function stopped(from: number, to: number) {
  return async (world: World, { node }: Role): Promise<void> => {
    node.pause();
    await world.wait(span(world, from, to) * world.sessionTimeoutMs);
    node.resume();
  };
}

/** Impairs one direction of a role's network for some milliseconds. */
function impaired(
  direction: "requests" | "replies",
  impairment: Impairment,
  [fromMs, toMs]: readonly [fromMs: number, toMs: number],
) {
  return async (world: World, { relay }: Role): Promise<void> => {
    relay.impair(direction, impairment);
    await world.wait(span(world, fromMs, toMs));
    relay.heal();
  };
}

function onWorker(act: (world: World, worker: Worker) => Promise<void>): PubsubFault["apply"] {
  return async (world) => {
    let name: string | null = null;
    await toOne(world, world.workers, async (worker) => {
      name = worker.name;
      await act(world, worker);
    });
    return name;
  };
}

const restarts: PubsubFault[] = [
  {
    name: "role killed",
    weight: 6,
    apply: onRole(async (world, role) => {
      await role.kill();
      await world.wait(span(world, 0, 1500));
      await role.revive();
    }),
  },
  {
    name: "role told to end",
    weight: 2,
    apply: onRole(async (_world, role) => {
      await role.stop();
      await role.revive();
    }),
  },
  {
    name: "role stopped for longer than its session",
    weight: 3,
    apply: onRole(stopped(1.1, 1.8)),
  },
  {
    name: "role stopped for a moment",
    weight: 2,
    apply: onRole(stopped(0.1, 0.6)),
  },
  {
    name: "all proxies killed: cold caches",
    weight: 1,
    apply: async (world) => {
      const free = world.service.proxies.filter((proxy) => !world.busy.has(proxy));
      for (const proxy of free) world.busy.add(proxy);
      await Promise.all(free.map((proxy) => proxy.kill()));
      await Promise.all(free.map((proxy) => proxy.revive()));
      for (const proxy of free) world.busy.delete(proxy);
      return free.map(({ id }) => id).join("+");
    },
  },
];

const networks: PubsubFault[] = [
  ...(["requests", "replies"] as const).flatMap((direction): PubsubFault[] => [
    {
      name: `${direction} wait in a hole`,
      weight: 2,
      apply: onRole(impaired(direction, { kind: "hole" }, [300, 3000])),
    },
    {
      name: `${direction} are dropped`,
      weight: 3,
      apply: onRole(impaired(direction, { kind: "drop" }, [100, 1500])),
    },
    {
      name: `${direction} to the coordination service wait`,
      weight: 2,
      apply: onRole(async (world, role) => {
        for (const proxy of role.coordination) proxy.blackHole(direction);
        await world.wait(span(world, 0.3, 1.8) * world.sessionTimeoutMs);
        for (const proxy of role.coordination) proxy.heal();
      }),
    },
  ]),
  {
    name: "requests are reordered",
    weight: 3,
    apply: onRole((world, role) => {
      const shuffle = { kind: "shuffle", ms: span(world, 20, 400) } as const;
      return impaired("requests", shuffle, [300, 2500])(world, role);
    }),
  },
  {
    name: "connections are cut",
    weight: 4,
    apply: onRole(async (world, role) => {
      for (let times = 0; times < 3; times++) {
        role.relay.cut(0.5);
        await world.wait(span(world, 0, 200));
      }
    }),
  },
  { name: "old requests are replayed", weight: 10, apply: onRole(replay) },
  {
    name: "malformed and huge frames",
    weight: 3,
    apply: onRole(async (world, role) => {
      await Promise.all(
        malformed(world.random).map((bytes) => sayRaw(Number(role.relay.target.split(":").at(-1)), bytes)),
      );
    }),
  },
];

const handoffs: PubsubFault[] = [
  { name: "handoff", weight: 3, apply: (world) => move(world, 1) },
  { name: "opposing handoffs", weight: 3, apply: (world) => move(world, 2) },
  {
    name: "handoffs cut by a kill",
    weight: 5,
    apply: async (world) => {
      let names = "";
      const moving = move(world, pick(world, [1, 2]));
      await toOne(world, world.service.servers, async (server) => {
        await world.wait(span(world, 0, 60));
        await server.kill();
        names = server.id;
        await server.revive();
      });
      return `${await moving} ${names}`;
    },
  },
  {
    name: "handoffs cut by a network",
    weight: 3,
    apply: async (world) => {
      const moving = move(world, 2);
      await toOne(world, world.service.servers, async (server) => {
        await world.wait(span(world, 0, 40));
        server.relay.cut();
        await impaired("replies", { kind: "drop" }, [100, 1500])(world, server);
      });
      return await moving;
    },
  },
];

/** Kills it; what was done to its disk until then stays, so that what is done to it from outside is not undone. */
async function killForGood(worker: Worker): Promise<void> {
  await worker.kill();
  worker.storage?.settle();
}

const clients: PubsubFault[] = [
  {
    name: "clients killed",
    weight: 5,
    apply: onWorker(async (world, worker) => {
      await killForGood(worker);
      for (const { id } of worker.clients) if (world.random() < 0.4) world.states.keep(worker.stateDir, id);
      worker.start();
      await world.wait(span(world, 0, 500));
    }),
  },
  {
    name: "clients stopped",
    weight: 2,
    apply: onWorker(async (world, worker) => {
      worker.signal("SIGSTOP");
      await world.wait(span(world, 0.2, 1.5) * world.sessionTimeoutMs);
      worker.signal("SIGCONT");
    }),
  },
  {
    name: "a client's state is lost",
    losesState: true,
    weight: 2,
    apply: onWorker(async (world, worker) => {
      await killForGood(worker);
      const { id } = pick(world, worker.clients);
      world.states.lose(worker.stateDir, id);
      world.control.state(id, "lost");
      worker.start();
    }),
  },
  {
    name: "a client's state is an older copy",
    losesState: true,
    weight: 3,
    apply: onWorker(async (world, worker) => {
      await killForGood(worker);
      const { id } = pick(world, worker.clients);
      if (world.states.restore(worker.stateDir, id, world.random())) world.control.state(id, "restored");
      else world.states.keep(worker.stateDir, id);
      worker.start();
    }),
  },
  {
    name: "clients' states are shared by two processes",
    losesState: true,
    weight: 2,
    apply: onWorker(async (world, worker) => {
      await killForGood(worker);
      for (const { id } of worker.clients) world.control.state(id, "shared");
      const twin = worker.twin();
      world.states.copyAll(worker.stateDir, twin.stateDir);
      worker.start();
      twin.start();
      await world.wait(span(world, 1500, 4000));
      await twin.kill();
    }),
  },
];

const coordination: PubsubFault[] = [
  {
    name: "coordination service stopped",
    weight: 1,
    apply: onBackend(async (world) => {
      world.backend.pause();
      await world.wait(span(world, 0.2, 1.3) * world.sessionTimeoutMs);
      world.backend.resume();
      await reviveEnsemble(world.backend);
    }),
  },
  {
    name: "coordination service killed",
    weight: 1,
    apply: onBackend(async (world) => {
      await world.backend.kill();
      await world.wait(span(world, 0, 0.8) * world.sessionTimeoutMs);
      await world.backend.restart();
    }),
  },
  {
    name: "leader killed",
    weight: 2,
    needsLeader: true,
    apply: onBackend(async (world) => {
      const leader = await world.backend.leader();
      await leader.kill();
      await world.wait(span(world, 0.5, 1.5) * world.sessionTimeoutMs);
      await leader.restart();
    }),
  },
  {
    name: "leader stopped",
    weight: 1,
    needsLeader: true,
    apply: onBackend(async (world) => {
      const leader = await world.backend.leader();
      leader.pause();
      await world.wait(span(world, 0.3, 1.5) * world.sessionTimeoutMs);
      leader.resume();
    }),
  },
];

export const pubsubFaults: readonly PubsubFault[] = [
  ...restarts,
  ...networks,
  ...handoffs,
  ...clients,
  ...coordination,
];

/**
 * An ensemble that was stopped as a whole may have a leader afterwards and commit nothing (see `commits`): it takes an
 * operator. Returns whether it did.
 */
export async function reviveEnsemble(backend: RunningBackend): Promise<boolean> {
  if (await commits(backend)) return false;
  const leader = await backend.leader();
  await leader.kill();
  await leader.restart();
  return true;
}

function onBackend(act: (world: World) => Promise<void>): PubsubFault["apply"] {
  return async (world) => await toOne(world, [world.backend], () => act(world)) ? "coordination" : null;
}

/** Requests that passed some time ago, on fresh connections, some of them to where they did not go then. */
async function replay(world: World, role: Role): Promise<void> {
  const others = world.service.roles.filter(({ kind }) => kind === role.kind);
  const { remembered } = role.relay;
  if (remembered.length === 0) return;
  const target = world.random() < 0.7 ? role : pick(world, others);
  await using dealer = new DealerSocket({ sendHighWater: 1000 });
  dealer.connect(target.relay.target);
  for (let count = 1 + Math.floor(world.random() * 60); count > 0; count--) {
    dealer.trySend([...pick(world, remembered)]);
  }
  await world.wait(span(world, 200, 800)); // their answers interest nobody
}

/** So many handoffs of one topic at once, each to another server, ended or not. */
async function move(world: World, count: number): Promise<string> {
  const { service, backend, sessionTimeoutMs, watch } = world;
  const topic = pick(world, world.topics);
  const owner = watch.owners.get(topic);
  const others = service.servers.map(({ id }) => id).filter((id) => id !== owner);
  const to = count >= others.length ? others : [pick(world, others)];
  const signal = AbortSignal.timeout(moveMsMax);
  const options = { clock: systemClock(), withinMs: moveMsMax, signal };
  try {
    await using zk = await connectToZooKeeper({
      servers: parseZooKeeperServers(backend.servers),
      sessionTimeoutMs,
      signal,
    });
    await Promise.all(to.map((id) => moveTopic(zk, service.path, { topic, to: id }, options).catch(() => null)));
  } catch {
    // The coordination service is away, or the time is over: so be it.
  }
  return `${topic} to ${to.join(" and ")}`;
}

const moveMsMax = 3000;
const rawMs = 300;

/** Whatever it is, to a role's port, without a word of ZMTP of our own. */
function sayRaw(port: number, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    const socket = dialRaw({ host: "127.0.0.1", port });
    const end = () => {
      socket.destroy();
      resolve();
    };
    socket.on("error", end);
    socket.on("close", () => resolve());
    socket.write(bytes);
    systemClock().startTimer(rawMs, end);
  });
}
