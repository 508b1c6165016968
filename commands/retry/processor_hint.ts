/** The hint that users get when messages wait and no processor tries them. */
import { shellQuoteIfNeeded } from "../../src/base/terminal/shell_quote.ts";

/** Returns how to start a processor for the store that a call has named. */
export function startProcessorHint(
  { retryName, retryStore }: { readonly retryName: string; readonly retryStore?: string | undefined },
): string {
  const store = retryStore === undefined ? "" : ` --store ${shellQuoteIfNeeded(retryStore)}`;
  const name = retryName === "default" ? "" : ` --name ${shellQuoteIfNeeded(retryName)}`;
  return `start one with baton retry-processor run${store}${name}`;
}
