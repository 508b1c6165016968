/** Defines `baton pubsub client`, which subscribes, puts, gets, and asks proxies about topics. */
import { defineCommand } from "../command.ts";
import {
  checkPubsubClientFlags,
  parsePubsubClientArguments,
  type PubsubClientArguments,
  type PubsubClientCall,
  pubsubClientCommandSettings,
  pubsubClientOperations,
  type PubsubClientRun,
} from "./client_options.ts";
import { type ExitCode, exitCodes } from "../../src/base/exit_codes.ts";
import { TwoStageStopListener } from "../../src/base/process/supervise/two_stage_stop.ts";
import { BatonError } from "../../src/base/errors.ts";
import { checkPubsubName, parseMessagePosition } from "../../src/pubsub/client/client_limits.ts";
import { PubsubClientSession, requestTopicNames } from "../../src/pubsub/client/pubsub_client_session.ts";
import type { PubsubRequester } from "../../src/pubsub/client/requester.ts";
import { runClientGet } from "./client_get.ts";
import { runClientPut } from "./client_put.ts";
import { addNextStepToErrors } from "./client_next_step.ts";
import { printJson } from "../../src/base/terminal/io.ts";
import { checkUnsubscribe, openClientState, openPubsubRequester } from "./open_client.ts";
import { openPutInput } from "./put_input.ts";
import { shellQuoteIfNeeded } from "../../src/base/support/shell_quote.ts";
import type { PubsubInfoJson, PubsubPendingJson, PubsubTopicsJson } from "../json_shapes/pubsub_shapes.ts";
import { printable } from "../../src/base/support/text.ts";

export const pubsubClientCommand = defineCommand({
  name: "pubsub client",
  summary: "subscribe to topics, put messages into them, and get each of them once",
  usage: "ID subscribe|unsubscribe|get|put|… TOPIC [PATH] [options]",
  details: [
    "put TOPIC PATH puts a message (- is stdin), and get TOPIC gets the next one; subscribe TOPIC and unsubscribe " +
    "TOPIC begin and end a subscription. pending TOPIC prints how many messages wait, peek TOPIC prints the next " +
    "without acknowledging it, info TOPIC describes the topic, topics lists all. seek TOPIC start|end|MESSAGE-ID " +
    "moves the position, to after that message. After get --ack manual, ack TOPIC MESSAGE-ID acknowledges the " +
    "message.",
    "Exit 0 of put: every current subscriber gets the message, once. Exit 76: the outcome is unknown and the message " +
    "is kept; put TOPIC --resume sends it again, and the server recognizes it. Exit 0 of get (or of ack, with --ack " +
    "manual): the message is delivered; with any other code no message is lost. A newline (or NUL, --null) " +
    "follows each of several messages; a single one is printed unchanged.",
    "--out-dir delivers exactly once, even if baton is killed. If it is killed during a delivery to stdout or " +
    "--exec, that message is delivered again. --exec gets the message unchanged, BATON_MESSAGE_ID, BATON_TOPIC, and " +
    "BATON_REDELIVERED, which is 1 for such a message. If the command fails, get ends with its exit code, and the " +
    "next get delivers the message again.",
    "The state of each client ID in a topic is a small file (--state-dir). One process uses it at a time; another " +
    "one waits up to --timeout and then exits with 75. If the state was lost or copied, exit 84 reports that a newer " +
    "session is known; the next call takes over.",
  ],
  examples: [
    ["baton pubsub client alice subscribe news", "alice gets the messages that are put into news from now on"],
    ["baton pubsub client bob put news report.txt", "the file is one message"],
    ["journalctl -f | baton pubsub client bob put news --lines", "one message per line"],
    ["baton pubsub client bob put news --lines log.txt --resume", "continue after a kill, an exit 76 or a full disk"],
    ["baton pubsub client alice get news --wait 10s", "one message to stdout; exit 1 if there is none"],
    ["baton pubsub client alice get news --follow --exec ./handle", "run a program for each message, until a signal"],
    ["baton pubsub client alice get news --until-empty --out-dir ./inbox", "all waiting messages, into files"],
    ["baton pubsub client subscribe news --id alice --proxies tcp://px1:5001,tcp://px2:5001", "with two named proxies"],
  ],
  settings: pubsubClientCommandSettings,
  completes: pubsubClientOperations,
  runsNothing: true,
  isService: true,
  run: runPubsubClient,
});

export async function runPubsubClient(call: PubsubClientCall): Promise<ExitCode> {
  const isTyped = call.sources.flags.has("pubsubClientId");
  const words = parsePubsubClientArguments(call.names, call.values.pubsubClientId, { isTyped });
  checkPubsubClientFlags(words.operation, call.sources.flags);
  const resumesInput = call.values.resume && words.rest.length > 0;
  return await addNextStepToErrors({ ...words, resumesInput }, () => runOperation(call, words));
}

