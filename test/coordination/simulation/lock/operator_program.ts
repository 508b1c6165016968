/**
 * An operator of locks as a simulated process: it takes locks back from their holders, by a request, by force, or
 * without a word.
 */
import { breakLock } from "../../../../src/coordination/lock/break_lock.ts";
import { holderNodeName } from "../../../../src/coordination/lock/lock_nodes.ts";
import { electionPath, lockPath } from "../../../../src/coordination/nodes/node_paths.ts";
import { lockStatus } from "../../../../src/coordination/lock/lock_status.ts";
import { BatonError } from "../../../../src/base/errors.ts";
import { deleteNodeIfThere } from "../../../../src/coordination/nodes/node_requests.ts";
import type { ZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper.ts";
import { clientProgram, isExpected, RecipeClient } from "../../../world/recipe_client.ts";
import type { SimProcess, SimProgram } from "../../../world/sim_process.ts";
import type { ContenderWorld } from "./contender_program.ts";

export function operatorProgram(shared: ContenderWorld): SimProgram {
  return clientProgram(shared, (process) => new SimOperator(process, shared));
}

class SimOperator extends RecipeClient {
  readonly #shared: ContenderWorld;

  constructor(process: SimProcess, shared: ContenderWorld) {
    super(process, shared);
    this.#shared = shared;
  }

  protected override get pausesMs(): readonly number[] {
    const { sessionTimeoutMs } = this.#shared.settings;
    return [100, sessionTimeoutMs, 3 * sessionTimeoutMs];
  }

  override get isOver(): boolean {
    return this.#shared.isQuiet();
  }

  protected async round(zk: ZooKeeper): Promise<void> {
    try {
      await this.#takeBack(zk);
    } catch (error) {
      const isGone = error instanceof BatonError && error.code === "NOT_FOUND";
      if (!isGone && (!isExpected(error) || zk.session.ended.aborted)) throw error;
    }
  }

  async #takeBack(zk: ZooKeeper): Promise<void> {
    const { settings: { names, isElection }, oracle } = this.#shared;
    const { clock, world } = this.process;
    const name = this.chance.oneOf(names);
    const path = isElection ? electionPath(name) : lockPath(name);
    const { holders } = await lockStatus(zk, name, { path });
    if (holders.length === 0) return;
    const { holderId, mode, slot } = this.chance.oneOf(holders);
    const node = `${path.holders}/${holderNodeName({ mode, slot, guid: holderId })}`;
    oracle.takesBack(node);
    if (this.chance.is(0.5)) {
      world.log(() => `the operator deletes ${node}`);
      if (await deleteNodeIfThere(zk, node)) world.count("mark grant deleted");
      return;
    }
    const force = this.chance.is(0.5);
    world.log(() => `the operator asks for ${node}${force ? ", by force" : ""}`);
    const { outcome } = await breakLock(zk, name, holderId, { path, clock, force, waitMs: 1000 });
    world.count(`mark lock asked back, ${outcome}`);
  }
}
