/**
 * Defines `baton subscribe`, which delivers the messages of a topic as they arrive. The user need not choose a client
 * ID.
 */
import { flagSetting, type SettingTable, toggleSetting } from "../../src/base/config/setting.ts";
import { durationType, integerType, textType } from "../../src/base/config/value_types.ts";
import { BatonError } from "../../src/base/errors.ts";
import { progressSettings } from "../../src/base/terminal/progress.ts";
import { shellQuoteIfNeeded } from "../../src/base/support/shell_quote.ts";
import { StopRequestListener } from "../../src/base/process/supervise/signal_source.ts";
import { checkPubsubName } from "../../src/pubsub/client/client_limits.ts";
import { PubsubClientSession } from "../../src/pubsub/client/pubsub_client_session.ts";
import { countWithNoun } from "../../src/base/support/text.ts";
import { type CommandCall, defineCommand } from "../command.ts";
import { type ExitCode, exitCodes } from "../../src/base/exit_codes.ts";
import { checkClientGetOptions, type ClientGetRun, requestUntilProxyResponds, runClientGet } from "./client_get.ts";
import { addNextStepToErrors } from "./client_next_step.ts";
import {
  checkUnsubscribe,
  connectionSettingsWithDefaultId,
  defaultClientId,
  hasClientState,
  openClientState,
  openPubsubRequester,
} from "./open_client.ts";

const subscribeSettings = {
  exec: flagSetting("--exec", textType("line"), {
    once: true,
    help: "run this shell command for each message, with the message as stdin, again if baton is killed during it; " +
      "exit 0 acknowledges it",
  }),
  outDir: flagSetting("--out-dir", textType("folder"), {
    once: true,
    help: "write each message to a file named after its ID, exactly once even if baton is killed",
  }),
  lines: toggleSetting("--lines", {
    help: "a newline follows each message: the default on stdout; with --exec on the stdin of the command",
  }),
  null: toggleSetting("-0, --null", { help: "NUL follows each message" }),
  json: toggleSetting("--json", { help: "print each message as one line of JSON" }),
  count: flagSetting("-n, --count", integerType("count", { min: 1, max: 1_000_000_000 }), {
    help: "end after this many messages",
    unset: "no limit",
  }),
  wait: flagSetting("-w, --wait", durationType(), {
    help: "exit after this long without a message; exit code 1 if none arrived at all",
    unset: "no limit",
  }),
  untilEmpty: toggleSetting("--until-empty", { help: "end when no message waits" }),
  unsubscribe: toggleSetting("--unsubscribe", {
    help: "end the subscription and discard its undelivered messages",
  }),
  ...progressSettings,
  ...connectionSettingsWithDefaultId("USER@HOST"),
} satisfies SettingTable;

type SubscribeCall = CommandCall<typeof subscribeSettings>;

export const subscribeCommand = defineCommand({
  name: "subscribe",
  summary: "receive the messages of a topic as they arrive, each once",
  usage: "TOPIC [--exec LINE | --out-dir FOLDER | --lines] [options]",
  details: [
    "Subscribes, and delivers every message from then on, until a signal. The subscription outlives the " +
    "program: the next call continues after the last message that was delivered. --unsubscribe ends it.",
    "A message is delivered when it is printed, saved in FOLDER, or its command has exited with 0. It is " +
    "then never delivered again. The limit: if baton is killed during a delivery to --exec or stdout, that " +
    "message is delivered again. With --out-dir each message is delivered exactly once. If the command " +
    "fails, subscribe ends with its exit code, and the next call delivers the message again: let systemd " +
    "restart it. To retry failing messages while others continue, use baton retry-processor run " +
    "--from-topic TOPIC --exec LINE.",
    "--exec passes the message unchanged on stdin, with BATON_MESSAGE_ID, BATON_TOPIC, and " +
    "BATON_REDELIVERED, which is 1 if the command may already have run for this message: baton was killed " +
    "before it could record the result.",
    "Needs a server and a proxy: baton pubsub serve runs both for this machine. Without --id the " +
    "subscription belongs to this user on this machine (USER@HOST). One process uses it at a time; another " +
    "one waits up to --timeout, and then exits with 75. A process with its own --id is a separate " +
    "subscriber and gets all messages.",
  ],
  examples: [
    ["baton subscribe news", "print each message, with a newline"],
    ["baton subscribe orders --exec ./handle-order", "run a program for each message"],
    ["baton subscribe logs --lines --exec 'cat >>logs.txt'", "with a newline after each message"],
    ["baton subscribe news --until-empty --out-dir ./inbox", "all waiting messages, into files, from a crontab"],
    ["baton subscribe news --unsubscribe", "end the subscription"],
  ],
  settings: subscribeSettings,
  runsNothing: true,
  completes: "topics",
  run: runSubscribe,
});

