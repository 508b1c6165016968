/**
 * A client of a tree in memory: pipelined, answered in order, cut wherever a test says. Nothing happens by a clock.
 * After a cut, reads come from a server that has not seen the unanswered writes, until an own write. One sync is not
 * enough: a leader that the others have replaced, and that does not know it yet, answers it from what it has.
 */
import type * as api from "../../src/protocols/zookeeper/zookeeper.ts";
import { BatonError } from "../../src/base/errors.ts";
import { ZooKeeperError } from "../../src/protocols/zookeeper/zookeeper_error.ts";
import { createFlag } from "../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { openAcl } from "../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import type { Clock } from "../../src/base/support/clock.ts";
import { childrenIn, type FakeTree, refuse, type Snapshot, statIn } from "./fake_tree.ts";

/**
 * Requests are counted from 1: up to `answered` all is well, up to `executed` the server gets them, then the line is
 * dead.
 */
export interface Cut {
  readonly answered: number;
  readonly executed: number;
}

interface Pending {
  readonly number: number;
  readonly fail: () => void;
}

let lastSession = 0n;

export class FakeZooKeeper implements api.ZooKeeper {
  readonly session: FakeSession;
  readonly acl = openAcl;
  /** Requests sent so far, by name. */
  readonly sent: string[] = [];
  /** Called with the number of each request as it is sent. */
  onSent: (count: number) => void = () => {};
  /** From this request on, counted from 1, the server is stopped: it takes everything and answers nothing. */
  silentFrom = Infinity;
  /** Paths that this client's server lacks, though the others have them: as servers of an ensemble that differ. */
  readonly hidden = new Set<string>();
  #untaken: (() => void)[] = [];
  readonly #tree: FakeTree;
  readonly #cut: Cut | null;
  #isCut = false;
  #stale: Snapshot | null = null;
  /** The leader of that server has been replaced; the next sync is answered all the same. */
  #isDeposed = false;
  #pending: Pending[] = [];
  #isLosing = false;
  /** What the connection that was lost first had sent. */
  #lost: (() => void)[] = [];

  constructor(tree: FakeTree, clock: Clock, options: { readonly cut?: Cut; readonly timeoutMs?: number } = {}) {
    this.#tree = tree;
    this.#cut = options.cut ?? null;
    this.session = new FakeSession(++lastSession, clock, options.timeoutMs ?? 10_000);
  }

  create(
    path: string,
    data: Uint8Array,
    options: api.NodeCreateOptions = {},
  ): Promise<{ path: string; stat: api.Stat }> {
    const flags = createFlag[options.mode ?? "persistent"];
    return this.#write("create", () => this.#tree.create(path, data, flags, this.session.id));
  }

  delete(path: string, version: number): Promise<void> {
    return this.#write("delete", () => this.#tree.delete(path, version));
  }

  setData(path: string, data: Uint8Array, version: number): Promise<api.Stat> {
    return this.#write("setData", () => this.#tree.setData(path, data, version));
  }

  multi(requests: api.MultiRequest[]): Promise<api.MultiResult[]> {
    return this.#write("multi", () => this.#tree.multi(requests, this.session.id));
  }

  exists(path: string, options: api.NodeReadOptions = {}): Promise<api.Stat | null> {
    return this.#read("exists", "node", path, options, (nodes) => nodes.has(path) ? statIn(nodes, path) : null, true);
  }

