/** Proxies with real servers and a real keeper: one owner for each topic, nothing lost and nothing twice. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { setServerDraining } from "../../../src/pubsub/ownership/announcements.ts";
import { parseAnnouncement } from "../../../src/pubsub/ownership/process_announcement.ts";
import { bodyBytesMax, headerBytesMax } from "../../../src/pubsub/wire/message_limits.ts";
import { describeBackend, type RunningBackend } from "../../support/backends.ts";
import { tierBackends } from "../../support/tier.ts";
import { eventually } from "../../support/eventually.ts";
import type { ProxyClient } from "../../support/proxy_client.ts";
import type { ServerObject } from "../../support/pubsub_nodes.ts";
import { PubsubCluster, type PubsubClusterOptions } from "../../support/pubsub_cluster.ts";

setDefaultTimeout(120_000);

/** Puts again under the same counter until it is OK. Returns how often it took. */
async function put(client: ProxyClient, topic: string, counter: number, sender = "bob"): Promise<number> {
  let tries = 0;
  await eventually(async () => {
    tries++;
    const answer = await client.plain(`PUT ${sender} ${topic} ${counter}`, `${sender} ${counter}`);
    return answer.status === "OK" || Promise.reject(new Error(`${answer.status} ${answer.text}`));
  }, { withinMs: 30_000, what: `counter ${counter} to be put` });
  return tries;
}

/** Everything that waits for the subscriber, acknowledged one by one. */
async function drain(client: ProxyClient, topic: string, sender = "alice"): Promise<string[]> {
  const texts: string[] = [];
  for (let last = -1;;) {
    const answer = await client.plain(`GET ${sender} ${topic} ${last}`);
    if (answer.status === "NO_MESSAGE") return texts;
    if (answer.status !== "OK") throw new Error(`GET was answered ${answer.status} ${answer.text}`);
    texts.push(answer.text);
    last = answer.messageId as number;
  }
}

const numbered = (count: number, sender = "bob") => Array.from({ length: count }, (_, n) => `${sender} ${n}`);

