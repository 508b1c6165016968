/** Servers that own topics, in one process, each with a store that outlives it; and a channel between them. */
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import { BatonError } from "../../src/base/errors.ts";
import { PubsubPath } from "../../src/pubsub/ownership/pubsub_path.ts";
import { AnnouncedServers } from "../../src/pubsub/ownership/announced_servers.ts";
import { TopicOwnership } from "../../src/pubsub/ownership/topic_ownership.ts";
import { TopicRouter } from "../../src/pubsub/ownership/topic_router.ts";
import type { TopicTransferChannel, TopicTransferReply } from "../../src/pubsub/ownership/transfer_channel.ts";
import { type Clock, systemClock } from "../../src/base/support/clock.ts";
import { CrashPoint } from "./crash_point.ts";
import { eventually } from "./eventually.ts";
import { FakeTopicStore } from "./fake_topic_store.ts";

export interface CrewServer {
  readonly id: string;
  readonly store: FakeTopicStore;
  readonly ownership: TopicOwnership;
  /** Of its present session. */
  zk: ZooKeeper;
  readonly crash: CrashPoint;
  stop(): Promise<void>;
}

export class OwnershipCrew implements AsyncDisposable {
  readonly path: PubsubPath;
  readonly problems: unknown[] = [];
  /** By endpoint, which is the id. */
  readonly servers = new Map<string, CrewServer>();
  /** Receivers that nobody reaches. */
  readonly cutOff = new Set<string>();
  /** Receivers that say no before anything is sent, or that break off when so many pieces were sent to them. */
  readonly unwilling = new Map<string, number>();
  /** Transfers arrive when the test delivers them. */
  isNetworkSlow = false;
  /** Delivers what was ever sent, once more. */
  readonly transfers: (() => Promise<TopicTransferReply>)[] = [];
  handoffMs = 500;
  readonly #connect: () => Promise<ZooKeeper>;
  readonly #clock: Clock;
  readonly #stores = new Map<string, FakeTopicStore>();
  readonly #ends: (() => Promise<unknown>)[] = [];

  constructor(root: string, connect: () => Promise<ZooKeeper>, clock: Clock = systemClock()) {
    this.path = new PubsubPath(root);
    this.#connect = connect;
    this.#clock = clock;
  }

  /** Starts a server, with the store that it had. Resolves when it is there, has crashed, or has given up. */
  async start(id: string, crash: CrashPoint = new CrashPoint(), connect = this.#connect): Promise<CrewServer> {
    const store = this.store(id);
    const stopping = new AbortController();
    const ownership = new TopicOwnership({
      id,
      endpoint: id,
      path: this.path,
      store: crash.around(store, ["topics", "look", "age", "raiseAge"]),
      storeLocation: "here",
      channel: crash.around(this.#channel),
      clock: this.#clock,
      handoffMs: this.handoffMs,
      onProblem: (problem) => crash.isCrashed || this.problems.push(problem),
    });
    const clients: ZooKeeper[] = [];
    const open = async () => {
      const zk = await connect();
      clients.push(server.zk = zk);
      return crash.around(zk);
    };
    let hasEnded = false;
    const running = ownership.run(open, stopping.signal).catch((thrown) => {
      hasEnded = true;
      if (!stopping.signal.aborted) this.problems.push(thrown);
    });
    const server: CrewServer = {
      id,
      store,
      ownership,
      zk: undefined as unknown as ZooKeeper,
      crash,
      stop: async () => {
        stopping.abort(new Error("stopped"));
        await Promise.all(clients.map((zk) => zk.close()));
        if (!crash.isCrashed) await running;
        this.servers.delete(id);
      },
    };
    this.servers.set(id, server);
    this.#ends.push(server.stop);
    await eventually(() => ownership.isRegistered || crash.isCrashed || hasEnded, {
      what: `${id} to be there`,
      withinMs: 20_000,
      everyMs: 1,
    });
    return server;
  }

  store(id: string): FakeTopicStore {
    let store = this.#stores.get(id);
    if (store === undefined) this.#stores.set(id, store = new FakeTopicStore());
    return store;
  }

  /** The disk of a server that is not running is gone. */
  loseDisk(id: string): void {
    this.#stores.delete(id);
  }

  async router(): Promise<TopicRouter> {
    const zk = await this.client();
    const list = await AnnouncedServers.read(zk, this.path.servers, this.#clock);
    this.#ends.push(() => Promise.resolve(list[Symbol.dispose]()));
    return new TopicRouter(zk, this.path, list);
  }

  async client(): Promise<ZooKeeper> {
    const zk = await this.#connect();
    this.#ends.push(() => zk.close());
    return zk;
  }

  /** As a client that tries until it is answered OK: the sequence number, and who answered. */
  async put(router: TopicRouter, topic: string, id: string): Promise<{ readonly seq: number; readonly by: string }> {
    return await eventually(async () => {
      const route = await router.findRoute(topic);
      if (route.kind !== "server") return null;
      const server = this.servers.get(route.id);
      if (server === undefined) return null;
      const standing = await server.ownership.availability(topic, route.epoch);
      if (standing.kind !== "serving") {
        const owner = standing.kind === "elsewhere" ? standing : null;
        router.correctRoute(topic, { owner: route.id, epoch: route.epoch }, owner);
        return null;
      }
      const seq = server.store.put(topic, standing.permit.epoch, id);
      return standing.permit.lease.isConfirmed() ? { seq, by: server.id } : null;
    }, { what: `${id} to be put into ${topic}`, withinMs: 20_000, everyMs: 1 });
  }

  readonly #channel: TopicTransferChannel = {
    transfer: async (to, topic, content, { outgoing, signal }) => {
      const { promise, reject } = Promise.withResolvers<never>();
      signal.addEventListener("abort", () => reject(signal.reason as unknown), { once: true });
      promise.catch(() => {}); // it may come while the pieces are read
      const bytes: Uint8Array[] = [];
      const most = this.unwilling.get(to.id);
      if (most === 0) return { kind: "refused", why: "no room" };
      for await (const piece of outgoing.pieces) {
        if (piece !== null && bytes.push(piece) === most) throw new BatonError("UNREACHABLE", `${to.id} broke off`);
      }
      const hash = outgoing.hash();
      const deliver = async () => {
        const server = this.servers.get(to.endpoint);
        if (server === undefined || this.cutOff.has(to.id)) throw new BatonError("UNREACHABLE", `${to.id} is cut off`);
        return await server.ownership.receive(topic, content, { pieces: piecesOf(bytes), hash: () => hash });
      };
      this.transfers.push(deliver);
      return await Promise.race([this.isNetworkSlow ? promise : deliver(), promise]);
    },
  };

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#ends.map((end) => end()));
  }
}

async function* piecesOf(pieces: readonly Uint8Array[]): AsyncGenerator<Uint8Array, void, void> {
  for (const piece of pieces) yield await Promise.resolve(piece);
}
