/**
 * Moves topics between servers, for operators. Asks the owner of a topic to hand the topic off, moves many topics, or
 * drains a server.
 */
import type { ZeroMqSocketOptions } from "../../protocols/zeromq/socket_options.ts";
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError, errorMessage } from "../../base/errors.ts";
import type { Clock } from "../../base/support/clock.ts";
import { setServerDraining } from "../ownership/announcements.ts";
import { readAnnouncement } from "../ownership/process_announcement.ts";
import type { PubsubPath } from "../ownership/pubsub_path.ts";
import { readServerOverview, type ServerOverview } from "./server_overview.ts";
import { planServerDrain, type TopicsByServer } from "./plan_moves.ts";
import { onAbort, throwIfAborted } from "../../base/support/abort.ts";
import { sleep } from "../../base/support/deadline.ts";
import {
  requestFromServer,
  RequestNotSentError,
  type ServerRequestOptions,
  serverResponseReason,
} from "./request_from_server.ts";
import { TopicNodes } from "../ownership/topic_nodes.ts";

/** A topic to move. `from` is null if the topic does not exist or its owner is unknown. */
export type RequestedTopicMove = MoveTopicRequest & { readonly from: string | null };

export interface TopicMoveResult {
  readonly topic: string;
  readonly from: string | null;
  readonly to: string;
  readonly outcome: TopicMoveOutcome["kind"] | "planned";
  /** The reason why the topic has not moved, or may not have moved; otherwise null. */
  readonly why: string | null;
}

/**
 * The longest time that one move may take, in milliseconds. A failed handoff takes 30 s, and the owner may begin it
 * late.
 */
const moveMsMax = 60_000;
const movesAtOnce = 4;

interface MoveTopicsOptions {
  readonly clock: Clock;
  readonly socket: ZeroMqSocketOptions | undefined;
  readonly signal?: AbortSignal;
  /** Called just before the request to the topic's owner. From then until `onDone` is called, the topic may move. */
  readonly onStart?: (move: RequestedTopicMove) => void;
  readonly onDone?: (result: TopicMoveResult) => void;
}

export async function moveTopics(
  zk: ZooKeeper,
  path: PubsubPath,
  moves: readonly RequestedTopicMove[],
  { clock, socket, signal, onStart, onDone }: MoveTopicsOptions,
): Promise<TopicMoveResult[]> {
  const done: TopicMoveResult[] = [];
  const rest = moves.values();
  const worker = async () => {
    for (const one of rest) {
      const { topic, to } = one;
      onStart?.(one);
      const outcome = await moveTopic(zk, path, one, { clock, withinMs: moveMsMax, socket, signal });
      const from = previousOwnerOf(one, outcome);
      const result = { topic, from, to, outcome: outcome.kind, why: "why" in outcome ? outcome.why : null };
      done.push(result);
      onDone?.(result);
    }
  };
  await Promise.all(Array.from({ length: movesAtOnce }, worker));
  return done;
}

function previousOwnerOf({ from }: RequestedTopicMove, outcome: TopicMoveOutcome): string | null {
  if (outcome.kind === "moved") return outcome.from;
  return outcome.kind === "kept" || outcome.kind === "unknown" ? outcome.owner : from;
}

interface DrainOptions {
  /**
   * The server that gets all topics, whatever store it has. By default, servers with the same kind of store get them.
   */
  readonly to?: string | undefined;
  readonly move: (moves: readonly RequestedTopicMove[]) => Promise<number>;
  /** If true, only plans the moves. */
  readonly isDryRun?: boolean;
  readonly onDraining?: () => void;
}

/**
 * Moves all topics of a server to other servers. First marks the server as draining, because proxies would otherwise
 * assign new topics to it. Throws NOT_FOUND or UNREACHABLE, or USAGE if the target is the drained server itself.
 */
