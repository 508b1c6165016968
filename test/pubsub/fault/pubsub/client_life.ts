/**
 * A client's life with the client session: it opens its state, does its work, and when something fails it begins again.
 */
import { type PubsubClientSession } from "../../../../src/pubsub/client/pubsub_client_session.ts";
import { ClientState } from "../../../../src/pubsub/client/client_state.ts";
import { Publisher } from "../../../../src/pubsub/client/publisher.ts";
import { PubsubRequester } from "../../../../src/pubsub/client/requester.ts";
import { Subscriber } from "../../../../src/pubsub/client/subscriber.ts";
import { errorMessage } from "../../../../src/base/errors.ts";
import type { ZeroMqSocketOptions } from "../../../../src/protocols/zeromq/socket_options.ts";
import type { Clock } from "../../../../src/base/support/clock.ts";
import { sleep } from "../../../../src/base/support/deadline.ts";
import { seededRandom, shuffled } from "../../../support/random.ts";
import type { ClientPlan } from "./crew_plan.ts";
import type { HistoryRecorder } from "./history_recorder.ts";
import { markedBody } from "./marked_body.ts";
import { RecordingSession } from "./recording_session.ts";

export interface LifeOptions {
  readonly clock: Clock;
  /** Options of the connections to proxies. */
  readonly socket?: ZeroMqSocketOptions;
  /** Opens the client's state. */
  readonly openState?: typeof ClientState.open;
  readonly process: string;
  readonly stateDir: string;
  readonly proxies: readonly string[];
  readonly writer: HistoryRecorder;
  /** What the client is to do now: go on; end its puts; have all that is there. */
  readonly phase: () => "work" | "end" | "drain";
  /** Everything is healed: whoever was hasty is patient now, in a new life. */
  readonly isCalm: () => boolean;
  /** A calm life has begun, and its first request was answered. */
  readonly calmed: (client: string) => void;
  readonly counted: (what: "put" | "got", messages: number) => void;
  /** Of a life that did not go well. */
  readonly troubled: (why: string) => void;
}

const againMs = 100;
/** Of a calm client's requests, in all and for one try. */
const calm = { timeoutMs: 60_000, attemptMs: 10_000 };
/** Every so often a subscriber forgets to say that it had something, as one that fell over. */
const forgetful = 0.02;
const drainedAtOnce = 256;
const largeBytes = 100_000;

/** Whether a life goes on: until a part of it fails, or everything becomes calm. */
interface Going {
  readonly on: boolean;
  readonly isCalm: boolean;
  end(): void;
}

function goingIn({ isCalm }: LifeOptions): Going {
  const wasCalm = isCalm();
  let hasEnded = false;
  return {
    isCalm: wasCalm,
    end: () => void (hasEnded = true),
    get on() {
      return !hasEnded && isCalm() === wasCalm;
    },
  };
}

/** Resolves when the publisher has put all, and knows what became of it. */
export async function publish(plan: ClientPlan, options: LifeOptions): Promise<void> {
  const { clock } = options;
  const random = seededRandom(plan.seed ^ hashed(options.process));
  const names = { next: 1 };
  for (;;) {
    const isLast = options.phase() !== "work";
    const isDone = await livingAs(plan, options, async (session) => {
      const publishers = plan.topics.map((topic) => ({ topic, publisher: new Publisher(session, topic) }));
      for (const { publisher } of publishers) await publisher.resume();
      if (isLast) return true;
      const going = goingIn(options);
      const results = await Promise.allSettled(publishers.map(async ({ topic, publisher }) => {
        try {
          await publisher.putAll(chunks(plan, topic, { options, random, names, going }), {
            onStored(messages) {
              options.counted("put", messages);
              if (going.isCalm) options.calmed(plan.id);
            },
          });
        } finally {
          going.end();
        }
      }));
      for (const result of results) if (result.status === "rejected") throw result.reason;
      return false;
    });
    if (isDone === true) return;
    if (isDone === null) await sleep(clock, againMs);
  }
}

