/**
 * Publishers that put once, each under an id of its own, into a topic that knows few: through proxies, handoffs and
 * restarts.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { PubsubClientSession } from "../../../src/pubsub/client/pubsub_client_session.ts";
import { ClientState } from "../../../src/pubsub/client/client_state.ts";
import { Publisher } from "../../../src/pubsub/client/publisher.ts";
import { PubsubRequester } from "../../../src/pubsub/client/requester.ts";
import { Subscriber } from "../../../src/pubsub/client/subscriber.ts";
import { requestTopicAction } from "../../../src/pubsub/admin/manage_topic.ts";
import { moveTopic } from "../../../src/pubsub/admin/move_topics.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import type { PubsubMessage } from "../../../src/pubsub/wire/pubsub_messages.ts";
import { PubsubCluster } from "../../support/pubsub_cluster.ts";

setDefaultTimeout(120_000);

const clock = systemClock();
const clientsMax = 40;
const jobs = 200;

test("each of their messages arrives once, none is refused, and a copy of an earlier put is not stored", async () => {
  await using cluster = await PubsubCluster.start({ servers: 2, store: { clientsMax } });
  const folder = join(cluster.folder, "state");
  mkdirSync(folder);
  await using requester = new PubsubRequester({
    ...{ findProxies: () => Promise.resolve([cluster.proxy().endpoint]), clock, timeoutMs: 20_000, attemptMs: 5000 },
  });
  const sent: PubsubMessage[] = [];
  const ask = requester.request.bind(requester);
  requester.request = (message, options) => {
    if (message.name === "PUT" && message.body !== undefined) sent.push(message);
    return ask(message, options);
  };
  const enter = async <T>(id: string, live: (session: PubsubClientSession) => Promise<T>): Promise<T> => {
    using state = await ClientState.open(folder, id, { waitMs: 0, clock });
    return await live(new PubsubClientSession(state, requester));
  };
  const put = (id: string) =>
    enter(id, async (session) => {
      const publisher = new Publisher(session, "news");
      const chunks = async function* () {
        yield await Promise.resolve([new TextEncoder().encode(id)]);
      };
      await publisher.putAll(chunks());
      await publisher.reportResolved();
    });
  await enter("reader", (session) => session.subscribe("news"));
  const wanted: string[] = [];
  for (let job = 0; job < jobs; job++) {
    await put(`job-${job}`);
    wanted.push(`job-${job}`);
    if (job === 90) {
      const to = (await cluster.owners()).get("news") === "s1" ? "s2" : "s1";
      const zk = await cluster.session();
      expect(await moveTopic(zk, cluster.path, { topic: "news", to }, { clock, withinMs: 20_000 })).toMatchObject({
        kind: "moved",
      });
    }
    if (job === 140) { for (const server of cluster.servers.values()) await server.restart(); }
  }
  // One that was forgotten comes again, by itself, and puts something else.
  await put("job-3");
  wanted.push("job-3");
  const copies = new Set<string>();
  for (const message of sent) copies.add((await cluster.client().say(message)).status);
  // Resolved, and not to be repeated; of a client that has a newer session; of one that was forgotten.
  expect([...copies].sort()).toEqual(["FENCED", "STALE_OP", "UNREGISTERED"]);
  const had: string[] = [];
  await enter("reader", async (session) => {
    const subscriber = new Subscriber(session, "news");
    for (;;) {
      const { messages, missed } = await subscriber.fetch({ max: 100, waitMs: 0 });
      expect(missed).toBe(0);
      const last = messages.at(-1);
      if (last === undefined) return;
      had.push(...messages.map(({ body }) => new TextDecoder().decode(body)));
      subscriber.acknowledge(last.id);
    }
  });
  expect(had).toEqual(wanted);
});

test("the report that all puts are resolved does not create a topic again that was deleted meanwhile", async () => {
  await using cluster = await PubsubCluster.start({ servers: 1 });
  const folder = join(cluster.folder, "state");
  mkdirSync(folder);
  await using requester = new PubsubRequester({
    ...{ findProxies: () => Promise.resolve([cluster.proxy().endpoint]), clock, timeoutMs: 20_000, attemptMs: 5000 },
  });
  using state = await ClientState.open(folder, "bob", { waitMs: 0, clock });
  const session = new PubsubClientSession(state, requester);
  const publisher = new Publisher(session, "news");
  const chunks = async function* () {
    yield await Promise.resolve([new TextEncoder().encode("message")]);
  };
  expect(await publisher.putAll(chunks())).toBe(1);
  const zk = await cluster.session();
  await requestTopicAction(zk, cluster.path, { topic: "news", action: "delete" }, { clock, withinMs: 20_000 });
  await publisher.reportResolved();
  // A copy that a network delivers late, with an answer to wait for.
  const headers = { session: state.currentSession(), firstUnacked: 2 };
  const report = { name: "PUT", sender: "bob", topic: "news", counter: 2, headers, batch: [] } as const;
  expect((await cluster.client().say(report)).status).toBe("NOT_SUBSCRIBED");
  expect([...await cluster.owners()]).toEqual([["news", ""]]);
  // A publisher registers at a topic before it puts, and so creates it.
  const register = { name: "PUT", sender: "eve", topic: "news", counter: 0, headers, batch: [] } as const;
  expect((await cluster.client().say(register)).status).not.toBe("NOT_SUBSCRIBED");
  expect([...await cluster.owners()]).toEqual([["news", "s1"]]);
});
