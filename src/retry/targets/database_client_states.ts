/**
 * Keeps the states of the topic clients of a store in a database, which all processors share. Only one process at a
 * time may use a client. The database gives each next process a higher session, so that a replaced process can put
 * nothing more. A process starts with an empty state, because the topics know the rest. The files of a state have no
 * name, so that nothing is left on the disk when the process ends.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BatonError } from "../../base/errors.ts";
import { ClientState } from "../../pubsub/client/client_state.ts";
import type { Clock } from "../../base/support/clock.ts";
import { sleep } from "../../base/support/deadline.ts";
import type { StoreDatabase } from "../queue/open_retry_store.ts";
import { PostgresQueue } from "../queue/postgres/postgres_queue.ts";
import { TopicClientRole, topicClientRoleMs } from "../queue/postgres/postgres_topics.ts";
import type { ClientStates, TopicClientWait } from "./topic_clients.ts";

/** How often a waiting process checks if another process has given up the role, in milliseconds. */
const lookMs = 500;

export class DatabaseClientStates implements ClientStates {
  readonly #queue: PostgresQueue;
  readonly #clock: Clock;
  /** The releases of roles that are in progress. */
  readonly #leaving = new Set<Promise<void>>();

  private constructor(queue: PostgresQueue, clock: Clock) {
    this.#queue = queue;
    this.#clock = clock;
  }

  /** Opens the queue, whose tables must exist. Rejects with the errors of PostgresRetryStore.open. */
  static async open(
    { address, requiresSync }: Pick<StoreDatabase, "address" | "requiresSync">,
    { name, clock }: { readonly name: string; readonly clock: Clock },
  ): Promise<DatabaseClientStates> {
    const queue = new PostgresQueue({ address, name, clock, letters: "open", requiresSync });
    try {
      await queue.open({ mustExist: false });
      return new DatabaseClientStates(queue, clock);
    } catch (error) {
      await queue.close();
      throw error;
    }
  }

  get storeName(): string {
    return this.#queue.key;
  }

  async open(id: string, { waitMs, signal }: TopicClientWait): Promise<{ readonly state: ClientState } & Disposable> {
    const role = new TopicClientRole(this.#queue, id);
    const session = await this.#take(role, id, { waitMs, signal });
    const folder = mkdtempSync(join(tmpdir(), "baton-topic-client-"));
    let isOpen = true;
    let cancel = () => {};
    // A process that has lost the role has a lower session, so its next request is refused. If the renewal fails, it is
    // repeated.
    const renew = async () => {
      if (await role.take().catch(() => session) !== null && isOpen) renewLater();
    };
    const renewLater = () => {
      cancel = this.#clock.startTimer(topicClientRoleMs / 3, () => void renew());
    };
    const close = () => {
      isOpen = false;
      cancel();
      const left = role.leave().catch(() => {}); // the role ends by itself
      this.#leaving.add(left);
      void left.then(() => this.#leaving.delete(left));
    };
    try {
      const state = await ClientState.open(folder, id, { waitMs: 0, clock: this.#clock, signal });
      state.observeSession(session - 1); // the state then uses `session` as its session, and all its files are open now
      renewLater();
      return {
        state,
        [Symbol.dispose]: () => {
          if (!isOpen) return;
          state[Symbol.dispose]();
          close();
        },
      };
    } catch (error) {
      close();
      throw error;
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#leaving);
    await this.#queue.close();
  }

  async #take(role: TopicClientRole, id: string, { waitMs, signal }: TopicClientWait): Promise<number> {
    const endMs = this.#clock.now() + waitMs;
    for (;;) {
      const session = await role.take().catch((error) => {
        if (waitMs === Infinity && isTemporary(error)) return null;
        throw error;
      });
      if (session !== null) return session;
      const leftMs = endMs - this.#clock.now();
      if (leftMs <= 0) {
        throw new BatonError("LOCK_BUSY", `Cannot use client "${id}": another processor of this store uses it`);
      }
      await sleep(this.#clock, Math.min(lookMs, leftMs), signal);
    }
  }
}

/**
 * Returns true if the error may pass, so that opening is tried again: a process that waits for another process also
 * waits for the database.
 */
function isTemporary(error: unknown): boolean {
  return error instanceof BatonError && ["UNREACHABLE", "LOCK_BUSY", "OUTCOME_UNKNOWN"].includes(error.code);
}
