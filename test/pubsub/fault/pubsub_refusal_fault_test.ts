/**
 * A network that delivers each put once more, some seconds later, before servers that have room for little: most puts
 * are refused, and there is room again when the copy comes. Servers are killed and hand the topic over meanwhile.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { DealerSocket } from "../../../src/protocols/zeromq/dealer_socket.ts";
import { ClientState } from "../../../src/pubsub/client/client_state.ts";
import { Publisher } from "../../../src/pubsub/client/publisher.ts";
import { PubsubRequester } from "../../../src/pubsub/client/requester.ts";
import { moveTopic } from "../../../src/pubsub/admin/move_topics.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { sleep } from "../../../src/base/support/deadline.ts";
import { decodePubsubMessage } from "../../../src/pubsub/wire/decode_message.ts";
import { dose } from "../../support/dose.ts";
import { eventually } from "../../support/eventually.ts";
import { PubsubCluster } from "../../support/pubsub_cluster.ts";
import { seededRandom, testSeed } from "../../support/random.ts";
import { consume, type LifeOptions } from "./pubsub/client_life.ts";
import type { ClientPlan } from "./pubsub/crew_plan.ts";
import { HistoryWriter, readHistory } from "./pubsub/history_file.ts";
import { judge, verdictText } from "./pubsub/judge.ts";
import { markedBody } from "./pubsub/marked_body.ts";
import { RecordingSession } from "./pubsub/recording_session.ts";
import { ZmtpRelay } from "./pubsub/zmtp_relay.ts";

setDefaultTimeout(300_000);

const seed = testSeed();
const clock = systemClock();
const lateMsMax = 3000;

/** Sends each put that passes the relay to its target once more. */
class SecondDelivery implements AsyncDisposable {
  sent = 0;
  underWay = 0;
  readonly #dealer = new DealerSocket();
  #isClosed = false;

  constructor(relay: ZmtpRelay, random: () => number) {
    this.#dealer.connect(relay.target);
    void this.#forgetAnswers();
    relay.tap = (frames) => {
      const start = frames.findIndex(({ byteLength }) => byteLength === 0);
      if (decodePubsubMessage(frames.slice(start + 1)).name !== "PUT") return;
      const copy = frames.map((frame) => frame.slice());
      this.underWay++;
      clock.startTimer(random() * lateMsMax, () => {
        this.underWay--;
        if (!this.#isClosed && this.#dealer.trySend(copy)) this.sent++;
      });
    };
  }

  async #forgetAnswers(): Promise<void> {
    for await (const _ of this.#dealer.batches());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.#dealer.close({ lingerMs: 0 });
  }
}

/** All that a client ever does: it does not come again, and so nothing that it does later ends what it did before. */
async function putOnce(id: string, bodies: readonly Uint8Array[], { stateDir, endpoint, writer, onStored }: {
  readonly stateDir: string;
  readonly endpoint: string;
  readonly writer: HistoryWriter;
  readonly onStored: (messages: number) => void;
}): Promise<void> {
  using state = await ClientState.open(stateDir, id, { waitMs: 0, clock });
  const findProxies = () => Promise.resolve([endpoint]);
  await using requester = new PubsubRequester({ findProxies, clock, timeoutMs: 10_000, attemptMs: 2000 });
  const chunks = async function* () {
    for (const body of bodies) yield await Promise.resolve([body]);
  };
  const publisher = new Publisher(new RecordingSession(state, requester, writer), "news");
  await publisher.putAll(chunks(), { onStored }).catch(() => {}); // what came of it is in the history
}

test(`what was refused reaches nobody, though all is delivered twice [BATON_SEED=${seed}]`, async () => {
  const random = seededRandom(seed);
  await using cluster = await PubsubCluster.start({
    ...{ servers: 2, proxies: 1, as: "processes", sessionTimeoutMs: 2000 },
    serverWords: ["--max-pending", "60"],
  });
  const proxy = cluster.proxy().endpoint;
  const relay = await ZmtpRelay.start(Number(proxy.split(":").at(-1)), random);
  await using copies = new SecondDelivery(relay, random);
  const folder = (name: string) => {
    const path = join(cluster.folder, name);
    mkdirSync(path);
    return path;
  };
  const history = folder("history");
  let put = 0;
  let phase: ReturnType<LifeOptions["phase"]> = "work";
  {
    using writer = new HistoryWriter(join(history, "all.jsonl"));
    const plan = (id: string, batch: number): ClientPlan => ({
      ...{ id, role: "subscriber", topics: ["news"], timeoutMs: 20_000, attemptMs: 2000, batch, rate: 0 },
      ...{ churn: 0, seeks: 0, seed: Math.floor(random() * 2 ** 31) },
    });
    const subscribing: LifeOptions = {
      clock,
      ...{ process: "all", stateDir: folder("readers"), proxies: [proxy], writer, phase: () => phase },
      ...{ isCalm: () => false, calmed: () => {}, counted: () => {}, troubled: () => {} },
    };
    const readers = [plan("fast", 64), plan("slow", 4)];
    const reading = Promise.all(readers.map((reader) => consume(reader, subscribing)));
    reading.catch(() => {});
    const stateDir = folder("publishers");
    const publishers = [1, 2, 3, 4].map(async (line) => {
      for (let life = 1; phase === "work"; life++) {
        const id = `pub${line}.${life}`;
        const bodies = Array.from({ length: 1 + Math.floor(random() * 30) }, (_, at) => markedBody(`${id}.${at + 1}`));
        const onStored = (messages: number) => void (put += messages);
        await putOnce(id, bodies, { stateDir, endpoint: relay.endpoint, writer, onStored });
        await sleep(clock, random() * 40);
      }
    });
    const zk = await cluster.session();
    const more = async (messages: number) => {
      const wanted = put + messages;
      await eventually(() => put >= wanted, { withinMs: 60_000, what: "messages to be put" });
    };
    await more(100);
    for (let round = 0; round < dose({ gate: 3, full: 60 }); round++) {
      const owner = (await cluster.owners()).get("news") ?? "s1";
      const other = owner === "s1" ? "s2" : "s1";
      if (round % 2 === 0) await cluster.server(owner).restart();
      else await moveTopic(zk, cluster.path, { topic: "news", to: other }, { clock, withinMs: 5000 }).catch(() => {});
      await more(100);
    }
    phase = "end";
    await Promise.all(publishers);
    await eventually(() => copies.underWay === 0, { withinMs: 2 * lateMsMax, what: "the last copies to be sent" });
    phase = "drain";
    await reading;
  }
  await relay.close();
  const verdict = judge(readHistory(history));
  const { puts } = verdict;
  console.log(`${puts.ok} messages put, ${puts.fail} refused, ${puts.unknown} unknown; ${copies.sent} copies`);
  expect(verdict.violations.map(() => verdictText(verdict))).toEqual([]);
  expect(puts.fail).toBeGreaterThan(0);
  expect(copies.sent).toBeGreaterThan(0);
});
