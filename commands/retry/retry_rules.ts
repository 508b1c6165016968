/** From the words of a command line to what the store and the processor go by. Pure, but for the home of the user. */
import { join, resolve } from "node:path";
import { BatonError } from "../../src/errors.ts";
import { atOrigin, type ConfigSources } from "../../src/config/resolve_settings.ts";
import {
  type retryLimitSettings,
  retryPolicySettings,
  retryRedactSettings,
  retryServeSettings,
  retryStoreSettings,
} from "../../src/config/retry_settings.ts";
import type { SettingValues } from "../../src/config/setting.ts";
import { homeInDatabase } from "../../src/keeper/lifecycle/keeper_location.ts";
import { userId } from "../../src/keeper/lifecycle/safe_folder.ts";
import { type Redaction, redactionOf } from "../../src/retry/dead_letters/redaction.ts";
import type { RetryPolicy } from "../../src/retry/queue/retry_policy.ts";
import type { StoreRules } from "../../src/retry/queue/retry_engine.ts";
import { bodyBytesMax } from "../../src/retry/queue/retry_store_limits.ts";
import { parseCodes, type RetryRules } from "../../src/retry/targets/outcome.ts";
import { parseDuration } from "../../src/support/duration.ts";
import { kafkaForm, type KafkaPlace, parseKafkaPlace } from "./kafka_place.ts";

/** What requests in progress may take where nothing else is said. */
const requestMemoryBytes = 256 << 20;

type StoreValues = SettingValues<typeof retryStoreSettings>;
type PolicyValues = SettingValues<typeof retryPolicySettings>;
type LimitValues = SettingValues<typeof retryLimitSettings>;

/** The store's name, and its folder. Throws USAGE or CONFIG. */
export function placeOf(
  values: StoreValues,
  sources: ConfigSources,
): { readonly name: string; readonly folder: string } {
  const { retryName: name, retryStore } = values;
  if (!/^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$/.test(name)) {
    return atOrigin("retryName", retryStoreSettings.retryName, sources, () => {
      const wanted = "up to 64 letters, digits, dots, dashes and underlines, the first of them no dot";
      throw new BatonError("USAGE", `"${name}" cannot be the name of a message store: write ${wanted}`);
    });
  }
  if (retryStore !== undefined) return { name, folder: resolve(retryStore) };
  const home = homeInDatabase(userId(), "/etc/passwd");
  if (home?.startsWith("/") && home !== "/") return { name, folder: join(home, ".local/state/baton/retry", name) };
  throw new BatonError("CONFIG", "This user has no home in the user database; --store says where messages are kept");
}

/** Throws USAGE. */
export function policyOf(values: PolicyValues, sources: ConfigSources): RetryPolicy {
  const { retryBackoff: backoff, retryDelays } = values;
  if (backoff === "list" && retryDelays === undefined) {
    atOrigin("retryBackoff", retryPolicySettings.retryBackoff, sources, () => {
      throw new BatonError("USAGE", "list needs --delays, such as --delays 1s,10s,1m");
    });
  }
  const delaysMs = atOrigin(
    "retryDelays",
    retryPolicySettings.retryDelays,
    sources,
    () => (retryDelays ?? []).map(parseDuration),
  );
  return {
    maxRetries: values.retryMaxRetries,
    backoff: retryDelays === undefined ? backoff : givenDelays(backoff, sources),
    intervalMs: values.retryInterval,
    delaysMs,
    maxDelayMs: values.retryMaxDelay,
    jitter: values.retryJitter,
    maxElapsedMs: values.retryMaxElapsed ?? null,
  };
}

/** Who gives a list means it. Throws USAGE or CONFIG where another word beside it says that it counts nothing. */
function givenDelays(backoff: RetryPolicy["backoff"], sources: ConfigSources): RetryPolicy["backoff"] {
  const { flags } = sources;
  if (backoff === "list" || (backoff === "fixed" && !flags.has("retryBackoff"))) return "list";
  // What the command line says goes before a list that is configured.
  if (flags.has("retryBackoff") && !flags.has("retryDelays")) return backoff;
  return atOrigin("retryDelays", retryPolicySettings.retryDelays, sources, () => {
    throw new BatonError("USAGE", `a list of times is for --backoff list, and the backoff is ${backoff}`);
  });
}

