/** Opens the sink that --dead-letter names. */
import { closeSync, openSync } from "node:fs";
import { join } from "node:path";
import type { ConfigSources } from "../../base/config/resolve_settings.ts";
import type { retryPolicySettings, retryRedactSettings } from "../settings/retry_settings.ts";
import type { SettingValues } from "../../base/config/setting.ts";
import { BatonError } from "../../base/errors.ts";
import { loadLibc } from "../../base/process/libc.ts";
import { systemClock } from "../../base/support/clock.ts";
import { checkDestination } from "../check_destination.ts";
import type { Log } from "../../base/support/log.ts";
import type { TopicClients } from "../targets/topic_clients.ts";
import { CommandSink } from "./command_sink.ts";
import type { DeadLetterDestination } from "./dead_letter_destination.ts";
import type { DeadLetterSink } from "./dead_letter_forwarder.ts";
import { FileSink } from "./file_sink.ts";
import { configuredRedaction } from "./redaction.ts";

export interface DeadLetterSinkOptions {
  /** Where the store is. `folder` is null if the store itself lets only one process send at a time. */
  readonly location: { readonly name: string; readonly folder: string | null };
  /** The settings. `killAfter` is the time from the stop signal to SIGKILL, in milliseconds. */
  readonly values: SettingValues<typeof retryPolicySettings & typeof retryRedactSettings> & {
    readonly killAfter: number;
  };
  readonly sources: ConfigSources;
  readonly log: Log;
  /** The clients of topics; null if no topic is used. */
  readonly topics: TopicClients | null;
}

/** Opens the sink. Rejects with CONFIG or REFUSED if no dead letter could ever be sent. */
export async function openDeadLetterSink(
  destination: Exclude<DeadLetterDestination, { readonly kind: "store" | "drop" }>,
  { location, values, sources, topics, log }: DeadLetterSinkOptions,
): Promise<DeadLetterSink> {
  const format = { storeName: location.name, redaction: configuredRedaction(values, sources) };
  const libc = await loadLibc();
  const lockFile = (fd: number) => libc?.lockFile(fd) ?? false;
  if (destination.kind === "file") return new FileSink({ ...format, path: destination.path, lockFile });
  const { folder } = location;
  const takeLock = () => folder === null ? () => {} : forwarderLock(folder, lockFile);
  const common = { ...format, timeoutMs: values.retryAttemptTimeout, takeLock };
  if (destination.kind === "exec") {
    return new CommandSink({
      ...common,
      line: destination.line,
      killAfterMs: values.killAfter,
      clock: systemClock(),
      say: (sentence) => log("warning", "guard", sentence),
    });
  }
  let sink: DeadLetterSink & { check(signal: AbortSignal): Promise<void> };
  if (destination.kind === "kafka") {
    sink = (await import("./kafka_sink.ts")).openKafkaSink(destination.topic, {
      ...common,
      warn: (text) => log("warning", "tls", text),
    });
  } else {
    if (topics === null) throw new BatonError("INTERNAL", "no topic clients for --dead-letter topic:");
    const { TopicSink } = await import("./topic_sink.ts");
    // An earlier process may still have the client. It will close the client soon, because this process has the
    // forwarder lock.
    const openClient = (signal: AbortSignal) => topics.open(".dead-letters", { waitMs: 5000, signal });
    sink = new TopicSink({ ...common, topic: destination.topic, openClient });
  }
  try {
    const meanwhile = "dead letters stay in the store and are retried";
    await checkDestination((signal) => sink.check(signal), { option: "--dead-letter", meanwhile, log });
    return sink;
  } catch (error) {
    sink.close?.();
    throw error;
  }
}

/**
 * Acquires the lock that lets only one process of a store send. Returns the function that releases the lock; null if
 * another process has it. The system releases the lock when the process dies.
 */
function forwarderLock(folder: string, lockFile: (fd: number) => boolean): (() => void) | null {
  const fd = openSync(join(folder, "dead_letters.lock"), "a", 0o600);
  if (lockFile(fd)) return () => closeSync(fd);
  closeSync(fd);
  return null;
}
