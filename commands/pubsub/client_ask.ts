/** `pending`, `info` and `topics`: questions that change nothing. */
import { listTopics } from "../../src/recipes/pubsub/client/list_topics.ts";
import type { Requester } from "../../src/recipes/pubsub/client/requester.ts";
import { type ExitCode, exitCodes } from "../exit_codes.ts";
import type { PubsubInfoJson, PubsubPendingJson, PubsubTopicsJson } from "../json_shapes/pubsub_client_shapes.ts";
import type { ClientCall } from "./client.ts";
import type { ClientWords } from "./client_words.ts";
import type { ClientRun } from "./run_client.ts";

export async function clientAsk({ call: { values, io }, words, client, signal }: ClientRun): Promise<ExitCode> {
  const { topic, operation } = words;
  const { position = -1, first = 0, end = 0, pending = 0, subscribers = 0, bytes = 0 } = await client.info(topic, {
    signal,
  });
  // The server hears of the last ones with the next get.
  const cursor = Math.max(position, client.state.place(topic).cursor);
  const waiting = position < 0 ? 0 : Math.max(0, Math.min(pending, end - cursor));
  if (operation === "pending") {
    const answer: PubsubPendingJson = { version: 1, topic, pending: waiting };
    io.out(values.json ? `${JSON.stringify(answer)}\n` : `${waiting}\n`);
    return exitCodes.SUCCESS;
  }
  const info: PubsubInfoJson = {
    version: 1,
    topic,
    subscribed: position >= 0,
    position: String(cursor),
    first: String(first),
    end: String(end),
    pending: waiting,
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
  { id }: ClientWords,
  requester: Requester,
  signal: AbortSignal,
): Promise<ExitCode> {
  const topics = await listTopics(requester, id, signal);
  const answer: PubsubTopicsJson = { version: 1, topics };
  io.out(values.json ? `${JSON.stringify(answer)}\n` : topics.map((topic) => `${topic}\n`).join(""));
  return exitCodes.SUCCESS;
}
