/** A publisher and a subscriber at work through several proxies, while a test makes trouble: what came of it. */
import { expect } from "bun:test";
import { eventually } from "./eventually.ts";
import type { Answered, ProxyClient } from "./proxy_client.ts";
import type { PubsubCluster } from "./pubsub_cluster.ts";

/**
 * A client of the paper's messages with several proxies: the next one when one does not answer, the same message again.
 */
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

export interface Work {
  readonly put: number;
  readonly got: readonly string[];
}

/** A publisher and a subscriber at work while `trouble` goes on, and for a while after it. */
export async function work(
  cluster: PubsubCluster,
  topic: string,
  trouble: (gotSoFar: () => number) => Promise<void>,
): Promise<Work> {
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
    await trouble(() => got.length);
  } finally {
    isOver = true;
  }
  await publishing;
  isDone = true;
  await reading;
  return { put, got };
}

export function expectExactlyOnce({ put, got }: Work): void {
  expect(put).toBeGreaterThan(40);
  expect(got).toEqual(Array.from({ length: put }, (_, n) => `m${n}`));
}
