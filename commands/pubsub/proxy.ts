/** `baton pubsub proxy`: its words. What it does is in run_proxy.ts. */
import { pubsubKeySettings, pubsubProxySettings, pubsubServiceSettings } from "../../src/config/pubsub_settings.ts";
import { logSettings } from "../../src/config/command_settings.ts";
import type { SettingTable } from "../../src/config/setting.ts";
import { connectionSettings } from "../../src/config/settings.ts";
import { BatonError } from "../../src/errors.ts";
import { type Call, defineCommand } from "../command.ts";
import type { ExitCode } from "../exit_codes.ts";

export const proxyCommandSettings = {
  ...pubsubProxySettings,
  ...pubsubKeySettings,
  ...pubsubServiceSettings,
  ...logSettings,
  ...connectionSettings,
} satisfies SettingTable;

export type ProxyCall = Call<typeof proxyCommandSettings>;

export const pubsubProxyCommand = defineCommand({
  name: "pubsub proxy",
  summary: "take requests of publishers and subscribers to the servers that have their topics",
  usage: "[--listen ENDPOINT,…] [options]",
  details: [
    "Takes each request to the server that owns its topic, gives new topics to the server with the fewest, and tries again " +
    "where a server is lost or has handed a topic over, as far as that can do nothing twice. It keeps nothing: killed at any " +
    "moment it costs its clients another try, and they may use any other proxy. It says on stderr where it listens, and runs " +
    "until SIGTERM, SIGINT or SIGHUP; a second one ends it at once. With --clients SIGHUP has it read the list again instead.",
    "Every request is answered within the time that its client waits (--request-timeout where it does not say): OVERLOADED means " +
    "definitely not done, ERROR that nobody knows. A client that does not read loses answers, not messages.",
    "Any ZeroMQ REQ socket can be a client; docs/protocol/pubsub.md has the messages.",
  ],
  examples: [
    ["baton pubsub proxy --listen tcp://127.0.0.1:5001", "on this machine; it finds servers by the embedded keeper"],
    [
      "baton pubsub proxy --listen tcp://0.0.0.0:5001 --advertise tcp://px1:5001 --servers zk1,zk2,zk3",
      "for clients on other machines",
    ],
    [
      "baton pubsub proxy --listen tcp://127.0.0.1:5001,ipc:///run/baton/pubsub --metrics-listen :9102",
      "at two endpoints, with /healthz and /metrics",
    ],
  ],
  settings: proxyCommandSettings,
  completes: [],
  runsNothing: true,
  run: proxy,
});

async function proxy(call: ProxyCall): Promise<ExitCode> {
  const [word] = call.names;
  if (word !== undefined) throw new BatonError("USAGE", `baton pubsub proxy takes no "${word}"`);
  const { runProxy } = await import("./run_proxy.ts");
  return await runProxy(call);
}
