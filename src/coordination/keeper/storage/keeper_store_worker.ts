/** The entry point of a keeper's storage thread. */
import { KeeperDatabase } from "./keeper_database.ts";
import { serveKeeperStore } from "./keeper_store_thread.ts";

serveKeeperStore({ openRows: (dataDir) => new KeeperDatabase(dataDir) });
