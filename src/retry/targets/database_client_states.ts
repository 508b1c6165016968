/**
 * The states of the topic clients of a store in a database, which all processors share. The database lets only one
 * process at a time use a client, and gives it a higher session than all before, so that a replaced process can put
 * nothing more. The process starts with an empty state, because topics know the rest. The files of a state have no
 * name, so that nothing is left when the process ends.
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

/** Time in ms between two checks whether another process has given up the role. */
const lookMs = 500;

export class DatabaseClientStates implements ClientStates {
  readonly #queue: PostgresQueue;
  readonly #clock: Clock;
  /** Releases of roles that are in progress. */
  readonly #leaving = new Set<Promise<void>>();

  private constructor(queue: PostgresQueue, clock: Clock) {
    this.#queue = queue;
    this.#clock = clock;
  }

  /** Opens the queue. Rejects with the errors of PostgresRetryStore.open; the tables must exist. */
  static async open(
    { address, requiresSync }: Pick<StoreDatabase, "address" | "requiresSync">,
    { name, clock }: { readonly name: string; readonly clock: Clock },
  ): Promise<DatabaseClientStates> {
    const queue = new PostgresQueue({ address, name, clock, forwards: false, requiresSync });
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
    // A process without the role has a lower session, so its next request is refused. After a failure, the role is
    // renewed again.
    const renew = async () => {
      if (await role.take().catch(() => session) !== null && isOpen) renewLater();
    };
    const renewLater = () => {
      cancel = this.#clock.startTimer(topicClientRoleMs / 3, () => void renew());
    };
    const close = () => {
      isOpen = false;
      cancel();
      const left = role.leave().catch(() => {}); // it ends by itself
      this.#leaving.add(left);
      void left.then(() => this.#leaving.delete(left));
    };
    try {
      const state = await ClientState.open(folder, id, { waitMs: 0, clock: this.#clock, signal });
      state.observeSession(session - 1); // its session is the next one, and all its files are open now
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

/** Returns whether to try again: a process that waits for another one also waits for the database. */
function isTemporary(error: unknown): boolean {
  return error instanceof BatonError && ["UNREACHABLE", "LOCK_BUSY", "OUTCOME_UNKNOWN"].includes(error.code);
}
