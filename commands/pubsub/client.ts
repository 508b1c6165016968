/** `baton pubsub client`: its words. What it does is in run_client.ts. */
import { pubsubClientSettings, pubsubKeySettings } from "../../src/config/pubsub_settings.ts";
import { setting, type SettingTable } from "../../src/config/setting.ts";
import { connectionSettings } from "../../src/config/settings.ts";
import { choice, duration, integer, text, toggle } from "../../src/config/value_types.ts";
import { type Call, defineCommand } from "../command.ts";
import type { ExitCode } from "../exit_codes.ts";
import { clientOperations } from "./client_args.ts";

export const clientCommandSettings = {
  count: setting(integer("count", { min: 1, max: 1_000_000_000 }), {
    flag: "-n, --count",
    help: "get, peek, bench: so many messages at most",
    unset: "1; no limit with --follow and --until-empty",
  }),
  wait: setting(duration(), { flag: "-w, --wait", help: "get: wait so long for a message", default: 0 }),
  follow: setting(toggle(), { flag: "-f, --follow", help: "get: go on for ever", default: false }),
  untilEmpty: setting(toggle(), { flag: "--until-empty", help: "get: all that is there", default: false }),
  outDir: setting(text("folder"), {
    flag: "--out-dir",
    once: true,
    help: "get: each message into a file of its own, named by its id, exactly once whatever happens",
  }),
  exec: setting(text("line"), {
    flag: "--exec",
    once: true,
    help: "get: run this line of shell for each message, which is its stdin; exit 0 acknowledges it",
  }),
  ack: setting(choice(["auto", "manual"]), {
    flag: "--ack",
    help: "get: with manual a message comes again until `ack TOPIC ID` takes it",
    default: "auto",
  }),
  lines: setting(toggle(), {
    flag: "--lines",
    help: "put: a message from each line of stdin, or of PATH; get: a newline behind each message, a single one too",
    default: false,
  }),
  null: setting(toggle(), {
    flag: "-0, --null",
    help: "put: a message from all up to each NUL; get: end each message with NUL",
    default: false,
  }),
  files: setting(toggle(), {
    flag: "--files",
    help: "put: a message from each PATH, several are possible",
    default: false,
  }),
  msgId: setting(text("key"), {
    flag: "--msg-id",
    help: "put: a key of your own; the same key with the same message is put once, whatever happened before",
  }),
  resume: setting(toggle(), {
    flag: "--resume",
    help:
      "put: first send again, with their own counters, the messages whose outcome was unknown; then go on with the input " +
      "where it was interrupted",
    default: false,
  }),
  json: setting(toggle(), {
    flag: "--json",
    help: "print the answer as JSON; get: a line for each message",
    default: false,
  }),
  ...pubsubKeySettings,
  ...pubsubClientSettings,
  ...connectionSettings,
} satisfies SettingTable;

export type ClientCall = Call<typeof clientCommandSettings>;

export const pubsubClientCommand = defineCommand({
  name: "pubsub client",
  summary: "subscribe to topics, put messages into them and get each of them exactly once",
  usage: "ID subscribe|unsubscribe|get|put|… TOPIC [PATH] [options]",
  details: [
    "ID subscribe TOPIC and ID unsubscribe TOPIC; ID put TOPIC PATH (- is stdin) and ID get TOPIC; ID pending TOPIC says how " +
    "many messages wait, ID peek TOPIC shows the next without taking it, ID info TOPIC what the topic holds; ID seek TOPIC " +
    "start|end|MESSAGE-ID goes to another place, behind that message; ID ack TOPIC MESSAGE-ID and ID nak TOPIC end a get --ack manual; ID topics " +
    "lists all; ID bench TOPIC measures, in a topic that nobody uses. The id may also be given by --id: put TOPIC PATH --id ID.",
    "put that ends with 0: every subscriber of that moment gets the message, once. With 76 nobody knows, and the message is kept: " +
    "put TOPIC --resume sends the same again, which the server recognizes. get that ends with 0 (or, with --ack manual, the ack of it): the message never comes again; " +
    "with any other code nothing was lost. Several messages are each followed by a newline (or NUL, --null); a single one is " +
    "printed as it is.",
    "--out-dir is exactly once, also when baton is killed at any moment. stdout and --exec are so but for a kill between the message " +
    "and the note that it was had: then the same message comes again, marked: BATON_REDELIVERED is 1 for --exec, beside " +
    "BATON_MESSAGE_ID and BATON_TOPIC. --exec whose line fails ends get with the line's exit code, and the message comes again.",
    "The client's state is a small file for each id (--state-dir). One process uses it at a time; another one waits up to --timeout, " +
    "then exits with 75. Where it was lost, or copied, exit 84 says that a newer session is known; the next call takes over.",
  ],
  examples: [
    ["baton pubsub client alice subscribe news", "from now on alice gets what is put into news"],
    ["baton pubsub client bob put news report.txt", "the file is one message"],
    ["journalctl -f | baton pubsub client bob put news --lines", "a message from each line"],
    ["baton pubsub client bob put news --lines log.txt --resume", "go on after a kill, an exit 76 or a full disk"],
    ["baton pubsub client alice get news --wait 10s", "one message to stdout; exit 1 when there is none"],
    ["baton pubsub client alice get news --follow --exec ./handle", "each message to a program, for ever"],
    ["baton pubsub client alice get news --until-empty --out-dir ./inbox", "all that is there, into files"],
    ["baton pubsub client subscribe news --id alice --proxies tcp://px1:5001,tcp://px2:5001", "by two named proxies"],
  ],
  settings: clientCommandSettings,
  completes: clientOperations,
  runsNothing: true,
  run: client,
});

async function client(call: ClientCall): Promise<ExitCode> {
  const { runClient } = await import("./run_client.ts");
  return await runClient(call);
}
