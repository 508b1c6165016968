/**
 * Sends dead letters to a Kafka topic. The key of a record is the message ID, the value is the body, and headers have
 * the rest. A record is durable when all in-sync replicas have it. If a processor dies before the store has marked the
 * record, the record is sent again. Loaded only if Kafka is used.
 */
import { KafkaProducer, type KafkaProducerOptions, type KafkaRecord } from "../../protocols/kafka/kafka_producer.ts";
import { dial } from "../../base/sockets/dial.ts";
import { TlsFiles, type TlsFilesOptions } from "../../base/sockets/tls_files.ts";
import { systemClock } from "../../base/support/clock.ts";
import type { ClaimedMessage } from "../queue/stored_message.ts";
import type { KafkaDestination } from "./dead_letter_destination.ts";
import { type DeadLetterFormat, deadLetterJson } from "./dead_letter_record.ts";
import type { DeadLetterSink, DeadLetterSinkSession } from "./dead_letter_forwarder.ts";
import { readConfiguredFile } from "../../base/support/private_file.ts";

export interface KafkaSinkOptions extends KafkaProducerOptions, DeadLetterFormat {
  /** Acquires the forwarder lock. Returns the function that releases the lock; null if another process is sending. */
  readonly takeLock: () => (() => void) | null;
}

export class KafkaSink implements DeadLetterSink {
  readonly skipsFailed = true;
  readonly #options: KafkaSinkOptions;
  readonly #producer: KafkaProducer;

  constructor(options: KafkaSinkOptions) {
    this.#options = options;
    this.#producer = new KafkaProducer(options);
  }

  /** Rejects with CONFIG, REFUSED or UNREACHABLE if no dead letter could be sent now. */
  async check(signal: AbortSignal): Promise<void> {
    await this.#producer.check(signal);
  }

  async open(signal: AbortSignal): Promise<DeadLetterSinkSession | null> {
    const release = this.#options.takeLock();
    if (release === null) return null;
    try {
      await this.#producer.check(signal);
    } catch (error) {
      release();
      throw error;
    }
    return {
      nextOffset: () => null,
      send: (letter, _, ending) =>
        this.#producer.send(makeKafkaDeadLetterRecord(letter, this.#options, Date.now()), ending),
      close: release,
    };
  }

  close(): void {
    this.#producer.close();
  }
}

/**
 * Makes the record of a dead letter. Its time is the time of sending: the topic keeps records by their time, and could
 * remove a record with an older time immediately.
 */
export function makeKafkaDeadLetterRecord(
  letter: ClaimedMessage,
  format: DeadLetterFormat,
  nowMs: number,
): KafkaRecord {
  const json = deadLetterJson(letter, format);
  const headers: [string, string | null][] = [
    ["baton-store", json.name],
    ["baton-key", json.key],
    ["baton-reason", json.reason],
    ["baton-tries", String(json.tries)],
    ["baton-crashes", String(json.crashes)],
    ["baton-last-error", json.last_error],
    ["baton-first-at", json.first_at],
    ["baton-last-at", json.last_at],
    ["baton-command", json.command === null ? null : JSON.stringify(json.command)],
    ["baton-cwd", json.cwd],
    ["baton-request", json.request === null ? null : JSON.stringify(json.request)],
  ];
  return {
    key: json.id,
    value: letter.body,
    headers: headers.filter((pair): pair is [string, string] => pair[1] !== null),
    timestampMs: nowMs,
  };
}

/** Reads the TLS and password files of a Kafka destination. Throws CONFIG for files that cannot be used. */
export function openKafkaSink(
  { brokers, topic, create, tls, login }: KafkaDestination,
  { storeName, redaction, timeoutMs, takeLock, warn }:
    & DeadLetterFormat
    & Pick<KafkaSinkOptions, "timeoutMs" | "takeLock">
    & Pick<TlsFilesOptions, "warn">,
): KafkaSink {
  return new KafkaSink({
    addresses: brokers,
    topic,
    createAs: create,
    clientId: `baton-${storeName}`,
    dial,
    tls: tls && new TlsFiles(tls, { warn }),
    credentials: login && { mechanism: login.mechanism, user: login.user, password: passwordIn(login.passwordFile) },
    clock: systemClock(),
    timeoutMs,
    storeName,
    redaction,
    takeLock,
  });
}

/** Returns the password: the first line of the file. */
function passwordIn(path: string): string {
  const text = new TextDecoder().decode(readConfiguredFile(path, `the Kafka password file ${path}`));
  return text.split(/\r?\n/, 1)[0] ?? "";
}
