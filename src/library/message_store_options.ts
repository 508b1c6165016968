/** Options of a message store and its processors. The defaults are the same as for `baton retry-processor`. */
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
  /** Name of the store; "default" when omitted. */
  readonly name?: string;
  /**
   * Folder of the store, on a disk of this machine. When omitted: ~/.local/state/baton/retry/NAME; the user database
   * names the home folder.
   */
  readonly folder?: string;
  /**
   * When messages are tried again, and when they are given up. Omitted fields have the defaults of `baton
   * retry-processor run`.
   */
  readonly policy?: Partial<RetryPolicy>;
  /** A message is dead after its process died this often during a try; 3 when omitted. */
  readonly maxCrashes?: number;
  /** Maximum number of waiting, in-flight and dead messages; 1,000,000 when omitted. */
  readonly maxMessages?: number;
  /** Maximum size of the bodies of all waiting, in-flight and dead messages, in bytes; 4 GiB when omitted. */
  readonly maxBytes?: number;
}

export interface ProcessOptions {
  /** When the signal aborts, the processor starts no further tries, lets tries in flight end, and resolves. */
  readonly signal?: AbortSignal;
  /**
   * "stopped" (the default) runs until the signal aborts, "empty" until no message waits, "once" until each message
   * that is due now was tried once.
   */
  readonly until?: "stopped" | "empty" | "once";
  /** Maximum number of tries at the same time; 1 when omitted. */
  readonly concurrency?: number;
  /**
   * "none" (the default) tries each message when it is due. "key" tries messages with the same key one after the other,
   * and "fifo" all messages.
   */
  readonly order?: "none" | "key" | "fifo";
  /** Maximum number of tries per time, such as "10/s" or "100/m"; no limit when omitted. */
  readonly rate?: string;
  /**
   * Time limit of a try, in milliseconds; 60,000 when omitted. A try that takes longer is asked to stop, and has
   * failed.
   */
  readonly attemptTimeoutMs?: number;
  /**
   * How long after the death of a process another process retries its messages in flight, in milliseconds: 2,000 or
   * more; 10,000 when omitted.
   */
  readonly leaseMs?: number;
  /** How long tries may continue after the signal, in milliseconds; 10,000 when omitted. */
  readonly drainMs?: number;
  /**
   * Number of failures in a row that stops tries for `breakerResetMs` (30,000 when omitted). When omitted, failures
   * never stop tries.
   */
  readonly breakerFailures?: number;
  readonly breakerResetMs?: number;
  /** How long the store keeps messages that are done, without their bodies, in milliseconds; 7 days when omitted. */
  readonly keepDoneMs?: number;
  /** Receives a report for each event that the log of `baton retry-processor run` would contain. */
  readonly onReport?: (report: ProcessorReport) => void;
}

export interface ProcessorReport {
  readonly level: "error" | "warning" | "info" | "detail";
  /** A word for programs: `try_failed`, `breaker` … */
  readonly event: string;
  readonly sentence: string;
}

/** Sources without a command line, variables and files, because programs give options instead. */
export const noSources: ConfigSources = { flags: new Map(), env: {}, files: [] };

const storeSettings = {
  ...retryLimitSettings,
  ...retryPolicySettings,
  ...retryProcessorSettings,
  ...retryRedactSettings,
  ...retryTopicSettings,
};

/** Returns the values of the settings that the options stand for. Throws USAGE for an invalid option. */
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

function checkedValue(setting: Setting<unknown>, option: string, value: unknown): unknown {
  try {
    return setting.type.parse(setting.type.format(value as NonNullable<unknown>));
  } catch (cause) {
    throw new BatonError("USAGE", `${option}: ${errorMessage(cause)}`, { cause });
  }
}
