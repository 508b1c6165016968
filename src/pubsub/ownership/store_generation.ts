/**
 * Whether a server's store is the one that it served last, and not an older copy of it: a backup, a snapshot of a disk, a
 * machine that was put back. The store has an age, which is noted in the coordination service at each session's beginning and,
 * while something is stored, every second. The store's own is raised first: it is never behind but when it was put back.
 */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { BatonError } from "../../errors.ts";
import { isRefusal, isTransient, nullIfNoNode } from "../../coordination/request_errors.ts";
import type { OwnedStore } from "../store/owned_store.ts";
import type { PubsubPath } from "./pubsub_path.ts";
import { makeParents } from "./topic_nodes.ts";

/** How often it is noted while something is stored, in milliseconds: what is put back by less is not noticed. */
export const advanceEveryMs = 1000;

type GenerationStore = Pick<OwnedStore, "storeId" | "generation" | "raiseGeneration">;

export class StoreGeneration {
  readonly #zk: ZooKeeper;
  readonly #path: string;
  readonly #id: string;
  readonly #store: GenerationStore;
  /** Of the note that this session has written; null: to be read. */
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

  /** What is noted, as of now; 0 where nothing is. Throws CONFIG for a note that is not understood. */
  async recorded(): Promise<number> {
    await this.#zk.sync(this.#path);
    return (await this.#read())?.age ?? 0;
  }

  /** Rejects with CONFIG when the store is older than what is noted of it; gives its age. */
  async check(): Promise<number> {
    const noted = await this.recorded();
    const age = await this.#store.generation();
    if (age < noted) throw tooOld(this.#id, { age, noted });
    return age;
  }

  /** Raises both, or rejects as `check`. Only for who has announced itself. */
  async confirm(): Promise<void> {
    for (;;) {
      const age = await this.check();
      if (await this.#record(await this.#store.raiseGeneration(Math.max(age, 1)) ?? age)) return;
    }
  }

  /** Raises both when something was stored since. Rejects as `prove`, and with what the coordination service fails with. */
  async advance(): Promise<void> {
    const age = await this.#store.raiseGeneration();
    if (age === null || await this.#record(age)) return;
    await this.confirm();
  }

  /** An operator says that the store, as it is, is to be gone on with. */
  async accept(): Promise<void> {
    const noted = await this.recorded();
    while (!(await this.#record(await this.#store.raiseGeneration(Math.max(noted, 1)) ?? noted))) await this.recorded();
  }

  /** False when the note is not what this session has read or written, or the answer was lost. */
  async #record(age: number): Promise<boolean> {
    const data = new TextEncoder().encode(JSON.stringify({ layout: 1, server: this.#id, age }));
    const version = this.#version;
    this.#version = null;
    try {
      if (version === null) {
        await makeParents(this.#zk, this.#path);
        await this.#zk.create(this.#path, data);
        this.#version = 0;
      } else this.#version = (await this.#zk.setData(this.#path, data, version)).version;
      return true;
    } catch (thrown) {
      if (isRefusal(thrown, "NODEEXISTS", "BADVERSION", "NONODE") || isTransient(thrown)) return false;
      throw thrown;
    }
  }

  async #read(): Promise<{ readonly age: number } | null> {
    const found = await nullIfNoNode(this.#zk.getData(this.#path));
    this.#version = found?.stat.version ?? null;
    if (found === null) return null;
    try {
      const { layout, age } = JSON.parse(new TextDecoder().decode(found.data)) as Record<string, unknown>;
      if (layout === 1 && typeof age === "number" && Number.isSafeInteger(age)) return { age };
    } catch {
      // said below
    }
    throw new BatonError("CONFIG", `"${this.#path}" does not say how old a store is, as far as this version knows`);
  }
}

function tooOld(id: string, { age, noted }: { readonly age: number; readonly noted: number }): BatonError {
  return new BatonError(
    "CONFIG",
    `Cannot serve the data of "${id}": it is an older copy (${age}) of what was served last (${noted}). What was stored ` +
      "since is not in it: messages would be lost, or come twice, and their numbers be used again. Put the newest data back; " +
      `if there is none: baton pubsub server restore --id ${id} --data-dir FOLDER --accept-loss`,
  );
}
