/** Calls by chance on few nodes, and what each was answered: a history for the checker. */
import type { Stat, ZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper.ts";
import { ZooKeeperError } from "../../../../src/protocols/zookeeper/zookeeper_error.ts";
import type { HistoryOperation } from "../../../checker/operation.ts";

type Fields = Record<string, unknown>;
type Call = Pick<HistoryOperation, "do" | "keys" | "input"> & { readonly send: (zk: ZooKeeper) => Promise<Fields> };

export interface ZnodeCallerOptions {
  readonly name: string;
  /** The nodes of the moment. */
  readonly keys: () => readonly string[];
  readonly random: () => number;
  /** Reads may show a past state: those of several servers. */
  readonly hasStaleReads: boolean;
  /** A zxid before all of the calls: histories count from it, since a keeper's are beyond the integers of JSON. */
  readonly firstZxid: () => bigint;
  /** Monotonic milliseconds, the same for all clients. */
  readonly nowMs: () => number;
  /** Some nodes end with their sessions; `sessionEnds` is called for each session. */
  readonly hasEphemerals?: boolean;
}

/** Refusals that say what the nodes were like. */
const answers = ["NONODE", "NODEEXISTS", "BADVERSION"];
/** The request was never sent. */
const notSent = "OPERATIONTIMEOUT";

const bytes = (text: string) => new TextEncoder().encode(text);

export class ZnodeCaller {
  readonly operations: HistoryOperation[] = [];
  /** What no server may answer. */
  readonly surprises: string[] = [];
  readonly #options: ZnodeCallerOptions;
  /** Names that the client has had: it has another one after each change of unknown outcome. */
  #names = 1;
  #written = 0;
  #lastVersion = 0;
  #session = "";
  /** The keys at which the session may have ephemeral nodes. */
  #ephemerals = new Set<string>();
  /** When the last request that was answered in this session was sent: the session was there later than that. */
  #provenMs = 0;

  constructor(options: ZnodeCallerOptions) {
    this.#options = options;
  }

  /** Makes one call, and records it. */
  async call(zk: ZooKeeper): Promise<void> {
    await this.#call(zk, this.#chosen());
  }

  /** Reads a node, and records it. */
  async read(zk: ZooKeeper, key: string): Promise<void> {
    await this.#call(zk, this.#readOf(key));
  }

  /**
   * The session of the last call ends, or has ended: its nodes go at some time after its last response, or have gone.
   */
  sessionEnds(): void {
    const session = this.#session;
    for (const key of this.#ephemerals) {
      const client = `${this.#options.name}.end.${session}.${key}`;
      const about = { model: "znode", client, session, do: "end", keys: [key], input: {} };
      this.operations.push({ ...about, from: this.#provenMs, to: Infinity, outcome: "unknown", output: null });
    }
    this.#ephemerals = new Set();
  }

  #chosen(): Call {
    const { random } = this.#options;
    const keys = this.#options.keys();
    const pick = <T>(items: readonly T[]) => items[Math.floor(random() * items.length)] as T;
    const key = pick(keys);
    const data = `${this.#options.name}-${this.#written++}`;
    const version = pick([-1, this.#lastVersion, this.#lastVersion, 0]);
    const dice = random();
    if (dice < 0.4) return this.#readOf(key);
    if (dice < 0.6) {
      const ephemeral = this.#options.hasEphemerals === true && random() < 0.3;
      if (ephemeral) this.#ephemerals.add(key);
      const mode = ephemeral ? "ephemeral" : "persistent";
      const send = async (zk: ZooKeeper) => this.#zxidOf((await zk.create(key, bytes(data), { mode })).stat);
      return { do: "create", keys: [key], input: { data, ...(ephemeral ? { ephemeral } : {}) }, send };
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

  #readOf(key: string): Call {
    const input = this.#options.hasStaleReads ? { stale: true } : {};
    return { do: "get", keys: [key], input, send: (zk) => this.#read(zk, key) };
  }

  #transaction(key: string, other: string, data: string): Call {
    const { random } = this.#options;
    const dice = random();
    const parts = [
      { do: "set", key, data, version: -1 },
      dice < 0.4
        ? { do: "delete", key: other, data: "", version: -1 }
        : dice < 0.8
        ? { do: "set", key: other, data: `${data}+`, version: -1 }
        : { do: "check", key: other, data: "", version: this.#lastVersion },
    ];
    const send = async (zk: ZooKeeper) => {
      const results = await zk.multi(parts.map(({ do: what, key: path, data, version }) => {
        if (what === "set") return { type: "setData", path, data: bytes(data), version };
        return { type: what === "delete" ? "delete" : "check", path, version };
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
    const first = this.#options.firstZxid();
    const number = Number(zxid - first);
    if (!Number.isSafeInteger(number)) throw new Error(`The zxid ${zxid} is too far from ${first}`);
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
    const from = this.#options.nowMs();
    const client = `${this.#options.name}.${this.#names}`;
    const session = this.#session = `0x${zk.session.id.toString(16)}`;
    const about = { model: "znode", client, session, ...asked, from };
    const index = this.operations.length;
    // As long as there is no response, and for ever if the client dies now.
    this.operations.push({ ...about, to: Infinity, outcome: "unknown", output: null });
    const answered = (output: Fields) => {
      this.#provenMs = from;
      this.operations[index] = { ...about, to: this.#options.nowMs(), outcome: "ok", output };
    };
    try {
      answered(await send(zk));
    } catch (thrown) {
      const reason = thrown instanceof ZooKeeperError ? String(thrown.reason) : null;
      if (reason === null) throw thrown;
      if (answers.includes(reason)) {
        const { index: part } = thrown as ZooKeeperError;
        answered({ error: reason, ...(part === undefined ? {} : { index: part }) });
      } else if (reason === notSent) {
        this.operations[index] = { ...about, to: this.#options.nowMs(), outcome: "fail", output: null };
      } else {
        if (reason !== "CONNECTIONLOSS" && !zk.session.ended.aborted) this.surprises.push(`${asked.do}: ${thrown}`);
        this.#names++;
      }
    }
  }
}
