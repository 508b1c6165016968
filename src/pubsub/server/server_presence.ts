/**
 * Watches which other servers and proxies are announced, and whether an operator drains this server. Continues in later
 * sessions.
 */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import type { Clock } from "../../base/support/clock.ts";
import type { ProcessAnnouncement } from "../ownership/process_announcement.ts";
import { setServerDraining } from "../ownership/announcements.ts";
import type { PubsubPath } from "../ownership/pubsub_path.ts";
import { AnnouncedServers } from "../ownership/announced_servers.ts";

export interface AnnouncedProcessWatchOptions {
  readonly id: string;
  readonly endpoint: string;
  readonly path: PubsubPath;
  readonly clock: Clock;
  readonly onProblem: (problem: unknown) => void;
  readonly onProxies: (proxies: ReadonlyMap<string, ProcessAnnouncement>) => void;
  readonly onDraining?: ((isDraining: boolean) => void) | undefined;
}

const retryDelayMs = 1000;

export class AnnouncedProcessWatch implements Disposable {
  readonly #options: AnnouncedProcessWatchOptions;
  #servers: AnnouncedServers | null = null;
  #zk: ZooKeeper | null = null;
  /** True if this server gets no new topics. */
  isDraining = false;

  constructor(options: AnnouncedProcessWatchOptions) {
    this.#options = options;
  }

  /** Returns a server's endpoint; null if it is not running. */
  endpointOf(server: string): string | null {
    return this.#servers?.servers.get(server)?.endpoint ?? null;
  }

  /**
   * Returns the IDs of servers that accept new topics and share the store `store`. If `store` is null, returns servers
   * that have a store of their own.
   */
  serversTakingTopics(store: string | null): string[] {
    const all = [...this.#servers?.servers.values() ?? []];
    return all.filter((server) => server.isDraining !== true && (server.store ?? null) === store).map(({ id }) => id);
  }

  /** Returns the number of topics of each server that takes topics of this store; empty if there is no session. */
  async topicCounts(store: string): Promise<Map<string, number>> {
    const zk = this.#zk;
    if (zk === null || zk.session.ended.aborted) return new Map();
    const ids = this.serversTakingTopics(store);
    const stats = await Promise.all(ids.map((id) => zk.exists(this.#options.path.ownedTopics(id))));
    return new Map(ids.map((id, index) => [id, stats[index]?.numChildren ?? 0]));
  }

  async drain(): Promise<void> {
    const { id, path, onProblem } = this.#options;
    this.isDraining = true;
    if (this.#zk !== null) await setServerDraining(this.#zk, path, id, true).catch(onProblem);
  }

  /** Starts to watch servers and proxies in a new session. Keeps the last lists between sessions. */
  async watch(zk: ZooKeeper): Promise<void> {
    const { path, clock, onProblem, onProxies } = this.#options;
    try {
      const [servers, proxies] = await Promise.all([
        AnnouncedServers.read(zk, path.servers, clock),
        AnnouncedServers.read(zk, path.proxies, clock),
      ]);
      zk.session.ended.addEventListener("abort", () => {
        servers[Symbol.dispose]();
        proxies[Symbol.dispose]();
      }, { once: true });
      this.#servers = servers;
      this.#zk = zk;
      const look = () => this.#noticeDraining(servers);
      servers.subscribe(look);
      look();
      const tell = () => onProxies(proxies.servers);
      proxies.subscribe(tell);
      tell();
    } catch (thrown) {
      if (zk.session.ended.aborted) return;
      onProblem(thrown);
      clock.startTimer(retryDelayMs, () => void this.watch(zk));
    }
  }

  [Symbol.dispose](): void {
    this.#servers?.[Symbol.dispose]();
  }

  /** Handles the draining mark, which an operator sets or removes. The mark stays valid for the next sessions. */
  #noticeDraining({ servers }: AnnouncedServers): void {
    const { id, endpoint, onDraining } = this.#options;
    const own = servers.get(id);
    const isDraining = own?.isDraining ?? false;
    if (own?.endpoint !== endpoint || isDraining === this.isDraining) return;
    this.isDraining = isDraining;
    onDraining?.(isDraining);
  }
}
