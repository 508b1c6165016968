/** `baton doctor`: checks servers, locks and this machine for problems. */
import { loadLibc } from "../../src/base/process/libc.ts";
import { hasProcessTable, otherNamespaceReason } from "../../src/base/process/proc/process_table.ts";
import { printJson } from "../../src/base/terminal/io.ts";
import { type Cell, headCells, printTable } from "../../src/base/terminal/table.ts";
import { flag, type Setting, type SettingTable, toggle } from "../../src/base/config/setting.ts";
import { pubsubStoreSettings } from "../../src/pubsub/settings/pubsub_settings.ts";
import { retryStoreSettings } from "../../src/retry/settings/retry_settings.ts";
import { connectionSettings } from "../../src/coordination/settings/coordination_settings.ts";
import { choiceType } from "../../src/base/config/value_types.ts";
import { BatonError } from "../../src/base/errors.ts";
import { interopRecipes } from "../../src/coordination/interop/interop_node_names.ts";
import { diagnose, type DiagnosisFinding } from "../../src/coordination/admin/diagnose.ts";
import { diagnoseSchedules } from "../../src/coordination/tick/diagnose_schedules.ts";
import { diagnoseInterop } from "../../src/coordination/admin/list_interop.ts";
import type { Coordination } from "../../src/coordination/connect/coordination_servers.ts";
import { checkServerReleases } from "../../src/coordination/connect/server_releases.ts";
import { sessionTimeoutMsMin } from "../../src/coordination/lock/acquire_lock.ts";
import { dial } from "../../src/base/sockets/dial.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import { isResumable } from "../../src/protocols/zookeeper/handshake.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import { countWithNoun } from "../../src/base/support/text.ts";
import { formatDuration } from "../../src/base/support/duration.ts";
import { type Call, defineCommand } from "../command.ts";
import { isDatabaseUrl } from "../../src/base/postgres/database_address.ts";
import { topicStoreLocationOf } from "../pubsub/topic_store_location.ts";
import { storeLocationOf } from "../retry/retry_store_location.ts";
import { onlyInteropPath } from "../coordination/name_arguments.ts";
import { runConnected } from "../coordination/connected.ts";
import { exitCodes } from "../exit_codes.ts";
import type { CheckedDatabase } from "./database_findings.ts";
import type { DoctorJson } from "../json_shapes/machine_shapes.ts";
import { sessionTimeoutWarning } from "../../src/coordination/connect/command_session.ts";

/** A setting that comes from a variable or a file only. */
function withoutFlag<T>({ flag: _, ...setting }: Setting<T>): Setting<T> {
  return setting;
}

const settings = {
  recipe: flag("--recipe", choiceType(interopRecipes), {
    help:
      "check the locks of Curator or kazoo programs below the node PATH, or the lock PATH itself, instead of baton's locks",
  }),
  json: toggle("--json", { help: "print one JSON object" }),
  retryStore: {
    ...retryStoreSettings.retryStore,
    help:
      "check the PostgreSQL database at this URL, too; folders are checked by retry-processor verify and pubsub server verify",
    unset: "those of the configuration, of message stores and of topics",
  },
  retryRequireSync: retryStoreSettings.retryRequireSync,
  pubsubStore: withoutFlag(pubsubStoreSettings.pubsubStore),
  pubsubRequireSync: withoutFlag(pubsubStoreSettings.pubsubRequireSync),
  ...connectionSettings,
} satisfies SettingTable;

const kindStyles = { warning: "yellow", problem: "red" } as const;

