/** `baton doctor`: checks servers, locks and this machine for problems. */
import { loadLibc } from "../../src/base/process/libc.ts";
import { hasProcessTable, whyProcessTableIsUnusable } from "../../src/base/process/proc/process_table.ts";
import { printJson } from "../../src/base/terminal/io.ts";
import { printTable, type TableCell, tableHeadCells } from "../../src/base/terminal/table.ts";
import { listType } from "../../src/base/config/value_types.ts";
import { flagSetting, type SettingTable, toggleSetting } from "../../src/base/config/setting.ts";
import { connectionSettings } from "../../src/coordination/settings/coordination_settings.ts";
import type { CoordinationServers } from "../../src/coordination/connect/coordination_servers.ts";
import { checkServerReleases } from "../../src/coordination/connect/server_releases.ts";
import { dial } from "../../src/base/sockets/dial.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import { countWithNoun } from "../../src/base/support/text.ts";
import {
  type Finding,
  findingIds,
  findingSeverities,
  type FindingSeverity,
  makeFinding,
} from "../../src/base/rows/finding.ts";
import { BatonError } from "../../src/base/errors.ts";
import { didYouMean } from "../../src/base/support/did_you_mean.ts";
import { type Command, type CommandCall, defineCommand } from "../command.ts";
import {
  type CheckedDatabase,
  type NodeInspection,
  type Product,
  type ProductDoctor,
  type ProductView,
  withoutFlag,
} from "../product.ts";
import { runInCoordinationSession } from "../coordination_session.ts";
import { type ExitCode, exitCodes } from "../../src/base/exit_codes.ts";
import { findRowProblems, type RowProblems } from "./judged_rows.ts";
import { loadViews, type RowSourcesCall } from "./row_sources.ts";
import type { DoctorJson } from "../json_shapes/machine_shapes.ts";

const ownSettings = {
  ignore: flagSetting("--ignore", listType("id,…"), {
    once: true,
    help: "omit the findings with these ids; may be repeated",
    unset: "all findings",
  }),
  json: toggleSetting("--json", { help: "print one JSON object" }),
  ...connectionSettings,
} satisfies SettingTable;

const severityStyles = { warning: "yellow", problem: "red" } as const;

export async function doctorCommandFor(products: readonly Product[]): Promise<Command> {
  const doctors = await Promise.all(products.map((product) => product.doctor()));
  const views = await loadViews(products);
  return defineCommand({
    name: "doctor",
    summary: "check the servers, the locks and this machine for problems",
    usage: "[options] | --recipe RECIPE PATH [options]",
    details: [
      "Checks once and changes nothing: the servers, locks, elections, pools, schedules, topics, message stores, " +
      "their databases, and this machine. Prints each finding with an id and the action that mends it.",
      `Problems need an action now (exit code 1): ${findingIdsOf("problem")}.`,
      `Warnings may become problems (exit code 0): ${findingIdsOf("warning")}.`,
      "Limits: a subscriber is behind if more than 10,000 messages wait for it, or one has waited for an hour; a " +
      "lock or an election that is free is not taken after 30 s; a broken lock is still held after a minute; a disk " +
      "is full below 64 MiB. Dead letters that were delivered to --dead-letter do not count.",
    ],
    examples: [
      ["baton doctor", "this user's keeper"],
      ["baton doctor --servers zk1:2181,zk2:2181,zk3:2181/app --json", "an ensemble, for a monitor"],
      ["baton doctor --ignore server-release --ignore dead-letters", "without findings that you accept"],
      ["baton doctor --recipe curator /app/locks", "the locks of Curator programs below this node"],
    ],
    settings: {
      ...viewSettings(views),
      ...Object.assign({}, ...doctors.map(({ settings }) => settings)),
      ...ownSettings,
    },
    runsNothing: true,
    run: (call) => runDoctor(call, { doctors, views }),
  }) as Command;
}

const findingIdsOf = (severity: FindingSeverity): string =>
  findingIds.filter((id) => findingSeverities[id] === severity).join(", ");

/** Returns the settings of the views without their flags. They name the stores in files and variables. */
function viewSettings(views: readonly ProductView[]): SettingTable {
  const settings: SettingTable = Object.assign({}, ...views.map((view) => view.settings));
  return Object.fromEntries(Object.entries(settings).map(([name, setting]) => [name, withoutFlag(setting)]));
}

const noRowProblems: RowProblems = { findings: [], topics: 0, stores: 0 };

interface DoctorParts {
  readonly doctors: readonly ProductDoctor[];
  readonly views: readonly ProductView[];
}

