/** The entry point of the storage thread of a topic store in SQLite files. */
import { type MessagePort, workerData } from "node:worker_threads";
import { storageRequestReceiver } from "../../base/storage/storage_thread.ts";
import { serveTopicStore } from "./sqlite/topic_store_thread.ts";

serveTopicStore({ requests: storageRequestReceiver(workerData as MessagePort) });
