/** `baton pubsub server`: its words. What it does is in run_server.ts and the operator's part beside it. */
import { pubsubKeySettings, pubsubServerSettings, pubsubServiceSettings } from "../../src/config/pubsub_settings.ts";
import { logSettings } from "../../src/config/command_settings.ts";
import { setting, type SettingTable } from "../../src/config/setting.ts";
import { connectionSettings } from "../../src/config/settings.ts";
import { text, toggle } from "../../src/config/value_types.ts";
import { type Call, defineCommand } from "../command.ts";
import type { ExitCode } from "../exit_codes.ts";

export const serverCommandSettings = {
  ...pubsubServerSettings,
  ...pubsubKeySettings,
  ...pubsubServiceSettings,
  handOff: setting(toggle(), {
    flag: "--hand-off",
    help: "on SIGTERM, give the topics to other servers before it ends, as far as --drain-timeout reaches",
    default: false,
  }),
  moved: setting(toggle(), {
    flag: "--moved",
    help: "the data directory is a copy or a backup, and what it was copied from is never served again",
    default: false,
  }),
  ...logSettings,
  to: setting(text("id"), { flag: "--to", help: "move: the server that is to have the topic" }),
  topics: setting(toggle(), { flag: "--topics", help: "ls: each topic as well", default: false }),
  dryRun: setting(toggle(), {
    flag: "--dry-run",
    help: "move, drain, rebalance: say what would be moved",
    default: false,
  }),
  undo: setting(toggle(), {
    flag: "--undo",
    help: "drain: the server takes new topics again; what it has given away stays away",
    default: false,
  }),
  acceptLoss: setting(toggle(), {
    flag: "--accept-loss",
    help:
      "forget: the server's data is lost for good; restore: what came after the copy is; forget-client: what the client " +
      "has not had, or not settled",
    default: false,
  }),
  json: setting(toggle(), {
    flag: "--json",
    help: "ls, move, drain, rebalance, forget, forget-client, verify, restore: print one JSON object",
    default: false,
  }),
  ...connectionSettings,
} satisfies SettingTable;

export type ServerCall = Call<typeof serverCommandSettings>;

export const pubsubServerCommand = defineCommand({
  name: "pubsub server",
  summary: "keep topics for publishers and subscribers",
  usage: "--id ID --data-dir FOLDER [options] | " +
    "ls [--topics] | move TOPIC --to ID | drain ID [--undo] | rebalance | forget ID --accept-loss | forget-client TOPIC CLIENT | verify | backup FOLDER | " +
    "restore --accept-loss",
  details: [
    "Keeps the messages of its topics on the disk until every subscriber has had them. What is answered OK is durable and " +
    "survives kill -9. Clients reach it through proxies (baton pubsub proxy), which give each new topic to the server " +
    "with the fewest. It says on stderr when it serves, and runs until SIGTERM, SIGINT or SIGHUP; a second one ends it at once.",
    "A topic has one owner, and stays with it while the server is away: unavailable, never lost. The id belongs to the " +
    "data directory. One that was copied, to another machine too, is refused (78) unless --moved says that the other copy is " +
    "never served again.",
    "ls shows the servers and how many topics each has. move, drain and rebalance have topics handed off while they are used: " +
    "to one server, away from one, or until all have as many; 69 when a topic stayed where it was, 76 when nobody knows. " +
    "A server that was drained is given no topics any more, until it is started again or drain ID --undo says so. " +
    "forget gives up a server whose data is lost: its topics begin again, empty, with message numbers that were never used. " +
    "forget-client has a topic forget one client, to make room; where something is lost by that it is refused (64) without --accept-loss.",
    "verify reads all of a data directory and says whether it is whole, 74 when it is not; backup writes a copy as of one " +
    "moment into a new folder. Both may be done while the server runs.",
    "A data directory that is an older copy of what was served last, a backup, a snapshot, a machine that was put back, is " +
    "refused (78): messages would be lost or come twice, and numbers be used again. Where there is no newer one, restore goes " +
    "on from it: messages, places of subscribers and counters are those of that moment, and all that came after it is lost. " +
    "Numbers and epochs go on above all that were ever given, so that nothing lost is taken for something new.",
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
    ["baton pubsub server ls --topics", "who has what"],
    ["baton pubsub server move news --to s2", "hand a topic over"],
    ["baton pubsub server drain s1", "hand over all that s1 has, before it is taken away"],
    ["baton pubsub server backup /backup/s1 --data-dir ./s1", "while it runs"],
    [
      "baton pubsub server restore --id s1 --data-dir /backup/s1 --accept-loss",
      "s1's disk is lost: to be started from the backup",
    ],
  ],
  settings: serverCommandSettings,
  completes: ["ls", "move", "drain", "rebalance", "forget", "forget-client", "verify", "backup", "restore"],
  runsNothing: true,
  run: server,
});

async function server(call: ServerCall): Promise<ExitCode> {
  if (call.names.length > 0) return await (await import("./server_operations.ts")).operate(call);
  return await (await import("./run_server.ts")).runServer(call);
}
