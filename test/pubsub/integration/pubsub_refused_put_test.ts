/**
 * A put that was definitely refused, and that the network delivers once more: after a crash, after a handoff, at any
 * time.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { mkdirSync } from "node:fs";
import { PubsubClientSession } from "../../../src/pubsub/client/pubsub_client_session.ts";
import { ClientState } from "../../../src/pubsub/client/client_state.ts";
import { Publisher } from "../../../src/pubsub/client/publisher.ts";
import { PubsubRequester } from "../../../src/pubsub/client/requester.ts";
import { Subscriber } from "../../../src/pubsub/client/subscriber.ts";
import { moveTopic } from "../../../src/pubsub/admin/move_topics.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import type { PubsubMessage } from "../../../src/pubsub/wire/pubsub_messages.ts";
import { PubsubCluster } from "../../support/pubsub_cluster.ts";
import { bytesOf, textOf } from "../../support/pubsub_talker.ts";

setDefaultTimeout(120_000);

const clock = systemClock();

test("no copy of a put that was refused is ever stored, and who puts it again has it stored once", async () => {
  await using cluster = await PubsubCluster.start({
    ...{ servers: 2, proxies: 1, as: "processes", serverWords: ["--max-pending", "2"] },
  });
  const folder = join(cluster.folder, "state");
  mkdirSync(folder);
  const sent: PubsubMessage[] = [];
  const enter = async <T>(id: string, live: (session: PubsubClientSession) => Promise<T>): Promise<T> => {
    using state = await ClientState.open(folder, id, { waitMs: 0, clock });
    await using requester = new PubsubRequester({
      ...{ findProxies: () => Promise.resolve([cluster.proxy().endpoint]), clock, timeoutMs: 20_000, attemptMs: 5000 },
    });
    const ask = requester.request.bind(requester);
    requester.request = (message, options) => {
      sent.push(message);
      return ask(message, options);
    };
    return await live(new PubsubClientSession(state, requester));
  };
  const put = (...texts: string[]) =>
    enter("bob", async (session) => {
      const chunks = async function* () {
        for (const text of texts) yield await Promise.resolve([bytesOf(text)]);
      };
      await new Publisher(session, "news").putAll(chunks());
    });
  const had: string[] = [];
  const read = () =>
    enter("alice", async (session) => {
      const subscriber = new Subscriber(session, "news");
      for (;;) {
        const { messages } = await subscriber.fetch({ max: 10, waitMs: 0 });
        const last = messages.at(-1)?.id;
        if (last === undefined) return;
        had.push(...messages.map(({ body }) => textOf(body)));
        subscriber.acknowledge(last, { durable: true });
      }
    });
  await enter("alice", (session) => session.subscribe("news"));
  await put("one", "two");
  sent.length = 0;
  await expect(put("three")).rejects.toMatchObject({ code: "STORE_FULL" });
  const refused = sent.find((message) => message.name === "PUT" && message.body !== undefined);
  if (refused?.name !== "PUT") throw new Error("nothing was put");
  expect(textOf(refused.body)).toBe("three");
  const client = cluster.client();
  const copy = async () => (await client.say(refused)).status;
  await read();
  expect(await copy()).toBe("FENCED");
  for (const server of cluster.servers.values()) await server.restart();
  expect(await copy()).toBe("FENCED");
  const owner = (await cluster.owners()).get("news");
  const to = owner === "s1" ? "s2" : "s1";
  const moved = await moveTopic(await cluster.session(), cluster.path, { topic: "news", to }, {
    clock,
    withinMs: 20_000,
  });
  expect(moved.kind).toBe("moved");
  expect(await copy()).toBe("FENCED");
  await read(); // the crash may have come before its place was written
  await put("three");
  expect(await copy()).toBe("FENCED");
  await read();
  expect(had).toEqual(["one", "two", "three"]);
});
