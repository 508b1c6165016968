/** The storage thread, which waits for the disk on behalf of a service. Calls that arrive during a commit become the next transaction. */
import { parentPort } from "node:worker_threads";
import { BatonError } from "../../errors.ts";
import { RetryDatabase, storeError } from "./retry_database.ts";
import { requestsPerCommit } from "./retry_store_limits.ts";
import {
  type StoreCall,
  type StoreCallResult,
  type StoreMethods,
  storeMethods,
  type StoreRequest,
  type StoreThreadMessage,
} from "./store_methods.ts";

const port = parentPort;
if (port === null) throw new Error("The storage thread was started as a program");

let database: RetryDatabase | null = null;
let methods: StoreMethods | null = null;
let folder = "";
let isBroken = false;
let isScheduled = false;
const waiting: StoreCall[] = [];

function reply(message: StoreThreadMessage): void {
  port?.postMessage(message);
}

/** Runs one transaction for all waiting calls and sends the results when it is durable. */
function commit(): void {
  isScheduled = false;
  const calls = waiting.splice(0, requestsPerCommit);
  if (waiting.length > 0) schedule();
  if (calls.length === 0 || isBroken || database === null) return;
  const results: StoreCallResult[] = [];
  try {
    database.transaction(() => {
      results.length = 0;
      for (const call of calls) results.push(resultOf(call));
    });
    reply({ kind: "results", results });
  } catch (error) {
    const { code, message } = storeError(error, folder);
    // Nothing is stored, and the next transaction may succeed. After any other error the state of the disk is unknown.
    if (code !== "STORE_FULL" && code !== "LOCK_BUSY") return breakDown(error);
    reply({ kind: "results", results: calls.map(({ id }) => ({ kind: "refused", id, code, message })) });
    if (code === "STORE_FULL") database.truncateLog();
  }
}

/** A refusal changes nothing; any other error rolls back the whole transaction. */
function resultOf({ id, method, values }: StoreCall): StoreCallResult {
  try {
    const call = methods?.[method] as (...values: readonly unknown[]) => unknown;
    return { kind: "returned", id, value: call(...values) };
  } catch (error) {
    if (!(error instanceof BatonError) || error.code === "IO") throw error;
    return { kind: "refused", id, code: error.code, message: error.message };
  }
}

function breakDown(error: unknown): void {
  isBroken = true;
  const { code, message } = storeError(error, folder);
  reply({ kind: "broken", code, message });
}

function schedule(): void {
  if (isScheduled) return;
  isScheduled = true;
  setImmediate(commit);
}

function receive(request: StoreRequest): void {
  if (request.kind === "calls") {
    waiting.push(...request.calls);
    return schedule();
  }
  if (request.kind === "open") {
    folder = request.folder;
    database = new RetryDatabase(folder, request);
    database.damage.onFound = (sentence) => reply({ kind: "damage", sentence });
    methods = storeMethods(database, request.rules);
    return reply({ kind: "opened" });
  }
  if (request.kind === "look") {
    if (database?.hasChanged()) reply({ kind: "changed" });
    return;
  }
  while (waiting.length > 0) commit();
  database?.close();
  database = null;
  reply({ kind: "closed" });
}

port.on("message", (request: StoreRequest) => {
  if (isBroken) return;
  try {
    receive(request);
  } catch (error) {
    breakDown(error);
  }
});
