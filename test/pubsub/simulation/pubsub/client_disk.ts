/**
 * The disk of a process of clients: their real states, on a folder in memory. A kill leaves what was written. A power
 * cut takes any number of the last transactions that were not flushed; or the disk is a new one afterwards, without the
 * states.
 */
import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { ClientState } from "../../../../src/pubsub/client/client_state.ts";
import type { Chance } from "../../../world/chance.ts";
import type { SimProcess } from "../../../world/sim_process.ts";
import type { SimWorld } from "../../../world/sim_world.ts";

/** A longer log may have begun again: it is not cut. */
const logBytesMax = 8 << 20;

/** A state that a process has open. */
interface OpenState {
  readonly state: ClientState;
  /** Bytes of the log after the last flush, and after each transaction since. */
  logged: number[];
}

/** What a power cut has done to a client's state. */
export type StateLoss = (client: string, what: "power" | "lost") => void;

export class ClientDisk {
  readonly folder: string;
  readonly #world: SimWorld;
  readonly #chance: Chance;
  readonly #losesStates: boolean;
  readonly #onLoss: StateLoss;
  readonly #open = new Map<string, OpenState>();
  /** All states that were made, by the client's id. */
  readonly #paths = new Map<string, string>();

  constructor(world: SimWorld, { name, folder, losesStates, onLoss }: {
    readonly name: string;
    readonly folder: string;
    /** Some machines have a new disk after a power cut. */
    readonly losesStates: boolean;
    readonly onLoss: StateLoss;
  }) {
    this.#world = world;
    this.folder = folder;
    this.#chance = world.chance.fork(`disk ${name}`);
    this.#losesStates = losesStates;
    this.#onLoss = onLoss;
  }

  /** Called when the process starts. */
  started(process: SimProcess): void {
    process.whenDead((how) => this.#processDied(how));
  }

  readonly openState: typeof ClientState.open = async (...values) => {
    const state = await ClientState.open(...values);
    const open: OpenState = { state, logged: [logBytes(state)] };
    this.#open.set(state.id, open);
    this.#paths.set(state.id, state.path);
    const run = state.runTransaction.bind(state);
    state.runTransaction = (work, options = {}) => {
      run(work, options);
      open.logged = options.durable === false ? [...open.logged, logBytes(state)] : [logBytes(state)];
    };
    const close = state[Symbol.dispose].bind(state);
    state[Symbol.dispose] = () => {
      this.#open.delete(state.id);
      close();
    };
    return state;
  };

  #processDied(how: "killed" | "lost"): void {
    const isNew = how === "lost" && this.#losesStates && this.#chance.is(0.3);
    for (const { state, logged } of [...this.#open.values()]) {
      const left = this.#chance.whole(0, logged.length - 1);
      const kept = logged[left] ?? 0;
      const isCut = how === "lost" && left < logged.length - 1 && (logged.at(-1) ?? 0) < logBytesMax;
      const files = isCut ? [readFileSync(state.path), readFileSync(`${state.path}-wal`)] as const : null;
      state[Symbol.dispose](); // empties the log
      if (files === null) continue;
      writeFileSync(state.path, files[0]);
      writeFileSync(`${state.path}-wal`, files[1].subarray(0, kept));
      this.#world.count("mark client state lost transactions");
      if (!isNew) this.#onLoss(state.id, "power");
    }
    if (!isNew) return;
    for (const [client, path] of this.#paths) {
      for (const suffix of ["", "-wal", "-shm"]) rmSync(`${path}${suffix}`, { force: true });
      this.#world.count("mark client state lost");
      this.#onLoss(client, "lost");
    }
    this.#paths.clear();
  }
}

function logBytes({ path }: ClientState): number {
  return statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
}
