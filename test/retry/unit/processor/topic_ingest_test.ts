import { describe, expect, setDefaultTimeout, test } from "bun:test";
import type { ReceivedMessage } from "../../../../src/pubsub/client/subscriber.ts";
import { BatonError } from "../../../../src/base/errors.ts";
import type { StoreClient } from "../../../../src/retry/queue/store_methods.ts";
import { TopicIngest, type TopicIngestOptions } from "../../../../src/retry/processor/topic_ingest.ts";
import { failureCode } from "../../../support/failure_code.ts";
import { FakeClock } from "../../../support/fake_clock.ts";
import { RetryRig } from "../../../support/retry_rig.ts";

setDefaultTimeout(60_000);

const never = new AbortController().signal;

/** A topic, the place of its one subscriber, and a store: what outlives a process. */
class World implements Disposable {
  readonly rig: RetryRig;
  readonly bodies = ["a", "b", "c", "d", "e"];
  cursor = 0;
  subscriptions = 0;
  /** Steps that are done before the process dies; the next one it begins is not done. */
  stepsLeft = Infinity;
  /** The last step that dies has been done all the same: only its answer is lost. */
  isDone = false;

  constructor(rules: ConstructorParameters<typeof RetryRig>[0] = {}) {
    this.rig = new RetryRig(rules);
  }

  /** How many of the messages are in the store, each by its body. */
  stored(): string[] {
    return this.rig.call("list", { states: ["waiting"] }, { afterSeq: 0, max: 99 }).map(({ id }) =>
      new TextDecoder().decode(this.rig.call("show", id)?.body)
    );
  }

  async step<T>(work: () => T): Promise<T> {
    await Promise.resolve();
    if (this.stepsLeft-- > 0) return work();
    if (this.isDone && this.stepsLeft === -1) work();
    throw new Error("killed");
  }

  source(change: Partial<TopicIngestOptions> = {}): TopicIngest {
    const store: StoreClient = { call: (method, ...values) => this.step(() => this.rig.call(method, ...values)) };
    const hadSync = (id: number) => {
      if (this.stepsLeft-- > 0 || (this.isDone && this.stepsLeft === -1)) this.cursor = id;
      if (this.stepsLeft < 0) throw new Error("killed");
    };
    return new TopicIngest({
      client: {
        subscribe: () => this.step(() => void this.subscriptions++),
        info: () => this.step(() => ({ end: this.bodies.length })),
      },
      subscriber: {
        topic: "orders",
        acknowledge: hadSync,
        fetch: ({ max }) =>
          this.step(() => ({
            messages: this.bodies.map((body, at): ReceivedMessage => ({
              id: at + 1,
              body: new TextEncoder().encode(body),
              redelivered: false,
              msgId: null,
            })).filter(({ id }) => id > this.cursor).slice(0, Math.min(max, 2)),
            loss: null,
            missed: 0,
          })),
      },
      store,
      clock: new FakeClock(),
      wallClockMs: () => 5,
      onIngested: () => {},
      onFailure: () => {},
      ...change,
    });
  }

  [Symbol.dispose](): void {
    this.rig[Symbol.dispose]();
  }
}

describe("messages from a topic", () => {
  test("are stored once each, although the process that ingests them is killed once or several times", async () => {
    let steps = 0;
    for (const isDone of [false, true]) {
      for (const kills of [1, 3]) {
        for (let at = 0; at < 16; at++) {
          using world = new World();
          world.isDone = isDone;
          for (let kill = 0; kill < kills; kill++) {
            world.stepsLeft = at;
            const end = await failureCode(world.source().drain(never, { firstMs: 3000 }));
            if (end !== "none") steps++;
            expect(world.cursor).toBeLessThanOrEqual(world.stored().length); // never had before it is in the store
          }
          world.stepsLeft = Infinity;
          await world.source().drain(never, { firstMs: 3000 });
          expect([isDone, kills, at, world.stored()]).toEqual([isDone, kills, at, ["a", "b", "c", "d", "e"]]);
        }
      }
    }
    expect(steps).toBeGreaterThan(80); // it was killed in earnest
  });

  test("of a topic that has begun again at its first id are new ones", async () => {
    using world = new World();
    await world.source().drain(never, { firstMs: 3000 });
    world.bodies.splice(0, 5, "x");
    world.cursor = 0;
    await world.source().drain(never, { firstMs: 3000 });
    expect(world.stored()).toEqual(["a", "b", "c", "d", "e", "x"]);
  });

  test("wait in the topic while the store has no room, and lose nothing by it", async () => {
    using world = new World({ maxMessages: 3 });
    const clock = new FakeClock();
    const troubles: string[] = [];
    const running = world.source({ clock, onFailure: (why) => troubles.push(why) }).drain(never, { firstMs: 3000 });
    await clock.advance(5000);
    expect([world.stored(), world.cursor]).toEqual([["a", "b", "c"], 3]);
    expect(troubles).toEqual([expect.stringContaining('messages of "orders" stay there')]);
    world.rig.call("change", "1", "cancel", 6);
    world.rig.call("change", "2", "cancel", 6);
    await clock.advance(60_000);
    await running;
    expect([world.stored(), world.cursor]).toEqual([["c", "d", "e"], 5]);
  });

  test("come again after an outage; a subscription that is gone is made anew; a refusal ends it", async () => {
    using world = new World();
    const clock = new FakeClock();
    const failures = [
      new BatonError("UNREACHABLE", "nobody answers"),
      new BatonError("NOT_SUBSCRIBED", "no subscription"),
    ];
    const { fetch } = { fetch: () => Promise.resolve({ messages: [], missed: 0 }) };
    const subscriber: TopicIngestOptions["subscriber"] = {
      topic: "orders",
      acknowledge: () => {},
      fetch:
        () => (failures.length > 0 ? Promise.reject(failures.shift()) : fetch().then(() => Promise.reject(refusal))),
    };
    const refusal = new BatonError("REFUSED", "this key may not get");
    const running = failureCode(world.source({ clock, subscriber }).run(never));
    await clock.advance(10_000);
    expect([await running, world.subscriptions]).toEqual(["REFUSED", 2]);
  });
});
