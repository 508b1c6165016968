/** `pending`, `info` and `topics`: questions that change nothing. */
import { BatonError } from "../../src/errors.ts";
import { requestTopics } from "../../src/pubsub/client/request_topic_list.ts";
import type { Requester } from "../../src/pubsub/client/requester.ts";
import { type ExitCode, exitCodes } from "../exit_codes.ts";
import type { PubsubInfoJson, PubsubPendingJson, PubsubTopicsJson } from "../json_shapes/pubsub_client_shapes.ts";
import type { ClientCall } from "./client.ts";
import { requestPosition } from "./client_place.ts";
import type { ClientArguments } from "./client_args.ts";
import type { ClientRun } from "./run_client.ts";

export async function clientAsk(run: ClientRun): Promise<ExitCode> {
  const { call: { values, io }, target: { topic, operation }, client } = run;
  const { info: { first = 0, end = 0, subscribers = 0, bytes = 0 }, isSubscribed, cursor, pending } =
    await requestPosition(
      run,
    );
  if (operation === "pending") {
    if (!isSubscribed) {
      const why = "this client is not subscribed to the topic";
      throw new BatonError("NOT_SUBSCRIBED", `Nothing waits for "${client.id}" in topic "${topic}": ${why}`);
    }
    const result: PubsubPendingJson = { version: 1, topic, pending };
    io.out(values.json ? `${JSON.stringify(result)}\n` : `${pending}\n`);
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
  const lines = Object.entries(info).filter(([name]) => name !== "version").map(([name, value]) =>
    `${name}\t${value}\n`
  );
  io.out(values.json ? `${JSON.stringify(info)}\n` : lines.join(""));
  return exitCodes.SUCCESS;
}

export async function clientTopics(
  { values, io }: ClientCall,
  { id }: ClientArguments,
  requester: Requester,
  signal: AbortSignal,
): Promise<ExitCode> {
  const topics = await requestTopics(requester, id, signal);
  const result: PubsubTopicsJson = { version: 1, topics };
  io.out(values.json ? `${JSON.stringify(result)}\n` : topics.map((topic) => `${inOneLine(topic)}\n`).join(""));
  return exitCodes.SUCCESS;
}

/** A newline in a name must not make two of it; who wants such names asks for --json. */
function inOneLine(topic: string): string {
  return topic.replace(/\p{Cc}/gu, "\u{fffd}");
}
