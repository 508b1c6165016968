/** Checks of retry's settings for `baton config check`. */
import { parseListenFlag } from "../../src/base/config/listen_address.ts";
import { Schedule } from "../../src/base/schedule/schedule.ts";
import { parseDuration } from "../../src/base/support/duration.ts";
import { checkPubsubName } from "../../src/pubsub/client/client_limits.ts";
import { readDeadLetterDestination } from "../../src/retry/dead_letters/dead_letter_destination.ts";
import { configuredRedaction } from "../../src/retry/dead_letters/redaction.ts";
import { parseRate } from "../../src/retry/queue/rate_limit.ts";
import { readRequestMemory } from "../../src/retry/processor/retry_rules.ts";
import { retrySettings } from "../../src/retry/settings/retry_settings.ts";
import { parseCodes } from "../../src/retry/targets/outcome.ts";
import { defineChecks } from "../product.ts";
import { readStoreLocation } from "../../src/retry/queue/retry_store_location.ts";

export const retryChecks = defineChecks({
  settings: retrySettings,
  values: {
    retryDelays: (delays) => delays.forEach(parseDuration),
    retryOn: (codes) => parseCodes(codes),
    retryNoRetryOn: (codes) => parseCodes(codes),
    retryRate: parseRate,
    retryCron: (written) => new Schedule(written),
    retryMetricsListen: parseListenFlag,
    retryFromTopic: (topic) => checkPubsubName("topic", topic),
    retryClientId: (id) => checkPubsubName("client id", id),
  },
  together: (values, sources) => [
    // Checks the name and a URL; the default folder of the store depends on the user.
    () => readStoreLocation({ ...values, retryStore: values.retryStore ?? "." }, sources),
    () => readDeadLetterDestination(values, sources),
    () => configuredRedaction(values, sources),
    () => readRequestMemory(values, sources),
  ],
});
