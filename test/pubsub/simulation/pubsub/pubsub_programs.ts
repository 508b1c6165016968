/**
 * The processes of publish/subscribe as simulated programs: topic servers, proxies, clients, and an operator. All of
 * them are the real code.
 */
import { type BatonError, errorMessage } from "../../../../src/base/errors.ts";
import { moveTopic } from "../../../../src/pubsub/admin/move_topics.ts";
import { requestTopicAction } from "../../../../src/pubsub/admin/manage_topic.ts";
import { setServerDraining } from "../../../../src/pubsub/ownership/announcements.ts";
import { forgetServer } from "../../../../src/pubsub/ownership/forget_server.ts";
import type { PubsubPath } from "../../../../src/pubsub/ownership/pubsub_path.ts";
import { PubsubProxy } from "../../../../src/pubsub/proxy/pubsub_proxy.ts";
import { ZookeeperTopicDirectory } from "../../../../src/pubsub/proxy/zookeeper_directory.ts";
import { TopicServer } from "../../../../src/pubsub/server/topic_server.ts";
import { serveTopicStore } from "../../../../src/pubsub/store/sqlite/topic_store_thread.ts";
import type { StartedStoreThread } from "../../../../src/pubsub/store/topic_store.ts";
import type { TopicStoreOptions } from "../../../../src/pubsub/store/limits/topic_store_limits.ts";
import { sleep } from "../../../../src/base/support/deadline.ts";
import type { ZeroMqSocketOptions } from "../../../../src/protocols/zeromq/socket_options.ts";
import type { ZooKeeperServerList } from "../../../../src/protocols/zookeeper/hosts.ts";
import type { ZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper.ts";
import { connectToZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper_client.ts";
import { consume, type LifeOptions, publish } from "../../fault/pubsub/client_life.ts";
import type { ClientPlan } from "../../fault/pubsub/crew_plan.ts";
import type { HistoryRecorder } from "../../fault/pubsub/history_recorder.ts";
import type { SimNetwork } from "../../../world/sim_network.ts";
import type { SimProcess, SimProgram } from "../../../world/sim_process.ts";
import { SimStorageThread } from "../../../world/sim_thread.ts";
import type { ClientDisk } from "./client_disk.ts";
import type { TopicDisk } from "./topic_disk.ts";

/** The time until a process that has ended is started again, in milliseconds. */
const restartMs = 1000;

/** What all processes of a world share. */
export interface PubsubSystem {
  readonly network: SimNetwork;
  readonly servers: ZooKeeperServerList;
  readonly path: PubsubPath;
  readonly sessionTimeoutMs: number;
}

function socketOf(process: SimProcess, { network }: PubsubSystem): ZeroMqSocketOptions {
  return { dial: network.dial(process), listen: network.listen(process), clock: process.clock };
}

function sessionOf(process: SimProcess, { network, servers, sessionTimeoutMs }: PubsubSystem) {
  const { clock } = process;
  return (signal: AbortSignal): Promise<ZooKeeper> =>
    connectToZooKeeper({ servers, clock, dial: network.dial(process), sessionTimeoutMs, signal });
}

function endOf(process: SimProcess, how: string): void {
  process.world.log(() => `${process.name} has ended: ${how}`);
  process.exit();
  process.world.after(restartMs, () => process.start());
}

/** The threads of a topic store, in the process itself. */
function startThreads(process: SimProcess, disk: TopicDisk): StartedStoreThread {
  const thread = new SimStorageThread(process);
  serveTopicStore({
    parent: thread.parent,
    requests: { on: (event, listener) => thread.parent.on(event, listener), take: () => thread.take() },
    openDatabase: (_, { acceptDamagedLog }) => disk.open(process, thread, acceptDamagedLog),
  });
  return { worker: thread, requests: { postMessage: (request) => thread.postMessage(request), close: () => {} } };
}

export interface ServerProgramOptions {
  readonly host: string;
  readonly port: number;
  readonly disk: TopicDisk;
  readonly store: Partial<TopicStoreOptions>;
  /** Resolves when somebody ends the server in order, and it is to hand its topics to others or not. */
  readonly whenTold: (process: SimProcess) => Promise<{ readonly handOff: boolean }>;
}

export function serverProgram(
  system: PubsubSystem,
  { host, port, disk, store, whenTold }: ServerProgramOptions,
): SimProgram {
  return async (process) => {
    const { world, clock, name: id } = process;
    const socket = socketOf(process, system);
    const onProblem = (problem: unknown) => world.log(() => `${id}: ${errorMessage(problem)}`);
    try {
      const server = await TopicServer.start({
        ...{ id, dataDir: disk.folder, path: system.path, clock, store, onProblem },
        listen: `tcp://${host}:${port}`,
        connect: sessionOf(process, system),
        security: { server: socket, client: socket },
        system: {
          startStoreThreads: () => startThreads(process, disk),
          storeLocation: () => `${process.machine.name} ${id}`,
        },
      });
      world.log(() => `${id} serves`);
      const told = await Promise.race([server.ended, whenTold(process)]);
      world.count("mark server left");
      const kept = await server.leave({ withinMs: 5000, handOff: told.handOff });
      return endOf(process, `it left with ${kept.length} topics`);
    } catch (error) {
      const isExpected = ["IO", "LOCK_BUSY", "UNREACHABLE"].includes((error as BatonError).code);
      if (!isExpected) world.fail("server ended", `${id}: ${(error as Error).stack}`);
      endOf(process, errorMessage(error));
    }
  };
}

export function proxyProgram(system: PubsubSystem, endpoint: string): SimProgram {
  return async (process) => {
    const { world, clock, name: id } = process;
    const onProblem = (problem: unknown) => world.log(() => `${id}: ${errorMessage(problem)}`);
    const directory = new ZookeeperTopicDirectory({ path: system.path, clock, onProblem });
    const signal = new AbortController().signal;
    const socket = socketOf(process, system);
    const sockets = { clientSocketOptions: socket, serverSocketOptions: socket };
    try {
      const running = directory.run(sessionOf(process, system), { id, endpoint, storeId: id }, signal);
      await using proxy = new PubsubProxy({ id, directory, clock, requestTimeoutMs: 5000, ...sockets, onProblem });
      await proxy.listen(endpoint);
      await running;
    } catch (error) {
      world.fail("proxy ended", `${id}: ${(error as Error).stack}`);
      endOf(process, errorMessage(error));
    }
  };
}

export interface ClientProgramOptions {
  readonly clients: readonly ClientPlan[];
  readonly proxies: readonly string[];
  readonly disk: ClientDisk;
  readonly recorderOf: (process: SimProcess) => HistoryRecorder;
  readonly phase: LifeOptions["phase"];
  readonly isCalm: () => boolean;
  readonly calmed: (client: string) => void;
  readonly published: (client: string) => void;
  readonly drained: (client: string) => void;
}

/** Some clients in one process. */
export function clientProgram(system: PubsubSystem, options: ClientProgramOptions): SimProgram {
  return async (process) => {
    const { world, clock } = process;
    const { disk: { folder, openState } } = options;
    options.disk.started(process);
    const life: LifeOptions = {
      ...{ clock, openState, socket: socketOf(process, system), process: `${process.name}.${process.life}` },
      ...{ proxies: options.proxies, stateDir: folder, writer: options.recorderOf(process) },
      ...{ phase: options.phase, isCalm: options.isCalm, calmed: options.calmed },
      counted: (what, messages) => world.count(`messages ${what}`, messages),
      troubled: (why) => {
        world.count("mark client failed");
        world.log(() => `${process.name}: ${why}`);
      },
    };
    await Promise.all(options.clients.map(async (client) => {
      if (client.role === "publisher") {
        await publish(client, life);
        options.published(client.id);
      } else {
        await consume(client, life);
        options.drained(client.id);
      }
    }));
  };
}

export interface OperatorProgramOptions {
  readonly topics: readonly string[];
  readonly servers: readonly string[];
  readonly everyMs: number;
  /** Gives up servers that do not run. */
  readonly forgets: boolean;
  readonly isQuiet: () => boolean;
  /** Ends a server in order. */
  readonly leave: (server: string, handOff: boolean) => void;
}

/** Moves topics, drains servers, looks at topics, and ends servers in order. */
export function operatorProgram(system: PubsubSystem, options: OperatorProgramOptions): SimProgram {
  return async (process) => {
    const { world, clock } = process;
    const chance = world.chance.fork(`operator ${process.life}`);
    const { topics, servers, everyMs } = options;
    const { path } = system;
    const socket = socketOf(process, system);
    while (!options.isQuiet()) {
      try {
        const open = new AbortController();
        await using zk = await sessionOf(process, system)(open.signal);
        const request = { clock, withinMs: 20_000, socket };
        while (!options.isQuiet()) {
          await sleep(clock, chance.next() * 2 * everyMs);
          const topic = chance.oneOf(topics);
          const server = chance.oneOf(servers);
          if (options.forgets) {
            await forgetServer(zk, path, server).catch((error) => {
              if ((error as BatonError).code !== "LOCK_BUSY") throw error;
            });
            continue;
          }
          const what = chance.next();
          if (what < 0.7) {
            const { kind } = await moveTopic(zk, path, { topic, to: server }, request);
            world.count(`mark move: ${kind}`);
            world.log(() => `operator: move of "${topic}" to ${server}: ${kind}`);
          } else if (what < 0.8) await setServerDraining(zk, path, server, chance.is(0.4));
          else if (what < 0.9) await requestTopicAction(zk, path, { topic, action: "show" }, request);
          else options.leave(server, chance.is(0.7));
        }
      } catch (error) {
        world.log(() => `operator: ${errorMessage(error)}`);
        await sleep(clock, chance.between(10, 1000));
      }
    }
    await freeServers(process, system, servers);
  };
}

/** No server is left as one that takes no topics. */
async function freeServers(process: SimProcess, system: PubsubSystem, servers: readonly string[]): Promise<void> {
  for (;;) {
    try {
      await using zk = await sessionOf(process, system)(new AbortController().signal);
      for (const server of servers) await setServerDraining(zk, system.path, server, false);
      return;
    } catch {
      await sleep(process.clock, 500);
    }
  }
}
