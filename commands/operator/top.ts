/** `baton top`: one live screen of everything in use. */
import type { SettingTable } from "../../src/base/config/setting.ts";
import { BatonError } from "../../src/base/errors.ts";
import { defineCommand, findGivenFlag } from "../command.ts";
import { topSettings } from "./top_options.ts";

const { interval, sort, filter } = topSettings;
const screenSettings = { interval, sort, filter } satisfies SettingTable;

export const topCommand = defineCommand({
  name: "top",
  summary: "one live screen of locks, elections, pools, topics and message stores",
  usage: "[options]",
  details: [
    "Shows everything in use with its first holder, the servers and topics of publish/subscribe, the message " +
    "stores of this user, and the rates of processes that serve /metrics. RATE and RATES are those since the " +
    "previous reading.",
    "Keys: q ends, arrows and page keys scroll, s changes the order, r reverses it, / shows only rows with a text, " +
    "space reads again, ? shows all keys.",
    "Where stdout is no terminal, and with --once or --json, it prints everything once. Changes nothing.",
  ],
  examples: [
    ["baton top", "everything in use on this user's keeper"],
    ["baton top --servers zk1:2181,zk2:2181,zk3:2181/app --sort wait", "an ensemble, the longest queues first"],
    [
      "baton top --metrics :9182,db1:9102 --store /var/lib/orders",
      "with the rates of two processes, and one message store",
    ],
    ["baton top --once --filter nightly", "text for a report"],
  ],
  settings: topSettings,
  runsNothing: true,
  async run(call) {
    if (call.names.length > 0) {
      throw new BatonError(
        "USAGE",
        `baton top takes no names, not "${call.names.join(" ")}"; to show only some rows: --filter ${call.names[0]}`,
      );
    }
    const flag = call.values.json ? findGivenFlag(screenSettings, call.sources.flags) : null;
    if (flag !== null) {
      throw new BatonError("USAGE", `--json prints everything that is in use: ${flag} has no effect on it`);
    }
    const { runTop } = await import("./run_top.ts");
    return await runTop(call);
  },
});
