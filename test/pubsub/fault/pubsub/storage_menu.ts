/**
 * Faults of the disks below servers and clients: power that fails, a full disk, one that errs, a kill between two of
 * its steps.
 */
import { durableSteps } from "../../../support/storage_faults/storage_faults.ts";
import type { PubsubFault } from "./faults.ts";
import type { Role } from "./service.ts";
import { span, toOne, type World } from "./world.ts";

/** A store that errs ends its server; one that has no room goes on when it has some again. */
const lossMsMax = 3000;
const lookMs = 20;

function onStorage(act: (world: World, role: Role, storage: NonNullable<Role["storage"]>) => Promise<void>) {
  return async (world: World): Promise<string | null> => {
    let name: string | null = null;
    const servers = world.service.servers.filter(({ storage }) => storage !== null);
    await toOne(world, servers, async (role) => {
      if (role.storage === null) return;
      name = role.id;
      await act(world, role, role.storage);
    });
    return name;
  };
}

function failing(name: string, error: "ENOSPC" | "EIO", weight: number): PubsubFault {
  return {
    name,
    weight,
    apply: onStorage(async (world, role, storage) => {
      const calls = error === "ENOSPC" ? ["write", "create"] as const : ["write", "sync"] as const;
      role.isAway = true; // it may end
      const { hits } = storage;
      storage.fail({ calls, error, skip: Math.floor(span(world, 0, 20)), isShort: world.random() < 0.5 });
      await world.wait(span(world, 100, 2000));
      storage.fail();
      // A server whose store failed ends, and whoever supervises it starts it again; one without room did not.
      if (!role.isRunning || (error === "EIO" && storage.hits > hits)) {
        await role.kill();
        await role.revive();
      } else role.isAway = false;
    }),
  };
}

export const storageFaults: readonly PubsubFault[] = [
  {
    name: "a server's power fails",
    weight: 4,
    apply: onStorage(async (world, role, storage) => {
      await role.kill();
      storage.losePower(world.random() < 0.5 ? () => 1 : world.random);
      await role.revive();
    }),
  },
  {
    name: "a server dies between two steps, and its power fails",
    weight: 4,
    apply: onStorage(async (world, role, storage) => {
      role.isAway = true;
      storage.killAt(1 + Math.floor(world.random() * 40), durableSteps);
      for (let leftMs = lossMsMax; leftMs > 0 && role.isRunning; leftMs -= lookMs) await world.wait(lookMs);
      storage.killAt(0);
      await role.kill();
      storage.losePower(world.random);
      await role.revive();
    }),
  },
  {
    name: "the power of clients fails",
    weight: 4,
    apply: async (world) => {
      let name: string | null = null;
      await toOne(world, world.workers.filter(({ storage }) => storage !== null), async (worker) => {
        name = worker.name;
        await worker.kill();
        worker.storage?.losePower(world.random() < 0.5 ? undefined : world.random);
        for (const { id } of worker.clients) world.control.state(id, "power");
        worker.start();
        await world.wait(span(world, 0, 500));
      });
      return name;
    },
  },
  failing("a server's disk is full", "ENOSPC", 2),
  failing("a server's disk errs", "EIO", 2),
];
