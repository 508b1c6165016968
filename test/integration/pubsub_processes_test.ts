/** Roles as processes that are killed and stopped while clients go on: what was answered OK arrives, once. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import type { Answered, ProxyClient } from "../support/proxy_client.ts";
import { PubsubCluster } from "../support/pubsub_cluster.ts";

setDefaultTimeout(180_000);

/** A client of the paper's messages with several proxies: the next one when one does not answer, the same message again. */
class PatientClient {
  readonly #clients: readonly ProxyClient[];
  #at = 0;

  constructor(clients: readonly ProxyClient[]) {
    this.#clients = clients;
    for (const client of clients) client.withinMs = 3000;
  }

  async ask(header: string, body = ""): Promise<Answered> {
    return await eventually(async () => {
      const client = this.#clients[this.#at % this.#clients.length] as ProxyClient;
      try {
        const answer = await client.plain(header, body);
        if (!["OVERLOADED", "ERROR"].includes(answer.status)) return answer;
        throw new Error(`${answer.status} ${answer.text}`);
      } catch (thrown) {
        this.#at++;
        throw thrown;
      }
    }, { withinMs: 60_000, what: `${header} to be answered`, everyMs: 20 });
  }
}

interface Work {
  readonly put: number;
  readonly got: readonly string[];
}

/** A publisher and a subscriber at work while `trouble` goes on, and for a while after it. */
async function work(cluster: PubsubCluster, topic: string, trouble: () => Promise<void>): Promise<Work> {
  const [bob, alice] = [0, 1].map(() => new PatientClient([cluster.client("p1"), cluster.client("p2")]));
  if (bob === undefined || alice === undefined) throw new Error("unreachable");
  expect((await alice.ask(`SUBSCRIBE alice ${topic}`)).status).toBe("OK");
  let [isOver, put] = [false, 0];
  const publishing = (async () => {
    for (let rest = 20; !isOver || rest-- > 0; put++) {
      expect((await bob.ask(`PUT bob ${topic} ${put}`, `m${put}`)).status).toBe("OK");
    }
  })();
  const got: string[] = [];
  let isDone = false;
  const reading = (async () => {
    for (let last = -1;;) {
      const wasDone = isDone;
      const { status, messageId, text } = await alice.ask(`GET alice ${topic} ${last}`);
      if (status === "OK") {
        got.push(text);
        last = messageId as number;
      } else if (status !== "NO_MESSAGE") throw new Error(`GET was answered ${status} ${text}`);
      else if (wasDone) return;
    }
  })();
  try {
    await eventually(() => got.length >= 20, { withinMs: 60_000, what: "messages to arrive" });
    await trouble();
  } finally {
    isOver = true;
  }
  await publishing;
  isDone = true;
  await reading;
  return { put, got };
}

function expectExactlyOnce({ put, got }: Work): void {
  expect(put).toBeGreaterThan(40);
  expect(got).toEqual(Array.from({ length: put }, (_, n) => `m${n}`));
}

test("proxies and servers that are killed cost their clients another try, and no message", async () => {
  await using cluster = await PubsubCluster.start({ servers: 2, proxies: 2, as: "processes", sessionTimeoutMs: 2000 });
  expectExactlyOnce(
    await work(cluster, "t", async () => {
      const owner = (await cluster.owners()).get("t") as string;
      for (const node of [cluster.proxy("p1"), cluster.server(owner), cluster.proxy("p2")]) {
        await node.kill();
        await node.restart();
      }
      await Promise.all([cluster.proxy("p1").kill(), cluster.server(owner).kill()]);
      await Promise.all([cluster.proxy("p1").restart(), cluster.server(owner).restart()]);
    }),
  );
});

test("a server that is stopped for longer than its session lives, and goes on, has answered nothing wrong", async () => {
  await using cluster = await PubsubCluster.start({ servers: 2, proxies: 2, as: "processes", sessionTimeoutMs: 2000 });
  expectExactlyOnce(
    await work(cluster, "t", async () => {
      const owner = (await cluster.owners()).get("t") as string;
      await using zk = await cluster.session();
      cluster.server(owner).pause();
      const isGone = async () => await zk.exists(cluster.path.server(owner)) === null;
      await eventually(isGone, { withinMs: 20_000, what: "its session to end" });
      cluster.server(owner).resume();
      await eventually(async () => !await isGone(), { withinMs: 20_000, what: "it to come back" });
    }),
  );
});

test("a proxy that is told to stop sends its clients to the others without an unknown outcome", async () => {
  await using cluster = await PubsubCluster.start({ servers: 1, proxies: 2, as: "processes" });
  const client = cluster.client("p1");
  expect((await client.plain("SUBSCRIBE alice t")).status).toBe("OK");
  const answers = Array.from({ length: 500 }, (_, n) => client.plain(`PUT bob t ${n}`, `m${n}`));
  const waiting = client.say({ name: "GET", sender: "carol", topic: "t", last: -1, lines: { waitMs: 30_000 } });
  await answers[0];
  await cluster.proxy("p1").stop();
  for (const { status } of await Promise.all(answers)) expect(["OK", "OVERLOADED"]).toContain(status);
  expect(["OVERLOADED", "NOT_SUBSCRIBED"]).toContain((await waiting).status);
});
