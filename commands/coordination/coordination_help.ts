/** The groups of commands and the topics that coordination adds to the help. */
import type { SettingTable } from "../../src/base/config/setting.ts";
import { connectionSettings } from "../../src/coordination/settings/coordination_settings.ts";
import type { ProductHelp } from "../product.ts";
import type { HelpBlock, HelpPage } from "../help_page.ts";
import { settingHelpEntries } from "../option_text.ts";
import { lockCommandSettings } from "./lock_options.ts";

export const coordinationHelp: ProductHelp = {
  families: [
    { heading: "Locks", names: ["lock", "hold", "release", "who", "ls", "cron", "history", "explain", "break"] },
    { heading: "Elections", names: ["elect", "leader", "forward", "resign"] },
    { heading: "Barriers, pools", names: ["barrier", "pool"] },
    { heading: "In commands", names: ["check", "fence"] },
  ],
  topics: { connection: connectionTopic, times: timesTopic },
};

const heading = (text: string): HelpBlock => ({ kind: "heading", text });
const paragraph = (text: string): HelpBlock => ({ kind: "text", text });

function connectionTopic(): HelpPage {
  return {
    name: "connection",
    summary: "how commands find and reach the coordination service",
    usage: [],
    blocks: [
      paragraph(
        "Commands use the servers that --servers, BATON_SERVERS or a configuration file names: a ZooKeeper " +
          "ensemble, or a keeper at its address. Without servers they use the keeper of this machine, and start it " +
          "if it does not run. All commands take the settings below in the same form.",
      ),
      { kind: "entries", entries: settingHelpEntries(connectionSettings) },
      heading("Examples"),
      {
        kind: "examples",
        examples: [
          [
            "baton lock --servers zk1:2181,zk2:2181,zk3:2181/app nightly ./backup.sh",
            "an ensemble, below its node /app",
          ],
          ["export BATON_SERVERS=zk1:2181,zk2:2181,zk3:2181", "the same servers for all commands of a script"],
          ["baton doctor --servers zk1:2181", "check the connection and the servers"],
        ],
      },
      paragraph(
        "baton help times explains the timeouts; baton config show --origin prints where each value comes from.",
      ),
    ],
  };
}

/** Returns the topic about durations, with all settings of a lock that are durations. */
function timesTopic(): HelpPage {
  const durations = Object.entries<SettingTable[string]>(lockCommandSettings)
    .filter(([, { type }]) => type.placeholder === "duration");
  return {
    name: "times",
    summary: "how durations are written, and which of them limit a lock",
    usage: [],
    blocks: [
      paragraph(
        "A duration is a number of seconds, as in flock, timeout and sleep, or a number with a unit: 10, 250ms, " +
          "5m, 2h, 1d. A fraction is allowed: 1.5. A size always has a unit: 64KiB, 16MiB, 1GiB.",
      ),
      paragraph(
        "--wait limits everything up to the grant: the connection to the servers and the time in the queue. " +
          "--max-hold starts with the grant. When it ends, baton sends --signal to the command, and SIGKILL after " +
          "--kill-after.",
      ),
      paragraph(
        "If no server responds while the lock is held, baton stops the command before the servers can end the " +
          "session. The lease ends before the session: by 5 % of the session timeout, and by at least 0.5s. " +
          "--signal is sent before the end of the lease: by --kill-after, but at most by a quarter of the session " +
          "timeout. SIGKILL follows when the lease ends. A shorter session timeout frees the lock of a dead " +
          "machine sooner; a longer one survives longer interruptions of the network.",
      ),
      heading("Durations of baton lock"),
      { kind: "entries", entries: settingHelpEntries(Object.fromEntries(durations)) },
    ],
  };
}
