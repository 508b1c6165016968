/** From a Kafka topic as it was written to a place for dead letters: reads the files that it names. Loaded where one is used. */
import { readFileSync } from "node:fs";
import { BatonError, messageOf } from "../../src/errors.ts";
import { KafkaLetters } from "../../src/retry/dead_letters/kafka_sink.ts";
import type { LetterRules } from "../../src/retry/dead_letters/dead_letter_record.ts";
import { dial } from "../../src/sockets/dial.ts";
import { systemClock } from "../../src/support/clock.ts";
import { tlsFilesOf } from "../../src/coordination/connect/tls_files.ts";
import type { KafkaPlace } from "./kafka_place.ts";

/** Throws CONFIG for files that cannot be used. */
export function openKafkaLetters(
  { brokers, topic, makes, tls, login }: KafkaPlace,
  { storeName, redaction, timeoutMs, takeTurn }: LetterRules & {
    readonly timeoutMs: number;
    readonly takeTurn: () => (() => void) | null;
  },
): KafkaLetters {
  const files = tls && { tlsCa: tls.ca, tlsCert: tls.cert, tlsKey: tls.key };
  return new KafkaLetters({
    addresses: brokers,
    topic,
    createAs: makes,
    clientId: `baton-${storeName}`,
    dial,
    tls: files && tlsFilesOf(files, (_, act) => act()),
    credentials: login && { mechanism: login.mechanism, user: login.user, password: passwordIn(login.passwordFile) },
    clock: systemClock(),
    timeoutMs,
    storeName,
    redaction,
    takeTurn,
  });
}

/** Its first line. */
function passwordIn(path: string): string {
  try {
    return readFileSync(path, "utf8").split(/\r?\n/, 1)[0] ?? "";
  } catch (error) {
    throw new BatonError("CONFIG", `Cannot read the password for Kafka in ${path}: ${messageOf(error)}`, {
      cause: error,
    });
  }
}
