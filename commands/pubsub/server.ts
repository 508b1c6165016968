/** `baton pubsub server`: its words. What it does is in run_server.ts and the operator's part beside it. */
import { pubsubServerSettings, pubsubServiceSettings } from "../../src/config/pubsub_settings.ts";
import { setting, type SettingTable } from "../../src/config/setting.ts";
import { connectionSettings } from "../../src/config/settings.ts";
import { choice, toggle } from "../../src/config/value_types.ts";
import { BatonError } from "../../src/errors.ts";
import { didYouMean } from "../../src/support/did_you_mean.ts";
import { type Call, defineCommand } from "../command.ts";
import type { ExitCode } from "../exit_codes.ts";

export const serverCommandSettings = {
  ...pubsubServerSettings,
  ...pubsubServiceSettings,
  handOver: setting(toggle(), {
    flag: "--hand-over",
    help: "on SIGTERM, give the topics to other servers before it ends, as far as --drain-timeout reaches",
    default: false,
  }),
  log: setting(choice(["text", "json"]), {
    flag: "--log",
    help: "how stderr is written: sentences, or a JSON object for each",
    default: "text",
  }),
  ...connectionSettings,
} satisfies SettingTable;

export type ServerCall = Call<typeof serverCommandSettings>;

export const pubsubServerCommand = defineCommand({
  name: "pubsub server",
  summary: "keep topics for publishers and subscribers",
  usage: "--id ID --data-dir FOLDER [options]",
  details: [
    "Keeps the messages of its topics on the disk until every subscriber has had them. What is answered OK is durable and " +
    "survives kill -9. Clients reach it through proxies (baton pubsub proxy), which give each new topic to the server " +
    "with the fewest. It says on stderr when it serves, and runs until SIGTERM, SIGINT or SIGHUP; a second one ends it at once.",
    "A topic has one owner, and stays with it while the server is away: unavailable, never lost. The id belongs to the " +
    "data directory: it can be moved to another machine, and must not be copied.",
  ],
  examples: [
    [
      "baton pubsub server --id s1 --data-dir ./s1",
      "on this machine; others of this machine find it by the embedded keeper",
    ],
    [
      "baton pubsub server --id s1 --data-dir /var/lib/baton/s1 --listen tcp://db1:7001 --servers zk1,zk2,zk3",
      "for proxies on other machines",
    ],
    ["baton pubsub server --id s1 --data-dir ./s1 --metrics-listen :9101", "with /healthz and /metrics"],
  ],
  settings: serverCommandSettings,
  completes: [],
  runsNothing: true,
  run: server,
});

async function server(call: ServerCall): Promise<ExitCode> {
  const [word] = call.names;
  if (word !== undefined) {
    throw new BatonError("USAGE", `baton pubsub server takes no "${word}"${didYouMean(word, [])}`);
  }
  const { runServer } = await import("./run_server.ts");
  return await runServer(call);
}
