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
import {
  arrayForm,
  choiceForm,
  functionForm,
  millisecondsForm,
  objectForm,
  type OptionForm,
  type OptionForms,
  signalForm,
  textForm,
} from "./check_arguments.ts";
import type { RetryPolicy } from "../retry/queue/retry_policy.ts";

export interface MessageStoreOptions {
  /** The name of the store; by default "default". */
  readonly name?: string;
  /**
   * The folder of the store, on a disk of this machine. By default ~/.local/state/baton/retry/NAME; the user database
   * names the home folder.
   */
  readonly folder?: string;
  /**
   * When messages are tried again, and when they are given up. Fields that are not given have the defaults of `baton
   * retry-processor run`.
   */
  readonly policy?: Partial<RetryPolicy>;
  /** How many times the process may die during a try of a message before the message is dead; by default 3. */
  readonly maxCrashes?: number;
  /** The most waiting, in-flight and dead messages together; by default 1,000,000. */
  readonly maxMessages?: number;
  /** The most bytes that the bodies of all waiting, in-flight and dead messages may have together; by default 4 GiB. */
  readonly maxBytes?: number;
}

export interface ProcessOptions {
  /** When the signal aborts, the processor starts no further tries, lets tries in flight end, and resolves. */
  readonly signal?: AbortSignal;
  /**
   * When the processor ends: "stopped" (the default) when the signal aborts, "empty" when no message waits, "once" when
   * each message that is due now was tried once.
   */
  readonly until?: "stopped" | "empty" | "once";
  /** How many tries may run at the same time; by default 1. */
  readonly concurrency?: number;
  /**
   * The order of tries: "none" (the default) tries each message when it is due; "key" tries messages with the same key
   * one after the other; "fifo" tries all messages one after the other.
   */
  readonly order?: "none" | "key" | "fifo";
  /** How many tries may start per time, such as "10/s" or "100/m"; by default there is no limit. */
  readonly rate?: string;
  /**
   * The time limit of a try, in milliseconds; by default 60,000. A try that takes longer is asked to stop, and has
   * failed.
   */
  readonly attemptTimeoutMs?: number;
  /**
   * How long after the death of a process another process retries its messages in flight, in milliseconds: at least
   * 2,000; by default 10,000.
   */
  readonly leaseMs?: number;
  /** How long tries may continue after the signal, in milliseconds; by default 10,000. */
  readonly drainMs?: number;
  /** How long the store keeps messages that are done, without their bodies, in milliseconds; by default 7 days. */
  readonly keepDoneMs?: number;
  /** Receives a report for each event that the log of `baton retry-processor run` would contain. */
  readonly onReport?: (report: ProcessorReport) => void;
}

/** The form of an option whose value `storeValues` or the caller checks. */
const checkedLater: OptionForm = { expected: "", fits: () => true };

export const storeForms: OptionForms<MessageStoreOptions> = {
  name: textForm,
  folder: textForm,
  policy: objectForm,
  maxCrashes: checkedLater,
  maxMessages: checkedLater,
  maxBytes: checkedLater,
};

export const policyForms: OptionForms<Partial<RetryPolicy>> = {
  maxRetries: checkedLater,
  backoff: checkedLater,
  intervalMs: checkedLater,
  delaysMs: arrayForm("numbers of milliseconds", millisecondsForm),
  maxDelayMs: checkedLater,
  jitter: checkedLater,
  maxElapsedMs: checkedLater,
};

export const processForms: OptionForms<ProcessOptions> = {
  signal: signalForm,
  until: choiceForm("stopped", "empty", "once"),
  concurrency: checkedLater,
  order: checkedLater,
  rate: checkedLater,
  attemptTimeoutMs: checkedLater,
  leaseMs: checkedLater,
  drainMs: checkedLater,
  keepDoneMs: checkedLater,
  onReport: functionForm,
};

export interface ProcessorReport {
  readonly level: "error" | "warning" | "info" | "detail";
  /** The kind of event, as a word for programs: `try_failed`, `lease_lost` … */
  readonly event: string;
  readonly sentence: string;
}

/** The sources of settings for a program, which has no command line, variables or files, because it gives options. */
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
