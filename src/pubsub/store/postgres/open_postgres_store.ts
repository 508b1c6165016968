/** Opens the topics of a shared database for one server. */
import { type DatabaseAddress, describeDatabase } from "../../../base/postgres/database_address.ts";
import { startStoreThread, TopicStore, type TopicStoreHooks } from "../topic_store.ts";
import { defaultTopicStoreOptions, type TopicStoreOptions } from "../limits/topic_store_limits.ts";
import type { PostgresStoreOpening } from "./postgres_store_worker.ts";

/**
 * Rejects with CONFIG for a database that has no tables of baton, those of another version, or settings that are not
 * safe; with REFUSED and UNREACHABLE if it cannot be used.
 */
export async function openPostgresStore(
  address: DatabaseAddress,
  hooks: TopicStoreHooks,
  { server, requiresSync = false, migrates = false, wasMoved = false, stopsOnLoss = false, signal, ...options }:
    & Partial<TopicStoreOptions>
    & {
      readonly server: string;
      /** A database without a synchronous standby is refused. */
      readonly requiresSync?: boolean;
      /** Creates the tables first, or brings them to the format of this program. */
      readonly migrates?: boolean;
      /** The database may be in another cluster than the one in which its tables were made. */
      readonly wasMoved?: boolean;
      /** A topic that has lost messages is not served before an operator accepts it. */
      readonly stopsOnLoss?: boolean;
      /** Ends the wait for a database that does not respond. */
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
