/** Runs one operation of a client: opens its state and the way to the proxies, and closes them. */
import { resolve } from "node:path";
import { processSignals } from "../../src/process/supervise/signal_source.ts";
import { StopRequest } from "../../src/process/supervise/stop_signals.ts";
import { BatonError } from "../../src/errors.ts";
import { checkName } from "../../src/pubsub/client/client_limits.ts";
import { PubsubClientSession } from "../../src/pubsub/client/pubsub_client_session.ts";
import { ClientState } from "../../src/pubsub/client/client_state.ts";
import { TopicDamagedError } from "../../src/pubsub/client/outcome_error.ts";
import { readPosition } from "../../src/pubsub/client/read_position.ts";
import { Requester } from "../../src/pubsub/client/requester.ts";
import { systemClock } from "../../src/support/clock.ts";
import { type ExitCode, exitCodes } from "../exit_codes.ts";
import type { ClientCall } from "./client.ts";
import { clientFolder } from "./client_folder.ts";
import { clientAck } from "./client_ack.ts";
import { clientAsk, clientTopics } from "./client_ask.ts";
import { clientBench } from "./client_bench.ts";
import { clientGet } from "./client_get.ts";
import { clientPut } from "./client_put.ts";
import { checkFlags, type ClientArguments, clientWords } from "./client_args.ts";
import { lookupPlaceOf, proxyFinder } from "./find_proxies.ts";
import { clientSecurity } from "./service_security.ts";
import { shellQuoteIfNeeded } from "./shell_quoted.ts";

/** An operation as it runs. */
export interface ClientRun {
  readonly call: ClientCall;
  readonly target: ClientArguments;
  readonly client: PubsubClientSession;
  readonly signal: AbortSignal;
}

export async function runClient(call: ClientCall): Promise<ExitCode> {
  const isTyped = call.sources.flags.has("pubsubClientId");
  const words = clientWords(call.names, call.values.pubsubClientId, { isTyped });
  checkFlags(words.operation, call.sources.flags);
  try {
    return await runOperation(call, words);
  } catch (thrown) {
    if (!(thrown instanceof BatonError)) throw thrown;
    const hint = hintOn(thrown, words, { resume: call.values.resume });
    throw hint === null ? thrown : new BatonError(thrown.code, `${thrown.message}; ${hint}`, { cause: thrown });
  }
}

/** What to do now, where there is one answer to that. */
function hintOn(
  error: BatonError,
  { id, operation, topic, rest }: ClientArguments,
  { resume }: { readonly resume: boolean | undefined },
): string | null {
  const { code } = error;
  if (error instanceof TopicDamagedError) {
    if (error.isWholeTopic) {
      return `an operator restores its server from a backup, or gives the topic up: baton pubsub topic delete ${
        shellQuoteIfNeeded(topic)
      } --accept-loss`;
    }
    const isReading = operation === "get" || operation === "peek";
    const passOver = `to go on behind it: baton pubsub client ${shellQuoteIfNeeded(id)} seek ${
      shellQuoteIfNeeded(topic)
    } LAST-DAMAGED-ID; `;
    const repair = `baton pubsub topic repair ${shellQuoteIfNeeded(topic)} --accept-loss`;
    return `${isReading ? passOver : ""}an operator gives up what is damaged: ${repair}`;
  }
  if (code === "NOT_SUBSCRIBED" && operation !== "unsubscribe") {
    return `to subscribe: baton pubsub client ${shellQuoteIfNeeded(id)} subscribe ${shellQuoteIfNeeded(topic)}`;
  }
  if (code !== "FENCED") return null;
  // Places of inputs are in the state alone.
  const places = "puts from the input what this state does not know to have been put: look first at what is there";
  return resume && rest.length > 0 ? `the next call takes over, and ${places}` : "the next call takes over";
}

async function runOperation(call: ClientCall, words: ClientArguments): Promise<ExitCode> {
  const { values } = call;
  const lookupPlace = lookupPlaceOf(call);
  checkName("client id", words.id);
  if (words.operation !== "topics") checkName("topic", words.topic);
  if (values.msgId !== undefined) checkName("--msg-id", values.msgId);
  const clock = systemClock();
  const security = clientSecurity(values);
  using stop = new StopRequest(processSignals());
  const { signal } = stop;
  await using requester = new Requester({
    findProxies: proxyFinder(call),
    clock,
    timeoutMs: values.pubsubTimeout,
    attemptMs: values.pubsubRetryTimeout,
    ...(values.quiet ? {} : { onStall: (why: string) => call.io.err(`baton: still trying: ${why}\n`) }),
    ...(security === undefined ? {} : { socket: security }),
    ...(lookupPlace === undefined ? {} : { lookupPlace }),
    ...(values.pubsubRetries === undefined ? {} : { retriesMax: values.pubsubRetries }),
  });
  if (words.operation === "topics") return await clientTopics(call, words, requester, signal);
  const folder = resolve(values.pubsubStateDir ?? clientFolder());
  using state = await ClientState.open(folder, words.id, { waitMs: values.pubsubTimeout, clock, signal });
  const client = new PubsubClientSession(state, requester);
  const run: ClientRun = { call, target: words, client, signal };
  switch (words.operation) {
    case "subscribe":
      await client.subscribe(words.topic, { signal });
      return exitCodes.SUCCESS;
    case "unsubscribe":
      await client.unsubscribe(words.topic, { signal });
      return exitCodes.SUCCESS;
    case "seek":
      await client.seek(words.topic, placeOf(words.rest[0] ?? ""), { signal });
      return exitCodes.SUCCESS;
    case "put":
      return await clientPut(run);
    case "get":
    case "peek":
      return await clientGet(run);
    case "ack":
    case "nak":
      return clientAck(run);
    case "pending":
    case "info":
      return await clientAsk(run);
    case "bench":
      return await clientBench(run);
  }
}

function placeOf(word: string): number | "start" | "end" {
  const place = readPosition(word);
  if (place !== undefined) return place;
  throw new BatonError("USAGE", `seek: "${word}" is not start, end or the id of a message`);
}
