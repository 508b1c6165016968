/** Defines `baton retry-processor dlq`, with which operators show and change dead letters. */
import { retryRedactSettings } from "../../src/retry/settings/retry_settings.ts";
import { setting, type SettingTable } from "../../src/base/config/setting.ts";
import { textType, toggleType } from "../../src/base/config/value_types.ts";
import { type CommandCall, defineCommand, findGivenFlag } from "../command.ts";
import { inspectSettings, limitFlag, openStoreToRead, parseWhere, whereFlag } from "./inspect_options.ts";
import { StopRequestListener } from "../../src/base/process/supervise/signal_source.ts";
import { BatonError } from "../../src/base/errors.ts";
import { deadLetterLine } from "../../src/retry/dead_letters/dead_letter_record.ts";
import { parseRate, type Rate } from "../../src/retry/queue/rate_limit.ts";
import { changeMessagesById, purgeDeadLetters, redriveDeadLetters } from "../../src/retry/queue/change_messages.ts";
import type { CommandStore, MessageConditions, StoreMethods } from "../../src/retry/queue/store_methods.ts";
import type { ClaimedMessage } from "../../src/retry/queue/stored_message.ts";
import { countWithNoun } from "../../src/base/support/text.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import { didYouMean } from "../../src/base/support/did_you_mean.ts";
import { ProgressLine, progressSettings } from "../../src/base/terminal/progress.ts";
import { type ExitCode, exitCodes } from "../../src/base/exit_codes.ts";
import { configuredRedaction } from "../../src/retry/dead_letters/redaction.ts";
import { checkMessageSelection, printChanges } from "./control.ts";
import { listMessages, showMessage } from "./inspect.ts";

export const dlqSettings = {
  ...inspectSettings,
  ...retryRedactSettings,
  ...progressSettings,
  all: setting(toggleType(), { flag: "--all", help: "redrive, purge: all dead letters", default: false }),
  where: whereFlag,
  limit: { ...limitFlag, help: `ls: ${limitFlag.help}` },
  rate: setting(textType("count/time"), {
    flag: "--rate",
    help: "redrive: at most this many per second or minute, such as 10/s",
    unset: "all immediately",
  }),
  body: setting(toggleType(), { flag: "--body", help: "show: print the body, and nothing else", default: false }),
} satisfies SettingTable;

export type DlqCall = CommandCall<typeof dlqSettings>;

export const dlqOperations = ["ls", "show", "redrive", "purge", "export"] as const;

const { all, where, limit, rate, body, progress } = dlqSettings;

/**
 * The options that each operation refuses. If they were ignored, `purge --limit 10` would purge everything without a
 * warning.
 */
export const flagsRefusedByDlq: Readonly<Record<typeof dlqOperations[number], SettingTable>> = {
  ls: { all, rate, body, progress, ...retryRedactSettings },
  show: { all, where, limit, rate, progress },
  redrive: { limit, body, ...retryRedactSettings },
  purge: { limit, rate, body, ...retryRedactSettings },
  export: { all, limit, rate, body },
};

export const retryDlqCommand = defineCommand({
  name: "retry-processor dlq",
  summary: "list, show, redrive, purge or export dead letters",
  usage: "ls | show ID | redrive ID…|--all | purge ID…|--all | export [options]",
  details: [
    "ls and show print dead letters. redrive returns dead letters to the queue with all " +
    "their tries, each at most once per call. After an interruption it can be called " +
    "again. purge drops them. export prints each as a line of JSON with its body and changes nothing. export and " +
    "show redact credentials (--redact); redrive keeps them. export skips damaged dead letters and then ends with " +
    "74.",
    "--where selects: key=…, reason=exhausted|too_old|final|crashed|damaged, error=TEXT.",
  ],
  examples: [
    ["baton retry-processor dlq ls --name stock", "dead letters and their reasons"],
    ["baton retry-processor dlq redrive --all --where reason=exhausted --rate 10/s", "the backend is available again"],
    ["baton retry-processor dlq export >dead.jsonl && baton retry-processor dlq purge --all", "move them elsewhere"],
  ],
  settings: dlqSettings,
  completes: dlqOperations,
  runsNothing: true,
  run: runDlq,
});