  getData(path: string, options: api.NodeReadOptions = {}): Promise<{ data: Uint8Array; stat: api.Stat }> {
    return this.#read("getData", "node", path, options, (nodes) => {
      const stat = statIn(nodes, path);
      return { data: nodes.get(path)?.data ?? new Uint8Array(), stat };
    });
  }

  getChildren(path: string, options: api.NodeReadOptions = {}): Promise<{ children: string[]; stat: api.Stat }> {
    return this.#read("getChildren", "children", path, options, (nodes) => {
      const stat = statIn(nodes, path);
      return { children: childrenIn(nodes, path), stat };
    });
  }

  addRecursiveWatch?: (path: string, watcher: api.Watcher) => Promise<void>;
  getDataOfAll?: (paths: readonly string[]) => Promise<(api.NodeData | ZooKeeperError)[]>;

  /** From now on its server knows recursive watches, and reads of several nodes. */
  knowRecursiveWatches(): this {
    this.addRecursiveWatch = (path, watcher) =>
      this.#send("addWatch", () => {
        const { connections } = this.session;
        const end = this.#tree.watchAll(path, (event) => {
          if (this.session.connections !== connections) end();
          else queueMicrotask(() => watcher(event));
        });
      });
    this.getDataOfAll = (paths) =>
      this.#send("multiRead", () =>
        paths.map((path) => {
          try {
            const stat = statIn(this.#tree.nodes, path);
            return { data: this.#tree.nodes.get(path)?.data ?? new Uint8Array(), stat };
          } catch (thrown) {
            if (thrown instanceof ZooKeeperError) return thrown;
            throw thrown;
          }
        }));
    return this;
  }

  sync(): Promise<void> {
    return this.#send("sync", () => {
      if (this.#isDeposed) this.#isDeposed = false;
      else this.#stale = null;
    });
  }

  getAcl(path: string): Promise<never> {
    return Promise.reject(refuse("UNIMPLEMENTED", "getAcl", path));
  }

  setAcl(path: string): Promise<never> {
    return Promise.reject(refuse("UNIMPLEMENTED", "setAcl", path));
  }

  close(): Promise<void> {
    this.session.end("closed");
    this.#tree.expire(this.session.id);
    return Promise.resolve();
  }

  /** The server ends the session. */
  expire(): void {
    this.session.end("expired");
    this.#tree.expire(this.session.id);
  }

  /** The server that was stopped goes on: with all that came meanwhile, in its order. */
  wake(): void {
    this.silentFrom = Infinity;
    for (const deliver of this.#untaken.splice(0)) deliver();
  }

  /**
   * From now on no request is answered, each ends with CONNECTIONLOSS, until `end`: then the server executes those of
   * the first connection, in their order, and answers the requests that follow.
   */
  loseResponses(): { readonly end: () => Promise<void> } {
    this.#isLosing = true;
    return {
      end: async () => {
        this.#isLosing = false;
        for (const execute of this.#lost.splice(0)) execute();
        await Promise.resolve();
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #write<T>(name: string, execute: () => T): Promise<T> {
    return this.#send(name, () => {
      try {
        return execute();
      } finally {
        this.#stale = null; // also by a refusal, which needs a quorum as well
      }
    });
  }

  #read<T>(
    name: string,
    kind: "node" | "children",
    path: string,
    { watch }: api.NodeReadOptions,
    read: (nodes: Snapshot) => T,
    watchesNothing = false,
  ): Promise<T> {
    return this.#send(name, () => {
      let nodes = this.#stale ?? this.#tree.nodes;
      if (this.hidden.size > 0) nodes = new Map([...nodes].filter(([path]) => !this.hidden.has(path)));
      if (watch !== undefined && (nodes.has(path) || watchesNothing)) {
        const differs = nodes.get(path)?.pzxid !== this.#tree.nodes.get(path)?.pzxid;
        if (differs) queueMicrotask(() => watch({ type: kind === "node" ? "deleted" : "childrenChanged", path }));
        else this.#tree.watch(kind, path, (event) => queueMicrotask(() => watch(event)));
      }
      return read(nodes);
    });
  }

  #send<T>(name: string, execute: () => T): Promise<T> {
    if (this.session.ended.aborted) return Promise.reject(refuse("SESSIONEXPIRED", name, ""));
    this.sent.push(name);
    const number = this.sent.length;
    this.onSent(number);
    if (this.#isLosing) {
      if (this.#lost.length === 0) {
        this.#lost.push(() => {
          try {
            execute();
          } catch { /* the refusal has no receiver */ }
        });
      }
      return Promise.reject(refuse("CONNECTIONLOSS", name, ""));
    }
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const pending: Pending = { number, fail: () => reject(refuse("CONNECTIONLOSS", name, "")) };
    this.#pending.push(pending);
    const deliver = () => queueMicrotask(() => this.#deliver(pending, execute, resolve, reject));
    if (number < this.silentFrom) deliver();
    else this.#untaken.push(deliver);
    return promise;
  }

  #deliver<T>(
    pending: Pending,
    execute: () => T,
    resolve: (value: T) => void,
    reject: (reason: unknown) => void,
  ): void {
    if (!this.#pending.includes(pending)) return; // cut off
    if (this.session.ended.aborted) return reject(refuse("SESSIONEXPIRED", "ask", ""));
    const cut = this.#isCut ? null : this.#cut;
    const isLost = cut !== null && pending.number > cut.answered;
    if (isLost && pending.number === cut.answered + 1) this.#breakSoon();
    if (isLost && pending.number > cut.executed) return;
    const before = isLost ? (this.#snapshot ??= new Map(this.#tree.nodes)) : null;
    if (isLost) this.#isDeposed = true;
    let settle: () => void;
    try {
      const result = execute();
      settle = () => resolve(result);
    } catch (thrown) {
      settle = () => reject(thrown);
    }
    this.#stale = before ?? this.#stale;
    if (isLost) return;
    this.#pending.splice(this.#pending.indexOf(pending), 1);
    settle();
  }

  #snapshot: Snapshot | null = null;

  /** Everything of this turn that was sent in the same write is delivered first, or not, as the cut says. */
  #breakSoon(): void {
    setImmediate(() => {
      this.#isCut = true;
      const lost = this.#pending;
      this.#pending = [];
      this.session.setState("connecting");
      for (const pending of lost) pending.fail();
      this.session.connections++;
      this.session.setState("connected");
    });
  }
}

export class FakeSession implements api.ZooKeeperSession {
  readonly id: bigint;
  readonly password = new Uint8Array(16);
  readonly timeoutMs: number;
  state: api.ZooKeeperSessionState = "connected";
  connections = 1;
  readonly #ended = new AbortController();
  readonly #listeners = new Set<(change: "state" | "renewed") => void>();
  #leaseEndMs: number;

  constructor(id: bigint, clock: Clock, timeoutMs: number) {
    this.id = id;
    this.timeoutMs = timeoutMs;
    this.#leaseEndMs = clock.now() + timeoutMs;
  }

  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  leaseEndMs(): number {
    return this.#leaseEndMs;
  }

  /** What `describeOutage` says while the session is not connected. */
  outage = "";

  describeOutage(): string {
    return this.state === "connected" ? "" : this.outage;
  }

  /** How many have it guarded. */
  guards = 0;

  guard(): () => void {
    this.guards++;
    return () => void this.guards--;
  }

  subscribe(listener: (change: "state" | "renewed") => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  renew(leaseEndMs: number): void {
    this.#leaseEndMs = leaseEndMs;
    for (const listener of [...this.#listeners]) listener("renewed");
  }

  setState(state: api.ZooKeeperSessionState): void {
    this.state = state;
    for (const listener of [...this.#listeners]) listener("state");
  }

  end(how: string): void {
    if (this.#ended.signal.aborted) return;
    this.state = "ended";
    this.#ended.abort(new BatonError("UNREACHABLE", `The session has ${how}`));
    this.setState("ended");
  }
}
