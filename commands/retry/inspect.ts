/**
 * Defines `baton retry-processor ls`, `show`, `stats` and `verify`, which print the content of a store for people and
 * programs. They change nothing.
 */
import { type CommandCall, defineCommand } from "../command.ts";
import type { SettingTable } from "../../src/base/config/setting.ts";
import {
  type InspectCall,
  inspectSettings,
  type ListCall,
  listSettings,
  openStoreToRead,
  parseStates,
  parseWhere,
  refuseNames,
  type ShowCall,
  showSettings,
} from "./inspect_options.ts";
import { printJson } from "../../src/base/terminal/io.ts";
import { BlockingWorkProgress, type ProgressCall, progressSettings } from "../../src/base/terminal/progress.ts";
import { printTable, tableHeadCells } from "../../src/base/terminal/table.ts";
import { BatonError } from "../../src/base/errors.ts";
import { messageStates } from "../../src/retry/queue/message_life.ts";
import { encodeBase64, headJson, makeListedMessageRow } from "../../src/retry/dead_letters/dead_letter_record.ts";
import { configuredRedaction, redactHead, redactText } from "../../src/retry/dead_letters/redaction.ts";
import type { RetryVerifyReport } from "../../src/retry/queue/store_methods.ts";
import { type StoreLocation, verifyStoreAt } from "../../src/retry/queue/open_retry_store.ts";
import { countWithNoun, printable } from "../../src/base/support/text.ts";
import { formatDuration } from "../../src/base/support/duration.ts";
import { type ExitCode, exitCodes } from "../../src/base/exit_codes.ts";
import type { RetryListJson, RetryShowJson, RetryStatsJson, RetryVerifyJson } from "../json_shapes/retry_shapes.ts";
import { pausedHint, shownStoreName, startProcessorHint } from "./processor_hint.ts";
import { readStoreRow } from "../../src/retry/view/store_rows.ts";
import { readStoreLocation } from "../../src/retry/queue/retry_store_location.ts";
import type { StoredMessage } from "../../src/retry/queue/stored_message.ts";

export const retryLsCommand = defineCommand({
  name: "retry-processor ls",
  summary: "list stored messages",
  usage: "[options]",
  details: [
    "TRIES counts the tries that ended; after a + those that ended because the processor died. Changes nothing.",
  ],
  examples: [
    ["baton retry-processor ls --name stock", "all stored messages, and those that were done recently"],
    ["baton retry-processor ls --state waiting --where error=timeout", "messages that wait after a timeout"],
  ],
  settings: listSettings,
  runsNothing: true,
  run: listMessages,
});

export const retryShowCommand = defineCommand({
  name: "retry-processor show",
  summary: "show a stored message, or print its body",
  usage: "ID [options]",
  details: [
    "The number after the dash of an id is enough. The body is stored while a message is waiting, in flight or a " +
    "dead letter.",
    "Credentials in headers and URLs are shown as [redacted] (--redact).",
  ],
  examples: [
    ["baton retry-processor show 9x4kq2mh-17", "all data of a message"],
    ["baton retry-processor show 17 --body | xmllint -", "its body"],
  ],
  settings: showSettings,
  runsNothing: true,
  run: showMessage,
});

export const retryStatsCommand = defineCommand({
  name: "retry-processor stats",
  summary: "count messages by state",
  usage: "[options]",
  details: ["done, dropped and cancelled count since the store was made. Changes nothing."],
  examples: [["baton retry-processor stats --name stock", "how many messages wait, and since when"]],
  settings: inspectSettings,
  runsNothing: true,
  run: printStats,
});

const verifySettings = { ...inspectSettings, ...progressSettings } satisfies SettingTable;

export const retryVerifyCommand = defineCommand({
  name: "retry-processor verify",
  summary: "check a whole store for damage",
  usage: "[options]",
  details: ["Works while the store is in use. Exit code 74 if the store is damaged. Changes nothing."],
  examples: [["baton retry-processor verify --name stock", "after disk errors"]],
  settings: verifySettings,
  runsNothing: true,
  run: verifyStore,
});

export async function listMessages(call: ListCall): Promise<ExitCode> {
  const { values, io } = call;
  refuseNames(call);
  const filter = { states: parseStates(values.state), ...parseWhere(values.where) };
  const { retryName: name } = values;
  await using store = await openStoreToRead(call);
  const found = await store.read("list", filter, { afterSeq: 0, max: values.limit + 1 });
  const messages = found.slice(0, values.limit);
  const more = found.length > values.limit;
  const damages = await store.read("damageCount");
  if (damages > 0) {
    io.err(
      `baton: ${
        countWithNoun(damages, "damaged row")
      } skipped; list what is damaged with baton retry-processor verify\n`,
    );
  }
  if (values.json) {
    printJson<RetryListJson>(io, {
      version: 1,
      name,
      messages: messages.map((one) => makeListedMessageRow(one, name)),
      more,
    });
    return exitCodes.SUCCESS;
  }
  const nowMs = Date.now();
  if (messages.length > 0) {
    printTable(io, [
      tableHeadCells(listHead),
      ...messages.map((one) => messageCells(one, nowMs)),
    ]);
  } else if (!values.quiet) io.err(`baton: no matching message in "${shownStoreName(values)}"\n`);
  if (more && !values.quiet) io.err(`baton: there are more than ${values.limit} messages; show more with --limit\n`);
  return exitCodes.SUCCESS;
}

