/** The place that --dead-letter names, ready for letters. */
import { loadLibc } from "../../src/process/libc.ts";
import { BatonError } from "../../src/errors.ts";
import { FileLetters } from "../../src/retry/dead_letters/file_sink.ts";
import type { LetterRules } from "../../src/retry/dead_letters/dead_letter_record.ts";
import type { LetterPlace } from "../../src/retry/dead_letters/dead_letter_forwarder.ts";
import { systemClock } from "../../src/support/clock.ts";
import { checkPlace } from "./check_place.ts";
import { ExecLetters } from "./exec_letters.ts";
import { takeLetterTurn } from "./letter_turn.ts";
import type { openKafkaLetters } from "./open_kafka_letters.ts";
import { letterPlaceOf, redactionFor } from "./retry_rules.ts";
import type { StoreProcessorOptions } from "./store_processor.ts";

/** Null: they stay in the store, or are dropped. Rejects with CONFIG or REFUSED where no letter could ever be sent. */
export async function openLetterPlace(
  options: StoreProcessorOptions,
): Promise<LetterPlace | null> {
  const { place, values, sources, killAfterMs, log } = options;
  const letters = letterPlaceOf(values, sources);
  if (letters.kind === "store" || letters.kind === "drop") return null;
  const rules = { storeName: place.name, redaction: redactionFor(values, sources) };
  const libc = await loadLibc();
  const lockFile = (fd: number) => libc?.lockFile(fd) ?? false;
  if (letters.kind === "file") return new FileLetters({ ...rules, path: letters.path, lockFile });
  const common = { ...rules, timeoutMs: values.retryAttemptTimeout };
  if (letters.kind === "exec") {
    const { line } = letters;
    return new ExecLetters({ ...common, line, folder: place.folder, killAfterMs, clock: systemClock(), lockFile });
  }
  const takeTurn = () => takeLetterTurn(place.folder, lockFile);
  const there = letters.kind === "kafka"
    ? await kafkaLetters(letters.topic, { ...common, takeTurn })
    : await topicLetters(options, letters.topic, { ...rules, takeTurn });
  try {
    const meanwhile = "dead letters stay in the store until that is over";
    await checkPlace((signal) => there.check(signal), { who: "--dead-letter", meanwhile, log });
    return there;
  } catch (error) {
    there.close?.();
    throw error;
  }
}

/** With a look whether it is there. */
type CheckedPlace = LetterPlace & { check(signal: AbortSignal): Promise<void> };

async function kafkaLetters(...words: Parameters<typeof openKafkaLetters>): Promise<CheckedPlace> {
  return (await import("./open_kafka_letters.ts")).openKafkaLetters(...words);
}

async function topicLetters(
  { topics }: StoreProcessorOptions,
  topic: string,
  rules: LetterRules & { readonly takeTurn: () => (() => void) | null },
): Promise<CheckedPlace> {
  if (topics === null) throw new BatonError("INTERNAL", "There is no way to the topic of --dead-letter");
  const { TopicLetters } = await import("../../src/retry/dead_letters/topic_sink.ts");
  // Who has the turn, has the client: another process is just about to close it.
  const openClient = (signal: AbortSignal) => topics.open(".letters", { waitMs: 5000, signal });
  return new TopicLetters({ ...rules, topic, openClient });
}