for (const kind of tierBackends) {
  describeBackend(kind, () => {
    let backend: RunningBackend;
    beforeAll(async () => void (backend = await kind.start()), 60_000);
    afterAll(() => backend.close());

    const start = (options: PubsubClusterOptions = {}) => PubsubCluster.start({ backend, ...options });

    test("two proxies that get the first requests for new topics at once send each to one server", async () => {
      await using cluster = await start({ servers: 3, proxies: 2 });
      const [one, two] = [cluster.client("p1"), cluster.client("p2")];
      const topics = Array.from({ length: 30 }, (_, n) => `t${n}`);
      const answers = await Promise.all(topics.flatMap((topic) => [
        one.plain(`SUBSCRIBE alice ${topic}`),
        two.plain(`SUBSCRIBE carol ${topic}`),
      ]));
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set(["OK"]));
      const owners = await cluster.owners();
      for (const [at, topic] of topics.entries()) {
        const asked = [answers[2 * at]?.sender, answers[2 * at + 1]?.sender];
        expect(asked).toEqual([owners.get(topic), owners.get(topic)]);
      }
      await Promise.all(topics.flatMap((topic) => [put(one, topic, 0, "bob"), put(two, topic, 0, "dave")]));
      for (const topic of topics) {
        expect((await drain(two, topic)).sort()).toEqual(["bob 0", "dave 0"]);
        expect((await drain(one, topic, "carol")).sort()).toEqual(["bob 0", "dave 0"]);
      }
      expect(cluster.problems).toEqual([]);
    });

    test("a subscriber gets each message once, in order, by any proxy, and not after its acknowledgment", async () => {
      await using cluster = await start({ servers: 2, proxies: 2 });
      const clients = [cluster.client("p1"), cluster.client("p2")] as const;
      expect((await clients[0].plain("SUBSCRIBE alice news")).status).toBe("OK");
      for (let n = 0; n < 20; n++) {
        await put(clients[n % 2 as 0 | 1], "news", n);
        await put(clients[(n + 1) % 2 as 0 | 1], "news", n); // the same once more, by the other
      }
      const texts: string[] = [];
      for (let last = -1, turn = 0;; turn++) {
        const client = clients[turn % 2 as 0 | 1];
        const answer = await client.plain(`GET alice news ${last}`);
        if (answer.status === "NO_MESSAGE") break;
        texts.push(answer.text);
        last = answer.messageId as number;
      }
      expect(texts).toEqual(numbered(20));
      expect(await drain(clients[0], "news")).toEqual([]);
    });

    test("topics of a server that is away wait, and continue when it is back at another port", async () => {
      await using cluster = await start({ servers: 2 });
      const client = cluster.client();
      for (const topic of ["a", "b"]) expect((await client.plain(`SUBSCRIBE alice ${topic}`)).status).toBe("OK");
      for (const topic of ["a", "b"]) await put(client, topic, 0);
      const owners = await cluster.owners();
      const [away, there] = [owners.get("a") as string, owners.get("b") as string];
      expect(away).not.toBe(there);
      const before = cluster.server(away).endpoint;
      await cluster.server(away).stop();
      const waiting = client.say({
        ...{ name: "PUT", sender: "bob", topic: "a", counter: 1, body: new TextEncoder().encode("bob 1") },
        headers: { deadlineMs: 30_000 },
      }, 40_000);
      for (let n = 1; n < 10; n++) expect(await put(client, "b", n)).toBe(1);
      expect(await client.say({ name: "GET", sender: "alice", topic: "a", last: -1, headers: { deadlineMs: 100 } }))
        .toMatchObject({ status: "OVERLOADED", sender: "p1" });
      await cluster.server(away).restart();
      expect(cluster.server(away).endpoint).not.toBe(before);
      expect((await waiting).status).toBe("OK");
      await put(client, "a", 2);
      expect(await drain(client, "a")).toEqual(numbered(3));
      expect(await drain(client, "b")).toEqual(numbered(10));
    });

    test("a topic that is handed off under load loses and repeats nothing, and its clients only wait", async () => {
      await using cluster = await start({ servers: 2, proxies: 2 });
      const [one, two] = [cluster.client("p1"), cluster.client("p2")];
      await one.plain("SUBSCRIBE alice t");
      await put(one, "t", 0);
      let isOver = false;
      const putting = (async () => {
        let n = 1;
        for (; !isOver || n < 100; n++) expect(await put(n % 2 === 0 ? one : two, "t", n)).toBe(1);
        return n;
      })();
      for (let move = 0; move < 4; move++) {
        const owner = (await cluster.owners()).get("t");
        const target = owner === "s1" ? "s2" : "s1";
        const answer = await one.say({ name: "MERGE", sender: "operator", topic: "t", address: target, headers: {} });
        expect(answer).toMatchObject({ status: "OK" });
        expect((await cluster.owners()).get("t")).toBe(target);
      }
      isOver = true;
      const count = await putting;
      expect(await drain(two, "t")).toEqual(numbered(count));
    });

    test("a proxy finds servers that come later, and goes on when its session has ended", async () => {
      await using cluster = await start({ servers: 0 });
      const client = cluster.client();
      expect(await client.say({ name: "SUBSCRIBE", sender: "alice", topic: "t", headers: { deadlineMs: 100 } }))
        .toMatchObject({
          status: "OVERLOADED",
          text: "Not done: there is no server; start one with: baton pubsub server",
        });
      await cluster.startServer("s1");
      expect((await client.plain("SUBSCRIBE alice t")).status).toBe("OK");
      const first = cluster.sessions.get("p1");
      await first?.close();
      const second = await eventually(() => cluster.sessions.get("p1") !== first && cluster.sessions.get("p1"));
      await put(client, "t", 0); // at once: what is known of it is known still
      const zk = await cluster.session();
      const node = cluster.path.proxy("p1");
      await eventually(async () => (await zk.exists(node))?.ephemeralOwner === second.session.id, { withinMs: 10_000 });
      await put(client, "new", 0);
      expect(await drain(client, "t")).toEqual(["bob 0"]);
    });

    test("a server that takes no new topics does not take them either when its session has ended", async () => {
      await using cluster = await start({ servers: 2 });
      const client = cluster.client();
      const zk = await cluster.session();
      expect(await setServerDraining(zk, cluster.path, "s1", true)).toBe(true);
      expect(await setServerDraining(zk, cluster.path, "s9", true)).toBe(false);
      const server = cluster.server("s1") as ServerObject;
      await eventually(() => server.isDraining);
      const first = cluster.sessions.get("s1");
      await first?.close();
      await eventually(() => cluster.sessions.get("s1") !== first, { withinMs: 20_000 });
      const node = cluster.path.server("s1");
      const announced = async () => parseAnnouncement((await zk.getData(node)).data, node)?.isDraining;
      expect(await eventually(announced, { what: "s1 to be announced again", withinMs: 20_000 })).toBe(true);
      for (const topic of ["b", "c", "d"]) await put(client, topic, 0);
      expect(new Set((await cluster.owners()).values())).toEqual(new Set(["s2"]));
    });

    test("the largest message goes through proxy, server and store and back", async () => {
      await using cluster = await start();
      const client = cluster.client();
      expect((await client.plain("SUBSCRIBE alice t")).status).toBe("OK");
      const padding = `x-pad: ${"p".repeat(headerBytesMax - "PUT bob t 1\r\nx-pad: \r\n\r\n".length)}`;
      const header = new TextEncoder().encode(`PUT bob t 1\r\n${padding}\r\n\r\n`);
      const largest = new Uint8Array(header.byteLength + bodyBytesMax).fill(0x62);
      largest.set(header);
      expect((await client.ask([largest])).status).toBe("OK");
      const { status, text } = await client.plain("GET alice t -1");
      expect([status, text.length]).toEqual(["OK", bodyBytesMax]);
      largest[header.byteLength - 5] = 0x71;
      const over = new Uint8Array(largest.byteLength + 1);
      over.set(largest);
      expect(await client.ask([over])).toMatchObject({ status: "BAD_REQUEST", sender: "s1" });
      expect((await client.plain("PUT bob t 2", "small")).status).toBe("OK");
    });
  });
}
