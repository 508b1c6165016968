/**
 * Everything a fault may touch in a campaign. Owns who may be touched at the same time: nobody is hit by two faults at
 * once.
 */
import type { RunningBackend } from "../../../support/backends.ts";
import type { PostgresPair } from "../../../support/postgres_pair.ts";
import type { HistoryWriter } from "./history_file.ts";
import type { NodeWatch } from "./node_watch.ts";
import type { Service } from "./service.ts";
import type { StateFolders } from "./state_folders.ts";
import type { Worker } from "./worker.ts";

export interface World {
  readonly service: Service;
  readonly backend: RunningBackend;
  /** Null: servers have data directories. */
  readonly database: PostgresPair | null;
  readonly workers: readonly Worker[];
  readonly states: StateFolders;
  readonly watch: NodeWatch;
  readonly control: HistoryWriter;
  readonly random: () => number;
  readonly sessionTimeoutMs: number;
  readonly topics: readonly string[];
  /** How long a fault lasts is part of what it is. */
  readonly wait: (ms: number) => Promise<void>;
  readonly busy: Set<unknown>;
}

export const span = ({ random }: World, from: number, to: number): number => from + (to - from) * random();

/** Rounds down to one of them. */
export function pick<T>({ random }: World, items: readonly T[]): T {
  const item = items[Math.floor(random() * items.length)];
  if (item === undefined) throw new Error("nothing to choose from");
  return item;
}

/** Does it to one of those that nobody else is at; false where there is none. */
export async function toOne<T>(world: World, items: readonly T[], act: (item: T) => Promise<void>): Promise<boolean> {
  const free = items.filter((item) => !world.busy.has(item));
  if (free.length === 0) return false;
  const item = pick(world, free);
  world.busy.add(item);
  try {
    await act(item);
    return true;
  } finally {
    world.busy.delete(item);
  }
}
