/** A topic as the target of a processor. Of several processors of a store that put into topics one works at a time. */
import { TopicPutter } from "../../src/retry/targets/topic_putter.ts";
import type { OpenClient } from "../../src/retry/dead_letters/topic_sink.ts";
import { TopicTarget } from "../../src/retry/targets/topic_target.ts";
import { checkPlace } from "./check_place.ts";
import type { RetryLog } from "./retry_log.ts";
import { isTaken, type TopicWay } from "./topic_way.ts";

/** What a processor that is to end by itself waits for another one, and any before it says so. Milliseconds. */
const patienceMs = 1000;

/**
 * Rejects with CONFIG where nobody subscribes, REFUSED, and LOCK_BUSY when another processor does not end; with `waits` it is
 * waited for.
 */
export async function openTopicTarget(
  way: TopicWay,
  topic: string,
  { waits, log }: { readonly waits: boolean; readonly log: RetryLog },
): Promise<Disposable & { readonly target: TopicTarget }> {
  const own = await openClient(way, { waits, log });
  try {
    const putter = new TopicPutter(own.client, topic);
    const meanwhile = "messages are tried by their policy until somebody answers";
    await checkPlace((signal) => putter.check(signal), { who: "--topic", meanwhile, log });
    return { target: new TopicTarget(putter), [Symbol.dispose]: () => own[Symbol.dispose]() };
  } catch (error) {
    own[Symbol.dispose]();
    throw error;
  }
}

async function openClient(
  way: TopicWay,
  { waits, log }: { readonly waits: boolean; readonly log: RetryLog },
): Promise<OpenClient> {
  try {
    return await way.open("", { waitMs: patienceMs });
  } catch (error) {
    if (!waits || !isTaken(error)) throw error;
    log("info", "target_taken", "another processor of this store puts into topics; this one waits until it is gone");
    return await way.open("", { waitMs: Infinity });
  }
}
