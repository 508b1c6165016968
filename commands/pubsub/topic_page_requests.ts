/**
 * Answers requests of the page about topics and servers. A request for an action repeats what the page showed of its
 * target, so that an outdated page changes nothing.
 */
import { BatonError } from "../../src/base/errors.ts";
import { requireTextField } from "../../src/base/http/body_fields.ts";
import { HttpError } from "../../src/base/http/http_error.ts";
import { countWithNoun, printable } from "../../src/base/support/text.ts";
import type { ZeroMqSocketOptions } from "../../src/protocols/zeromq/socket_options.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import { requestTopicAction } from "../../src/pubsub/admin/manage_topic.ts";
import { drainServer, moveTopics, type RequestedTopicMove } from "../../src/pubsub/admin/move_topics.ts";
import { setServerDraining } from "../../src/pubsub/ownership/announcements.ts";
import { readAnnouncement } from "../../src/pubsub/ownership/process_announcement.ts";
import type { PubsubPath } from "../../src/pubsub/ownership/pubsub_path.ts";
import type { TopicDetails } from "../../src/pubsub/store/operations/topic_details.ts";
import { makeTopicDetailsRow } from "../../src/pubsub/view/overview_rows.ts";
import type { PageAnswer, PageContext, ReadUiActionRequest, UiPageRequests } from "../product.ts";

interface TopicsPlace {
  readonly path: PubsubPath;
  readonly socket: ZeroMqSocketOptions | undefined;
}

const topicMsMax = 5000;

export function pubsubPageRequests(place: TopicsPlace): UiPageRequests {
  return {
    answers: { "/topic": topicAnswer(place) },
    actions: { drain: drainAction(place), move: moveAction(place) },
  };
}

const topicAnswer = ({ path, socket }: TopicsPlace): PageAnswer => async (query, { zk, clock, signal }) => {
  const session = zk();
  const topic = query.get("topic") ?? "";
  if (topic === "") throw new HttpError(400, `"topic" is missing\n`);
  const options = { clock, withinMs: topicMsMax, socket, signal };
  const { owner, value } = await requestTopicAction(session, path, { topic, action: "show" }, options);
  return { ...makeTopicDetailsRow(topic, owner, value as TopicDetails), at: new Date().toISOString() };
};

const drainAction = (place: TopicsPlace): ReadUiActionRequest => (body, context) => {
  const server = requireTextField(body, "server");
  const endpoint = requireTextField(body, "endpoint");
  const isUndone = body["undo"] === true;
  const { path } = place;
  return {
    what: isUndone ? `end the drain of server "${printable(server)}"` : `drain server "${printable(server)}"`,
    async run() {
      const zk = context.zk();
      if ((await readAnnouncement(zk, path.server(server)))?.endpoint !== endpoint) {
        throw new BatonError(
          "NOT_FOUND",
          `The page is old: server "${printable(server)}" is not at ${endpoint} now; nothing was done`,
        );
      }
      if (isUndone) {
        await setServerDraining(zk, path, server, false);
        return "it takes new topics again";
      }
      let moved = 0;
      const move = async (moves: readonly RequestedTopicMove[]) => {
        const done = await runMoves(zk, moves, { ...place, ...context });
        moved += done.length;
        return done.length;
      };
      await drainServer(zk, path, server, { move });
      return `${countWithNoun(moved, "topic")} moved to other servers; it gets no new ones`;
    },
  };
};

const moveAction = (place: TopicsPlace): ReadUiActionRequest => (body, context) => {
  const topic = requireTextField(body, "topic");
  const to = requireTextField(body, "to");
  const owner = requireTextField(body, "owner");
  const { epoch } = body;
  if (typeof epoch !== "number") throw new HttpError(400, `"epoch" must be a number\n`);
  return {
    what: `move topic "${printable(topic)}" to "${printable(to)}"`,
    async run() {
      const move = { topic, from: owner, to, seen: { owner, epoch } };
      const moved = await runMoves(context.zk(), [move], { ...place, ...context });
      return moved.length === 1 ? `it is at "${printable(to)}"` : `it was at "${printable(to)}" already`;
    },
  };
};

/** Moves topics and returns those that were moved. Throws if a topic could not be moved. */
async function runMoves(
  zk: ZooKeeper,
  moves: readonly RequestedTopicMove[],
  { path, clock, socket, signal }: TopicsPlace & PageContext,
) {
  const done = await moveTopics(zk, path, moves, { clock, signal, socket });
  const bad = done.find(({ outcome }) => outcome !== "moved" && outcome !== "there");
  if (bad === undefined) return done.filter(({ outcome }) => outcome === "moved");
  const why = bad.why ?? "there is no such topic";
  if (bad.outcome === "unknown") {
    throw new BatonError("OUTCOME_UNKNOWN", `It is unknown whether "${bad.topic}" was moved: ${why}`);
  }
  throw new BatonError("NOT_FOUND", `Cannot move "${bad.topic}": ${why}`);
}
