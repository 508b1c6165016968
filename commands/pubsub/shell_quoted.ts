/** A name as it has to be typed in the command that a sentence proposes. Pure. */
import { shellQuote } from "../../src/process/hold/shell_quote.ts";

export function shellQuoteIfNeeded(name: string): string {
  return /^[\p{L}\p{N}_@%+:,./-]+$/u.test(name) ? name : shellQuote(name);
}
