/**
 * Detects whether a server starts with an older copy of its store, such as a backup, a disk snapshot or a restored
 * machine. The store has a generation number. The server also records this number in the coordination service, at the
 * start of each session and every second while messages are stored. The store's number is raised first, so it is lower
 * than the recorded number only if an older copy has replaced the store.
 *
 * A shared store has a generation for each of its servers. Each server checks the generations of all servers, because
 * commits of a server that has died may be missing, too.
 */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError } from "../../base/errors.ts";
import { encodeJson, parseJsonFields } from "../../base/support/json_fields.ts";
import { nullIfNoNode, settleEarlierWrites } from "../../coordination/nodes/node_requests.ts";
import type { OwnedStore } from "../store/operations/owned_store.ts";
import type { PubsubPath } from "./pubsub_path.ts";
import { attemptNodeWrite, createNodeWithParents } from "./topic_nodes.ts";

/**
 * The interval at which the generation is recorded, in milliseconds. A copy that is older by less than this interval is
 * not detected.
 */
export const storeGenerationAdvanceMs = 1000;

type GenerationStore = Pick<OwnedStore, "storeId" | "generation" | "raiseGeneration">;

export class StoreGeneration {
  readonly #zk: ZooKeeper;
  readonly #path: string;
  readonly #id: string;
  readonly #store: GenerationStore;
  /** The parent of all servers' generation nodes; null if only this server uses the store. */
  readonly #marks: string | null;
  /** The newest recorded generation that this session has read or written. */
  #recorded = 0;
  /** The version of the generation's node that this session last read or wrote; null if the node must be read. */
  #version: number | null = null;

  constructor(
    zk: ZooKeeper,
    path: PubsubPath,
    { id, store, isStoreShared = false }: {
      readonly id: string;
      readonly store: GenerationStore;
      readonly isStoreShared?: boolean;
    },
  ) {
    this.#zk = zk;
    this.#path = isStoreShared ? path.storeMark(store.storeId, id) : path.store(store.storeId);
    this.#marks = isStoreShared ? path.store(store.storeId) : null;
    this.#id = id;
    this.#store = store;
  }

  /** Returns the newest recorded generation; 0 if there is none. Throws CONFIG for a node in an unknown format. */
  async readRecorded(): Promise<number> {
    await settleEarlierWrites(this.#zk, this.#path);
    const found = await nullIfNoNode(this.#zk.getData(this.#path));
    this.#version = found?.stat.version ?? null;
    this.#recorded = found === null ? 0 : parseMark(this.#path, found.data).generation;
    return this.#recorded;
  }

  /** Returns the store's generation. Rejects with CONFIG if it is lower than the recorded generation. */
  async checkNotOlder(): Promise<number> {
    const recorded = await this.readRecorded();
    const generation = await this.#store.generation();
    if (generation < recorded) throw this.#tooOldError(generation, recorded);
    return generation;
  }

  /**
   * Checks the recorded generations of the other servers of a shared store. Rejects with CONFIG if the database has a
   * lower generation.
   */
  async checkOthers(): Promise<void> {
    if (this.#marks === null) return;
    for (const { server, generation: recorded } of await readRecordedStoreGenerations(this.#zk, this.#marks)) {
      const generation = await this.#store.generation(server);
      if (generation < recorded) throw databaseTooOldError(server, { generation, recorded });
    }
  }

  #tooOldError(generation: number, recorded: number): BatonError {
    return this.#marks === null
      ? tooOldError(this.#id, { generation, recorded })
      : databaseTooOldError(this.#id, { generation, recorded });
  }

  /**
   * Raises the stored and the recorded generation at the start of a session. The server must be announced. Rejects as
   * `checkNotOlder` does.
   */
  async confirm(): Promise<void> {
    for (;;) {
      const generation = await this.checkNotOlder();
      if (await this.#writeRecorded(await this.#store.raiseGeneration(Math.max(generation, 1)) ?? generation)) return;
    }
  }

  /**
   * Raises both generations if something was stored since the last call. Rejects as `confirm` does, or with errors of
   * the coordination service.
   */
  async advance(): Promise<void> {
    const generation = await this.#store.raiseGeneration();
    if (generation === null) return;
    // An older copy has replaced the database of the shared store.
    if (generation <= this.#recorded) throw this.#tooOldError(generation - 1, this.#recorded);
    if (!await this.#writeRecorded(generation)) await this.confirm();
  }

  /** Accepts the store as it is, for an operator, and raises its generation above the recorded generation. */
  async accept(): Promise<void> {
    const recorded = await this.readRecorded();
    while (!(await this.#writeRecorded(await this.#store.raiseGeneration(Math.max(recorded, 1)) ?? recorded))) {
      await this.readRecorded();
    }
  }

  /**
   * Records a generation. Returns false if the node has changed since this session read or wrote it, or if the response
   * was lost.
   */
  async #writeRecorded(generation: number): Promise<boolean> {
    const data = encodeJson({ layout: 1, server: this.#id, generation });
    const version = this.#version;
    this.#version = null;
    const outcome = await attemptNodeWrite(async () => {
      if (version === null) {
        await createNodeWithParents(this.#zk, this.#path, data);
        this.#version = 0;
      } else this.#version = (await this.#zk.setData(this.#path, data, version)).version;
    });
    if (outcome === "written") this.#recorded = generation;
    return outcome === "written";
  }
}

export interface RecordedStoreGeneration {
  readonly server: string;
  readonly generation: number;
}

/** Reads the recorded generations of all servers of a shared store. Throws CONFIG for a node in an unknown format. */
export async function readRecordedStoreGenerations(zk: ZooKeeper, parent: string): Promise<RecordedStoreGeneration[]> {
  const names = (await nullIfNoNode(zk.getChildren(parent)))?.children ?? [];
  const found = await Promise.all(names.map((name) => nullIfNoNode(zk.getData(`${parent}/${name}`))));
  return found.flatMap((node, index) => node === null ? [] : parseMark(`${parent}/${names[index]}`, node.data));
}

function parseMark(path: string, data: Uint8Array): RecordedStoreGeneration {
  const { layout, server, generation } = parseJsonFields(data);
  if (layout === 1 && typeof generation === "number" && Number.isSafeInteger(generation)) {
    return { server: typeof server === "string" ? server : "", generation };
  }
  throw new BatonError(
    "CONFIG",
    `Cannot read "${path}": it has no store generation in a format that this version knows`,
  );
}

function databaseTooOldError(
  server: string,
  { generation, recorded }: { readonly generation: number; readonly recorded: number },
): BatonError {
  return new BatonError(
    "CONFIG",
    `Cannot serve the topics of the database: it lacks commits of "${server}" that it had confirmed ` +
      `(generation ${generation}, the last one recorded is ${recorded}); it is an older copy, or the standby ` +
      "that was promoted did not have them. Put the newest data back; if there is none: " +
      "baton pubsub server restore --store URL --accept-loss",
  );
}

function tooOldError(
  id: string,
  { generation, recorded }: { readonly generation: number; readonly recorded: number },
): BatonError {
  return new BatonError(
    "CONFIG",
    `Cannot serve the data of "${id}": it is an older copy (generation ${generation}, ` +
      `the last one served is ${recorded}); ` +
      "messages would be lost or delivered twice. Put the newest data back; " +
      `if there is none: baton pubsub server restore --id ${id} --data-dir FOLDER --accept-loss`,
  );
}
