/** Tells users why no message of a store is tried, and which command changes that. */
import { isDatabaseUrl } from "../../src/base/postgres/database_address.ts";
import { countRunningProcessors } from "../../src/retry/queue/machine_boot.ts";
import type { StoreClient } from "../../src/retry/queue/store_methods.ts";
import { shellQuoteIfNeeded } from "../../src/base/support/shell_quote.ts";

/** The options with which a call has named its store. */
export interface StoreOptions {
  readonly retryName: string;
  readonly retryStore?: string | undefined;
}

/** Returns the name of the store as sentences show it: the folder of --store, otherwise the name. */
export function shownStoreName({ retryName, retryStore }: StoreOptions): string {
  return retryStore === undefined || isDatabaseUrl(retryStore) ? retryName : retryStore;
}

/** Returns a command line that starts a processor for the store. */
export function startProcessorHint(options: StoreOptions): string {
  return `start one with baton retry-processor run${storeFlags(options)}`;
}

/** Says that the store is paused, and how to end that. */
export function pausedHint(options: StoreOptions): string {
  return `paused: no tries until baton retry-processor resume${storeFlags(options)}`;
}

function storeFlags({ retryName, retryStore }: StoreOptions): string {
  const store = retryStore === undefined ? "" : ` --store ${shellQuoteIfNeeded(retryStore)}`;
  const name = retryName === "default" ? "" : ` --name ${shellQuoteIfNeeded(retryName)}`;
  return `${store}${name}`;
}

/** Returns true if the store is paused; false if it is not, or if this cannot be found out. */
export async function isStorePaused(store: StoreClient): Promise<boolean> {
  return await store.call("isPaused").catch(() => false);
}

/**
 * Returns true if no processor tries the messages of a store; false if there is one, or if this cannot be found out.
 */
export async function lacksProcessor(store: StoreClient): Promise<boolean> {
  return await countRunningProcessors(store.call.bind(store)).catch(() => null) === 0;
}