export const doctorCommand = defineCommand({
  name: "doctor",
  summary: "check the servers, the locks and this machine for problems",
  usage: "[options] | --recipe RECIPE PATH [options]",
  details: [
    "Checks once and changes nothing. Finds locks that other programs use or that have another layout, nodes in queues that " +
    "no session owns, waiters that do not acquire a free lock, counters near their end, schedules that are settled up to a time in the future or whose time zone has other rules here, a session timeout that is too short, " +
    "servers of a release that can lose acknowledged writes, end live sessions or not resume a session, a database of message stores that can lose what it acknowledged, and a " +
    "system on which baton cannot watch the processes of a command.",
    "Exits with 0 if it finds no problem, with 1 if it does.",
  ],
  examples: [
    ["baton doctor", "this user's keeper"],
    ["baton doctor --servers zk1:2181,zk2:2181,zk3:2181/app --json", "an ensemble, for a monitor"],
    ["baton doctor --recipe curator /app/locks", "the locks of Curator programs below this node"],
  ],
  settings,
  runsNothing: true,
  async run(call) {
    const { values, io, names } = call;
    const { recipe } = values;
    const path = recipe === undefined ? null : onlyInteropPath("doctor", names, recipe);
    if (path === null && names.length > 0) {
      throw new BatonError("USAGE", `baton doctor takes no names, not "${names.join(" ")}"`);
    }
    const report = await runConnected(call, async (zk, place) => {
      const { timeoutMs } = zk.session;
      const findings = [
        ...timeoutFindings(timeoutMs, values.sessionTimeout, place.servers.startsWith("unix:")),
        ...await systemFindings(),
        ...await releaseFindings(place),
        ...resumeFindings(zk),
        ...(path === null ? await diagnoseSchedules(zk, { root: values.root }) : []),
        ...await storeFindings(call),
      ];
      const diagnosis = path === null || recipe === undefined
        ? await diagnose(zk, { root: values.root })
        : await diagnoseInterop(zk, path, recipe);
      if (diagnosis === null) throw new BatonError("NOT_FOUND", `Node "${path}" does not exist`);
      return { servers: place.servers, timeoutMs, findings, diagnosis };
    });
    const { locks, elections } = report.diagnosis;
    const findings = [...report.findings, ...report.diagnosis.findings];
    if (values.json) {
      const { servers, timeoutMs: session_timeout_ms } = report;
      printJson<DoctorJson>(io, { version: 1, servers, session_timeout_ms, locks, elections, findings });
    } else {
      if (findings.length > 0) {
        const rows = findings.map((
          { kind, where, what },
        ): Cell[] => [{ text: kind, style: kindStyles[kind] }, where, what]);
        printTable(io, [headCells(["KIND", "WHERE", "WHAT"]), ...rows]);
      }
      if (!values.quiet) {
        const checked = [
          countWithNoun(locks, "lock"),
          ...(recipe === undefined ? [countWithNoun(elections, "election")] : []),
        ].join(" and ");
        const result = findings.length === 0
          ? "no problems found"
          : `${countWithNoun(findings.length, "problem")} found`;
        io.err(`baton: checked ${checked}: ${result}\n`);
      }
    }
    return findings.length === 0 ? exitCodes.SUCCESS : exitCodes.FALSE;
  },
});

function timeoutFindings(grantedMs: number, askedMs: number, isStandalone: boolean): DiagnosisFinding[] {
  if (grantedMs < sessionTimeoutMsMin) {
    const what = `the servers grant a session timeout of ${formatDuration(grantedMs)}, but a lock needs at least ` +
      `${formatDuration(sessionTimeoutMsMin)}: baton lock fails (78)`;
    return [{ kind: "problem", where: "session", what }];
  }
  const warning = sessionTimeoutWarning({ askedMs, grantedMs, isStandalone });
  if (warning === null) return [];
  return [{ kind: "warning", where: "session", what: warning.replace(/^baton: /, "").trimEnd() }];
}

/** Findings about the databases of message stores and of topics; one that is both is checked once. */
async function storeFindings({ values, sources }: Call<typeof settings>): Promise<DiagnosisFinding[]> {
  const { retryStore, pubsubStore } = values;
  const databases = new Map<string, CheckedDatabase>();
  const add = (where: string, database: CheckedDatabase) =>
    databases.set(where, {
      address: database.address,
      requiresSync: database.requiresSync || (databases.get(where)?.requiresSync ?? false),
    });
  if (retryStore !== undefined && isDatabaseUrl(retryStore)) {
    const { where, database } = storeLocationOf({ ...values, retryName: "default" }, sources);
    if (database !== null) add(where, database);
  }
  if (pubsubStore !== undefined && !sources.flags.has("retryStore")) {
    const given = {
      ...values,
      pubsubNoBalance: false,
      pubsubDataDir: undefined,
      pubsubMigrate: false,
      pubsubOnLoss: "continue" as const,
    };
    const location = topicStoreLocationOf(given, sources);
    if (location?.database) add(location.where, location.database);
  }
  if (databases.size === 0) return [];
  const { databaseFindings } = await import("./database_findings.ts");
  const found = await Promise.all([...databases].map(([where, database]) => databaseFindings(database, where)));
  return found.flat();
}

async function releaseFindings({ connect: { servers, tls } }: Coordination): Promise<DiagnosisFinding[]> {
  const faults = await checkServerReleases({ addresses: servers.addresses, tls, dial, clock: systemClock() });
  return faults.map(({ server, what }) => ({ kind: "warning", where: `server ${server}`, what }));
}

function resumeFindings({ session }: ZooKeeper): DiagnosisFinding[] {
  if (isResumable(session)) return [];
  const what =
    "the servers cannot resume a session, as ClickHouse Keeper (issue 116690): a lock is lost with the connection, " +
    "the command is stopped, and the lock is free when the session has expired";
  return [{ kind: "warning", where: "session", what }];
}

async function systemFindings(): Promise<DiagnosisFinding[]> {
  const findings: DiagnosisFinding[] = [];
  if (await loadLibc() === null) {
    const what = "the C library cannot be called, so that no guard process can start: baton lock fails (125)";
    findings.push({ kind: "problem", where: "this machine", what });
  }
  const unusable = otherNamespaceReason();
  if (unusable !== null) {
    const what = `the processes of a command cannot be identified, so that baton lock fails (125): ${unusable}`;
    findings.push({ kind: "problem", where: "this machine", what });
  } else if (!hasProcessTable()) {
    const what =
      "there is no /proc: baton can stop only the process group of a command, not processes that have left it";
    findings.push({ kind: "warning", where: "this machine", what });
  }
  return findings;
}