async function runDoctor(
  call: CommandCall<typeof ownSettings>,
  { doctors, views }: DoctorParts,
): Promise<ExitCode> {
  const { values, io, names } = call;
  const ignored = checkedFindingIds(values.ignore ?? []);
  const inspections = doctors.flatMap((doctor) => doctor.inspection?.(names, values) ?? []);
  const report = await runInCoordinationSession(call, async (zk, place) => {
    const findings = [
      ...await systemFindings(),
      ...await releaseFindings(place),
      ...await databasesFindings(call, doctors),
    ];
    const inspected = await Promise.all(inspections.map((inspect) => inspect(zk, place)));
    const isWhole = names.length === 0; // names are the paths of another program's locks
    const fromRows = isWhole ? await findRowProblems(views, call as typeof call & RowSourcesCall, zk) : noRowProblems;
    return { place, timeoutMs: zk.session.timeoutMs, findings, inspected, fromRows };
  });
  const { locks = 0, elections }: NodeInspection["counts"] = Object.assign(
    {},
    ...report.inspected.map(({ counts }) => counts),
  );
  const checked = [...report.findings, ...report.inspected.flatMap((one) => one.findings)];
  const findings = [...checked, ...withoutKnown(report.fromRows.findings, checked)]
    .filter(({ id }) => !ignored.includes(id))
    .toSorted((a, b) => Number(a.severity === "warning") - Number(b.severity === "warning"));
  const problems = findings.filter(({ severity }) => severity === "problem").length;
  const warnings = findings.length - problems;
  if (values.json) {
    const { place: { servers }, timeoutMs: session_timeout_ms } = report;
    printJson<DoctorJson>(io, { version: 1, servers, session_timeout_ms, locks, elections: elections ?? 0, findings });
  } else {
    if (findings.length > 0) {
      const rows = findings.map(({ id, severity, where, what, action }): TableCell[] => {
        return [{ text: severity, style: severityStyles[severity] }, id, where, what, action];
      });
      printTable(io, [tableHeadCells(["SEVERITY", "ID", "WHERE", "WHAT", "ACTION"]), ...rows]);
    }
    if (!values.quiet) {
      const { topics, stores } = report.fromRows;
      const counted = [
        countWithNoun(locks, "lock"),
        ...(elections === undefined ? [] : [countWithNoun(elections, "election")]),
        ...(topics === 0 ? [] : [countWithNoun(topics, "topic")]),
        ...(stores === 0 ? [] : [countWithNoun(stores, "message store")]),
      ].join(", ").replace(/, (?=[^,]*$)/, " and ");
      const found = problems === 0 ? "no problems" : countWithNoun(problems, "problem");
      const result = `${found}${warnings === 0 ? "" : ` and ${countWithNoun(warnings, "warning")}`} found`;
      io.err(`baton: checked ${counted}: ${result}\n`);
    }
  }
  return problems === 0 ? exitCodes.SUCCESS : exitCodes.FALSE;
}

/** Returns the ids. Throws USAGE for an unknown one. */
function checkedFindingIds(ids: readonly string[]): readonly string[] {
  const known: readonly string[] = findingIds;
  const unknown = ids.find((id) => !known.includes(id));
  if (unknown === undefined) return ids;
  throw new BatonError(
    "USAGE",
    `--ignore "${unknown}": there is no such finding${didYouMean(unknown, known)}; the ids are ${known.join(", ")}`,
  );
}

/** Leaves out what the checks of nodes and databases have found, too, and described better. */
function withoutKnown(fromRows: readonly Finding[], known: readonly Finding[]): Finding[] {
  return fromRows.filter(({ id, where, what }) =>
    !known.some((one) => one.what === what || one.id === id && one.where === where)
  );
}

/** Checks each database once, even if several products use it. */
async function databasesFindings(
  { values, sources }: CommandCall<typeof ownSettings>,
  doctors: readonly ProductDoctor[],
): Promise<Finding[]> {
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

async function releaseFindings({ connect: { servers, tls } }: CoordinationServers): Promise<Finding[]> {
  const faults = await checkServerReleases({ addresses: servers.addresses, tls, dial, clock: systemClock() });
  return faults.map(({ server, what }) =>
    makeFinding("server-release", { where: `server ${server}`, what, action: "install a later release" })
  );
}

async function systemFindings(): Promise<Finding[]> {
  const findings: Finding[] = [];
  if (await loadLibc() === null) {
    const action = "install the C library of this system";
    const what = "the C library cannot be called, so that no guard process can start: baton lock fails (125)";
    findings.push(makeFinding("no-guard-process", { where: "this machine", what, action }));
  }
  const unusable = whyProcessTableIsUnusable();
  if (unusable !== null) {
    const action = "mount /proc in this PID namespace";
    const what = `the processes of a command cannot be identified, so that baton lock fails (125): ${unusable}`;
    findings.push(makeFinding("no-guard-process", { where: "this machine", what, action }));
  } else if (!hasProcessTable()) {
    const what =
      "there is no /proc: baton can stop only the process group of a command, not processes that have left it";
    findings.push(makeFinding("no-process-table", { where: "this machine", what, action: "mount /proc" }));
  }
  return findings;
}
