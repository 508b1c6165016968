/** Defines `baton publish`, which puts messages into a topic. The user need not choose a client ID. */
import { existsSync } from "node:fs";
import { flagSetting, type SettingTable, toggleSetting } from "../../src/base/config/setting.ts";
import { textType } from "../../src/base/config/value_types.ts";
import { BatonError } from "../../src/base/errors.ts";
import { progressSettings } from "../../src/base/terminal/progress.ts";
import { shellQuoteIfNeeded } from "../../src/base/support/shell_quote.ts";
import { TwoStageStopListener } from "../../src/base/process/supervise/two_stage_stop.ts";
import { checkPubsubName } from "../../src/pubsub/client/client_limits.ts";
import { type ClientState, clientStateFilePath } from "../../src/pubsub/client/client_state.ts";
import { PubsubClientSession } from "../../src/pubsub/client/pubsub_client_session.ts";
import type { PubsubRequester } from "../../src/pubsub/client/requester.ts";
import { type CommandCall, defineCommand } from "../command.ts";
import type { ExitCode } from "../../src/base/exit_codes.ts";
import { addNextStepToErrors } from "./client_next_step.ts";
import {
  type ClientPutResult,
  type ClientPutRun,
  putInputMessages,
  reportClientPut,
  warnOfUnknownPutOutcomes,
} from "./client_put.ts";
import {
  clientStateFolder,
  connectionSettingsWithDefaultId,
  defaultClientId,
  openClientState,
  openPubsubRequester,
} from "./open_client.ts";
import { type ClientPutInput, openPutFilesInput, openSplitPutInput, openTextPutInput } from "./put_input.ts";

const publishSettings = {
  file: flagSetting("-f, --file", textType("file"), { once: true, help: "the file is the message; - is stdin" }),
  lines: toggleSetting("--lines", {
    help: "each line of stdin or of the file is a message, without its newline, sent as soon as it arrives",
  }),
  null: toggleSetting("-0, --null", {
    help: "like --lines, for messages separated by NUL",
  }),
  msgId: flagSetting("--msg-id", textType("key"), {
    help: "your own message ID; a message with the same ID and content is stored once",
  }),
  resume: toggleSetting("--resume", {
    help: "first send the messages with an unknown outcome again, then the new messages of the file, over rotations " +
      "(65 if a part is missing); a last line that has no newline yet is left to a later call",
  }),
  json: toggleSetting("--json", {
    help: "print the result as JSON: the number of messages, and how many of them had no subscriber",
  }),
  ...progressSettings,
  ...connectionSettingsWithDefaultId("USER@HOST.put-1, .put-2 …; with -f, --msg-id and --resume USER@HOST.put"),
} satisfies SettingTable;

type PublishCall = CommandCall<typeof publishSettings>;

export const publishCommand = defineCommand({
  name: "publish",
  summary: "publish messages to a topic; each is stored once",
  usage: "TOPIC MESSAGE… | TOPIC -|-f FILE [--lines] [options]",
  details: [
    "Each MESSAGE is one message, without a newline; - is stdin, as one message, or with --lines each of " +
    "its lines. Exit 0: each message is stored, and every current subscriber will get it once. Exit 76: the " +
    "outcome is unknown; publish TOPIC --resume sends the messages again, and each is stored once.",
    "A topic stores messages only for clients that have subscribed: subscribe first (baton subscribe " +
    "TOPIC). Without subscribers, messages are discarded; stderr and --json report that, and the exit code " +
    "is 0.",
    "Needs a server and a proxy: baton pubsub serve runs both for this machine. Without --id any number of " +
    "calls run together, each under its own client ID. With -f, --msg-id and --resume they run one after " +
    "the other for each topic (75 after --timeout).",
  ],
  examples: [
    ["baton publish news 'disk db1 is full'", "one message"],
    ["journalctl -f | baton publish logs --lines -", "each line is a message"],
    ["baton publish orders -f order.json", "the file is one message"],
    ["baton publish logs -f app.log --lines --resume", "the lines that are new since the last call"],
  ],
  settings: publishSettings,
  runsNothing: true,
  completes: "topics",
  run: runPublish,
});

const usage = "as in: baton publish TOPIC MESSAGE…, baton publish TOPIC - (stdin), baton publish TOPIC -f FILE";