async function runSubscribe(call: SubscribeCall): Promise<ExitCode> {
  const { values, names: [topic, more] } = call;
  if (topic === undefined || topic === "") {
    throw new BatonError("USAGE", "subscribe: missing TOPIC, as in: baton subscribe news");
  }
  if (more !== undefined) throw new BatonError("USAGE", `subscribe: unexpected argument "${more}"; it takes one TOPIC`);
  checkPubsubName("topic", topic);
  const id = values.pubsubClientId ?? defaultClientId();
  checkPubsubName("client id", id);
  const getting = {
    call: { values: getValuesOf(values), io: call.io },
    target: { operation: "subscribe", topic },
  } as const;
  checkClientGetOptions(getting);
  await using requester = await openPubsubRequester(call);
  using stop = new StopRequestListener();
  const { signal } = stop;
  const operation = values.unsubscribe ? "unsubscribe" : "get";
  return await addNextStepToErrors({ id, operation, topic, resumesInput: false }, async () => {
    if (values.unsubscribe) await checkUnsubscribe(call, requester, { id, topic, signal });
    const isFirstCall = !hasClientState(call, { id, topic });
    using state = await openClientState(call, { id, topic, signal });
    const client = new PubsubClientSession(state, requester);
    if (values.unsubscribe) {
      await client.unsubscribe(topic, { signal });
      return exitCodes.SUCCESS;
    }
    const run: ClientGetRun = { ...getting, client, signal, failureAdvice: failureAdvice(topic) };
    const isNew = isFirstCall && await requestUntilProxyResponds(run, () => isTopicMissing(run));
    await requestUntilProxyResponds(run, () => client.subscribe(topic, { signal }));
    await reportSubscription(call, run, isNew);
    return await runClientGet(run);
  });
}

/** Returns the options of `get` that do the same as these options of `subscribe`. */
function getValuesOf(values: SubscribeCall["values"]): ClientGetRun["call"]["values"] {
  const { untilEmpty, wait, exec, outDir, json } = values;
  const isPrinted = exec === undefined && outDir === undefined && !json && !values.null;
  return {
    ...values,
    ack: "auto",
    follow: !untilEmpty && wait === undefined,
    untilEmpty: untilEmpty || wait !== undefined,
    wait: wait ?? 0,
    lines: values.lines || isPrinted,
  };
}

function failureAdvice(topic: string): string {
  const name = shellQuoteIfNeeded(topic);
  return "it comes again with the next call; to try again by a schedule while other messages continue: " +
    `baton retry-processor run --from-topic ${name} --exec LINE`;
}

async function isTopicMissing({ client, target: { topic }, signal }: ClientGetRun): Promise<boolean> {
  try {
    await client.info(topic, { signal });
    return false;
  } catch (thrown) {
    if (thrown instanceof BatonError && thrown.code === "NOT_SUBSCRIBED") return true;
    throw thrown;
  }
}

/**
 * Tells that the subscription stays when the process has ended, to a user at a terminal, and always if the call has
 * made the topic, because its name may be misspelled.
 */
async function reportSubscription(
  { values: { quiet, verbose, pubsubClientId }, io }: SubscribeCall,
  run: ClientGetRun,
  isNew: boolean,
): Promise<void> {
  const { client, target: { topic }, signal } = run;
  if (quiet || !(isNew || verbose || io.stderrIsTerminal)) return;
  const { pending = 0 } = await requestUntilProxyResponds(run, () => client.info(topic, { signal }));
  const waiting = `${countWithNoun(pending, "message")} ${pending === 1 ? "waits" : "wait"}`;
  if (/[*>]/.test(topic)) io.err(`baton: "${topic}" is the name of one topic: names have no wildcards\n`);
  const made = isNew ? `topic "${topic}" did not exist and was created: ` : "";
  const named = pubsubClientId === undefined ? "" : ` --id ${shellQuoteIfNeeded(pubsubClientId)}`;
  io.err(
    `baton: ${made}"${client.id}" is subscribed to "${topic}", ${waiting}; the subscription stays until: ` +
      `baton subscribe ${shellQuoteIfNeeded(topic)}${named} --unsubscribe\n`,
  );
}
