/** Opens the topic store in a shared PostgreSQL database, for one server. */
import { type DatabaseAddress, describeDatabase } from "../../../base/postgres/database_address.ts";
import { startStoreThread, TopicStore, type TopicStoreHooks } from "../topic_store.ts";
import { defaultTopicStoreOptions, type TopicStoreOptions } from "../limits/topic_store_limits.ts";
import type { PostgresStoreOpening } from "./postgres_store_worker.ts";

/**
 * Opens the store. Rejects with CONFIG if the database has unsafe settings or does not have the tables of this version.
 * Rejects with REFUSED or UNREACHABLE if the database cannot be used.
 */
export async function openPostgresStore(
  address: DatabaseAddress,
  hooks: TopicStoreHooks,
  { server, requiresSync = false, migrates = false, wasMoved = false, stopsOnLoss = false, signal, ...options }:
    & Partial<TopicStoreOptions>
    & {
      readonly server: string;
      /** If true, refuses a database without a synchronous standby. */
      readonly requiresSync?: boolean;
      /** If true, first creates the tables, or migrates them to the format of this program. */
      readonly migrates?: boolean;
      /** If true, accepts that the database is now in another cluster. */
      readonly wasMoved?: boolean;
      /** If true, a topic that has lost messages is not served until an operator accepts the loss. */
      readonly stopsOnLoss?: boolean;
      /** Aborts opening, even if the database does not respond. */
      readonly signal?: AbortSignal | undefined;
    },
): Promise<TopicStore> {
  const opening: PostgresStoreOpening = {
    address,
    server,
    requiresSync,
    migrates,
    wasMoved,
    stopsOnLoss,
    options: { ...defaultTopicStoreOptions, ...options },
  };
  const start = () => startStoreThread(new URL("./postgres_store_worker.ts", import.meta.url));
  return await TopicStore.openThread({ what: describeDatabase(address), start }, opening, hooks, signal);
}
