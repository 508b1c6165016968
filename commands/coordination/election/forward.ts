/** `baton forward`: opens a local port and forwards its connections to the leader of an election. */
import { rmSync } from "node:fs";
import { raiseOwnOpenFilesLimit } from "../../../src/base/process/spawn/shell_start.ts";
import { TcpForwarder } from "../../../src/base/sockets/tcp_forwarder.ts";
import { StopRequestListener } from "../../../src/base/process/supervise/signal_source.ts";
import { flagSetting, insecureFlagHelp, type SettingTable, toggleSetting } from "../../../src/base/config/setting.ts";
import { connectionSettings } from "../../../src/coordination/settings/coordination_settings.ts";
import { integerType, textType } from "../../../src/base/config/value_types.ts";
import { BatonError } from "../../../src/base/errors.ts";
import { connectTimeoutMsDefault } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import type { LeaderChange } from "../../../src/coordination/election/election_history.ts";
import { type Address, formatAddress } from "../../../src/base/sockets/connection.ts";
import { dial } from "../../../src/base/sockets/dial.ts";
import { listen } from "../../../src/base/sockets/listen.ts";
import { parseAddress } from "../../../src/base/sockets/parse_address.ts";
import { takeListenAddress } from "../../../src/base/sockets/take_address.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { defineCommand } from "../../command.ts";
import type { ExitCode } from "../../../src/base/exit_codes.ts";
import { parseListenAddressFlag, refuseUnprotectedSockets } from "../../../src/base/config/listen_address.ts";
import { followLeader } from "./follow_leader.ts";
import { requireOneName } from "../../name_arguments.ts";
import { describeWhoReachesSocket } from "../../../src/base/sockets/socket_reach.ts";

const settings = {
  listen: flagSetting("--listen", textType("host:port|unix:PATH"), {
    once: true,
    help: "address to listen on; :PORT listens on this machine only, port 0 chooses a free port",
  }),
  insecure: toggleSetting("--insecure", { group: "security", help: insecureFlagHelp }),
  maxConnections: flagSetting("--max-connections", integerType("count", { min: 1, max: 1_000_000 }), {
    help: "maximum number of open connections; further ones are closed",
    default: 1000,
  }),
  ...connectionSettings,
} satisfies SettingTable;

export const forwardCommand = defineCommand({
  name: "forward",
  summary: "forward a TCP port to the leader of an election",
  usage: "NAME --listen ADDRESS [options]",
  details: [
    "Accepts connections and forwards each to the leader, whose value must be host:port (or unix:/path). When the " +
    "leader changes, open connections are closed, and new ones go to the new leader. Without a leader, or if it " +
    "does not respond, a new connection waits for --connect-timeout and is then closed. Runs until it is stopped.",
  ],
  examples: [
    ["baton forward echo --listen :9000", "the leader of echo, as localhost:9000"],
    ["baton forward db --listen unix:/run/db.sock --connect-timeout 2s", "give up on a leader after two seconds"],
  ],
  settings,
  completes: "elections",
  runsNothing: true,
  async run(call): Promise<ExitCode> {
    const name = requireOneName("forward", call.names, "election");
    const { values, io } = call;
    const say = (sentence: string) => {
      if (!values.quiet) io.err(`baton: ${sentence}\n`);
    };
    const at = listenAddressOf(values.listen);
    refuseUnprotectedSockets([{ address: at, protection: null, isProtected: false }], values.insecure);
    using stop = new StopRequestListener();
    const forwarder = new TcpForwarder({
      dial,
      clock: systemClock(),
      connectTimeoutMs: values.connectTimeout ?? connectTimeoutMsDefault,
      connectionsMax: values.maxConnections,
      log: say,
    });
    await raiseOwnOpenFilesLimit(); // each forwarded connection has two sockets
    const listener = await takeListenAddress(at, () => listen(at, forwarder.accept, { halfOpen: true }));
    try {
      say(
        `forwarding ${formatAddress(listener.address)} to the leader of "${name}", for ${
          describeWhoReachesSocket(listener.address, false)
        }`,
      );
      for await (const { change } of followLeader(call, name, { signal: stop.signal })) {
        if (change.kind === "missed") continue;
        const address = leaderAddressOf(change, name, (sentence) => io.err(`baton: ${sentence}\n`));
        if (values.verbose) {
          say(address === null ? `"${name}" has no leader` : `the leader of "${name}" is at ${formatAddress(address)}`);
        }
        forwarder.setLeader(address);
      }
      throw stop.signal.reason;
    } finally {
      forwarder.close();
      await listener.close();
      if (at.kind === "unix") rmSync(at.path, { force: true });
    }
  },
});

function listenAddressOf(written: string | undefined): Address {
  if (written === undefined) {
    throw new BatonError("USAGE", "baton forward needs --listen, as in: baton forward NAME --listen :9000");
  }
  return parseListenAddressFlag(written);
}

function leaderAddressOf(change: LeaderChange, name: string, complain: (sentence: string) => void): Address | null {
  if (change.kind !== "elected") return null;
  const { value } = change.grant;
  const address = parseAddress(value);
  const isReachable = address !== null && (address.kind === "unix" || address.port > 0);
  if (!isReachable) {
    const hint = "start it with baton elect --value HOST:PORT";
    complain(`Cannot connect to the leader of "${name}": its value ${JSON.stringify(value)} is not host:port; ${hint}`);
  }
  return isReachable ? address : null;
}
