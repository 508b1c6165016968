/** `baton fence`: lets nobody through whose lock somebody else was granted since. */
import { setting, type SettingTable } from "../../src/config/setting.ts";
import { connectionSettings } from "../../src/config/settings.ts";
import { duration, integer, text, toggle } from "../../src/config/value_types.ts";
import { BatonError } from "../../src/errors.ts";
import { didYouMean } from "../../src/support/did_you_mean.ts";
import { type Call, defineCommand } from "../command.ts";
import type { ExitCode } from "../exit_codes.ts";
import { givenFlag } from "../command.ts";

const runSettings = {
  store: setting(text("file"), {
    flag: "--store",
    once: true,
    help: "run: the file that remembers the highest token, beside what it protects; made when it is not there",
  }),
  try: setting(toggle(), {
    flag: "-n, --try",
    help: "run: do not wait: exit 75 when the store is busy",
    default: false,
  }),
  wait: setting(duration(), { flag: "-w, --wait", help: "run: how long to wait for the store; then exit 75" }),
} satisfies SettingTable;

const zkSettings = {
  version: setting(integer("number", { min: 0, max: 2 ** 31 - 1 }), {
    flag: "--version",
    help: "zk set, delete: only if the node has this version; else exit 1",
  }),
  dataFile: setting(text("file"), {
    flag: "--data-file",
    once: true,
    help: "zk set, create: the data is this file's; - is standard input",
  }),
  parents: setting(toggle(), {
    flag: "-p, --parents",
    help: "zk create: make what is missing above the node, in the same transaction",
    default: false,
  }),
  sequential: setting(toggle(), {
    flag: "--sequential",
    help: "zk create: append a number higher than all before to the path, and print what it became",
    default: false,
  }),
  json: setting(toggle(), { flag: "--json", help: "zk: print one JSON object", default: false }),
} satisfies SettingTable;

export const fenceSettings = {
  token: setting(text("number"), {
    flag: "--token",
    help: "the token to go by",
    unset: "BATON_FENCING_TOKEN, which baton lock sets",
  }),
  ...runSettings,
  ...zkSettings,
  ...connectionSettings,
} satisfies SettingTable;

const forms = {
  run: { refuses: { ...zkSettings, ...connectionSettings } },
  zk: { refuses: runSettings },
} as const;

const usage = "run --store FILE [options] -- COMMAND [ARGUMENT…] | zk set|create|delete PATH [DATA] [options]";

export const fenceCommand = defineCommand({
  name: "fence",
  summary: "run a command, or write to ZooKeeper, unless the lock went to another since",
  usage,
  details: [
    "Every grant of a lock has a higher token than the one before. The store remembers the highest it has seen: a command " +
    "with a lower one is not run (86), because its lock was granted to somebody else since, while its machine stood still. " +
    "The store is held while the command runs, so that nobody with a newer token works beside it; that holds also when " +
    "baton is killed, for as long as the command and what inherits its descriptors run.",
    "All who write to what the store protects have to go through it. The file needs a file system with flock(2).",
    "zk writes to a node beside the lock, on the same servers, with a path in the same chroot: one transaction looks at the " +
    "lock's holder and writes. Whoever holds the lock no more writes nothing (86), also when it was frozen for an hour. No " +
    "store is needed, and no help of others who write. The data is the word, - for standard input, or --data-file. Nodes " +
    "are ordinary ones, which stay when this call ends. Exits with 1 when the node is not as it should be: there is none, " +
    "there is one already, it has children, another version.",
  ],
  examples: [
    [
      "baton lock nightly -- sh -c 'prepare; baton fence run --store /srv/db/fence -- ./write.sh'",
      "write.sh does not run when nightly was lost and granted again in the meantime",
    ],
    ["baton fence run --store ./fence --token 42 -- ./write.sh", "with a token from elsewhere"],
    [
      "baton lock nightly -- sh -c './step1 && baton fence zk set /app/state step1-done && ./step2'",
      "only whoever holds nightly says how far it is",
    ],
    [
      "./report | baton fence zk create -p /app/reports/today -",
      "the data from standard input, with /app/reports made first",
    ],
    ["baton fence zk create --sequential /app/log/entry- 'began'", "prints /app/log/entry-0000000007"],
    ["baton fence zk delete /app/state --version 3", "only if nobody has written it since"],
  ],
  settings: fenceSettings,
  completes: [],
  completesFirst: { run: [], zk: ["set", "create", "delete"] },
  forms,
  run: fence,
});

async function fence(call: Call<typeof fenceSettings>): Promise<ExitCode> {
  const [action = "", ...more] = call.names;
  if (action === "run") {
    refuseFlags(call, forms.run.refuses, "zk");
    return await (await import("./fence_run.ts")).fenceRun(call);
  }
  if (action === "zk") {
    refuseFlags(call, forms.zk.refuses, "run");
    return await (await import("./fence_zk.ts")).fenceZk(call);
  }
  const given = action === ""
    ? "nothing is given"
    : `not "${[action, ...more].join(" ")}"${didYouMean(action, ["run", "zk"])}`;
  throw new BatonError(
    "USAGE",
    `baton fence takes run or zk, ${given}, as in: baton fence run --store FILE -- COMMAND, or baton fence zk set /app/state running`,
  );
}

function refuseFlags({ sources, names }: Call<typeof fenceSettings>, settings: SettingTable, of: string): void {
  const flag = givenFlag(settings, sources.flags);
  if (flag === null) return;
  throw new BatonError("USAGE", `${flag} is for baton fence ${of}, not for baton fence ${names[0]}`);
}