export async function drainServer(
  zk: ZooKeeper,
  path: PubsubPath,
  id: string,
  { to, move, isDryRun = false, onDraining }: DrainOptions,
): Promise<void> {
  checkDrain(await readServerOverview(zk, path), id, to);
  if (!isDryRun) {
    await setServerDraining(zk, path, id, true);
    onDraining?.();
  }
  // Plans again after each round: a proxy with an old list of servers may still assign a topic. Sets the draining mark
  // again, because the mark ends with the server's session.
  const plan = async () => {
    const servers = await readServerOverview(zk, path);
    if (to === undefined) return planServerDrain(topicsByServer(servers, id), id);
    const topics = servers.find((server) => server.id === id)?.topics ?? [];
    return topics.map(({ topic }) => ({ topic, from: id, to }));
  };
  while (await move(await plan()) > 0) await setServerDraining(zk, path, id, true);
}

function checkDrain(servers: readonly ServerOverview[], id: string, to: string | undefined): void {
  const drained = servers.find((server) => server.id === id);
  if (drained === undefined) {
    throw new BatonError("NOT_FOUND", `Server "${id}" does not exist and owns no topic`);
  }
  if (drained.endpoint === null) {
    throw new BatonError(
      "UNREACHABLE",
      drained.isAvailable
        ? `Cannot drain the server "${id}": it is not running; other servers of its database take over its topics ` +
          "the next requests"
        : `Cannot drain the server "${id}": it is not running, and has the only copy of its topics`,
    );
  }
  if (to === id) {
    throw new BatonError("USAGE", `Cannot drain server "${id}" into itself: name another server with --to`);
  }
  if (to !== undefined) {
    if (servers.some((server) => server.id === to && server.endpoint !== null)) return;
    throw new BatonError("UNREACHABLE", `Cannot drain server "${id}" into "${to}": that server is not running`);
  }
  if (topicsByServer(servers, id).size > 1) return;
  const elsewhere = servers.filter(({ endpoint, store, isDraining }) =>
    endpoint !== null && !isDraining && store !== drained.store
  );
  const [first] = elsewhere;
  if (first === undefined) {
    throw new BatonError("UNREACHABLE", `Cannot drain server "${id}": no other server can take topics`);
  }
  const kind = drained.store === null ? "has a data directory" : "shares its database";
  const names = elsewhere.map((server) => JSON.stringify(server.id)).join(", ");
  throw new BatonError(
    "UNREACHABLE",
    `Cannot drain server "${id}": no other server that takes topics ${kind}. To move its topics into another store: ` +
      `--to ${first.id} (running: ${names})`,
  );
}

/**
 * Lists the topics of each server, as input for a plan. Includes servers that take topics and have the same kind of
 * store. Also includes the drained server, which only gives topics away.
 */
export function topicsByServer(servers: readonly ServerOverview[], drained?: string): TopicsByServer {
  const from = servers.find(({ id }) => id === drained);
  const there = servers.filter(({ id, endpoint, isDraining, store }) =>
    endpoint !== null && (!isDraining || id === drained) && (from === undefined || store === from.store)
  );
  return new Map(there.map(({ id, topics }) => [id, topics.map(({ topic }) => topic)]));
}

export type TopicMoveOutcome =
  | { readonly kind: "moved"; readonly from: string; readonly epoch: number }
  /** The topic was already at that server. */
  | { readonly kind: "there" }
  | { readonly kind: "no topic" }
  /** The topic has definitely not moved. */
  | { readonly kind: "kept"; readonly owner: string; readonly why: string }
  /** No response arrived, and the topic's node still names the old owner. The topic may still move later. */
  | { readonly kind: "unknown"; readonly owner: string; readonly why: string };

export interface MoveTopicRequest {
  readonly topic: string;
  readonly to: string;
  /** The owner and the epoch that the operator saw. The topic is moved only if both are unchanged. */
  readonly seen?: { readonly owner: string; readonly epoch: number } | undefined;
}

interface MoveInProgress {
  readonly topic: string;
  readonly to: string;
  readonly owner: string;
  readonly endpoint: string;
}

