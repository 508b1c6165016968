/** Sends an operator's request to the owner of a topic, and returns the result. */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError, errorMessage } from "../../base/errors.ts";
import { throwIfAborted } from "../../base/support/abort.ts";
import { readAnnouncement } from "../ownership/process_announcement.ts";
import type { PubsubPath } from "../ownership/pubsub_path.ts";
import { TopicNodes } from "../ownership/topic_nodes.ts";
import {
  requestFromServer,
  RequestNotSentError,
  type ServerRequestOptions,
  serverResponseReason,
} from "./request_from_server.ts";

export type ManageTopicAction = "show" | "forget-client" | "repair" | "delete";

export interface ManageTopicRequest {
  readonly topic: string;
  readonly action: ManageTopicAction;
  readonly client?: string;
  readonly acceptsLoss?: boolean;
}

export interface ManageTopicResult {
  readonly owner: string;
  readonly value: unknown;
}

/**
 * Sends an operator's request to the owner of a topic and returns the result. Rejects with NOT_FOUND if the topic or
 * client does not exist, and with UNREACHABLE if the owner is offline or does not serve the topic now. Rejects with
 * USAGE if data would be lost and the request does not accept the loss. Rejects with IO if data is damaged, or with
 * OUTCOME_UNKNOWN or INTERNAL.
 */
export async function requestTopicAction(
  zk: ZooKeeper,
  path: PubsubPath,
  { topic, action, client, acceptsLoss = false }: ManageTopicRequest,
  options: ServerRequestOptions,
): Promise<ManageTopicResult> {
  const node = (await new TopicNodes(zk, path).read(topic))?.node;
  if (node === undefined || node.owner === "") throw new BatonError("NOT_FOUND", `there is no topic "${topic}"`);
  const { owner, epoch } = node;
  const announced = await readAnnouncement(zk, path.server(owner));
  const what = action === "forget-client"
    ? `forget client "${client}" of topic "${topic}"`
    : `${action} topic "${topic}"`;
  const cannot = `Cannot ${what}`;
  if (announced === null) {
    throw new BatonError("UNREACHABLE", `${cannot}: its owner, server "${owner}", is offline`);
  }
  const more = { ...(client === undefined ? {} : { client }), ...(acceptsLoss ? { acceptLoss: true as const } : {}) };
  const question = {
    name: "MANAGE",
    sender: "operator",
    topic,
    headers: { version: 1, epoch, action, ...more },
  } as const;
  try {
    const answer = await requestFromServer({ id: owner, endpoint: announced.endpoint }, question, options);
    const why = serverResponseReason(answer);
    if (answer.status === "OK") return { owner, value: JSON.parse(why) };
    if (answer.status === "NOT_SUBSCRIBED") throw new BatonError("NOT_FOUND", why);
    if (answer.status === "BAD_REQUEST") throw new BatonError("USAGE", why);
    if (answer.status === "DAMAGED") {
      const next =
        "restore its server from a backup, or give up the topic: baton pubsub topic delete TOPIC --accept-loss";
      throw new BatonError("IO", `${cannot}: ${why}${action === "forget-client" ? "" : `; ${next}`}`);
    }
    if (answer.status !== "ERROR") throw new BatonError("UNREACHABLE", `${cannot}: ${why}`);
    if (answer.headers?.unknown === true && action !== "show") throw new BatonError("OUTCOME_UNKNOWN", why);
    throw new BatonError("INTERNAL", `${cannot}: ${why}`);
  } catch (thrown) {
    throwIfAborted(options.signal);
    if (thrown instanceof RequestNotSentError) {
      throw new BatonError("UNREACHABLE", `${cannot}: ${errorMessage(thrown)}`);
    }
    if (!(thrown instanceof BatonError) || thrown.code !== "OUTCOME_UNKNOWN") throw thrown;
    if (action === "show") throw new BatonError("UNREACHABLE", `${cannot}: ${thrown.message}`);
    const next = "baton pubsub topic ls and show tell, and it may be asked for again";
    throw new BatonError(
      "OUTCOME_UNKNOWN",
      `The outcome is unknown: ${what}: ${thrown.message}; ${next}`,
    );
  }
}
