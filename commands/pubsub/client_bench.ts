/** `bench`: puts messages into a topic and gets them again, and says how fast that was. */
import { BatonError } from "../../src/errors.ts";
import { Publisher } from "../../src/pubsub/client/publisher.ts";
import { Subscriber } from "../../src/pubsub/client/subscriber.ts";
import { counted } from "../../src/support/text.ts";
import { type ExitCode, exitCodes } from "../exit_codes.ts";
import type { PubsubBenchJson } from "../json_shapes/pubsub_client_shapes.ts";
import { type ClientPosition, findPosition } from "./client_place.ts";
import type { ClientRun } from "./run_client.ts";

const bodyBytes = 1024;
const chunkMessages = 256;

export async function clientBench(run: ClientRun): Promise<ExitCode> {
  const { call: { values, io }, target: { topic }, client, signal } = run;
  const count = values.count ?? 10_000;
  const place = await findPosition(run);
  if (place !== null) checkUnused(run, place);
  await client.subscribe(topic, { signal });
  const putMs = await timed(() => new Publisher(client, topic).putAll(bodies(count), { signal }));
  const subscriber = new Subscriber(client, topic);
  const getMs = await timed(async () => {
    for (let had = 0; had < count;) {
      const { messages } = await subscriber.fetch({ max: chunkMessages, signal });
      const last = messages.at(-1);
      if (last === undefined) break;
      subscriber.acknowledge(last.id);
      had += messages.length;
    }
  });
  if (place?.isSubscribed !== true) await client.unsubscribe(topic, { signal });
  const rate = (ms: number) => Math.round(count / (ms / 1000));
  const result: PubsubBenchJson = {
    version: 1,
    topic,
    messages: count,
    bytes: bodyBytes,
    puts_per_second: rate(putMs),
    gets_per_second: rate(getMs),
  };
  io.out(
    values.json
      ? `${JSON.stringify(result)}\n`
      : `${count} messages of ${bodyBytes} bytes: ${rate(putMs)} puts a second, ${rate(getMs)} gets a second\n`,
  );
  return exitCodes.SUCCESS;
}

/** It takes all that comes, and all subscribers get what it puts: where messages are meant for somebody it must not be. */
function checkUnused({ target: { id, topic } }: ClientRun, { info, isSubscribed, pending }: ClientPosition): void {
  const others = (info.subscribers ?? 0) - (isSubscribed ? 1 : 0);
  if (others <= 0 && pending === 0) return;
  const used = others > 0
    ? `has ${counted(others, "other subscriber")}`
    : `has ${counted(pending, "message")} that "${id}" has not had`;
  throw new BatonError(
    "USAGE",
    `bench: the topic "${topic}" ${used}; it puts messages of its own there, and takes all that are there: name a new topic`,
  );
}

async function* bodies(count: number): AsyncGenerator<Uint8Array[], void, void> {
  for (let made = 0; made < count; made += chunkMessages) {
    yield Array.from(
      { length: Math.min(chunkMessages, count - made) },
      () => crypto.getRandomValues(new Uint8Array(bodyBytes)),
    );
    await Promise.resolve();
  }
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await work();
  return performance.now() - startMs;
}
