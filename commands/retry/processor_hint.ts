/** Tells users how to start a processor if messages wait and no processor tries them. */
import { countRunningProcessors } from "../../src/retry/queue/machine_boot.ts";
import type { StoreClient } from "../../src/retry/queue/store_methods.ts";
import { shellQuoteIfNeeded } from "../../src/base/support/shell_quote.ts";

/** Returns a command line that starts a processor for the store which a call has named. */
export function startProcessorHint(
  { retryName, retryStore }: { readonly retryName: string; readonly retryStore?: string | undefined },
): string {
  const store = retryStore === undefined ? "" : ` --store ${shellQuoteIfNeeded(retryStore)}`;
  const name = retryName === "default" ? "" : ` --name ${shellQuoteIfNeeded(retryName)}`;
  return `start one with baton retry-processor run${store}${name}`;
}

/**
 * Returns true if no processor tries the messages of a store; false if there is one, or if this cannot be found out.
 */
export async function lacksProcessor(store: StoreClient): Promise<boolean> {
  return await countRunningProcessors(store.call.bind(store)).catch(() => null) === 0;
}