const checkEveryMs = 250;

/**
 * Moves one topic. Sends the request even if the owner is already the target, because that owner may be handing the
 * topic off to another server; such a handoff is awaited and then reversed. Stops early if no response can arrive
 * because the owner is lost or another server has the topic.
 */
export async function moveTopic(
  zk: ZooKeeper,
  path: PubsubPath,
  { topic, to, seen }: MoveTopicRequest,
  options: ServerRequestOptions,
): Promise<TopicMoveOutcome> {
  const nodes = new TopicNodes(zk, path);
  const node = (await nodes.read(topic))?.node;
  if (node === undefined) return { kind: "no topic" };
  const { owner, epoch } = node;
  if (seen !== undefined && (seen.owner !== owner || seen.epoch !== epoch)) {
    return { kind: "kept", owner, why: `it is at "${owner}" in epoch ${epoch} meanwhile` };
  }
  const kept = (why: string): TopicMoveOutcome => ({ kind: "kept", owner, why });
  if (owner === "") return kept("no server owns it at present");
  const announced = await readAnnouncement(zk, path.server(owner));
  if (announced === null) return owner === to ? { kind: "there" } : kept(`its owner, server "${owner}", is offline`);
  let why: string;
  let isKept = false;
  const { endpoint } = announced;
  const endMs = options.clock.now() + options.withinMs;
  const over = new AbortController();
  const off = onAbort(options.signal, (reason) => over.abort(reason));
  // If a check fails, there are no further checks, and only the response is awaited.
  void watchMove(zk, path, { topic, to, owner, endpoint }, { clock: options.clock, over }).catch(() => {});
  try {
    const merge = { name: "MERGE", sender: "operator", topic, address: to, headers: { version: 1, epoch } } as const;
    const answer = await requestFromServer({ id: owner, endpoint }, merge, { ...options, signal: over.signal });
    if (answer.status === "OK" && owner === to) return { kind: "there" };
    if (answer.status === "OK") return { kind: "moved", from: owner, epoch: answer.headers?.epoch ?? epoch + 1 };
    isKept = answer.headers?.unknown !== true;
    why = serverResponseReason(answer);
  } catch (thrown) {
    throwIfAborted(options.signal);
    why = errorMessage(thrown);
    if (thrown instanceof RequestNotSentError) return kept(why);
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
  // The topic may also be at the target because of another operator's request.
  if (now?.owner === to && owner !== to) return { kind: "moved", from: owner, epoch: now.epoch };
  if (now !== undefined && now.owner !== owner) {
    return { kind: "kept", owner: now.owner, why: `"${topic}" was given to "${now.owner}" meanwhile` };
  }
  if (isKept) return kept(why);
  return { kind: "unknown", owner, why: `${why}; server ls --topics shows where it is` };
}

/** Checks repeatedly whether the owner's response can still arrive. If not, aborts `over`, which ends the wait. */
async function watchMove(
  zk: ZooKeeper,
  path: PubsubPath,
  { topic, to, owner, endpoint }: MoveInProgress,
  { clock, over }: { readonly clock: Clock; readonly over: AbortController },
): Promise<void> {
  const nodes = new TopicNodes(zk, path);
  for (;;) {
    await sleep(clock, checkEveryMs, over.signal);
    const there = await readAnnouncement(zk, path.server(owner));
    const now = (await nodes.read(topic))?.node;
    const end = (why: string) => over.abort(new BatonError("OUTCOME_UNKNOWN", why));
    if (now?.owner === to && owner !== to && now.state === "stored") return end(`"${topic}" is at "${to}"`);
    if (now?.owner !== owner && now?.owner !== to) return end(`"${topic}" was given to "${now?.owner}" meanwhile`);
    if (there?.endpoint !== endpoint) {
      return end(`the server "${owner}" was lost while it was to hand "${topic}" over to "${to}"`);
    }
  }
}
