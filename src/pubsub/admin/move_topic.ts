/** Asks the owner of a topic to hand it off to another server, and returns the outcome. */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError, errorMessage } from "../../base/errors.ts";
import type { Clock } from "../../base/support/clock.ts";
import { onAbort, throwIfAborted } from "../../base/support/abort.ts";
import { sleep } from "../../base/support/deadline.ts";
import { requestFromServer, RequestNotSent, responseReason, type ServerRequestOptions } from "./request_from_server.ts";
import { announcementAt } from "../ownership/announcements.ts";
import type { PubsubPath } from "../ownership/pubsub_path.ts";
import { TopicNodes } from "../ownership/topic_nodes.ts";

export type MoveOutcome =
  | { readonly kind: "moved"; readonly from: string; readonly epoch: number }
  /** The topic was already at that server. */
  | { readonly kind: "there" }
  /** The topic does not exist. */
  | { readonly kind: "no topic" }
  /** The topic has definitely not moved. */
  | { readonly kind: "kept"; readonly owner: string; readonly why: string }
  /** No response arrived, and the topic's node does not say that it has moved; it may still move. */
  | { readonly kind: "unknown"; readonly owner: string; readonly why: string };

export interface MoveRequest {
  readonly topic: string;
  readonly to: string;
  /** The owner and its epoch that the operator saw: the topic is moved only if they are still the same. */
  readonly seen?: { readonly owner: string; readonly epoch: number } | undefined;
}

interface MoveInProgress {
  readonly topic: string;
  readonly to: string;
  readonly owner: string;
  readonly endpoint: string;
}

/** Milliseconds between two checks of the owner while the response is awaited. */
const checkEveryMs = 250;

/**
 * Ends early when no server can respond: the owner is lost, or another server has the topic. A handoff that fails takes
 * 30 s. The owner is asked although the topic is to move to it: a handoff to another server may be in progress there,
 * which is waited for and then undone.
 */
export async function moveTopic(
  zk: ZooKeeper,
  path: PubsubPath,
  { topic, to, seen }: MoveRequest,
  options: ServerRequestOptions,
): Promise<MoveOutcome> {
  const nodes = new TopicNodes(zk, path);
  const node = (await nodes.read(topic))?.node;
  if (node === undefined) return { kind: "no topic" };
  const { owner, epoch } = node;
  if (seen !== undefined && (seen.owner !== owner || seen.epoch !== epoch)) {
    return { kind: "kept", owner, why: `it is at "${owner}" in epoch ${epoch} meanwhile` };
  }
  const kept = (why: string): MoveOutcome => ({ kind: "kept", owner, why });
  if (owner === "") return kept("no server owns it at present");
  const announced = await announcementAt(zk, path.server(owner));
  if (announced === null) return owner === to ? { kind: "there" } : kept(`its owner, server "${owner}", is offline`);
  let why: string;
  let isKept = false;
  const { endpoint } = announced;
  const endMs = options.clock.now() + options.withinMs;
  const over = new AbortController();
  const off = onAbort(options.signal, (reason) => over.abort(reason));
  // If a check fails, only the response is awaited.
  void watchMove(zk, path, { topic, to, owner, endpoint }, { clock: options.clock, over }).catch(() => {});
  try {
    const merge = { name: "MERGE", sender: "operator", topic, address: to, headers: { version: 1, epoch } } as const;
    const answer = await requestFromServer({ id: owner, endpoint }, merge, { ...options, signal: over.signal });
    if (answer.status === "OK" && owner === to) return { kind: "there" };
    if (answer.status === "OK") return { kind: "moved", from: owner, epoch: answer.headers?.epoch ?? epoch + 1 };
    isKept = answer.headers?.unknown !== true;
    why = responseReason(answer);
  } catch (thrown) {
    throwIfAborted(options.signal);
    why = errorMessage(thrown);
    if (thrown instanceof RequestNotSent) return kept(why);
  } finally {
    off();
    over.abort(new Error("the response is there"));
  }
  await nodes.settle(topic);
  const now = (await nodes.read(topic))?.node;
  if (owner === to && now?.owner !== to) {
    return await moveTopic(zk, path, { topic, to, seen }, {
      ...options,
      withinMs: Math.max(0, endMs - options.clock.now()),
    });
  }
  // The topic may also be there because of another operator's request.
  if (now?.owner === to && owner !== to) return { kind: "moved", from: owner, epoch: now.epoch };
  if (now !== undefined && now.owner !== owner) {
    return { kind: "kept", owner: now.owner, why: `"${topic}" was given to "${now.owner}" meanwhile` };
  }
  if (isKept) return kept(why);
  return { kind: "unknown", owner, why: `${why}; server ls --topics shows where it is` };
}

/** Checks, while the response of the owner is awaited, whether it can still come; otherwise aborts with the reason. */
async function watchMove(
  zk: ZooKeeper,
  path: PubsubPath,
  { topic, to, owner, endpoint }: MoveInProgress,
  { clock, over }: { readonly clock: Clock; readonly over: AbortController },
): Promise<void> {
  const nodes = new TopicNodes(zk, path);
  for (;;) {
    await sleep(clock, checkEveryMs, over.signal);
    const there = await announcementAt(zk, path.server(owner));
    const now = (await nodes.read(topic))?.node;
    const end = (why: string) => over.abort(new BatonError("OUTCOME_UNKNOWN", why));
    if (now?.owner === to && owner !== to && now.state === "stored") return end(`"${topic}" is at "${to}"`);
    if (now?.owner !== owner && now?.owner !== to) return end(`"${topic}" was given to "${now?.owner}" meanwhile`);
    if (there?.endpoint !== endpoint) {
      return end(`the server "${owner}" was lost while it was to hand "${topic}" over to "${to}"`);
    }
  }
}
