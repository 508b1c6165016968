/** Starts the storage thread of a message store. */
import { serveRetryStore } from "./retry_store_thread.ts";

serveRetryStore();
