/** The entry of the storage thread of a keeper. */
import { KeeperDatabase } from "./keeper_database.ts";
import { serveKeeperStore } from "./keeper_store_thread.ts";

serveKeeperStore({ openRows: (dataDir) => new KeeperDatabase(dataDir) });
