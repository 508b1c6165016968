/**
 * Dead letters as records of a Kafka topic: the key is the message's id, the value its body, and the headers say the rest. There when
 * all replicas in sync have it. At least once: a processor that dies behind the record and before its note of it sends it again, with
 * the same key.
 */
import { KafkaProducer, type KafkaProducerOptions, type KafkaRecord } from "../../kafka/kafka_producer.ts";

import type { ClaimedMessage } from "../queue/stored_message.ts";
import { letterOf, type LetterRules } from "./dead_letter_record.ts";
import type { LetterPlace, OpenPlace } from "./dead_letter_forwarder.ts";

export interface KafkaLettersOptions extends KafkaProducerOptions, LetterRules {
  /** What gives this process's turn back; null: another one of the store sends now. */
  readonly takeTurn: () => (() => void) | null;
}

export class KafkaLetters implements LetterPlace {
  readonly isEachAlone = true;
  readonly #options: KafkaLettersOptions;
  readonly #producer: KafkaProducer;

  constructor(options: KafkaLettersOptions) {
    this.#options = options;
    this.#producer = new KafkaProducer(options);
  }

  /** Rejects with CONFIG, REFUSED or UNREACHABLE when no letter could be sent now. */
  async check(signal: AbortSignal): Promise<void> {
    await this.#producer.check(signal);
  }

  async open(signal: AbortSignal): Promise<OpenPlace | null> {
    const turn = this.#options.takeTurn();
    if (turn === null) return null;
    try {
      await this.#producer.check(signal);
    } catch (error) {
      turn();
      throw error;
    }
    return {
      next: () => null,
      send: (letter, _, ending) => this.#producer.send(recordOf(letter, this.#options, Date.now()), ending),
      close: turn,
    };
  }

  close(): void {
    this.#producer.close();
  }
}

/**
 * Headers that have nothing to say are left out. The record's time is that of its sending: a topic's retention goes by it, and would
 * take a letter away at once that waited for long.
 */
export function recordOf(letter: ClaimedMessage, rules: LetterRules, nowMs: number): KafkaRecord {
  const { id, name, key, reason, tries, crashes, lastError, firstAt, lastAt, command, cwd, request } = letterOf(
    letter,
    rules,
  );
  const headers: [string, string | null][] = [
    ["baton-store", name],
    ["baton-key", key],
    ["baton-reason", reason],
    ["baton-tries", String(tries)],
    ["baton-crashes", String(crashes)],
    ["baton-last-error", lastError],
    ["baton-first-at", firstAt],
    ["baton-last-at", lastAt],
    ["baton-command", command === null ? null : JSON.stringify(command)],
    ["baton-cwd", cwd],
    ["baton-request", request === null ? null : JSON.stringify(request)],
  ];
  return {
    key: id,
    value: letter.body,
    headers: headers.filter((pair): pair is [string, string] => pair[1] !== null),
    timestampMs: nowMs,
  };
}
