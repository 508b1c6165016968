/** Moves many topics, and drains a server: for operators. */
import type { SocketOptions } from "../../protocols/zeromq/socket_options.ts";
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError } from "../../base/errors.ts";
import type { Clock } from "../../base/support/clock.ts";
import { setDraining } from "../ownership/announcements.ts";
import type { PubsubPath } from "../ownership/pubsub_path.ts";
import { type MoveOutcome, type MoveRequest, moveTopic } from "./move_topic.ts";
import { readOverview, type ServerOverview } from "./overview.ts";
import { planDrain, type TopicsByServer } from "./plan_moves.ts";

/** `from`: null if there is no such topic, or if its owner is not known. */
export type RequestedMove = MoveRequest & { readonly from: string | null };

export interface MoveResult {
  readonly topic: string;
  readonly from: string | null;
  readonly to: string;
  readonly outcome: MoveOutcome["kind"] | "planned";
  /** Reason for people; null if it was moved. */
  readonly why: string | null;
}

/** Milliseconds: a failed handoff takes 30 s, and a topic may wait for its turn. */
const moveMsMax = 60_000;
const movesAtOnce = 4;

interface MoveTopicsOptions {
  readonly clock: Clock;
  readonly socket: SocketOptions | undefined;
  readonly signal?: AbortSignal;
  /** The owner of the topic is asked now. Without `onDone` it may have been asked, and the topic may move. */
  readonly onStart?: (move: RequestedMove) => void;
  readonly onDone?: (result: MoveResult) => void;
}

export async function moveTopics(
  zk: ZooKeeper,
  path: PubsubPath,
  moves: readonly RequestedMove[],
  { clock, socket, signal, onStart, onDone }: MoveTopicsOptions,
): Promise<MoveResult[]> {
  const done: MoveResult[] = [];
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

function previousOwnerOf({ from }: RequestedMove, outcome: MoveOutcome): string | null {
  if (outcome.kind === "moved") return outcome.from;
  return outcome.kind === "kept" || outcome.kind === "unknown" ? outcome.owner : from;
}

interface DrainOptions {
  /** The server that gets all topics, whatever its store is. Default: the servers that have the same kind of store. */
  readonly to?: string | undefined;
  /** Moves the topics, and returns how many were moved. */
  readonly move: (moves: readonly RequestedMove[]) => Promise<number>;
  /** Only plans. */
  readonly isDryRun?: boolean;
  /** The server is marked. */
  readonly onDraining?: () => void;
}

/**
 * Moves all topics of a server to others. The server stops taking new topics first; otherwise proxies would assign some
 * to it during the drain. Throws NOT_FOUND, UNREACHABLE, and USAGE for a server that is to drain into itself.
 */
export async function drainServer(
  zk: ZooKeeper,
  path: PubsubPath,
  id: string,
  { to, move, isDryRun = false, onDraining }: DrainOptions,
): Promise<void> {
  checkDrain(await readOverview(zk, path), id, to);
  if (!isDryRun) {
    await setDraining(zk, path, id, true);
    onDraining?.();
  }
  // A proxy with an old list may assign one more topic; and if the session has just ended, the draining mark is gone.
  const plan = async () => {
    const servers = await readOverview(zk, path);
    if (to === undefined) return planDrain(topicsByServer(servers, id), id);
    const topics = servers.find((server) => server.id === id)?.topics ?? [];
    return topics.map(({ topic }) => ({ topic, from: id, to }));
  };
  while (await move(await plan()) > 0) await setDraining(zk, path, id, true);
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
        ? `Cannot drain the server "${id}": it is not there; other servers of its database take its topics over with the next requests`
        : `Cannot drain the server "${id}": it is not there, and has the only copy of its topics`,
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
 * Topics of the servers that take topics and have the same kind of store, and of the drained server, which only gives
 * topics away.
 */
export function topicsByServer(servers: readonly ServerOverview[], drained?: string): TopicsByServer {
  const from = servers.find(({ id }) => id === drained);
  const there = servers.filter(({ id, endpoint, isDraining, store }) =>
    endpoint !== null && (!isDraining || id === drained) && (from === undefined || store === from.store)
  );
  return new Map(there.map(({ id, topics }) => [id, topics.map(({ topic }) => topic)]));
}
