/**
 * Detects whether a server starts with an older copy of its store: a backup, a disk snapshot, a restored machine.
 * The store has a generation number, which is also recorded in the coordination service at the start of each session
 * and, while messages are stored, every second. The store's number is raised first, so it is behind the recorded one
 * only if the store was replaced by an older copy.
 */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { BatonError } from "../../errors.ts";
import { jsonFields, toJsonData } from "../../support/json_fields.ts";
import { nullIfNoNode, settleWrites } from "../../coordination/request_errors.ts";
import type { OwnedStore } from "../store/owned_store.ts";
import type { PubsubPath } from "./pubsub_path.ts";
import { createWithParents, writeOutcomeOf } from "./topic_nodes.ts";

/**
 * How often the generation is recorded while something is stored, in milliseconds. A copy that is older by less than
 * this is not detected.
 */
export const advanceEveryMs = 1000;

type GenerationStore = Pick<OwnedStore, "storeId" | "generation" | "raiseGeneration">;

export class StoreGeneration {
  readonly #zk: ZooKeeper;
  readonly #path: string;
  readonly #id: string;
  readonly #store: GenerationStore;
  /** Version of the node as last read or written by this session; null: to be read. */
  #version: number | null = null;

  constructor(
    zk: ZooKeeper,
    path: PubsubPath,
    { id, store }: { readonly id: string; readonly store: GenerationStore },
  ) {
    this.#zk = zk;
    this.#path = path.store(store.storeId);
    this.#id = id;
    this.#store = store;
  }

  /** Returns the newest recorded generation, 0 if none. Throws CONFIG for a node in an unknown format. */
  async readRecorded(): Promise<number> {
    await settleWrites(this.#zk, this.#path);
    const found = await nullIfNoNode(this.#zk.getData(this.#path));
    this.#version = found?.stat.version ?? null;
    if (found === null) return 0;
    const { layout, generation } = jsonFields(found.data);
    if (layout === 1 && typeof generation === "number" && Number.isSafeInteger(generation)) return generation;
    throw new BatonError(
      "CONFIG",
      `Cannot read "${this.#path}": it has no store generation in a format that this version knows`,
    );
  }

  /** Returns the store's generation. Rejects with CONFIG if it is older than the recorded one. */
  async checkNotOlder(): Promise<number> {
    const recorded = await this.readRecorded();
    const generation = await this.#store.generation();
    if (generation < recorded) throw tooOldError(this.#id, { generation, recorded });
    return generation;
  }

  /** Raises both numbers; rejects as `checkNotOlder` does. Only an announced server may call this. */
  async confirm(): Promise<void> {
    for (;;) {
      const generation = await this.checkNotOlder();
      if (await this.#writeRecorded(await this.#store.raiseGeneration(Math.max(generation, 1)) ?? generation)) return;
    }
  }

  /**
   * Raises both numbers if something was stored since the last call. Rejects as `confirm` does, and with errors of the
   * coordination service.
   */
  async advance(): Promise<void> {
    const generation = await this.#store.raiseGeneration();
    if (generation === null || await this.#writeRecorded(generation)) return;
    await this.confirm();
  }

  /** Accepts the store as it is, for an operator: its generation becomes the newest. */
  async accept(): Promise<void> {
    const recorded = await this.readRecorded();
    while (!(await this.#writeRecorded(await this.#store.raiseGeneration(Math.max(recorded, 1)) ?? recorded))) {
      await this.readRecorded();
    }
  }

  /** Returns false if the node has changed since this session read or wrote it, or if the response was lost. */
  async #writeRecorded(generation: number): Promise<boolean> {
    const data = toJsonData({ layout: 1, server: this.#id, generation });
    const version = this.#version;
    this.#version = null;
    const outcome = await writeOutcomeOf(async () => {
      if (version === null) {
        await createWithParents(this.#zk, this.#path, data);
        this.#version = 0;
      } else this.#version = (await this.#zk.setData(this.#path, data, version)).version;
    });
    return outcome === "written";
  }
}

function tooOldError(
  id: string,
  { generation, recorded }: { readonly generation: number; readonly recorded: number },
): BatonError {
  return new BatonError(
    "CONFIG",
    `Cannot serve the data of "${id}": it is an older copy (generation ${generation}, the last one served is ${recorded}); ` +
      "messages would be lost or delivered twice. Put the newest data back; " +
      `if there is none: baton pubsub server restore --id ${id} --data-dir FOLDER --accept-loss`,
  );
}
