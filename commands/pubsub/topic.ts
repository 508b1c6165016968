/**
 * Defines `baton pubsub topic ls|show|delete|repair`, which sends an operator's request to the server that owns the
 * topic.
 */
import { pubsubKeySettings } from "../../src/pubsub/settings/pubsub_settings.ts";
import { type SettingTable, toggleSetting } from "../../src/base/config/setting.ts";
import { connectionSettings } from "../../src/coordination/settings/coordination_settings.ts";
import { type CommandCall, defineCommand } from "../command.ts";
import { type ExitCode, exitCodes } from "../../src/base/exit_codes.ts";
import { printJson } from "../../src/base/terminal/io.ts";
import { printTable, tableHeadCells } from "../../src/base/terminal/table.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import { BatonError } from "../../src/base/errors.ts";
import {
  type ManageTopicRequest,
  type ManageTopicResult,
  requestTopicAction,
} from "../../src/pubsub/admin/manage_topic.ts";
import { readServerOverview } from "../../src/pubsub/admin/server_overview.ts";
import { PubsubPath } from "../../src/pubsub/ownership/pubsub_path.ts";
import type { TopicDetails } from "../../src/pubsub/store/operations/topic_details.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import { didYouMean } from "../../src/base/support/did_you_mean.ts";
import { printable } from "../../src/base/support/text.ts";
import { runInCoordinationSession } from "../coordination_session.ts";
import type {
  PubsubTopicDeletedJson,
  PubsubTopicListJson,
  PubsubTopicRepairedJson,
  PubsubTopicShowJson,
} from "../json_shapes/pubsub_shapes.ts";
import { topicsTable } from "../../src/base/terminal/row_tables.ts";
import { makeTopicDetailsRow, makeTopicListRows } from "../../src/pubsub/view/overview_rows.ts";
import { readPubsubServiceSecurity } from "./service_security.ts";

export const pubsubTopicCommandSettings = {
  acceptLoss: toggleSetting("--accept-loss", {
    help: "delete: delete a topic with subscribers, too; repair: give up damaged data",
  }),
  json: toggleSetting("--json", { help: "print one JSON object" }),
  ...pubsubKeySettings,
  ...connectionSettings,
} satisfies SettingTable;

export type PubsubTopicCall = CommandCall<typeof pubsubTopicCommandSettings>;

export const topicOperations = ["ls", "show", "delete", "repair"] as const;

export const pubsubTopicCommand = defineCommand({
  name: "pubsub topic",
  summary: "list topics; show, delete or repair one",
  usage: "ls | show TOPIC | delete TOPIC [--accept-loss] | repair TOPIC --accept-loss",
  details: [
    "ls lists the topics, the server of each, and whether that server is available. show asks the server what the " +
    "topic holds: messages, clients, and how far each subscriber is behind, the slowest first. A subscriber " +
    "acknowledges its last messages only with its next request: until then they count as WAITING.",
    "delete removes a topic with all its data. It is refused (64) while clients are subscribed, unless --accept-loss " +
    "allows that undelivered messages are lost. The next put or subscribe creates a new topic, whose message IDs " +
    "continue above the old ones; subscribers of the deleted topic are not subscribed to it: their next get exits " +
    "with 64, and they must subscribe again.",
    "repair is for a topic with data that the server's disk has damaged, and which therefore fails with 74: damaged " +
    "messages count as missed, damaged clients are forgotten, and everything else is served as before.",
    "As for server move and forget, the service's key (--key) is needed if the service has one.",
  ],
  examples: [
    ["baton pubsub topic ls", "all topics and their servers"],
    ["baton pubsub topic show news", "what it holds, and which subscribers are behind"],
    ["baton pubsub topic delete news", "refused while clients are subscribed"],
    ["baton pubsub topic repair news --accept-loss", "after a get has failed with 74, DAMAGED"],
  ],
  settings: pubsubTopicCommandSettings,
  completes: topicOperations,
  runsNothing: true,
  run: runTopicOperation,
});

/**
 * How long a request may take, in milliseconds. It is long, because the request has to wait if the topic is being
 * moved.
 */
const responseMsMax = 30_000;

export async function runTopicOperation(call: PubsubTopicCall): Promise<ExitCode> {
  const [word = "", ...names] = call.names;
  const usage = (why: string) => new BatonError("USAGE", `baton pubsub topic ${why}`);
  if (!(topicOperations as readonly string[]).includes(word)) {
    const hint = word === "create" ? "; the first subscribe or put creates a topic" : didYouMean(word, topicOperations);
    const given = word === "" ? "and none is given" : `not "${word}"${hint}`;
    throw usage(`takes one of ${topicOperations.join(", ")}, ${given}`);
  }
  if (word === "ls") {
    if (names.length > 0) throw usage(`ls takes no name, not "${names.join(" ")}"`);
    refuseFlag(call, "ls");
    return await listTopics(call);
  }
  const [topic] = names;
  if (topic === undefined || names.length > 1) throw usage(`${word} takes one topic`);
  if (word === "show") {
    refuseFlag(call, "show");
    return await showTopic(call, topic);
  }
  return word === "delete" ? await deleteTopic(call, topic) : await repair(call, topic);
}

