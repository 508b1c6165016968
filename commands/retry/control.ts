/**
 * `baton retry-processor retry`, `cancel`, `pause` and `resume`: change messages by their ids, or all messages that
 * match a condition.
 */
import { type SettingTable, toggleSetting } from "../../src/base/config/setting.ts";
import { type CommandCall, defineCommand } from "../command.ts";
import { printJson } from "../../src/base/terminal/io.ts";
import { ProgressLine, progressSettings } from "../../src/base/terminal/progress.ts";
import { shownStoreName } from "./processor_hint.ts";
import { inspectSettings, openStoreToRead, parseWhere, refuseNames, whereFlag } from "./inspect_options.ts";
import { BatonError } from "../../src/base/errors.ts";
import type { MessageChange } from "../../src/retry/queue/message_life.ts";
import { refusalReason } from "../../src/retry/queue/store_methods.ts";
import { changeMessagesById, changeWaiting, type MessageChanges } from "../../src/retry/queue/change_messages.ts";
import { type ExitCode, exitCodes } from "../../src/base/exit_codes.ts";
import type { RetryChangesJson } from "../json_shapes/retry_shapes.ts";

export const changeSettings = {
  ...inspectSettings,
  all: toggleSetting("--all", { help: "all waiting messages" }),
  where: whereFlag,
  ...progressSettings,
} satisfies SettingTable;

export type ChangeCall = CommandCall<typeof changeSettings>;
type ControlCall = CommandCall<typeof inspectSettings>;

export const retryRetryCommand = defineCommand({
  name: "retry-processor retry",
  summary: "make waiting messages due now",
  usage: "ID… | --all [--where …] [options]",
  details: [
    "The next baton retry-processor run, or a running one, tries them. Exit code 1 if a message is not in state " +
    "waiting. For dead letters use baton retry-processor dlq redrive.",
  ],
  examples: [
    ["baton retry-processor retry 17", "now instead of in an hour"],
    ["baton retry-processor retry --all", "the backend is available again"],
  ],
  settings: changeSettings,
  runsNothing: true,
  run: (call) => changeMessages(call, "retry"),
});

export const retryCancelCommand = defineCommand({
  name: "retry-processor cancel",
  summary: "cancel waiting messages",
  usage: "ID… | --all [--where …] [options]",
  details: ["A try in flight cannot be called back: exit code 1 for messages that are not waiting."],
  examples: [["baton retry-processor cancel 17 18", "they are not tried again"]],
  settings: changeSettings,
  runsNothing: true,
  run: (call) => changeMessages(call, "cancel"),
});

export const retryPauseCommand = defineCommand({
  name: "retry-processor pause",
  summary: "stop all tries until resume; messages are still stored",
  usage: "[options]",
  details: ["Applies to every processor of the store, also to those that start later. Tries in flight end normally."],
  examples: [["baton retry-processor pause --name stock", "while the backend is being repaired"]],
  settings: inspectSettings,
  runsNothing: true,
  run: (call) => setStorePaused(call, true),
});

export const retryResumeCommand = defineCommand({
  name: "retry-processor resume",
  summary: "end a pause",
  usage: "[options]",
  details: ["Messages that are due are tried within --rate and --concurrency of run."],
  examples: [["baton retry-processor resume --name stock", "after the repair"]],
  settings: inspectSettings,
  runsNothing: true,
  run: (call) => setStorePaused(call, false),
});

async function changeMessages(call: ChangeCall, kind: "retry" | "cancel"): Promise<ExitCode> {
  const { values, names } = call;
  const where = parseWhere(values.where);
  checkMessageSelection(call, kind);
  await using store = await openStoreToRead(call);
  if (!values.all) return printChanges(call, await changeMessagesById(store, names, kind), kind);
  using progress = new ProgressLine(call, { noun: "message", verb: changeResultWords[kind], total: null });
  const changed = await changeWaiting(store, where, kind, (count) => progress.add(count));
  return printChanges(call, { changed, refused: [] }, kind);
}

/** Checks that the user gave either ids or --all. Throws USAGE. */
export function checkMessageSelection({ values, names }: ChangeCall, word: string): void {
  if (values.all && names.length > 0) throw new BatonError("USAGE", `${word} takes ids or --all, not both`);
  if (!values.all && names.length === 0) throw new BatonError("USAGE", `${word} takes ids of messages, or --all`);
  if (!values.all && values.where !== undefined) throw new BatonError("USAGE", "--where needs --all");
}

const changeResultWords: Readonly<Record<MessageChange, string>> = {
  retry: "due now",
  cancel: "cancelled",
  redrive: "redriven",
  purge: "purged",
};

export function printChanges(call: ChangeCall, { changed, refused }: MessageChanges, kind: MessageChange): ExitCode {
  const { values: { retryName: name, json, quiet }, io } = call;
  if (json) {
    printJson<RetryChangesJson>(io, { version: 1, name, changed, refused });
  } else {
    for (const { id, state } of refused) {
      io.err(`baton: ${id} was not ${changeResultWords[kind]}: ${refusalReason(state, shownStoreName(call.values))}\n`);
    }
    if (!quiet) {
      io.err(`baton: ${changed} ${changed === 1 ? "message is" : "messages are"} ${changeResultWords[kind]}\n`);
    }
  }
  return refused.length === 0 ? exitCodes.SUCCESS : exitCodes.FALSE;
}

async function setStorePaused(call: ControlCall, isPaused: boolean): Promise<ExitCode> {
  const { values, io } = call;
  refuseNames(call);
  const { retryName: name } = values;
  await using store = await openStoreToRead(call);
  const was = await store.read("isPaused");
  await store.call("setPaused", isPaused);
  if (values.json) {
    printJson<RetryChangesJson>(io, { version: 1, name, changed: was === isPaused ? 0 : 1, refused: [] });
  } else if (!values.quiet) {
    const before = was === isPaused ? "was already " : "is now ";
    io.err(`baton: "${shownStoreName(values)}" ${before}${isPaused ? "paused" : "running"}\n`);
  }
  return exitCodes.SUCCESS;
}
