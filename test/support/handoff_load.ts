/**
 * Moves a topic with a backlog from one server to the other and back while it is put to, and says how long puts stood
 * still. Processes of baton, clients through a proxy. Used by a test and by a benchmark.
 */
import { DealerSocket } from "../../src/protocols/zeromq/dealer_socket.ts";
import { moveTopic } from "../../src/pubsub/admin/move_topics.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import { decodePubsubMessage } from "../../src/pubsub/wire/decode_message.ts";
import { encodePubsubMessage } from "../../src/pubsub/wire/encode_message.ts";
import { pubsubSocketLimits } from "../../src/pubsub/wire/message_limits.ts";
import { eventually } from "./eventually.ts";
import { PubsubCluster } from "./pubsub_cluster.ts";

export interface HandoffLoad {
  /** Messages that wait in the topic when it begins to move. */
  readonly backlog: number;
  readonly bodyBytes: number;
  /** Puts that are under way at any time while it moves. */
  readonly outstanding: number;
}

export interface HandoffOutcome {
  /** The longest time without a put that was answered OK, in milliseconds. */
  readonly pauseMs: number;
  /** From the request to move it until it has moved. */
  readonly tookMs: number;
  readonly putsPerSecond: number;
}

const nothing = new Uint8Array(0);
const encoder = new TextEncoder();
const decoder = new TextDecoder();
const topic = "news";

/** To and fro, so often. */
export async function handoffs(load: HandoffLoad, rounds: number): Promise<HandoffOutcome[]> {
  await using cluster = await PubsubCluster.start({ servers: 2, as: "processes", sessionTimeoutMs: 20_000 });
  await using puts = new PutLoad(cluster.proxy().endpoint, load.bodyBytes);
  await puts.say({ name: "SUBSCRIBE", sender: "reader", topic });
  await puts.run(256, () => puts.answered >= load.backlog);
  const zk = await cluster.session();
  const outcomes: HandoffOutcome[] = [];
  for (let round = 0; round < rounds; round++) {
    const owner = (await cluster.owners()).get(topic);
    const to = owner === "s1" ? "s2" : "s1";
    const began = { atMs: performance.now(), answered: puts.answered };
    const more = (count: number) => {
      const wanted = puts.answered + count;
      return eventually(() => puts.answered >= wanted, { what: "puts to go on", withinMs: 60_000 });
    };
    let isOver = false;
    puts.longestMs = 0;
    const running = puts.run(load.outstanding, () => isOver);
    await more(10 * load.outstanding);
    const startMs = performance.now();
    const outcome = await moveTopic(zk, cluster.path, { topic, to }, { clock: systemClock(), withinMs: 60_000 });
    const tookMs = performance.now() - startMs;
    if (outcome.kind !== "moved") throw new Error(`"${topic}" was not moved: ${JSON.stringify(outcome)}`);
    await more(10 * load.outstanding);
    isOver = true;
    await running;
    const seconds = (performance.now() - began.atMs) / 1000;
    outcomes.push({ pauseMs: puts.longestMs, tookMs, putsPerSecond: (puts.answered - began.answered) / seconds });
  }
  return outcomes;
}

/** Puts through a proxy, one connection, nothing kept of them but their number. */
class PutLoad implements AsyncDisposable {
  answered = 0;
  /** The longest time between two answers. */
  longestMs = 0;
  readonly #socket = new DealerSocket({ sendHighWater: 100_000, limits: pubsubSocketLimits });
  readonly #body: Uint8Array;
  readonly #session = { number: 1, key: "k" };
  /** Counters under way, ascending: a proxy may bring their answers in any order. */
  readonly #underWay = new Set<number>();
  #counter = 0;

  constructor(endpoint: string, bodyBytes: number) {
    this.#socket.connect(endpoint);
    this.#body = new Uint8Array(bodyBytes).fill(66);
  }

  async say(message: Parameters<typeof encodePubsubMessage>[0]): Promise<void> {
    await this.#socket.send([nothing, ...encodePubsubMessage(message)]);
    const [, ...frames] = await this.#socket.receive();
    const { status } = statusIn(frames);
    if (status !== "OK") throw new Error(`${message.name} was answered ${status}`);
  }

  async run(outstanding: number, isOver: () => boolean): Promise<void> {
    let lastMs = performance.now();
    const put = () => {
      const counter = ++this.#counter;
      this.#underWay.add(counter);
      const [firstUnacked = counter] = this.#underWay;
      const headers = { session: this.#session, firstUnacked, deadlineMs: 60_000 };
      const frames = encodePubsubMessage({ name: "PUT", sender: "writer", topic, counter, body: this.#body, headers });
      if (!this.#socket.trySend([encoder.encode(String(counter)), nothing, ...frames])) {
        throw new Error("the socket has no room");
      }
    };
    for (let first = 0; first < outstanding; first++) put();
    while (this.#underWay.size > 0) {
      const [id, , ...frames] = await this.#socket.receive();
      const { status, body } = statusIn(frames);
      if (status !== "OK") throw new Error(`a put was answered ${status}: ${decoder.decode(body ?? nothing)}`);
      const nowMs = performance.now();
      this.longestMs = Math.max(this.longestMs, nowMs - lastMs);
      lastMs = nowMs;
      this.#underWay.delete(Number(decoder.decode(id)));
      this.answered++;
      if (!isOver()) put();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#socket.close({ lingerMs: 0 });
  }
}

function statusIn(frames: readonly Uint8Array[]) {
  const answer = decodePubsubMessage(frames);
  if (answer.name !== "STATUS") throw new Error("the answer is no STATUS");
  return answer;
}