async function* chunks(
  { id, batch, rate, topics }: ClientPlan,
  topic: string,
  { options, random, names, going }: {
    readonly options: LifeOptions;
    readonly random: () => number;
    readonly names: { next: number };
    readonly going: Going;
  },
): AsyncGenerator<Uint8Array[], void, void> {
  // One process of a client now and then ends in order, and the next one takes over.
  for (let left = 1 + Math.floor(random() * 200); left > 0 && going.on && options.phase() === "work"; left--) {
    const count = 1 + Math.floor(random() * batch);
    const size = () => random() < 0.001 ? largeBytes : 20 + Math.floor(random() * 300);
    yield Array.from({ length: count }, () => {
      const name = `${encodeURIComponent(id)}@${encodeURIComponent(topic)}.${options.process}.${names.next++}`;
      return markedBody(name, size());
    });
    await sleep(options.clock, random() * 2000 * count * topics.length / rate);
  }
}

/** Resolves when the subscriber has had all that was there after `phase` said "drain". */
export async function consume(plan: ClientPlan, options: LifeOptions): Promise<void> {
  const { clock } = options;
  const random = seededRandom(plan.seed ^ hashed(options.process));
  const left = new Set(plan.topics);
  while (left.size > 0) {
    const isDone = await livingAs(plan, options, async (session) => {
      const readers = [...left].map((topic) => ({ topic, subscriber: new Subscriber(session, topic) }));
      const going = goingIn(options);
      const results = await Promise.allSettled(readers.map(async ({ topic, subscriber }) => {
        try {
          await session.subscribe(topic);
          if (going.isCalm) options.calmed(plan.id);
          if (await readOn(plan, { session, subscriber, random, options, going })) left.delete(topic);
        } catch (thrown) {
          going.end();
          throw thrown;
        }
      }));
      for (const result of results) if (result.status === "rejected") throw result.reason;
      return true;
    });
    if (isDone === null) await sleep(clock, againMs);
  }
}

/** True: all was had. False: another of the client's topics has failed. */
async function readOn(
  { batch, churn, seeks }: ClientPlan,
  { session, subscriber, random, options, going }: {
    readonly session: RecordingSession;
    readonly subscriber: Subscriber;
    readonly random: () => number;
    readonly options: LifeOptions;
    readonly going: Going;
  },
): Promise<boolean> {
  const { topic } = subscriber;
  while (going.on) {
    const isDraining = options.phase() === "drain";
    const { messages } = await subscriber.fetch({
      max: isDraining ? drainedAtOnce : batch,
      waitMs: isDraining ? 0 : 400,
    });
    const n = session.getOf(topic);
    const last = messages.at(-1)?.id;
    if (last === undefined) {
      if (isDraining) return true;
    } else {
      subscriber.recordDelivery(last);
      const again = messages.filter(({ redelivered }) => redelivered).map(({ id }) => id);
      options.writer.saw(n, { upTo: last, ...(again.length === 0 ? {} : { again }) });
      options.counted("got", messages.length);
      if (!isDraining && random() < forgetful) throw new Error("it fell over before it had what it was handed");
      const durable = random() < 0.5;
      subscriber.acknowledge(last, { durable });
      options.writer.had(n, last, { soft: !durable });
    }
    // What is gone cannot be sought: that is a failure, and nothing fails when all is healed.
    if (!isDraining && !going.isCalm && random() < seeks) await session.seek(topic, random() < 0.6 ? "start" : "end");
    if (isDraining || random() >= churn) continue;
    await session.unsubscribe(topic);
    await sleep(options.clock, random() * 500);
    await session.subscribe(topic);
  }
  return false;
}

/** One process of the client, as it were. Null: it failed. */
async function livingAs<T>(
  { id, timeoutMs, attemptMs, seed }: ClientPlan,
  { stateDir, proxies, writer, troubled, isCalm, clock, socket, openState = ClientState.open }: LifeOptions,
  live: (session: RecordingSession & PubsubClientSession) => Promise<T>,
): Promise<T | null> {
  try {
    using state = await openState(stateDir, id, { waitMs: 20_000, clock });
    const order = shuffled(proxies, seededRandom(seed ^ state.currentSession().number));
    const findProxies = () => Promise.resolve(order);
    await using requester = new PubsubRequester({
      ...{ findProxies, clock },
      ...(socket === undefined ? {} : { socket }),
      ...(isCalm() ? calm : { timeoutMs, attemptMs }),
    });
    return await live(new RecordingSession(state, requester, writer));
  } catch (thrown) {
    troubled(`${id}: ${errorMessage(thrown)}`);
    return null;
  }
}

function hashed(text: string): number {
  return [...text].reduce((hash, letter) => Math.imul(hash ^ letter.charCodeAt(0), 0x01000193) >>> 0, 0x811c9dc5);
}
