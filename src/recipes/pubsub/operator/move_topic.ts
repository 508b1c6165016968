/** Asks a topic's owner to hand it over, and says what has become of it. */
import { DealerSocket } from "../../../clients/zeromq/dealer_socket.ts";
import type { SocketOptions } from "../../../clients/zeromq/socket_options.ts";
import type { ZooKeeper } from "../../../clients/zookeeper/zookeeper.ts";
import { BatonError, messageOf } from "../../../errors.ts";
import type { Clock } from "../../../support/clock.ts";
import { throwIfAborted } from "../../../support/abort.ts";
import { deadlineAfter } from "../../../support/deadline.ts";
import { decodeMessage } from "../../../wire/pubsub/decode_message.ts";
import { encodeMessage } from "../../../wire/pubsub/encode_message.ts";
import { orNull } from "../../lock_view.ts";
import { parseAnnouncement } from "../ownership/announce.ts";
import type { PubsubPath } from "../ownership/pubsub_path.ts";
import { TopicNodes } from "../ownership/topic_nodes.ts";

export type MoveOutcome =
  | { readonly kind: "moved"; readonly from: string; readonly epoch: number }
  /** It was there before. */
  | { readonly kind: "there" }
  /** Nobody was ever given such a topic. */
  | { readonly kind: "no topic" }
  /** Definitely not moved. */
  | { readonly kind: "kept"; readonly owner: string; readonly why: string }
  /** No answer came, and the topic's node does not say that it has moved: it may yet. */
  | { readonly kind: "unknown"; readonly owner: string; readonly why: string };

export interface MoveOptions {
  readonly clock: Clock;
  /** How long to wait for the answer, in milliseconds: a hand-over that fails takes 30 s by itself. */
  readonly withinMs: number;
  readonly socket?: SocketOptions | undefined;
  readonly signal?: AbortSignal | undefined;
}

const nothing = new Uint8Array(0);

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
  if (owner === "") return kept("nobody has it at present");
  const found = await orNull(zk.getData(path.server(owner)));
  const announced = found === null ? null : parseAnnouncement(found.data);
  if (announced === null) return kept(`its owner, the server "${owner}", is not there`);
  let why: string;
  try {
    const answer = await ask(announced.endpoint, { topic, to, epoch, owner }, options);
    if (answer.status === "OK") return { kind: "moved", from: owner, epoch: answer.epoch ?? epoch + 1 };
    if (!answer.isUnknown) return kept(answer.why);
    why = answer.why;
  } catch (thrown) {
    throwIfAborted(options.signal);
    why = messageOf(thrown);
  }
  await nodes.catchUp(topic);
  const now = (await nodes.read(topic))?.node;
  if (now?.owner === to) return { kind: "moved", from: owner, epoch: now.epoch };
  return { kind: "unknown", owner: now?.owner ?? "", why };
}

interface MergeAnswer {
  readonly status: string;
  readonly why: string;
  readonly isUnknown: boolean;
  readonly epoch: number | undefined;
}

async function ask(
  endpoint: string,
  { topic, to, epoch, owner }: {
    readonly topic: string;
    readonly to: string;
    readonly epoch: number;
    readonly owner: string;
  },
  { clock, withinMs, socket, signal }: MoveOptions,
): Promise<MergeAnswer> {
  const reason = () =>
    new BatonError("OUTCOME_UNKNOWN", `The server "${owner}" at ${endpoint} has not answered within ${withinMs} ms`);
  const deadline = deadlineAfter(clock, withinMs, { signal, reason });
  await using dealer = new DealerSocket(socket);
  try {
    dealer.connect(endpoint);
    const lines = { version: 1, epoch };
    const merge = encodeMessage({ name: "MERGE", sender: "operator", topic, address: to, lines });
    await dealer.send([nothing, ...merge], { signal: deadline.signal });
    const [, ...frames] = await dealer.receive({ signal: deadline.signal });
    const message = decodeMessage(frames);
    if (message.name !== "STATUS") throw new BatonError("PROTOCOL", `${endpoint} has not answered by a STATUS`);
    return {
      status: message.status,
      why: new TextDecoder().decode(message.body ?? nothing) || message.status,
      isUnknown: message.lines?.unknown === true,
      epoch: message.lines?.epoch,
    };
  } finally {
    deadline.cancel();
  }
}
