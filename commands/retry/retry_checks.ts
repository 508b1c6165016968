/** Checks the settings of the retry processor for `baton config check`. */
import { parseListenAddressFlag } from "../../src/base/config/listen_address.ts";
import { parseDuration } from "../../src/base/support/duration.ts";
import { readDeadLetterDestination } from "../../src/retry/dead_letters/dead_letter_destination.ts";
import { configuredRedaction } from "../../src/retry/dead_letters/redaction.ts";
import { retrySettings } from "../../src/retry/settings/retry_settings.ts";
import { parseExitsAndStatuses } from "../../src/retry/targets/outcome.ts";
import { defineProductChecks } from "../product.ts";
import { readStoreLocation } from "../../src/retry/queue/retry_store_location.ts";

export const retryChecks = defineProductChecks({
  settings: retrySettings,
  values: {
    retryDelays: (delays) => delays.forEach(parseDuration),
    retryOn: (codes) => parseExitsAndStatuses(codes),
    retryNoRetryOn: (codes) => parseExitsAndStatuses(codes),
    retryMetricsListen: parseListenAddressFlag,
  },
  together: (values, sources) => [
    // The default folder of the store is not checked, because each user has another one.
    () => readStoreLocation({ ...values, retryStore: values.retryStore ?? "." }, sources),
    () => readDeadLetterDestination(values, sources),
    () => configuredRedaction(values, sources),
  ],
});
