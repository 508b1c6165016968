/**
 * The servers, or the proxies, that are there: a watch on the list of their nodes and on each of them, and a read of all at
 * every change. They come and go rarely, and are few.
 */
import type { Stat, ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { backoffMs } from "../../support/backoff.ts";
import { sleep } from "../../support/deadline.ts";
import type { Clock } from "../../support/clock.ts";
import { isRefusal, isTransient, nullIfNoNode } from "../../coordination/request_errors.ts";
import { type Announcement, parseAnnouncement } from "./announcements.ts";
import { makeParents } from "./topic_nodes.ts";

const retryWait = { firstMs: 50, maxMs: 2000 };

export class AnnouncedServers implements Disposable {
  readonly #zk: ZooKeeper;
  readonly #path: string;
  readonly #clock: Clock;
  readonly #listeners = new Set<() => void>();
  #servers: ReadonlyMap<string, Announcement> = new Map();
  #treeId = "";
  #reading: Promise<void> | null = null;
  #isOld = false;
  #isClosed = false;

  /** Resolves when the list was read once. `path` is the node whose children they are. It ends with the session. */
  static async read(zk: ZooKeeper, path: string, clock: Clock): Promise<AnnouncedServers> {
    const list = new AnnouncedServers(zk, path, clock);
    for (let failures = 0;; failures++) {
      try {
        await list.#read();
        return list;
      } catch (thrown) {
        if (!isTransient(thrown)) throw thrown;
      }
      await sleep(clock, backoffMs(failures, retryWait), zk.session.ended);
    }
  }

  private constructor(zk: ZooKeeper, path: string, clock: Clock) {
    this.#zk = zk;
    this.#path = path;
    this.#clock = clock;
  }

  /** By id. As it was a moment ago. */
  get servers(): ReadonlyMap<string, Announcement> {
    return this.#servers;
  }

  /** Tells the tree in which they stand from one that was made after it was lost. */
  get treeId(): string {
    return this.#treeId;
  }

  /** Told after every change. Returns what takes the listener off. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#listeners.clear();
  }

  readonly #onChange = (): void => void this.#refresh(0);

  async #refresh(failures: number): Promise<void> {
    if (this.#isClosed || this.#zk.session.ended.aborted) return;
    if (this.#reading !== null) {
      this.#isOld = true;
      return;
    }
    this.#reading = this.#read();
    try {
      await this.#reading;
    } catch {
      // A lost answer, or the session's end: then there is nothing to wait for.
      this.#clock.after(backoffMs(failures, retryWait), () => void this.#refresh(failures + 1));
      return;
    } finally {
      this.#reading = null;
    }
    if (this.#isOld) {
      this.#isOld = false;
      await this.#refresh(0);
    }
  }

  async #read(): Promise<void> {
    const { children: names, stat } = await this.#names();
    const found = await Promise.all(
      names.map((name) => nullIfNoNode(this.#zk.getData(`${this.#path}/${name}`, { watch: this.#onChange }))),
    );
    const servers = new Map<string, Announcement>();
    for (const one of found) {
      const announcement = one === null ? null : parseAnnouncement(one.data);
      if (announcement !== null) servers.set(announcement.id, announcement);
    }
    this.#servers = servers;
    this.#treeId = `${stat.czxid} ${stat.ctime}`;
    for (const listener of [...this.#listeners]) listener();
  }

  /** The node is made when it is missing: else there would be nothing to watch. */
  async #names(): Promise<{ readonly children: string[]; readonly stat: Stat }> {
    for (;;) {
      try {
        return await this.#zk.getChildren(this.#path, { watch: this.#onChange });
      } catch (thrown) {
        if (!isRefusal(thrown, "NONODE")) throw thrown;
        await makeParents(this.#zk, `${this.#path}/-`);
      }
    }
  }
}
