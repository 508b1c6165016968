/** `baton doctor`: checks servers, locks and this machine for problems. */
import { loadLibc } from "../../src/base/process/libc.ts";
import { hasProcessTable, whyProcessTableIsUnusable } from "../../src/base/process/proc/process_table.ts";
import { printJson } from "../../src/base/terminal/io.ts";
import { printTable, type TableCell, tableHeadCells } from "../../src/base/terminal/table.ts";
import { type SettingTable, toggleSetting } from "../../src/base/config/setting.ts";
import { connectionSettings } from "../../src/coordination/settings/coordination_settings.ts";
import type { CoordinationServers } from "../../src/coordination/connect/coordination_servers.ts";
import { checkServerReleases } from "../../src/coordination/connect/server_releases.ts";
import { dial } from "../../src/base/sockets/dial.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import { countWithNoun } from "../../src/base/support/text.ts";
import type { DoctorFinding } from "../../src/base/rows/finding.ts";
import { type Command, type CommandCall, defineCommand } from "../command.ts";
import type { CheckedDatabase, NodeInspection, Product, ProductDoctor } from "../product.ts";
import { runInCoordinationSession } from "../coordination_session.ts";
import { type ExitCode, exitCodes } from "../../src/base/exit_codes.ts";
import type { DoctorJson } from "../json_shapes/machine_shapes.ts";

const ownSettings = {
  json: toggleSetting("--json", { help: "print one JSON object" }),
  ...connectionSettings,
} satisfies SettingTable;

const kindStyles = { warning: "yellow", problem: "red" } as const;

export async function doctorCommandFor(products: readonly Product[]): Promise<Command> {
  const doctors = await Promise.all(products.map((product) => product.doctor()));
  return defineCommand({
    name: "doctor",
    summary: "check the servers, the locks and this machine for problems",
    usage: "[options] | --recipe RECIPE PATH [options]",
    details: [
      "Checks once and changes nothing. Finds locks that other programs use or that have another layout, nodes in " +
      "queues that no session owns, waiters that do not acquire a free lock, counters near their end, schedules " +
      "that are settled up to a time in the future or whose time zone has other rules here, a session timeout that " +
      "is too short, servers of a release that can lose acknowledged writes, end live sessions or not resume a " +
      "session, a database of message stores that can lose what it acknowledged, and a system on which baton " +
      "cannot watch the processes of a command.",
      "Exits with 0 if it finds no problem, with 1 if it does.",
    ],
    examples: [
      ["baton doctor", "this user's keeper"],
      ["baton doctor --servers zk1:2181,zk2:2181,zk3:2181/app --json", "an ensemble, for a monitor"],
      ["baton doctor --recipe curator /app/locks", "the locks of Curator programs below this node"],
    ],
    settings: { ...Object.assign({}, ...doctors.map(({ settings }) => settings)), ...ownSettings },
    runsNothing: true,
    run: (call) => runDoctor(call, doctors),
  }) as Command;
}

async function runDoctor(call: CommandCall<typeof ownSettings>, doctors: readonly ProductDoctor[]): Promise<ExitCode> {
  const { values, io, names } = call;
  const inspections = doctors.flatMap((doctor) => doctor.inspection?.(names, values) ?? []);
  const report = await runInCoordinationSession(call, async (zk, place) => {
    const findings = [
      ...await systemFindings(),
      ...await releaseFindings(place),
      ...await databasesFindings(call, doctors),
    ];
    const inspected = await Promise.all(inspections.map((inspect) => inspect(zk, place)));
    return { place, timeoutMs: zk.session.timeoutMs, findings, inspected };
  });
  const { locks = 0, elections }: NodeInspection["counts"] = Object.assign(
    {},
    ...report.inspected.map(({ counts }) => counts),
  );
  const findings = [...report.findings, ...report.inspected.flatMap((one) => one.findings)];
  if (values.json) {
    const { place: { servers }, timeoutMs: session_timeout_ms } = report;
    printJson<DoctorJson>(io, { version: 1, servers, session_timeout_ms, locks, elections: elections ?? 0, findings });
  } else {
    if (findings.length > 0) {
      const rows = findings.map((
        { kind, where, what },
      ): TableCell[] => [{ text: kind, style: kindStyles[kind] }, where, what]);
      printTable(io, [tableHeadCells(["KIND", "WHERE", "WHAT"]), ...rows]);
    }
    if (!values.quiet) {
      const checked = [
        countWithNoun(locks, "lock"),
        ...(elections === undefined ? [] : [countWithNoun(elections, "election")]),
      ].join(" and ");
      const result = findings.length === 0 ? "no problems found" : `${countWithNoun(findings.length, "problem")} found`;
      io.err(`baton: checked ${checked}: ${result}\n`);
    }
  }
  return findings.length === 0 ? exitCodes.SUCCESS : exitCodes.FALSE;
}

/** Checks each database once, even if several products use it. */
async function databasesFindings(
  { values, sources }: CommandCall<typeof ownSettings>,
  doctors: readonly ProductDoctor[],
): Promise<DoctorFinding[]> {
  const databases = new Map<string, CheckedDatabase>();
  for (const database of doctors.flatMap((doctor) => doctor.databases?.(values, sources) ?? [])) {
    const requiresSync = database.requiresSync || (databases.get(database.where)?.requiresSync ?? false);
    databases.set(database.where, { ...database, requiresSync });
  }
  if (databases.size === 0) return [];
  const { findDatabaseProblems } = await import("./database_findings.ts");
  const found = [...databases.values()].map((database) =>
    findDatabaseProblems(database, async (connection) => {
      const inspected = doctors.map((doctor) => doctor.inspectDatabase?.(connection, database) ?? []);
      return (await Promise.all(inspected)).flat();
    })
  );
  return (await Promise.all(found)).flat();
}

async function releaseFindings({ connect: { servers, tls } }: CoordinationServers): Promise<DoctorFinding[]> {
  const faults = await checkServerReleases({ addresses: servers.addresses, tls, dial, clock: systemClock() });
  return faults.map(({ server, what }) => ({ kind: "warning", where: `server ${server}`, what }));
}

async function systemFindings(): Promise<DoctorFinding[]> {
  const findings: DoctorFinding[] = [];
  if (await loadLibc() === null) {
    const what = "the C library cannot be called, so that no guard process can start: baton lock fails (125)";
    findings.push({ kind: "problem", where: "this machine", what });
  }
  const unusable = whyProcessTableIsUnusable();
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
