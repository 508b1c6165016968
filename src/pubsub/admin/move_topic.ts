/** Asks the owner of a topic to hand it off to another server, and returns the outcome. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { BatonError, messageOf } from "../../errors.ts";
import type { Clock } from "../../support/clock.ts";
import { onAbort, throwIfAborted } from "../../support/abort.ts";
import { sleep } from "../../support/deadline.ts";
import { nullIfNoNode } from "../../coordination/request_errors.ts";
import { NeverSent, reasonOf, requestFromServer, type ServerRequestOptions } from "./request_from_server.ts";
import { parseAnnouncement } from "../ownership/announcements.ts";
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

/** Options with the time to wait for the response: a handoff that fails takes 30 s. */
export type MoveOptions = ServerRequestOptions;

/** Milliseconds between two checks of the owner while the response is awaited. */
const checkEveryMs = 250;

/** Ends early when no server can respond: the owner is lost, or another server has the topic. */
export async function moveTopic(
  zk: ZooKeeper,
  path: PubsubPath,
  { topic, to }: { readonly topic: string; readonly to: string },
  options: MoveOptions,
): Promise<MoveOutcome> {
  const nodes = new TopicNodes(zk, path);
  const node = (await nodes.read(topic))?.node;
  if (node === undefined) return { kind: "no topic" };
  const { owner, epoch } = node;
  if (owner === to) return { kind: "there" };
  const kept = (why: string): MoveOutcome => ({ kind: "kept", owner, why });
  if (owner === "") return kept("no server owns it at present");
  const found = await nullIfNoNode(zk.getData(path.server(owner)));
  const announced = found === null ? null : parseAnnouncement(found.data);
  if (announced === null) return kept(`its owner, server "${owner}", is offline`);
  let why: string;
  let isKept = false;
  using watch = new MoveWatch(nodes, { topic, to, owner, endpoint: announced.endpoint, zk, path }, options);
  try {
    const answer = await ask(announced.endpoint, { topic, to, epoch, owner }, { ...options, signal: watch.signal });
    if (answer.status === "OK") return { kind: "moved", from: owner, epoch: answer.epoch ?? epoch + 1 };
    isKept = !answer.isUnknown;
    why = answer.why;
  } catch (thrown) {
    throwIfAborted(options.signal);
    why = messageOf(thrown);
    if (thrown instanceof NeverSent) return kept(why);
  }
  await nodes.sync(topic);
  const now = (await nodes.read(topic))?.node;
  // The topic may also be there because of another operator's request.
  if (now?.owner === to) return { kind: "moved", from: owner, epoch: now.epoch };
  if (now !== undefined && now.owner !== owner) {
    return { kind: "kept", owner: now.owner, why: `"${topic}" was given to "${now.owner}" meanwhile` };
  }
  if (isKept) return kept(why);
  return { kind: "unknown", owner, why: `${why}; server ls --topics shows where it is` };
}

/** Checks, while the response of the owner is awaited, whether the owner can still respond. */
class MoveWatch implements Disposable {
  readonly #over = new AbortController();
  readonly #off: () => void;

  constructor(nodes: TopicNodes, what: {
    readonly topic: string;
    readonly to: string;
    readonly owner: string;
    readonly endpoint: string;
    readonly zk: ZooKeeper;
    readonly path: PubsubPath;
  }, { clock, signal }: MoveOptions) {
    this.#off = signal === undefined ? () => {} : onAbort(signal, (reason) => this.#over.abort(reason));
    void this.#watch(nodes, what, clock).catch(() => {}); // without checks, only the response is awaited
  }

  /** Aborts with the reason why no response will come. */
  get signal(): AbortSignal {
    return this.#over.signal;
  }

  [Symbol.dispose](): void {
    this.#off();
    this.#over.abort(new Error("the answer is there"));
  }

  async #watch(
    nodes: TopicNodes,
    { topic, to, owner, endpoint, zk, path }: ConstructorParameters<typeof MoveWatch>[1],
    clock: Clock,
  ): Promise<void> {
    for (;;) {
      await sleep(clock, checkEveryMs, this.signal);
      const found = await nullIfNoNode(zk.getData(path.server(owner)));
      const there = found === null ? null : parseAnnouncement(found.data);
      const now = (await nodes.read(topic))?.node;
      const end = (why: string) => this.#over.abort(new BatonError("OUTCOME_UNKNOWN", why));
      if (now?.owner === to && now.state === "stored") return end(`"${topic}" is at "${to}"`);
      if (now?.owner !== owner && now?.owner !== to) return end(`"${topic}" was given to "${now?.owner}" meanwhile`);
      if (there?.endpoint !== endpoint) {
        return end(`the server "${owner}" was lost while it was to hand "${topic}" over to "${to}"`);
      }
    }
  }
}

async function ask(
  endpoint: string,
  { topic, to, epoch, owner }: {
    readonly topic: string;
    readonly to: string;
    readonly epoch: number;
    readonly owner: string;
  },
  options: MoveOptions,
) {
  const headers = { version: 1, epoch };
  const merge = { name: "MERGE", sender: "operator", topic, address: to, headers } as const;
  const answer = await requestFromServer({ id: owner, endpoint }, merge, options);
  const { status, headers: said } = answer;
  return { status, why: reasonOf(answer), isUnknown: said?.unknown === true, epoch: said?.epoch };
}
