/**
 * baton's own client as a peer of the publish/subscribe benchmark, beside those of npm: KIND HOST PORT BYTES
 * OUTSTANDING MS.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PubsubClientSession } from "../../src/pubsub/client/pubsub_client_session.ts";
import { ClientState } from "../../src/pubsub/client/client_state.ts";
import { Publisher } from "../../src/pubsub/client/publisher.ts";
import { PubsubRequester } from "../../src/pubsub/client/requester.ts";
import { Subscriber } from "../../src/pubsub/client/subscriber.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import { type PubsubLoadHooks, type PubsubLoadPeer, runPubsubLoad } from "./pubsub_npm_loop.ts";

const topic = `t${process.hrtime.bigint().toString(36)}`;
const waitMs = 1000;
const folder = mkdtempSync(join(tmpdir(), "baton-bench-client-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

async function session(id: string, port: number): Promise<PubsubClientSession> {
  const clock = systemClock();
  const findProxies = () => Promise.resolve([`tcp://127.0.0.1:${port}`]);
  const requester = new PubsubRequester({ findProxies, clock, timeoutMs: 10_000, attemptMs: 5000 });
  return new PubsubClientSession(await ClientState.open(folder, id, { waitMs: 0, clock }), requester);
}

/** Opens a publisher and a subscriber that keep their state on the disk, as users run them. */
function ownPeer(port: number): PubsubLoadPeer {
  let waiting: Uint8Array[] = [];
  let wake = () => {};
  async function* chunks(): AsyncGenerator<Uint8Array[], void, void> {
    for (;;) {
      if (waiting.length === 0) await new Promise<void>((resolve) => wake = resolve);
      const chunk = waiting;
      waiting = [];
      yield chunk;
    }
  }
  const read = async (subscriber: Subscriber, hooks: PubsubLoadHooks) => {
    for (;;) {
      const { messages } = await subscriber.fetch({ max: 256, waitMs });
      const last = messages.at(-1);
      if (last === undefined) continue;
      subscriber.recordDelivery(last.id);
      for (const { body } of messages) hooks.received(body);
      subscriber.acknowledge(last.id);
    }
  };
  return {
    async begin(hooks) {
      const [writer, reader] = await Promise.all([session("writer", port), session("reader", port)]);
      await reader.subscribe(topic);
      read(new Subscriber(reader, topic), hooks).catch(hooks.fail);
      new Publisher(writer, topic).putAll(chunks(), { onStored: (count) => hooks.acked(count) }).catch(hooks.fail);
    },
    put(body) {
      waiting.push(body);
      wake();
    },
  };
}

void runPubsubLoad(process.argv.slice(2), (_kind, port) => ownPeer(port));
