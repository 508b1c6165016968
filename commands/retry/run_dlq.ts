/** What an operator does with dead letters. */
import { processSignals } from "../../src/process/supervise/signal_source.ts";
import { StopRequest } from "../../src/process/supervise/stopped_by_signal.ts";
import { BatonError } from "../../src/errors.ts";
import { letterLine } from "../../src/retry/dead_letters/dead_letter_record.ts";
import { filled, fullBucket, parseRate, type Rate, tokenAtMs } from "../../src/retry/processor/rate_limit.ts";
import { changesMax } from "../../src/retry/queue/retry_store_limits.ts";
import type { StoreMethods } from "../../src/retry/queue/store_methods.ts";
import type { ClaimedMessage } from "../../src/retry/queue/stored_message.ts";
import { counted } from "../../src/support/text.ts";
import { systemClock } from "../../src/support/clock.ts";
import { sleep } from "../../src/support/deadline.ts";
import { didYouMean } from "../../src/support/did_you_mean.ts";
import { BulkProgressLine } from "../bulk_progress.ts";
import { type ExitCode, exitCodes } from "../exit_codes.ts";
import { givenFlag } from "../command.ts";
import { type DlqCall, dlqFlagsNotOf, dlqOperations } from "./dlq.ts";
import { whereOf } from "./message_filter.ts";
import { OpenStore } from "./open_store.ts";
import { idleRules, placeOf, redactionFor } from "./retry_rules.ts";
import { changeEach, checkChoice, tellChanges } from "./run_control.ts";
import { list, show } from "./run_inspect.ts";

export async function dlq(call: DlqCall): Promise<ExitCode> {
  const [word = "", ...names] = call.names;
  const rest: DlqCall = { ...call, names };
  const operation = dlqOperations.find((one) => one === word);
  const flag = operation === undefined ? null : givenFlag(dlqFlagsNotOf[operation], call.sources.flags);
  if (flag !== null) throw new BatonError("USAGE", `dlq ${word}: ${flag} is not for it`);
  switch (word) {
    case "ls":
      return await list({ ...rest, values: { ...call.values, state: ["dead"] } });
    case "show":
      return await show(rest);
    case "redrive":
    case "purge":
      return await changeDead(rest, word);
    case "export":
      return exportAll(rest);
    default:
      throw new BatonError(
        "USAGE",
        word === ""
          ? `dlq needs one of ${dlqOperations.join(", ")}`
          : `dlq takes one of ${dlqOperations.join(", ")}, not "${word}"${didYouMean(word, dlqOperations)}`,
      );
  }
}

async function changeDead(call: DlqCall, kind: "redrive" | "purge"): Promise<ExitCode> {
  const { values, names, sources } = call;
  checkChoice(call, `dlq ${kind}`);
  const where = whereOf(values.where);
  const rate = values.rate === undefined ? null : parseRate(values.rate);
  using store = new OpenStore(placeOf(values, sources).folder, idleRules, { mustExist: true });
  if (!values.all) return tellChanges(call, changeEach(store, names, kind), kind);
  if (kind === "redrive") {
    return tellChanges(call, { changed: await redriveAll(call, store, where, rate), refused: [] }, kind);
  }
  let changed = 0;
  for (let count = -1; count !== 0; changed += count) count = store.call("purge", where, Date.now());
  return tellChanges(call, { changed, refused: [] }, kind);
}

/** What one command has begun again it leaves alone when that dies once more. */
async function redriveAll(
  call: DlqCall,
  store: OpenStore,
  where: ReturnType<typeof whereOf>,
  rate: Rate | null,
): Promise<number> {
  const clock = systemClock();
  using stop = new StopRequest(processSignals());
  const isWanted = BulkProgressLine.fits(call);
  using line = new BulkProgressLine(call, {
    verb: "redriven",
    total: isWanted ? store.ask("redrivable", where) : null,
    isWanted,
  });
  const number = store.call("beginRedrive");
  let bucket = fullBucket(clock.now()), done = 0;
  for (;;) {
    if (rate !== null) bucket = filled(bucket, rate, clock.now());
    const max = rate === null ? changesMax : Math.floor(bucket.tokens);
    if (max > 0) {
      const count = store.call("redrive", number, where, max, Date.now());
      done += count;
      bucket = { ...bucket, tokens: bucket.tokens - count };
      if (count < Math.min(max, changesMax)) return done;
      line.more(count, count);
    }
    // A turn of the loop at least, in which a signal is heard.
    await sleep(clock, rate === null ? 0 : Math.max(0, tokenAtMs(bucket, rate) - clock.now()), stop.signal);
  }
}

function exportAll({ values, names, sources, io }: DlqCall): ExitCode {
  if (names.length > 0) throw new BatonError("USAGE", `dlq export takes no ids; --where chooses`);
  const { name, folder } = placeOf(values, sources);
  const filter = { states: ["dead"], ...whereOf(values.where) } as const;
  const rules = { storeName: name, redaction: redactionFor(values, sources) };
  using store = new OpenStore(folder, idleRules, { mustExist: true });
  for (let afterSeq = 0;;) {
    const found = store.ask("list", filter, { afterSeq, max: 100 });
    for (const { id } of found) {
      const message = wholeOrNull(store, id);
      if (message?.body !== undefined) io.out(letterLine(message as ClaimedMessage, rules));
    }
    const last = found.at(-1);
    if (last === undefined) break;
    afterSeq = last.seq;
  }
  const damages = store.ask("damages");
  if (damages === 0) return exitCodes.SUCCESS;
  const which = counted(damages, "damaged dead letter");
  throw new BatonError("IO", `${which} left out of the export: baton retry-processor verify names what is damaged`);
}

/** Null: the message is damaged, which the store counts. */
function wholeOrNull(store: OpenStore, id: string): ReturnType<StoreMethods["show"]> {
  try {
    return store.ask("show", id);
  } catch (error) {
    if (error instanceof BatonError && error.code === "BAD_DATA") return null;
    throw error;
  }
}