export function retryRulesOf(values: PolicyValues, sources: ConfigSources): RetryRules {
  const { retryOn, retryNoRetryOn } = retryPolicySettings;
  return {
    retryOn: atOrigin("retryOn", retryOn, sources, () => parseCodes(values.retryOn ?? [])),
    noRetryOn: atOrigin("retryNoRetryOn", retryNoRetryOn, sources, () => parseCodes(values.retryNoRetryOn ?? [])),
  };
}

export type LetterPlace =
  | { readonly kind: "store" }
  | { readonly kind: "drop" }
  | { readonly kind: "file"; readonly path: string }
  | { readonly kind: "exec"; readonly line: string }
  | { readonly kind: "topic"; readonly topic: string }
  | { readonly kind: "kafka"; readonly topic: KafkaPlace };

/** Throws USAGE. */
export function letterPlaceOf({ retryDeadLetter: written }: PolicyValues, sources: ConfigSources): LetterPlace {
  if (written === "store") return { kind: "store" };
  if (written === "drop") return { kind: "drop" };
  const [, kind, rest] = /^(file|exec|topic):(.+)$/s.exec(written) ?? [];
  if (kind === "file" && rest !== undefined) return { kind, path: resolve(rest) };
  if (kind === "exec" && rest !== undefined) return { kind, line: rest };
  if (kind === "topic" && rest !== undefined) return { kind, topic: rest };
  return atOrigin("retryDeadLetter", retryPolicySettings.retryDeadLetter, sources, () => {
    if (written.startsWith("kafka://")) return { kind: "kafka", topic: parseKafkaPlace(written) };
    throw new BatonError(
      "USAGE",
      `"${written}" is no place for dead letters: write store, drop, file:PATH, exec:LINE, topic:NAME or ${kafkaForm}`,
    );
  });
}

/** What is left out of what leaves the store. Throws USAGE or CONFIG. */
export function redactionFor(values: SettingValues<typeof retryRedactSettings>, sources: ConfigSources): Redaction {
  const { retryRedact, retryRedactHeaders = [], retryRedactQuery = [] } = values;
  const redaction = atOrigin("retryRedactHeaders", retryRedactSettings.retryRedactHeaders, sources, () => {
    return redactionOf(retryRedactHeaders, retryRedactQuery);
  });
  return retryRedact === "none" ? null : redaction;
}

export function storeRulesOf(values: PolicyValues & LimitValues, sources: ConfigSources): StoreRules {
  const letters = letterPlaceOf(values, sources);
  return {
    policy: policyOf(values, sources),
    maxCrashes: values.retryMaxCrashes,
    drops: letters.kind === "drop",
    sendsLetters: letters.kind !== "store" && letters.kind !== "drop",
    maxBytes: values.retryMaxBytes,
    maxMessages: values.retryMaxMessages,
  };
}

/** For commands that take no message in and try none: what it says is not asked for. */
export const idleRules: StoreRules = {
  policy: {
    maxRetries: 0,
    backoff: "fixed",
    intervalMs: 0,
    delaysMs: [],
    maxDelayMs: 0,
    jitter: "none",
    maxElapsedMs: null,
  },
  maxCrashes: 1,
  drops: false,
  sendsLetters: false,
  maxBytes: 0,
  maxMessages: 0,
};

/** The longest body that is taken in. */
export function bodyLimitOf({ retryMaxBody }: LimitValues): number {
  return Math.min(retryMaxBody, bodyBytesMax);
}

/** What the requests in progress may take. Throws USAGE or CONFIG. */
export function requestMemoryOf(
  values: LimitValues & SettingValues<typeof retryServeSettings>,
  sources: ConfigSources,
): number {
  const leastBytes = 2 * bodyLimitOf(values);
  const { retryBodyMemory = Math.max(requestMemoryBytes, leastBytes) } = values;
  if (retryBodyMemory >= leastBytes) return retryBodyMemory;
  return atOrigin("retryBodyMemory", retryServeSettings.retryBodyMemory, sources, () => {
    const [written, least] = [retryBodyMemory, leastBytes].map(retryServeSettings.retryBodyMemory.type.format);
    throw new BatonError("USAGE", `"${written}" is less than twice --max-body, which is ${least}`);
  });
}
