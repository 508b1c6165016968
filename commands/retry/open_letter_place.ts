/** The place that --dead-letter names, ready for letters. */
import { loadLibc } from "../../src/cli/child/libc.ts";
import { BatonError } from "../../src/errors.ts";
import { FileLetters } from "../../src/recipes/retry/letters/file_letters.ts";
import type { KafkaLetters } from "../../src/recipes/retry/letters/kafka_letters.ts";
import type { LetterPlace } from "../../src/recipes/retry/letters/letter_office.ts";
import { systemClock } from "../../src/support/clock.ts";
import { deadlineAfter } from "../../src/support/deadline.ts";
import { ExecLetters } from "./exec_letters.ts";
import { takeLetterTurn } from "./letter_turn.ts";
import type { RetryLog } from "./retry_log.ts";
import { letterPlaceOf } from "./retry_rules.ts";
import type { StoreProcessorOptions } from "./store_processor.ts";

/** How long the start waits for a place that does not answer. Milliseconds. */
const checkMs = 3000;

/** Null: they stay in the store, or are dropped. Rejects with CONFIG or REFUSED where no letter could ever be sent. */
export async function openLetterPlace(
  { place, values, sources, killAfterMs, log }: StoreProcessorOptions,
): Promise<LetterPlace | null> {
  const letters = letterPlaceOf(values, sources);
  if (letters.kind === "store" || letters.kind === "drop") return null;
  const libc = await loadLibc();
  const lockFile = (fd: number) => libc?.lockFile(fd) ?? false;
  if (letters.kind === "file") return new FileLetters({ path: letters.path, storeName: place.name, lockFile });
  const common = { storeName: place.name, timeoutMs: values.retryAttemptTimeout };
  if (letters.kind === "exec") {
    const { line } = letters;
    return new ExecLetters({ ...common, line, folder: place.folder, killAfterMs, clock: systemClock(), lockFile });
  }
  const { openKafkaLetters } = await import("./open_kafka_letters.ts");
  const takeTurn = () => takeLetterTurn(place.folder, lockFile);
  const kafka = openKafkaLetters(letters.topic, { ...common, takeTurn });
  await checked(kafka, log);
  return kafka;
}

/** What is wrong for good is said before any message is tried; a broker that is down now may be there when a letter comes. */
async function checked(kafka: KafkaLetters, log: RetryLog): Promise<void> {
  const reason = () => new BatonError("UNREACHABLE", `No Kafka broker has answered within ${checkMs / 1000} s`);
  const deadline = deadlineAfter(systemClock(), checkMs, { reason });
  try {
    await kafka.check(deadline.signal);
  } catch (error) {
    if (error instanceof BatonError && (error.code === "UNREACHABLE" || error.code === "CONNECTION_LOST")) {
      log(
        "warning",
        "letter_place",
        `--dead-letter: ${error.message}; dead letters stay in the store until it is there`,
      );
      return;
    }
    kafka.close();
    throw error;
  } finally {
    deadline.cancel();
  }
}
