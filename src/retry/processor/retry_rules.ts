/** Turns settings into the rules of the store and the processor. Pure. */
import { BatonError } from "../../errors.ts";
import { addOriginToErrors, type ConfigSources } from "../../config/resolve_settings.ts";
import { type retryLimitSettings, retryPolicySettings, retryServeSettings } from "../../config/retry_settings.ts";
import type { SettingValues } from "../../config/setting.ts";
import { deadLetterDestinationOf } from "../dead_letters/dead_letter_destination.ts";
import type { RetryPolicy } from "../queue/retry_policy.ts";
import type { StoreRules } from "../queue/retry_engine.ts";
import { bodyBytesMax } from "../queue/retry_store_limits.ts";
import { parseCodes, type RetryRules } from "../targets/outcome.ts";
import { parseDuration } from "../../support/duration.ts";

/** Default memory for the requests in progress. Bytes. */
const requestMemoryBytes = 256 << 20;

type PolicyValues = SettingValues<typeof retryPolicySettings>;
type LimitValues = SettingValues<typeof retryLimitSettings>;

/** Throws USAGE. */
export function policyOf(values: PolicyValues, sources: ConfigSources): RetryPolicy {
  const { retryBackoff: backoff, retryDelays } = values;
  if (backoff === "list" && retryDelays === undefined) {
    addOriginToErrors("retryBackoff", retryPolicySettings.retryBackoff, sources, () => {
      throw new BatonError("USAGE", "list needs --delays, such as --delays 1s,10s,1m");
    });
  }
  const delaysMs = addOriginToErrors(
    "retryDelays",
    retryPolicySettings.retryDelays,
    sources,
    () => (retryDelays ?? []).map(parseDuration),
  );
  return {
    maxRetries: values.retryMaxRetries,
    backoff: retryDelays === undefined ? backoff : backoffWithDelays(backoff, sources),
    intervalMs: values.retryInterval,
    delaysMs,
    maxDelayMs: values.retryMaxDelay,
    jitter: values.retryJitter,
    maxElapsedMs: values.retryMaxElapsed ?? null,
  };
}

/** The backoff of a list of delays. Throws USAGE or CONFIG for another backoff, which would ignore the list. */
function backoffWithDelays(backoff: RetryPolicy["backoff"], sources: ConfigSources): RetryPolicy["backoff"] {
  const { flags } = sources;
  if (backoff === "list" || (backoff === "fixed" && !flags.has("retryBackoff"))) return "list";
  // The command line overrides a list in the configuration file.
  if (flags.has("retryBackoff") && !flags.has("retryDelays")) return backoff;
  return addOriginToErrors("retryDelays", retryPolicySettings.retryDelays, sources, () => {
    throw new BatonError("USAGE", `a list of delays needs --backoff list, but the backoff is ${backoff}`);
  });
}

export function retryRulesOf(values: PolicyValues, sources: ConfigSources): RetryRules {
  const { retryOn, retryNoRetryOn } = retryPolicySettings;
  return {
    retryOn: addOriginToErrors("retryOn", retryOn, sources, () => parseCodes(values.retryOn ?? [])),
    noRetryOn: addOriginToErrors(
      "retryNoRetryOn",
      retryNoRetryOn,
      sources,
      () => parseCodes(values.retryNoRetryOn ?? []),
    ),
  };
}

export function storeRulesOf(values: PolicyValues & LimitValues, sources: ConfigSources): StoreRules {
  const { kind } = deadLetterDestinationOf(values, sources);
  return {
    policy: policyOf(values, sources),
    maxCrashes: values.retryMaxCrashes,
    drops: kind === "drop",
    forwards: kind !== "store" && kind !== "drop",
    maxBytes: values.retryMaxBytes,
    maxMessages: values.retryMaxMessages,
  };
}

/** The longest body that is accepted. */
export function bodyLimitOf({ retryMaxBody }: LimitValues): number {
  return Math.min(retryMaxBody, bodyBytesMax);
}

/** The memory for the requests in progress. Throws USAGE or CONFIG. */
export function requestMemoryOf(
  values: LimitValues & SettingValues<typeof retryServeSettings>,
  sources: ConfigSources,
): number {
  const leastBytes = 2 * bodyLimitOf(values);
  const { retryBodyMemory = Math.max(requestMemoryBytes, leastBytes) } = values;
  if (retryBodyMemory >= leastBytes) return retryBodyMemory;
  return addOriginToErrors("retryBodyMemory", retryServeSettings.retryBodyMemory, sources, () => {
    const [written, least] = [retryBodyMemory, leastBytes].map(retryServeSettings.retryBodyMemory.type.format);
    throw new BatonError("USAGE", `"${written}" is less than twice --max-body (${least})`);
  });
}
