/** Writes the events of a processor to the log. */
import { formatDuration } from "../../base/support/duration.ts";
import { countWithNoun } from "../../base/support/text.ts";
import type { Log } from "../../base/support/log.ts";
import type { ProcessorEvent } from "./retry_processor.ts";

const breakerSentences = {
  closed: "closed: tries continue",
  open: "open: no tries for now",
  half_open: "half open: one try decides",
} as const;

export function logProcessorEvent(log: Log, event: ProcessorEvent): void {
  switch (event.kind) {
    case "began": {
      const { id, tries } = event.message;
      return log("detail", "try_started", `${id}: try ${tries + 1} starts`, { id });
    }
    case "ended":
      return logTryEnd(log, event);
    case "given_back": {
      const { id } = event.message;
      return log("warning", "not_tried", `${id} was not tried: ${event.why}`, { id });
    }
    case "stale": {
      const { id } = event.message;
      return log("warning", "stale", `${id}: the result of its try came too late and is ignored`, { id });
    }
    case "reclaimed": {
      const { count } = event;
      return log("warning", "reclaimed", `took back ${countWithNoun(count, "message")} of a processor that died`, {
        count,
      });
    }
    case "breaker": {
      const { state } = event;
      const level = state === "open" ? "warning" : "info";
      return log(level, "breaker", `the circuit breaker is ${breakerSentences[state]}`, { state });
    }
    case "lost": {
      const sentence = `${event.why}; tries in flight count as crashed, and the processor registers again`;
      return log("warning", "lease_lost", sentence);
    }
    case "store_busy":
      return log("warning", "store_busy", event.why);
  }
}

/** Reports stored data that differs from what was written. */
export function logDamage(log: Log, sentence: string): void {
  log("warning", "damaged", `damaged on the disk and not used: ${sentence}`);
}

function logTryEnd(log: Log, { message, life, error }: Extract<ProcessorEvent, { kind: "ended" }>): void {
  const { id } = message;
  const fields = { id, state: life.state, tries: life.tries };
  if (life.state === "done") return log("detail", "done", `${id} is done after try ${life.tries}`, fields);
  const why = error ?? "";
  if (life.state === "waiting") {
    const next = formatDuration(Math.max(0, life.nextAtMs - Date.now()));
    return log("detail", "failed", `${id}: try ${life.tries} ${why}; next try in ${next}`, { ...fields, error: why });
  }
  const tries = countWithNoun(life.tries, "try", "tries");
  const sentence = `${id} is ${life.state} (${life.reason}) after ${tries}; the last one ${why}`;
  log("warning", life.state, sentence, { ...fields, reason: life.reason ?? "", error: why });
}
