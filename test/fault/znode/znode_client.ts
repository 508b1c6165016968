/** One client of the znode workload: a session over a network of its own, calls by chance on few nodes, and what each was answered. */
import { Way } from "../ensemble/way.ts";
import type { ServerNode } from "../../support/backends.ts";
import type { Stat, ZooKeeper } from "../../../src/zookeeper/zookeeper.ts";
import { ZooKeeperError } from "../../../src/zookeeper/zookeeper_error.ts";
import type { HistoryOperation } from "../../checker/operation.ts";
import { monotonicMs } from "../pubsub/monotonic.ts";

type Fields = Record<string, unknown>;
type Call = Pick<HistoryOperation, "do" | "keys" | "input"> & { readonly send: (zk: ZooKeeper) => Promise<Fields> };

export interface ZnodeClientOptions {
  readonly name: string;
  /** The nodes of the moment. */
  readonly keys: () => readonly string[];
  readonly random: () => number;
  readonly sessionTimeoutMs: number;
  /** Reads may show a past state: those of several servers. */
  readonly hasStaleReads: boolean;
  /** A zxid before all of the workload: histories count from it, since a keeper's are beyond the integers of JSON. */
  readonly firstZxid: bigint;
}

/** Refusals that say what the nodes were like. */
const answers = ["NONODE", "NODEEXISTS", "BADVERSION"];
/** The request was never sent. */
const notSent = "OPERATIONTIMEOUT";

const bytes = (text: string) => new TextEncoder().encode(text);

export class ZnodeClient implements AsyncDisposable {
  readonly operations: HistoryOperation[] = [];
  /** What no server may answer. */
  readonly surprises: string[] = [];
  readonly #options: ZnodeClientOptions;
  readonly #nodes: readonly ServerNode[];
  #way: Way | null = null;
  /** Names that the client has had: it has another one after each change of unknown outcome. */
  #names = 1;
  #written = 0;
  #lastVersion = 0;

  constructor(nodes: readonly ServerNode[], options: ZnodeClientOptions) {
    this.#nodes = nodes;
    this.#options = options;
  }

  /** Makes calls, one after the other, until `isOver`. A session that has ended is followed by another one. */
  async work(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      if (this.#way === null || this.#way.zk.session.ended.aborted) await this.#open();
      else await this.#call(this.#way.zk, this.#chosen());
    }
  }

  /** Ends all connections; the session goes on. */
  cut(): void {
    this.#way?.proxies.forEach((proxy) => proxy.cut());
  }

  /** Lets the next response be lost, and ends the connection. */
  loseResponse(): void {
    for (const proxy of this.#way?.proxies ?? []) void proxy.onFrame({ direction: "replies", nth: 0, action: "drop" });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#way?.[Symbol.asyncDispose]();
  }

  async #open(): Promise<void> {
    await this.#way?.[Symbol.asyncDispose]();
    this.#way = null;
    this.#way = await Way.open(this.#nodes, this.#options.sessionTimeoutMs).catch(() => null);
  }

  #chosen(): Call {
    const { random, hasStaleReads } = this.#options;
    const keys = this.#options.keys();
    const pick = <T>(items: readonly T[]) => items[Math.floor(random() * items.length)] as T;
    const key = pick(keys);
    const data = `${this.#options.name}-${this.#written++}`;
    const version = pick([-1, this.#lastVersion, this.#lastVersion, 0]);
    const dice = random();
    if (dice < 0.4) {
      const input = hasStaleReads ? { stale: true } : {};
      return { do: "get", keys: [key], input, send: (zk) => this.#read(zk, key) };
    }
    if (dice < 0.6) {
      const send = async (zk: ZooKeeper) => this.#zxidOf((await zk.create(key, bytes(data))).stat);
      return { do: "create", keys: [key], input: { data }, send };
    }
    if (dice < 0.8) {
      const send = async (zk: ZooKeeper) => {
        const stat = await zk.setData(key, bytes(data), version);
        this.#lastVersion = stat.version;
        return { ...this.#zxidOf(stat), version: stat.version };
      };
      return { do: "set", keys: [key], input: { data, version }, send };
    }
    if (dice < 0.9) {
      const send = (zk: ZooKeeper) => zk.delete(key, version).then(() => ({}));
      return { do: "delete", keys: [key], input: { version }, send };
    }
    return this.#transaction(key, pick(keys.filter((other) => other !== key)), data);
  }

  #transaction(key: string, other: string, data: string): Call {
    const parts = [
      { do: "set", key, data, version: -1 },
      { do: this.#options.random() < 0.5 ? "delete" : "set", key: other, data: `${data}+`, version: -1 },
    ];
    const send = async (zk: ZooKeeper) => {
      const results = await zk.multi(parts.map((part) => {
        if (part.do === "delete") return { type: "delete", path: part.key, version: -1 };
        return { type: "setData", path: part.key, data: bytes(part.data), version: -1 };
      }));
      const [first] = results;
      return first?.type === "setData" ? this.#zxidOf(first.stat) : {};
    };
    return { do: "multi", keys: [key, other], input: { parts }, send };
  }

  #zxidOf(stat: Stat | null): Fields {
    return stat === null ? {} : { zxid: this.#numberOf(stat.mzxid) };
  }

  #numberOf(zxid: bigint): number {
    const number = Number(zxid - this.#options.firstZxid);
    if (!Number.isSafeInteger(number)) throw new Error(`The zxid ${zxid} is too far from ${this.#options.firstZxid}`);
    return number;
  }

  async #read(zk: ZooKeeper, key: string): Promise<Fields> {
    const { data, stat } = await zk.getData(key);
    this.#lastVersion = stat.version;
    return {
      data: new TextDecoder().decode(data),
      version: stat.version,
      czxid: this.#numberOf(stat.czxid),
      mzxid: this.#numberOf(stat.mzxid),
    };
  }

  async #call(zk: ZooKeeper, { send, ...asked }: Call): Promise<void> {
    const from = monotonicMs();
    const client = `${this.#options.name}.${this.#names}`;
    const about = { model: "znode", client, session: `0x${zk.session.id.toString(16)}`, ...asked, from };
    try {
      const output = await send(zk);
      this.operations.push({ ...about, to: monotonicMs(), outcome: "ok", output });
    } catch (thrown) {
      const reason = thrown instanceof ZooKeeperError ? String(thrown.reason) : null;
      if (reason === null) throw thrown;
      const to = monotonicMs();
      if (answers.includes(reason)) {
        const index = (thrown as ZooKeeperError).index;
        const output = { error: reason, ...(index === undefined ? {} : { index }) };
        this.operations.push({ ...about, to, outcome: "ok", output });
      } else if (reason === notSent) this.operations.push({ ...about, to, outcome: "fail", output: null });
      else {
        if (reason !== "CONNECTIONLOSS" && !zk.session.ended.aborted) this.surprises.push(`${asked.do}: ${thrown}`);
        this.operations.push({ ...about, to: Infinity, outcome: "unknown", output: null });
        this.#names++;
      }
    }
  }
}
