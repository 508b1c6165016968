/** A client of the world `znode` as a simulated process. */
import { isServerRefusal } from "../../../../src/coordination/nodes/node_requests.ts";
import { sleep } from "../../../../src/base/support/deadline.ts";
import type { ZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper.ts";
import type { HistoryOperation } from "../../../checker/operation.ts";
import { ZnodeCaller } from "../../fault/znode/znode_caller.ts";
import { clientProgram, type ClientWorld, RecipeClient } from "../../../world/recipe_client.ts";
import type { StoredTree } from "../../../world/stored_tree.ts";
import type { SimProcess, SimProgram } from "../../../world/sim_process.ts";
import type { NodeOracle } from "./node_oracle.ts";
import { WatchJudge } from "./watch_judge.ts";

export interface ZnodeWorld extends ClientWorld {
  readonly tree: StoredTree;
  readonly oracle: NodeOracle;
  readonly records: ZnodeRecords;
  readonly settings: { readonly pauseMsMax: number; readonly hasEphemerals: boolean };
}

/** What all clients of a run have done and seen. */
export class ZnodeRecords {
  readonly callers: ZnodeCaller[] = [];
  /** Histories count zxids from that of the queue, which is there before all calls. */
  firstZxid: bigint | null = null;

  get operations(): HistoryOperation[] {
    return this.callers.flatMap(({ operations }) => operations);
  }

  get surprises(): string[] {
    return this.callers.flatMap(({ surprises }) => surprises);
  }
}

const names = ["a", "b", "c"];
/**
 * Milliseconds for which the clients use the same nodes: changes of unknown outcome make a search longer, the more of
 * them a history has.
 */
const sameNodesMs = 2000;
const queue = "/queue";
const watched = ["/watched1", "/watched2"];

const keysAt = (nowMs: number) => names.map((name) => `/${name}${Math.max(0, Math.floor(nowMs / sameNodesMs))}`);

export function znodeProgram(shared: ZnodeWorld): SimProgram {
  return clientProgram(shared, (process) => new ZnodeClient(process, shared));
}

class ZnodeClient extends RecipeClient {
  readonly #shared: ZnodeWorld;
  readonly #caller: ZnodeCaller;
  #watches: WatchJudge | null = null;
  /** The connections of the session when the client made its last call. */
  #connections = 0;
  #closes = () => {};

  constructor(process: SimProcess, shared: ZnodeWorld) {
    super(process, shared);
    this.#shared = shared;
    const { records, settings: { hasEphemerals } } = shared;
    const { world } = process;
    this.#caller = new ZnodeCaller({
      name: `${process.name}-${process.life}`,
      keys: () => this.#keys,
      random: () => this.chance.next(),
      hasStaleReads: false,
      firstZxid: () => records.firstZxid ??= shared.tree.at(queue)?.czxid ?? 0n,
      nowMs: () => world.nowMs,
      hasEphemerals,
    });
    records.callers.push(this.#caller);
  }

  get #keys(): readonly string[] {
    return keysAt(this.process.world.nowMs);
  }

  /** Some pauses are longer than a session lasts without heartbeats. */
  protected override get pausesMs(): readonly number[] {
    return [0, 0, 0, 0, 5, 5, 200, 1500, 2 * this.#shared.options.sessionTimeoutMs];
  }

  protected override connected(zk: ZooKeeper): void {
    if (this.chance.is(0.5)) zk.session.guard();
    const { oracle } = this.#shared;
    this.#connections = 0;
    this.#watches = new WatchJudge(this.process.name, zk, oracle);
    const closes = oracle.sessionOpened(this.process, zk);
    this.#closes = () => {
      closes();
      this.#caller.sessionEnds();
    };
  }

  protected override closing(): void {
    this.#closes();
  }

  protected async round(zk: ZooKeeper): Promise<void> {
    const wasQuiet = this.#shared.isQuiet();
    const { clock } = this.process;
    await zk.create(queue, new Uint8Array(0)).catch((error) => {
      if (!isServerRefusal(error, "NODEEXISTS")) throw error;
    });
    const calls = this.chance.whole(1, wasQuiet ? 5 : 200);
    for (let call = 0; call < calls && !zk.session.ended.aborted; call++) {
      if (!wasQuiet && this.#shared.isQuiet()) return;
      await this.#act(zk);
      await sleep(clock, this.#shared.settings.pauseMsMax * this.chance.next());
    }
    await this.#watches?.lookAtAll();
    if (wasQuiet) this.#shared.served.add(this.process.name);
  }

  async #act(zk: ZooKeeper): Promise<void> {
    const { connections } = zk.session;
    if (connections !== this.#connections) {
      this.#connections = connections;
      return await this.#readAgain(zk);
    }
    const dice = this.chance.next();
    if (dice < 0.6) return await this.#caller.call(zk);
    if (dice < 0.65) return await this.#takeNumber(zk);
    if (dice < 0.75) return await this.#changeWatched(zk);
    const sets = this.chance.is(0.7);
    const kind = this.chance.oneOf(["data", "existence", "children"] as const);
    const path = this.chance.oneOf(kind === "children" ? ["/", queue] : [...this.#keys, ...watched]);
    await this.#watches?.look(kind, path, { sets });
  }

  /** The server may have lost what it should have: reads what was changed last. */
  async #readAgain(zk: ZooKeeper): Promise<void> {
    const { nowMs } = this.process.world;
    for (const key of [...keysAt(nowMs - sameNodesMs), ...keysAt(nowMs)]) await this.#caller.read(zk, key);
  }

  /** Changes a node that is there for longer than the others, so that watches on it outlast connections. */
  async #changeWatched(zk: ZooKeeper): Promise<void> {
    const path = this.chance.oneOf(watched);
    const change = this.chance.oneOf([
      () => zk.setData(path, new Uint8Array(0), -1),
      () => zk.create(path, new Uint8Array(0)),
      () => zk.delete(path, -1),
    ]);
    await change().catch((error) => {
      if (!isServerRefusal(error, "NODEEXISTS", "NONODE")) throw error;
    });
  }

  async #takeNumber(zk: ZooKeeper): Promise<void> {
    const told = this.#shared.oracle.sequenceCall();
    const mode = this.chance.oneOf(["persistentSequential", "ephemeralSequential"] as const);
    const { path } = await zk.create(`${queue}/n-`, new Uint8Array(0), { mode });
    told(Number(path.slice(-10)));
    if (this.chance.is(0.8)) await zk.delete(path, -1);
  }
}
