/**
 * A keeper as a simulated process: the real one, on a simulated disk and network. It is started again when it has
 * ended.
 */
import { errorMessage } from "../../../../src/base/errors.ts";
import { startKeeper } from "../../../../src/coordination/keeper/lifecycle/start_keeper.ts";
import { serveKeeperStore } from "../../../../src/coordination/keeper/storage/keeper_store_thread.ts";
import type { SimDisk } from "../../../world/sim_disk.ts";
import type { SimNetwork } from "../../../world/sim_network.ts";
import type { SimProgram } from "../../../world/sim_process.ts";
import { SimStorageThread } from "../../../world/sim_thread.ts";

export const keeperPort = 2181;
/** The time until a keeper that has ended is started again, in milliseconds. */
const restartMs = 1000;

export interface KeeperProgramOptions {
  readonly host: string;
  readonly tickTimeMs: number;
  readonly disk: SimDisk;
  readonly network: SimNetwork;
}

export function keeperProgram({ host, tickTimeMs, disk, network }: KeeperProgramOptions): SimProgram {
  return async (process) => {
    const { world, clock } = process;
    try {
      const keeper = await startKeeper({
        dataDir: "/data",
        listen: [{ kind: "tcp", host, port: keeperPort }],
        tickTimeMs,
        containerCheckMs: 20_000,
        clock,
        wallClock: Date.now,
        log: (sentence) => world.log(() => `${process.name}: ${sentence}`),
        system: {
          listen: network.listen(process),
          files: { makeFolder: () => {}, inodeOf: () => 1n, touch: () => {} },
          startStoreThread: () => {
            const thread = new SimStorageThread(process);
            serveKeeperStore({ openRows: () => disk.open(process, thread), parent: thread.parent });
            return thread;
          },
        },
      });
      world.log(() => `${process.name} serves`);
      disk.serves();
      await keeper.ended;
    } catch (error) {
      world.log(() => `${process.name} has ended: ${errorMessage(error)}`);
      disk.refused();
    }
    process.exit();
    world.after(restartMs, () => process.start());
  };
}