export async function runDlq(call: DlqCall): Promise<ExitCode> {
  const [word = "", ...names] = call.names;
  const rest: DlqCall = { ...call, names };
  const operation = dlqOperations.find((one) => one === word);
  const flag = operation === undefined ? null : findGivenFlag(flagsRefusedByDlq[operation], call.sources.flags);
  if (flag !== null) throw new BatonError("USAGE", `dlq ${word} does not take ${flag}`);
  switch (word) {
    case "ls":
      return await listMessages({ ...rest, values: { ...call.values, state: ["dead"] } });
    case "show":
      return await showMessage(rest);
    case "redrive":
    case "purge":
      return await changeDeadLetters(rest, word);
    case "export":
      return await exportAll(rest);
    default:
      throw new BatonError(
        "USAGE",
        word === ""
          ? `dlq needs one of ${dlqOperations.join(", ")}`
          : `dlq takes one of ${dlqOperations.join(", ")}, not "${word}"${didYouMean(word, dlqOperations)}`,
      );
  }
}

async function changeDeadLetters(call: DlqCall, kind: "redrive" | "purge"): Promise<ExitCode> {
  const { values, names } = call;
  checkMessageSelection(call, `dlq ${kind}`);
  const where = parseWhere(values.where);
  const rate = values.rate === undefined ? null : parseRate(values.rate);
  await using store = await openStoreToRead(call);
  if (!values.all) return printChanges(call, await changeMessagesById(store, names, kind), kind);
  if (kind === "redrive") {
    const { redrivable, forwarded } = await store.read("countDeadLetters", where);
    const changed = await redriveWithProgress(call, store, { where, rate, total: redrivable });
    const exitCode = printChanges(call, { changed, refused: [] }, kind);
    if (forwarded === 0) return exitCode;
    if (!values.quiet) {
      const letters = forwarded === 1
        ? "1 dead letter is not redriven: it was"
        : `${forwarded} dead letters are not redriven: they were`;
      call.io.err(`baton: ${letters} delivered to --dead-letter\n`);
    }
    return changed === 0 ? exitCodes.FALSE : exitCode;
  }
  using progress = new ProgressLine(call, { noun: "message", verb: "purged", total: null });
  const changed = await purgeDeadLetters(store, where, (count) => progress.add(count));
  return printChanges(call, { changed, refused: [] }, kind);
}

async function redriveWithProgress(
  call: DlqCall,
  store: CommandStore,
  { where, rate, total }: {
    readonly where: MessageConditions;
    readonly rate: Rate | null;
    readonly total: number;
  },
): Promise<number> {
  using stop = new StopRequestListener();
  using progress = new ProgressLine(call, { noun: "message", verb: "redriven", total });
  const onRedriven = (count: number) => progress.add(count);
  return await redriveDeadLetters(store, where, { rate, clock: systemClock(), signal: stop.signal, onRedriven });
}

async function exportAll(call: DlqCall): Promise<ExitCode> {
  const { values, names, sources, io } = call;
  if (names.length > 0) throw new BatonError("USAGE", `dlq export takes no ids; select with --where`);
  const { retryName: name } = values;
  await using store = await openStoreToRead(call);
  const filter = { states: ["dead"], ...parseWhere(values.where) } as const;
  const format = { storeName: name, redaction: configuredRedaction(values, sources) };
  const total = values.where === undefined ? (await store.read("totals")).dead.count : null;
  const isWanted = !io.stdoutIsTerminal; // the line would stand between the messages
  using progress = new ProgressLine(call, { noun: "message", verb: "exported", total, isWanted });
  for (let afterSeq = 0;;) {
    const found = await store.read("list", filter, { afterSeq, max: 100 });
    progress.add(found.length);
    for (const { id } of found) {
      const message = await showOrNullIfDamaged(store, id);
      if (message?.body === undefined) continue;
      io.out(deadLetterLine(message as ClaimedMessage, format));
      await io.written("stdout");
    }
    const last = found.at(-1);
    if (last === undefined) break;
    afterSeq = last.seq;
  }
  const damages = await store.read("damageCount");
  if (damages === 0) return exitCodes.SUCCESS;
  const which = countWithNoun(damages, "damaged dead letter");
  throw new BatonError("IO", `${which} skipped by the export; list what is damaged with baton retry-processor verify`);
}

/** Reads a message. Returns null if the message is damaged; the store counts this damage. */
async function showOrNullIfDamaged(store: CommandStore, id: string): Promise<ReturnType<StoreMethods["show"]>> {
  try {
    return await store.read("show", id);
  } catch (error) {
    if (error instanceof BatonError && error.code === "BAD_DATA") return null;
    throw error;
  }
}
