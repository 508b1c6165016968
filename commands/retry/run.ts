/** `baton retry-processor run`: its words. What it does is in run_processor.ts. */
import {
  retryLimitSettings,
  retryPolicySettings,
  retryProcessorSettings,
  retryRedactSettings,
  retryStoreSettings,
} from "../../src/config/retry_settings.ts";
import { logSettings } from "../../src/config/command_settings.ts";
import { setting, type SettingTable } from "../../src/config/setting.ts";
import { duration, list, text, toggle } from "../../src/config/value_types.ts";
import { type Call, defineCommand } from "../command.ts";
import type { ExitCode } from "../exit_codes.ts";
import { topicSettings } from "./topic_words.ts";

export const runSettings = {
  ...retryStoreSettings,
  exec: setting(text("line"), {
    flag: "--exec",
    once: true,
    help: "run this line of shell for each message, which is its stdin, instead of the message's own command",
  }),
  url: setting(text("url"), {
    flag: "--url",
    once: true,
    help: "send each message there by HTTP, instead of running a command",
  }),
  topic: setting(text("topic"), {
    flag: "--topic",
    once: true,
    help: "put each message into this publish/subscribe topic, once, instead of running a command",
  }),
  method: setting(text("method"), {
    flag: "--method",
    help: "the method for messages that bring none of their own; one that carries a body",
    default: "POST",
  }),
  headers: setting(list("name:value"), {
    flag: "--header",
    once: true,
    help: "headers for --url; one that a message brings goes before",
  }),
  once: setting(toggle(), {
    flag: "--once",
    help: "try what is due now, once, and end: for a crontab",
    default: false,
  }),
  untilEmpty: setting(toggle(), { flag: "--until-empty", help: "end when no message waits any more", default: false }),
  killAfter: setting(duration(), {
    flag: "--kill-after",
    help: "how long a command that is told to end has before it is killed",
    default: 5000,
  }),
  ...logSettings,
  ...retryPolicySettings,
  ...retryRedactSettings,
  ...retryProcessorSettings,
  ...retryLimitSettings,
  ...topicSettings,
} satisfies SettingTable;

export type RunCall = Call<typeof runSettings>;

export const retryRunCommand = defineCommand({
  name: "retry-processor run",
  summary: "try stored messages again, until they are delivered or dead",
  usage: "[--exec LINE | --url URL | --topic TOPIC] [--from-topic TOPIC] [options]",
  details: [
    "Takes messages from the store when they are due and tries them: the message's own command, or LINE, with the body as stdin, " +
    "or by HTTP. A message that fails N+1 times (--max-retries N), or in a way that no repetition mends, is a dead letter. Runs until " +
    "SIGTERM, SIGINT or SIGHUP; then what is under way may end (--drain-timeout), and a second signal ends it at once.",
    "The command finds BATON_MESSAGE_ID, BATON_MESSAGE_TRY (1 for the first), BATON_MESSAGE_KEY, BATON_MESSAGE_STORE and " +
    "BATON_MESSAGE_FENCE (grows with every try) in its environment. By HTTP the id is the Idempotency-Key, unless the message has one, as those of serve do.",
    "--topic puts each message into a publish/subscribe topic under its id, exactly once; --from-topic takes in what is put into one, and so each " +
    "message once. Somebody has to subscribe to the topic that is put into (else 78). Proxies are named as for baton pubsub client.",
    "No message is tried twice at once, by whatever number of processors. A processor that is killed takes its commands with " +
    "it; what it had in flight waits for the end of its --lease, and is counted as crashed: --max-crashes times, then it is dead.",
    "With --elect several processors of one store elect one that begins tries, and the others wait: killed, another goes on when its " +
    "--session-timeout has ended; told to end, at once. Servers that never answered end it with 69; those that go away later are waited " +
    "for, and nothing is begun meanwhile. The election is called retry- and the store's own name, which baton leader and baton resign take.",
    "A line for --exec that is not found ends run with 127, with no message touched; a Kafka topic for --dead-letter that is not there " +
    "with 78, unless it says ?create=yes. Brokers that are down keep dead letters in the store, and nothing else.",
    "--once and --until-empty end with 69 when all is tried and a dead letter could not be delivered to --dead-letter: it stays in the store. " +
    "What passes by itself, as a Kafka broker that is no longer the leader, is tried again within the run first.",
    "A message whose row is damaged on the disk is not tried: --once and --until-empty try all others, and end with 74. retry-processor " +
    "verify names it, cancel gives it up.",
  ],
  examples: [
    ["baton retry-processor run --name propagate", "each message by its own command, as it was called"],
    ["baton retry-processor run --exec ./propagate.sh -j 4 --backoff exponential --jitter full", "four at once"],
    ["baton retry-processor run --url http://backend:9000/stock --interval 3s --max-retries 10", "by HTTP"],
    ["baton retry-processor run --name stock --elect", "started twice: one tries, the other one waits for its end"],
    [
      "baton retry-processor run --exec ./propagate.sh --dead-letter kafka://broker:9092/MdmDeadLetterQueue",
      "dead letters become records of a Kafka topic: the id as key, the body, and headers",
    ],
    [
      "baton retry-processor run --from-topic orders --exec ./deliver.sh --dead-letter topic:orders.dead",
      "from a topic; what is never delivered into another one",
    ],
    [
      "baton retry-processor run --topic orders --proxies tcp://px1:5001",
      "what was stored on this machine, into a topic",
    ],
    ["baton retry-processor run --once --dead-letter file:dead.jsonl", "from a crontab; dead letters go to a file"],
  ],
  settings: runSettings,
  runsNothing: true,
  run,
});

async function run(call: RunCall): Promise<ExitCode> {
  return await (await import("./run_processor.ts")).runProcessor(call);
}