async function runOperation(call: PubsubClientCall, words: PubsubClientArguments): Promise<ExitCode> {
  const { values } = call;
  checkPubsubName("client id", words.id);
  if (words.operation !== "topics") checkPubsubName("topic", words.topic);
  if (values.msgId !== undefined) checkPubsubName("--msg-id", values.msgId);
  const input = words.operation === "put" ? openPutInput(call, words.rest) : null;
  await using requester = await openPubsubRequester(call);
  using stop = new TwoStageStopListener();
  const signal = stop.finish;
  if (words.operation === "topics") return await listTopicsForClient(call, words, requester, signal);
  if (words.operation === "unsubscribe") await checkUnsubscribe(call, requester, { ...words, signal });
  using state = await openClientState(call, { ...words, signal });
  const client = new PubsubClientSession(state, requester);
  const run: PubsubClientRun = { call, target: words, client, signal };
  switch (words.operation) {
    case "subscribe":
      await client.subscribe(words.topic, { signal });
      return exitCodes.SUCCESS;
    case "unsubscribe":
      await client.unsubscribe(words.topic, { signal });
      return exitCodes.SUCCESS;
    case "seek":
      await client.seek(words.topic, parseSeekTarget(words.rest[0] ?? ""), { signal });
      return exitCodes.SUCCESS;
    case "put":
      return await runClientPut({
        call,
        topic: words.topic,
        client,
        stop,
        input,
        command: `baton pubsub client ${shellQuoteIfNeeded(words.id)} put ${shellQuoteIfNeeded(words.topic)}`,
      });
    case "get":
    case "peek":
      return await runClientGet(run);
    case "ack":
      return acknowledgeByClient(run);
    case "pending":
    case "info":
      return await showClientState(run);
  }
}

function parseSeekTarget(word: string): number | "start" | "end" {
  const place = parseMessagePosition(word);
  if (place !== undefined) return place;
  throw new BatonError("USAGE", `seek: "${word}" is not start, end or the id of a message`);
}

async function showClientState(run: PubsubClientRun): Promise<ExitCode> {
  const { call: { values, io }, target: { topic, operation }, client, signal } = run;
  const { info: { first = 0, end = 0, subscribers = 0, bytes = 0 }, isSubscribed, cursor, pending } = await client
    .position(topic, { signal });
  if (operation === "pending") {
    if (!isSubscribed) {
      const why = "this client is not subscribed to the topic";
      throw new BatonError("NOT_SUBSCRIBED", `Nothing waits for "${client.id}" in topic "${topic}": ${why}`);
    }
    if (values.json) printJson<PubsubPendingJson>(io, { version: 1, topic, pending });
    else io.out(`${pending}\n`);
    return exitCodes.SUCCESS;
  }
  const info: PubsubInfoJson = {
    version: 1,
    topic,
    subscribed: isSubscribed,
    position: String(cursor),
    first: String(first),
    end: String(end),
    pending,
    subscribers,
    bytes,
    unresolved_puts: client.state.countIntents(topic),
  };
  const { version: _version, ...facts } = info;
  if (values.json) printJson(io, info);
  else io.out(Object.entries(facts).map(([name, value]) => `${name}\t${printable(String(value))}\n`).join(""));
  return exitCodes.SUCCESS;
}

async function listTopicsForClient(
  { values, io }: PubsubClientCall,
  { id }: PubsubClientArguments,
  requester: PubsubRequester,
  signal: AbortSignal,
): Promise<ExitCode> {
  const topics = await requestTopicNames(requester, id, { signal });
  if (values.json) printJson<PubsubTopicsJson>(io, { version: 1, topics });
  // Control characters are replaced, so that each name is one line.
  else io.out(topics.map((topic) => `${printable(topic)}\n`).join(""));
  return exitCodes.SUCCESS;
}

function acknowledgeByClient({ target, client }: PubsubClientRun): ExitCode {
  const { topic, rest } = target;
  const { cursor, intent, folder } = client.state.subscriberPosition(topic);
  const word = rest[0] ?? "";
  const id = parseMessagePosition(word);
  if (typeof id !== "number") throw new BatonError("USAGE", `ack: "${word}" is not the id of a message`);
  if (id <= cursor) return exitCodes.SUCCESS;
  if (id > intent || folder !== null) {
    throw new BatonError("USAGE", `ack: message ${id} of "${topic}" was not delivered to "${client.id}"`);
  }
  client.state.setPosition(topic, { cursor: id, intent, folder: null });
  return exitCodes.SUCCESS;
}