function refuseFlag({ sources }: PubsubTopicCall, word: string): void {
  if (!sources.flags.has("acceptLoss")) return;
  throw new BatonError("USAGE", `baton pubsub topic ${word}: --accept-loss is only for delete, repair`);
}

async function listTopics(call: PubsubTopicCall): Promise<ExitCode> {
  const { values, io } = call;
  const problems: string[] = [];
  const path = new PubsubPath(values.root);
  const servers = await runInCoordinationSession(call, (zk) => readServerOverview(zk, path, problems));
  for (const problem of problems) io.err(`baton: ${printable(problem)}\n`);
  const topics = makeTopicListRows(servers);
  if (values.json) {
    printJson<PubsubTopicListJson>(io, { version: 1, topics });
    return exitCodes.SUCCESS;
  }
  if (topics.length > 0) printTable(io, topicsTable(topics));
  else if (!values.quiet && problems.length === 0) io.err(`baton: no topics below ${values.root}\n`);
  return exitCodes.SUCCESS;
}

async function showTopic(call: PubsubTopicCall, topic: string): Promise<ExitCode> {
  const { values, io } = call;
  const { owner, value } = await sendManageTopicRequest(call, { topic, action: "show" });
  const details = value as TopicDetails;
  const row = makeTopicDetailsRow(topic, owner, details);
  if (values.json) {
    printJson<PubsubTopicShowJson>(io, { version: 1, ...row });
    return exitCodes.SUCCESS;
  }
  const { epoch, bytes, clients, plain_clients, max_clients, damage } = row;
  const facts: [string, string | number][] = [
    ["topic", printable(topic)],
    ["server", owner],
    ["epoch", epoch],
    ["messages", details.first > details.end ? "none" : `${row.first} to ${row.end}`],
    ["bytes", bytes],
    ["clients", `${clients} of ${max_clients}, ${plain_clients} without a session`],
    ["subscribers", row.subscriber_count],
  ];
  if (damage !== null) facts.push(["damage", damage]);
  printTable(io, facts.map(([name, fact]) => [name, String(fact)]));
  const rows = row.subscribers.map(({ client, position, pending }) => [printable(client), position, String(pending)]);
  if (rows.length > 0) printTable(io, [[""], tableHeadCells(["SUBSCRIBER", "HAD", "WAITING"]), ...rows]);
  return exitCodes.SUCCESS;
}

async function deleteTopic(call: PubsubTopicCall, topic: string): Promise<ExitCode> {
  const { values, io } = call;
  const { owner } = await sendManageTopicRequest(call, {
    topic,
    action: "delete",
    acceptsLoss: call.values.acceptLoss,
  });
  if (values.json) printJson<PubsubTopicDeletedJson>(io, { version: 1, topic, server: owner });
  else if (!values.quiet) io.err(`baton: topic "${printable(topic)}" is deleted\n`);
  return exitCodes.SUCCESS;
}

async function repair(call: PubsubTopicCall, topic: string): Promise<ExitCode> {
  const { values, io } = call;
  if (!values.acceptLoss) {
    throw new BatonError(
      "USAGE",
      `baton pubsub topic repair deletes the damaged rows of "${topic}": ` +
        "add --accept-loss if no backup can replace them",
    );
  }
  const { owner, value } = await sendManageTopicRequest(call, { topic, action: "repair", acceptsLoss: true });
  const given = value as string[];
  if (values.json) printJson<PubsubTopicRepairedJson>(io, { version: 1, topic, server: owner, given_up: given });
  else for (const what of given) io.out(`given up: ${printable(what)}\n`);
  if (given.length === 0 && !values.quiet) io.err(`baton: nothing is damaged of topic "${printable(topic)}"\n`);
  return exitCodes.SUCCESS;
}

type ManageCall = Pick<PubsubTopicCall, "io" | "sources" | "names"> & { readonly values: PubsubTopicCall["values"] };

/** Sends an operator's request about a topic. Throws the errors of `requestTopicAction`. */
export async function sendManageTopicRequest(
  call: ManageCall,
  question: ManageTopicRequest,
): Promise<ManageTopicResult> {
  const socket = readPubsubServiceSecurity({ pubsubKey: call.values.pubsubKey })?.internalDialOptions;
  const options = { clock: systemClock(), withinMs: responseMsMax, socket };
  const ask = (zk: ZooKeeper) => requestTopicAction(zk, new PubsubPath(call.values.root), question, options);
  return await runInCoordinationSession(call as PubsubTopicCall, ask);
}
