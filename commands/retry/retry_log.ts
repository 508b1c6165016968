/** What a processor says while it runs: a line each, with the time; sentences for people or JSON for programs. */
import type { Io } from "../../src/terminal/io.ts";
import { type LogEntry, logLine } from "../../src/terminal/log_line.ts";
import { formatDuration } from "../../src/support/duration.ts";
import type { ProcessorEvent } from "../../src/retry/processor/retry_processor.ts";
import { counted } from "../../src/support/text.ts";

export type RetryLog = (
  level: LogEntry["level"],
  event: string,
  sentence: string,
  fields?: Readonly<Record<string, string | number>>,
) => void;

/** With `quiet` only errors, details only with `verbose`. */
export function retryLog(io: Io, { format, quiet, verbose }: {
  readonly format: "text" | "json";
  readonly quiet: boolean;
  readonly verbose: boolean;
}): RetryLog {
  return (level, event, sentence, fields = {}) => {
    if ((quiet && level !== "error") || (level === "detail" && !verbose)) return;
    io.err(logLine({ level, event, sentence, fields }, { format, who: "baton retry-processor" }));
  };
}

/** An event as a sentence. */
export function sayEvent(log: RetryLog, event: ProcessorEvent): void {
  switch (event.kind) {
    case "began":
      return log(
        "detail",
        "try_began",
        `${event.message.id}: try ${event.message.tries + 1} begins`,
        idOf(event.message.id),
      );
    case "ended":
      return sayEnd(log, event);
    case "given_back":
      return log("warning", "given_back", `${event.message.id} was not tried: ${event.why}`, idOf(event.message.id));
    case "stale": {
      const sentence = `${event.message.id}: how its try ended came too late, and counts nothing`;
      return log("warning", "stale", sentence, idOf(event.message.id));
    }
    case "reclaimed": {
      const { count } = event;
      return log(
        "warning",
        "reclaimed",
        `${counted(count, "message")} of a processor that died ${count === 1 ? "is" : "are"} back`,
        { count },
      );
    }
    case "breaker": {
      const words = {
        closed: "closed: tries go on",
        open: "open: nothing is tried for a while",
        half_open: "half open: one try decides",
      };
      return log(event.state === "open" ? "warning" : "info", "breaker", `The breaker is ${words[event.state]}`, {
        state: event.state,
      });
    }
    case "lost":
      return log("warning", "lease_lost", `${event.why}; what was under way counts as crashed, and it begins again`);
    case "store_busy":
      return log("warning", "store_busy", event.why);
  }
}

/** Something in the store is not as it was stored. */
export function sayDamage(log: RetryLog, sentence: string): void {
  log("warning", "damaged", `Damaged on the disk, and refused: ${sentence}`);
}

function sayEnd(log: RetryLog, { message, life, error }: Extract<ProcessorEvent, { kind: "ended" }>): void {
  const { id } = message;
  const fields = { id, state: life.state, tries: life.tries };
  if (life.state === "done") return log("detail", "done", `${id} is done at try ${life.tries}`, fields);
  const why = error ?? "";
  if (life.state === "waiting") {
    const inMs = Math.max(0, life.nextAtMs - Date.now());
    return log("detail", "failed", `${id}: try ${life.tries} ${why}; the next one in ${formatDuration(inMs)}`, {
      ...fields,
      error: why,
    });
  }
  const sentence = `${id} is ${life.state} (${life.reason}) after ${
    counted(life.tries, "try", "tries")
  }; the last one ${why}`;
  log("warning", life.state, sentence, { ...fields, reason: life.reason ?? "", error: why });
}

function idOf(id: string): { readonly id: string } {
  return { id };
}