export async function showMessage(call: ShowCall): Promise<ExitCode> {
  const { values, names: [id, more], io } = call;
  if (id === undefined || more !== undefined) throw new BatonError("USAGE", "show takes the id of one message");
  const { retryName: name } = values;
  await using store = await openStoreToRead(call);
  const message = await store.read("show", id);
  if (message === null) throw new BatonError("NOT_FOUND", `There is no message ${id} in "${shownStoreName(values)}"`);
  const { body } = message;
  const redaction = configuredRedaction(values, call.sources);
  if (values.body) {
    if (body === undefined) {
      throw new BatonError("NOT_FOUND", `The message ${id} is ${message.state}, and its body is no longer stored`);
    }
    io.out(body);
    return exitCodes.SUCCESS;
  }
  const result: RetryShowJson = {
    version: 1,
    ...makeListedMessageRow({ ...message, error: redactText(message.error, redaction) }, name),
    ...headJson(message.head && redactHead(message.head, redaction)),
    body: body === undefined ? null : encodeBase64(body),
  };
  if (values.json) printJson(io, result);
  else {
    const { version: _, body: __, command, request, ...rest } = result;
    const lines = {
      ...rest,
      command: command?.join(" "),
      request: request && `${request.method} ${request.origin ?? ""}${request.path}`,
    };
    const rows = Object.entries(lines).filter(([, value]) => value !== null && value !== undefined && value !== "");
    printTable(io, rows.map(([field, value]) => [field, String(value)]));
  }
  return exitCodes.SUCCESS;
}

export async function printStats(call: InspectCall): Promise<ExitCode> {
  const { values, sources, io } = call;
  refuseNames(call);
  const location = readStoreLocation(values, sources);
  await using store = await openStoreToRead(call);
  const row = await readStoreRow(store, location);
  if (values.json) {
    printJson<RetryStatsJson>(io, { version: 1, ...row });
    return exitCodes.SUCCESS;
  }
  const { states, paused, oldest, next, processors, dead_letters: deadLetters } = row;
  printTable(io, [
    tableHeadCells(["STATE", "MESSAGES", "BYTES"]),
    ...messageStates.map((state) => [state, String(states[state].count), String(states[state].bytes)]),
  ]);
  const nowMs = Date.now();
  if (oldest !== null) {
    const ageMs = Math.max(0, nowMs - Date.parse(oldest));
    io.out(`the oldest waiting message was accepted ${formatDuration(ageMs)} ago\n`);
  }
  if (next !== null) {
    const nextMs = Date.parse(next);
    io.out(`the next try is ${nextMs <= nowMs ? "due" : `due in ${formatDuration(nextMs - nowMs)}`}\n`);
  }
  if (next !== null && processors === 0) io.out(`no processor is running: ${startProcessorHint(values)}\n`);
  if (deadLetters.pending > 0) {
    const why = deadLetters.error === null ? "" : `: ${printable(deadLetters.error)}`;
    io.out(
      `${
        countWithNoun(deadLetters.pending, "dead letter is", "dead letters are")
      } not delivered to --dead-letter yet${why}\n`,
    );
  }
  if (paused) io.out(`${pausedHint(values)}\n`);
  return exitCodes.SUCCESS;
}

export async function verifyStore(call: CommandCall<typeof verifySettings>): Promise<ExitCode> {
  const { values, sources, io } = call;
  refuseNames(call);
  const location = readStoreLocation(values, sources);
  const { where } = location;
  const { messages, bytes, problems } = await verifyWithProgress(call, location);
  if (values.json) {
    printJson<RetryVerifyJson>(io, { version: 1, folder: where, messages, bytes, problems: [...problems] });
  } else if (problems.length === 0) {
    io.out(`no damage found in ${where}: ${countWithNoun(messages, "message")}, ${countWithNoun(bytes, "byte")}\n`);
  } else for (const problem of problems) io.out(`${printable(problem)}\n`);
  return problems.length === 0 ? exitCodes.SUCCESS : exitCodes.IO;
}

async function verifyWithProgress(call: ProgressCall, location: StoreLocation): Promise<RetryVerifyReport> {
  using progress = new BlockingWorkProgress(call);
  return await verifyStoreAt(location, progress);
}

const listHead = ["ID", "STATE", "TRIES", "AGE", "NEXT", "KEY", "LAST ERROR"] as const;

function messageCells(message: StoredMessage, nowMs: number): string[] {
  const { id, state, key, tries, crashes, reason, error, nextMs, firstMs, forwardState } = message;
  const next = nextMs === null ? "" : nextMs <= nowMs ? "due" : `in ${formatDuration(nextMs - nowMs)}`;
  const why = reason === null ? "" : ` (${reason}${forwardState === "none" ? "" : `, ${forwardState}`})`;
  return [
    id,
    `${state}${why}`,
    crashes === 0 ? String(tries) : `${tries}+${crashes}`,
    formatDuration(Math.max(0, nowMs - firstMs)),
    next,
    key ?? "",
    error ?? "",
  ];
}
