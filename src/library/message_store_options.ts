/** Options of a message store and its processors. The defaults are those of `baton retry-processor`. */
import { type ConfigSources, resolveSettings } from "../base/config/resolve_settings.ts";
import {
  retryLimitSettings,
  retryPolicySettings,
  retryProcessorSettings,
  retryRedactSettings,
  retryTopicSettings,
} from "../retry/settings/retry_settings.ts";
import type { Setting, SettingValues } from "../base/config/setting.ts";
import { BatonError, errorMessage } from "../base/errors.ts";
import type { RetryPolicy } from "../retry/queue/retry_policy.ts";

export interface MessageStoreOptions {
  /** "default" when left out. */
  readonly name?: string;
  /**
   * Folder of the store, on a disk of this machine; ~/.local/state/baton/retry/NAME when left out, by the user
   * database.
   */
  readonly folder?: string;
  /**
   * When a message is tried again, and when it is given up; what is left out is the default of `baton retry-processor
   * run`.
   */
  readonly policy?: Partial<RetryPolicy>;
  /** A message is dead after its process died this often during a try; 3 when left out. */
  readonly maxCrashes?: number;
  /** Maximum number of waiting, in-flight and dead messages; 1,000,000 when left out. */
  readonly maxMessages?: number;
  /** Maximum size of the bodies of these messages; 4 GiB when left out. */
  readonly maxBytes?: number;
}

export interface ProcessOptions {
  /** Aborts: starts no further tries, lets those in flight end, and resolves. */
  readonly signal?: AbortSignal;
  /**
   * "stopped" (the default): only the signal ends it; "empty": no message waits; "once": each message that is due now
   * was tried once.
   */
  readonly until?: "stopped" | "empty" | "once";
  /** Maximum number of tries at the same time; 1 when left out. */
  readonly concurrency?: number;
  /**
   * "none" (the default): when due; "key": messages with the same key one after the other; "fifo": all one after the
   * other.
   */
  readonly order?: "none" | "key" | "fifo";
  /** Maximum tries per time, such as "10/s" or "100/m"; no limit when left out. */
  readonly rate?: string;
  /** A try that takes longer is asked to stop and has failed; 60,000 ms when left out. */
  readonly attemptTimeoutMs?: number;
  /**
   * Another process retries messages in flight this long after their process died: 2,000 ms or more; 10,000 when left
   * out.
   */
  readonly leaseMs?: number;
  /** How long tries may continue after the signal, in milliseconds; 10,000 when left out. */
  readonly drainMs?: number;
  /** This many failures in a row stop tries for `breakerResetMs` (30,000); never when left out. */
  readonly breakerFailures?: number;
  readonly breakerResetMs?: number;
  /** How long the store keeps messages that are done, without their bodies, in milliseconds; 7 days when left out. */
  readonly keepDoneMs?: number;
  /** Receives what the processor does, as the log of `baton retry-processor run` has it. */
  readonly onReport?: (report: ProcessorReport) => void;
}

export interface ProcessorReport {
  readonly level: "error" | "warning" | "info" | "detail";
  /** A word for programs: `try_failed`, `breaker` … */
  readonly event: string;
  readonly sentence: string;
}

/** No command line, no variables and no files: programs give options. */
export const noSources: ConfigSources = { flags: new Map(), env: {}, files: [] };

const storeSettings = {
  ...retryLimitSettings,
  ...retryPolicySettings,
  ...retryProcessorSettings,
  ...retryRedactSettings,
  ...retryTopicSettings,
};

/** Returns the values of the settings. Throws USAGE for an option that is not valid. */
export function storeValues(
  { policy = {}, maxCrashes, maxMessages, maxBytes }: MessageStoreOptions,
  processing: ProcessOptions = {},
): SettingValues<typeof storeSettings> {
  const { delaysMs } = policy;
  const given: Partial<Record<keyof typeof storeSettings, readonly [option: string, value: unknown]>> = {
    retryMaxRetries: ["policy.maxRetries", policy.maxRetries],
    retryBackoff: ["policy.backoff", policy.backoff ?? (delaysMs === undefined ? undefined : "list")],
    retryInterval: ["policy.intervalMs", policy.intervalMs],
    retryDelays: ["policy.delaysMs", delaysMs?.map((delay) => `${delay}ms`)],
    retryMaxDelay: ["policy.maxDelayMs", policy.maxDelayMs],
    retryJitter: ["policy.jitter", policy.jitter],
    retryMaxElapsed: ["policy.maxElapsedMs", policy.maxElapsedMs ?? undefined],
    retryMaxCrashes: ["maxCrashes", maxCrashes],
    retryMaxMessages: ["maxMessages", maxMessages],
    retryMaxBytes: ["maxBytes", maxBytes],
    retryConcurrency: ["concurrency", processing.concurrency],
    retryOrder: ["order", processing.order],
    retryRate: ["rate", processing.rate],
    retryAttemptTimeout: ["attemptTimeoutMs", processing.attemptTimeoutMs],
    retryLease: ["leaseMs", processing.leaseMs],
    retryDrainTimeout: ["drainMs", processing.drainMs],
    retryBreakerFailures: ["breakerFailures", processing.breakerFailures],
    retryBreakerReset: ["breakerResetMs", processing.breakerResetMs],
    retryKeepDone: ["keepDoneMs", processing.keepDoneMs],
  };
  const checked = Object.entries(given).filter(([, [, value]]) => value !== undefined)
    .map((
      [name, [option, value]],
    ) => [name, checkedValue(storeSettings[name as keyof typeof storeSettings], option, value)]);
  return { ...resolveSettings(storeSettings, noSources), ...Object.fromEntries(checked) };
}

/** Checks a value as on the command line. */
function checkedValue(setting: Setting<unknown>, option: string, value: unknown): unknown {
  try {
    return setting.type.parse(setting.type.format(value as NonNullable<unknown>));
  } catch (cause) {
    throw new BatonError("USAGE", `${option}: ${errorMessage(cause)}`, { cause });
  }
}
