/**
 * A client of a recipe as a simulated process: it opens sessions, and works in each of them, until it has been served
 * at the quiet end.
 */
import { BatonError, type ErrorCode } from "../../src/base/errors.ts";
import { sleep } from "../../src/base/support/deadline.ts";
import { connectToZooKeeper } from "../../src/protocols/zookeeper/zookeeper_client.ts";
import type { ZooKeeperServerList } from "../../src/protocols/zookeeper/hosts.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import { ZooKeeperError } from "../../src/protocols/zookeeper/zookeeper_error.ts";
import type { Chance } from "./chance.ts";
import type { SessionOracle } from "./session_oracle.ts";
import type { SimNetwork } from "./sim_network.ts";
import type { SimProcess, SimProgram } from "./sim_process.ts";

/** What all clients of a world share. */
export interface ClientWorld {
  readonly network: SimNetwork;
  readonly servers: ZooKeeperServerList;
  readonly options: { readonly sessionTimeoutMs: number };
  readonly sessions: SessionOracle;
  isQuiet(): boolean;
  /** Clients that were served at the quiet end. */
  readonly served: Set<string>;
  /** Clients that have ended. */
  readonly done: Set<string>;
}

/** Failures that faults of the network and of servers cause. */
const expectedCodes: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  ...["UNREACHABLE", "LOCK_BUSY", "LOCK_TIMEOUT", "OUTCOME_UNKNOWN"] as const,
]);

export function isExpected(error: unknown): boolean {
  if (error instanceof ZooKeeperError) {
    return ["CONNECTIONLOSS", "OPERATIONTIMEOUT", "SESSIONEXPIRED"].includes(String(error.reason));
  }
  return error instanceof BatonError && expectedCodes.has(error.code);
}

/** One life of a client. */
export abstract class RecipeClient {
  readonly chance: Chance;
  protected readonly process: SimProcess;
  readonly #shared: ClientWorld;

  constructor(process: SimProcess, shared: ClientWorld) {
    this.process = process;
    this.#shared = shared;
    this.chance = process.world.chance.fork(`contender ${process.name} ${process.life}`);
  }

  /** The longest pauses between two rounds, in milliseconds. */
  protected get pausesMs(): readonly number[] {
    return [0, 0, 5, 200, 1500];
  }

  /** Whether this client has nothing left to do. */
  get isOver(): boolean {
    return this.#shared.served.has(this.process.name);
  }

  /** Opens a session and works in it until it fails, or for some rounds. */
  async session(): Promise<void> {
    const { clock } = this.process;
    const zk = await this.connect();
    try {
      this.connected(zk);
      const rounds = this.chance.whole(1, 6);
      for (let round = 0; round < rounds && !this.isOver; round++) {
        await this.round(zk);
        if (!this.isOver) await sleep(clock, this.chance.oneOf(this.pausesMs) * this.chance.next());
      }
    } finally {
      this.closing();
      await zk.close();
    }
  }

  protected async connect(): Promise<ZooKeeper> {
    const { network, servers, options: { sessionTimeoutMs } } = this.#shared;
    const { clock } = this.process;
    const zk = await connectToZooKeeper({ servers, clock, dial: network.dial(this.process), sessionTimeoutMs });
    this.#shared.sessions.opened(this.process, zk.session.id);
    return zk;
  }

  protected connected(_zk: ZooKeeper): void {}

  /** The session of `connected` is about to be closed, or has ended. */
  protected closing(): void {}

  protected abstract round(zk: ZooKeeper): Promise<void>;
}

export function clientProgram(shared: ClientWorld, begin: (process: SimProcess) => RecipeClient): SimProgram {
  return async (process) => {
    const client = begin(process);
    while (!client.isOver) {
      try {
        await client.session();
      } catch (error) {
        if (!isExpected(error)) throw error;
        if ((error as Error & { code?: string }).code === "OUTCOME_UNKNOWN") {
          process.world.count("mark release without a response");
        }
        process.world.log(() => `${process.name}: ${(error as Error).message}`);
        await sleep(process.clock, client.chance.between(1, 500));
      }
    }
    shared.done.add(process.name);
  };
}
