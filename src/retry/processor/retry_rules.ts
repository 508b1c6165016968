/** Turns settings into the rules of the store and the processor. */
import { BatonError } from "../../base/errors.ts";
import { addOriginToErrors, type ConfigSources, resolveSetting } from "../../base/config/resolve_settings.ts";
import { type retryLimitSettings, retryPolicySettings } from "../settings/retry_settings.ts";
import type { SettingValues } from "../../base/config/setting.ts";
import { type DeadLetterDestination, readDeadLetterDestination } from "../dead_letters/dead_letter_destination.ts";
import type { RetryPolicy } from "../queue/retry_policy.ts";
import type { StoreRules } from "../queue/store_rules.ts";
import type { NewLetters } from "../queue/stored_message.ts";
import { anyExitOrStatus, type ExitOrStatusKinds, parseExitsAndStatuses, type RetryRules } from "../targets/outcome.ts";
import { parseDuration } from "../../base/support/duration.ts";

type PolicyValues = SettingValues<typeof retryPolicySettings>;
type LimitValues = SettingValues<typeof retryLimitSettings>;

/** The default values of each policy. docs/adr/0027-retries-over-about-a-day.md explains the numbers. */
const policies = {
  standard: { intervalMs: 15_000, maxRetries: 25, backoff: "exponential" },
  wso2: { intervalMs: 3000, maxRetries: 10, backoff: "fixed" },
} as const;

const maxDelayMsDefault = 2 * 3_600_000;

/** Reads the policy for retries. Throws USAGE or CONFIG. */
export function readRetryPolicy(values: PolicyValues, sources: ConfigSources): RetryPolicy {
  const defaults = policies[values.retryPolicy];
  const { retryDelays, retryInterval: intervalMs = defaults.intervalMs } = values;
  const backoff = backoffOf(values, sources);
  const delaysMs = addOriginToErrors(
    "retryDelays",
    retryPolicySettings.retryDelays,
    sources,
    () => (retryDelays ?? []).map(parseDuration),
  );
  const longestMs = backoff === "list" ? Math.max(...delaysMs) : intervalMs;
  return {
    maxRetries: values.retryMaxRetries ?? defaults.maxRetries,
    backoff,
    intervalMs,
    delaysMs,
    maxDelayMs: values.retryMaxDelay ?? Math.max(maxDelayMsDefault, longestMs),
    // Only an exponential delay gets jitter by default; other delays stay as the user has written them.
    jitter: values.retryJitter ?? (backoff === "exponential" ? "equal" : "none"),
    maxElapsedMs: values.retryMaxElapsed ?? null,
  };
}

/**
 * Returns the kind of delays. Throws USAGE or CONFIG for a list without delays, and for delays that another kind would
 * ignore.
 */
function backoffOf(values: PolicyValues, sources: ConfigSources): RetryPolicy["backoff"] {
  const { retryPolicy, retryBackoff: given, retryDelays } = values;
  const { flags } = sources;
  if (retryDelays === undefined) {
    if (given === "list") {
      addOriginToErrors("retryBackoff", retryPolicySettings.retryBackoff, sources, () => {
        throw new BatonError("USAGE", "list needs --delays, such as --delays 1s,10s,1m");
      });
    }
    // If the user has written an interval, it becomes a fixed delay, unless a backoff is also given.
    return given ?? (values.retryInterval === undefined ? policies[retryPolicy].backoff : "fixed");
  }
  if (given === undefined || given === "list") return "list";
  // The command line decides. On the command line, a backoff overrides a list in the file, and a list overrides a
  // backoff in the file.
  if (flags.has("retryBackoff") && !flags.has("retryDelays")) return given;
  if (given === "fixed" && !flags.has("retryBackoff")) return "list";
  return addOriginToErrors("retryDelays", retryPolicySettings.retryDelays, sources, () => {
    throw new BatonError("USAGE", `a list of delays needs --backoff list, but the backoff is ${given}`);
  });
}

/**
 * Reads the rules for results of tries. `kinds` says what the codes of this command can mean. A file may contain codes
 * for other commands, but an option may not. Throws USAGE or CONFIG.
 */
export function readRetryRules(
  values: PolicyValues,
  sources: ConfigSources,
  kinds: ExitOrStatusKinds = anyExitOrStatus,
): RetryRules {
  const rangesOf = (name: "retryOn" | "retryNoRetryOn") =>
    addOriginToErrors(name, retryPolicySettings[name], sources, () => {
      return parseExitsAndStatuses(values[name] ?? [], sources.flags.has(name) ? kinds : anyExitOrStatus);
    });
  return { retryOn: rangesOf("retryOn"), noRetryOn: rangesOf("retryNoRetryOn") };
}

export function readStoreRules(values: PolicyValues & LimitValues, sources: ConfigSources): StoreRules {
  const { kind } = readDeadLetterDestination(values, sources);
  return {
    policy: readRetryPolicy(values, sources),
    maxCrashes: values.retryMaxCrashes,
    drops: kind === "drop",
    letters: newLettersOf(kind, sources),
    maxBytes: values.retryMaxBytes,
    maxMessages: values.retryMaxMessages,
  };
}

/** Returns `kept` only for a `store` that the user has set; the default leaves dead letters to other processes. */
function newLettersOf(kind: DeadLetterDestination["kind"], sources: ConfigSources): NewLetters {
  if (kind !== "store" && kind !== "drop") return "pending";
  const { origin } = resolveSetting("retryDeadLetter", retryPolicySettings.retryDeadLetter, sources);
  return origin().kind === "default" ? "open" : "kept";
}