async function runPublish(call: PublishCall): Promise<ExitCode> {
  const { values: { pubsubClientId: named, msgId, resume, file, quiet }, io } = call;
  const [topic] = call.names;
  if (topic === undefined || topic === "") throw new BatonError("USAGE", `publish: missing TOPIC, ${usage}`);
  checkPubsubName("topic", topic);
  const input = openPublishInput(call);
  if (msgId !== undefined) checkPubsubName("--msg-id", msgId);
  const base = named ?? `${defaultClientId()}.put`;
  checkPubsubName("client id", base);
  const needsRecord = resume || msgId !== undefined || file !== undefined;
  await using requester = await openPubsubRequester(call);
  using stop = new TwoStageStopListener();
  const signal = stop.finish;
  const run = { call, topic, stop, signal, requester, base, command: `baton publish ${shellQuoteIfNeeded(topic)}` };
  const resumed = resume && named === undefined ? await resumeOthers(run) : 0;
  using state = named === undefined && !needsRecord
    ? await openFreeState(run)
    : await openClientState(call, { id: base, topic, signal });
  if (input?.source === "stdin" && io.stdinIsTerminal && !quiet) {
    io.err("baton: reading messages from the terminal; end with ^D\n");
  }
  const result = await putWith(run, state, input);
  return reportClientPut(run, { ...result, messages: resumed + result.messages });
}

/** Opens the input. Returns null if only earlier puts are to be sent again. Throws USAGE. */
export function openPublishInput(
  { values, names: [, ...texts] }: Pick<PublishCall, "values" | "names">,
): ClientPutInput | null {
  const { lines, file, msgId, resume } = values;
  const [text] = texts;
  const refuse = (why: string) => new BatonError("USAGE", `publish: ${why}`);
  if (lines && values.null) throw refuse("use only one of --lines and --null");
  if (file !== undefined && text !== undefined) throw refuse(`use only one of -f "${file}" and MESSAGE "${text}"`);
  if (texts.includes("-") && texts.length > 1) throw refuse("- is stdin, and must be the only MESSAGE");
  const by = lines ? "lines" : values.null ? "null" : null;
  const path = file ?? (text === "-" || (by !== null && text === undefined) ? "-" : null);
  if (by !== null && path === null) throw refuse(`--${by} splits stdin (-) or a file (-f FILE), not "${text}"`);
  if (msgId !== undefined && (by !== null || texts.length > 1)) throw refuse("--msg-id is for a single message");
  if (path !== null) return by === null ? openPutFilesInput([path]) : openSplitPutInput(path, by, resume);
  if (text !== undefined) return openTextPutInput(texts);
  if (resume) return null;
  throw refuse(`missing MESSAGE, ${usage}`);
}

interface PublishRun extends Pick<ClientPutRun, "topic" | "stop" | "command"> {
  readonly signal: AbortSignal;
  readonly call: PublishCall;
  readonly requester: PubsubRequester;
  /** The text with which the default client IDs begin. */
  readonly base: string;
}

async function putWith(
  { requester, ...run }: PublishRun,
  state: ClientState,
  input: ClientPutInput | null,
): Promise<ClientPutResult> {
  const client = new PubsubClientSession(state, requester);
  const resumesInput = run.call.values.resume && input !== null;
  const target = { id: state.id, operation: "put", topic: run.topic, resumesInput } as const;
  return await addNextStepToErrors(target, () => putInputMessages({ ...run, client, input }));
}

/** The most publishers of one user in one topic at the same time; others have to wait. */
const publishersMax = 1000;

/**
 * Opens the state of the first default ID that no process uses. An ID that has puts with an unknown outcome is left to
 * --resume, so that no running process has such puts from an earlier process.
 */
async function openFreeState({ call, topic, signal, base, command }: PublishRun): Promise<ClientState> {
  for (let number = 1; number <= publishersMax; number++) {
    const state = await openIfFree(call, { id: `${base}-${number}`, topic, signal });
    const count = state?.countIntents(topic) ?? 0;
    if (state !== null && count === 0) return state;
    warnOfUnknownPutOutcomes(call, { topic, count, command });
    state?.[Symbol.dispose]();
  }
  return await openClientState(call, { id: base, topic, signal });
}

/** Sends again the puts with an unknown outcome of all numbered default IDs. Resolves with the number of messages. */
async function resumeOthers(run: PublishRun): Promise<number> {
  const { call, topic, signal, base } = run;
  const folder = clientStateFolder(call, topic);
  let messages = 0;
  for (let number = 1; existsSync(clientStateFilePath(folder, `${base}-${number}`)); number++) {
    // A process that still runs sends its own puts again.
    using state = await openIfFree(call, { id: `${base}-${number}`, topic, signal });
    if (state === null || state.countIntents(topic) === 0) continue;
    messages += (await putWith(run, state, null)).messages;
  }
  return messages;
}

async function openIfFree(
  call: PublishCall,
  target: { readonly id: string; readonly topic: string; readonly signal: AbortSignal },
): Promise<ClientState | null> {
  try {
    return await openClientState(call, { ...target, waits: false });
  } catch (thrown) {
    if (thrown instanceof BatonError && thrown.code === "LOCK_BUSY") return null;
    throw thrown;
  }
}
