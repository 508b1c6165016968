/**
 * A list of the announced servers or proxies that is kept up to date. Watches the list of nodes and every node in it,
 * and reads all nodes again after every change. The nodes are few and rarely change.
 */
import type { Stat, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError } from "../../base/errors.ts";
import { backoffMs, serverBackoff } from "../../base/support/backoff.ts";
import type { Clock } from "../../base/support/clock.ts";
import { isServerRefusal, nullIfNoNode, retryOnConnectionLoss } from "../../coordination/nodes/node_requests.ts";
import { type ProcessAnnouncement, tryParseAnnouncement } from "./process_announcement.ts";
import { makeParentNodes } from "./topic_nodes.ts";
import { ListenerSet } from "../../base/support/event.ts";

export class AnnouncedServers implements Disposable {
  readonly #zk: ZooKeeper;
  readonly #path: string;
  readonly #clock: Clock;
  readonly #changes = new ListenerSet();
  /** The announcements by the id of the process, as last read. */
  servers: ReadonlyMap<string, ProcessAnnouncement> = new Map();
  /** The errors for processes of later versions, whose announcements this version cannot read. */
  later: readonly BatonError[] = [];
  /** An ID of the tree of nodes. If the tree was created again after a loss of data, it has another ID. */
  treeId = "";
  #reading: Promise<void> | null = null;
  #isStale = false;
  #isClosed = false;

  /**
   * Reads the children of the node `path`, and resolves after the first read. The list stays up to date until the
   * session ends.
   */
  static async read(zk: ZooKeeper, path: string, clock: Clock): Promise<AnnouncedServers> {
    const list = new AnnouncedServers(zk, path, clock);
    const { ended } = zk.session;
    await retryOnConnectionLoss(zk, () => list.#read(), { clock, limitMs: Infinity, signal: ended });
    return list;
  }

  private constructor(zk: ZooKeeper, path: string, clock: Clock) {
    this.#zk = zk;
    this.#path = path;
    this.#clock = clock;
  }

  /** Calls the listener after every change. Returns a function that removes the listener. */
  subscribe(listener: () => void): () => void {
    return this.#changes.subscribe(listener);
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#changes.clear();
  }

  readonly #onChange = (): void => void this.#refresh(0);

  async #refresh(failures: number): Promise<void> {
    if (this.#isClosed || this.#zk.session.ended.aborted) return;
    if (this.#reading !== null) {
      this.#isStale = true;
      return;
    }
    this.#reading = this.#read();
    try {
      await this.#reading;
    } catch {
      // A response was lost, or the session has ended.
      this.#clock.startTimer(backoffMs(failures, serverBackoff), () => void this.#refresh(failures + 1));
      return;
    } finally {
      this.#reading = null;
    }
    if (this.#isStale) {
      this.#isStale = false;
      await this.#refresh(0);
    }
  }

  async #read(): Promise<void> {
    const { children: names, stat } = await this.#listNames();
    const found = await Promise.all(
      names.map((name) => nullIfNoNode(this.#zk.getData(`${this.#path}/${name}`, { watch: this.#onChange }))),
    );
    const servers = new Map<string, ProcessAnnouncement>();
    const later: BatonError[] = [];
    for (const [index, one] of found.entries()) {
      const read = one === null ? null : tryParseAnnouncement(one.data, `${this.#path}/${names[index]}`);
      if (read instanceof BatonError) later.push(read);
      else if (read !== null) servers.set(read.id, read);
    }
    this.servers = servers;
    this.later = later;
    this.treeId = `${stat.czxid} ${stat.ctime}`;
    this.#changes.notify();
  }

  /**
   * Lists the names of the nodes. Creates a missing parent node, because only an existing node has children to watch.
   */
  async #listNames(): Promise<{ readonly children: string[]; readonly stat: Stat }> {
    for (;;) {
      try {
        return await this.#zk.getChildren(this.#path, { watch: this.#onChange });
      } catch (thrown) {
        if (!isServerRefusal(thrown, "NONODE")) throw thrown;
        await makeParentNodes(this.#zk, `${this.#path}/-`);
      }
    }
  }
}
