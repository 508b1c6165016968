/** `baton metrics`: numbers of everything below the root, for Prometheus. */
import { closeSync, fchmodSync, openSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import process from "node:process";
import { connectionSettings } from "../../src/coordination/settings/coordination_settings.ts";
import { flagSetting, insecureHelp, type SettingTable, toggleSetting } from "../../src/base/config/setting.ts";
import { durationType, integerType, textType } from "../../src/base/config/value_types.ts";
import { BatonError, errorMessage, errorReason } from "../../src/base/errors.ts";
import { refuseLinksOfOthers } from "../../src/base/support/open_output.ts";
import { StopRequest } from "../../src/base/process/supervise/signal_source.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import { formatDuration } from "../../src/base/support/duration.ts";
import { OneTimeEvent } from "../../src/base/support/event.ts";
import { formatMetrics, type Metric } from "../../src/base/terminal/metrics_text.ts";
import { serveStatusPage } from "../../src/base/terminal/status_page.ts";
import { formatAddress } from "../../src/base/sockets/connection.ts";
import { type CommandCall, defineCommand } from "../command.ts";
import { followSessions } from "../follow_sessions.ts";
import { runInCoordinationSession } from "../coordination_session.ts";
import { type ExitCode, exitCodes } from "../../src/base/exit_codes.ts";
import { planStatusPage, refuseOpenSockets } from "../../src/base/config/listen_address.ts";
import { readPeriodically } from "./run_top.ts";
import { readBuildFacts } from "../../src/base/support/build.ts";
import { CountedMetricNames } from "./counted_names.ts";
import { readUseForMetrics } from "./read_use.ts";
import { buildUseMetrics, type UseMetricsReading } from "./use_metrics.ts";
import { socketReach } from "../../src/base/sockets/socket_reach.ts";

const everyMsDefault = 15_000;

const settings = {
  insecure: toggleSetting("--insecure", { group: "security", help: insecureHelp }),
  listen: flagSetting("--listen", textType("host:port|unix:PATH"), {
    help: "serve /metrics and /healthz at this address; :PORT is loopback only",
    unset: "print once",
  }),
  textfile: flagSetting("--textfile", textType("file"), {
    help: "write the metrics to this file, whose name ends with .prom, for the textfile collector of node_exporter",
    unset: "print once",
  }),
  every: flagSetting("--every", durationType({ minMs: 1000 }), {
    help: "read again after this time, until stopped",
    unset: "15s with --listen; once with --textfile",
  }),
  namesMax: flagSetting("--names-max", integerType("count", { min: 1, max: 10_000 }), {
    help: "maximum number of names of a metric; the others are counted as _other",
    default: 200,
  }),
  ...connectionSettings,
} satisfies SettingTable;

type MetricsCall = CommandCall<typeof settings>;

export const metricsCommand = defineCommand({
  name: "metrics",
  summary: "export the numbers of locks, elections, barriers, pools and ticks for Prometheus",
  usage: "[--listen ADDRESS | --textfile FILE] [options]",
  details: [
    "Without --listen and --textfile it prints the metrics once. Holders and waiters are counted at the moment of " +
    "a reading. Numbers of ends, waiting and holding times come from the history: they are exact, and stay when this " +
    "program starts again, but only ticks and calls with --history (history.enabled in the configuration) are in " +
    "them.",
    "baton_up is 0 while the servers cannot be read. The names of a pool's items are counted together.",
    "--textfile replaces the file in one step, with mode 644. A reading that fails leaves the old file, whose age " +
    "node_exporter exports.",
  ],
  examples: [
    ["baton metrics --listen :9183", "for a Prometheus that scrapes this machine"],
    ["baton metrics --textfile /var/lib/node_exporter/baton.prom", "once, from cron"],
  ],
  settings,
  completes: [],
  runsNothing: true,
  isService: true,
  async run(call) {
    const { values, names } = call;
    if (names.length > 0) throw new BatonError("USAGE", `baton metrics takes no names, not "${names.join(" ")}"`);
    if (values.listen !== undefined && values.textfile !== undefined) {
      throw new BatonError("USAGE", "--listen and --textfile do not go together; run baton metrics twice");
    }
    if (values.textfile !== undefined && !values.textfile.endsWith(".prom")) {
      throw new BatonError("USAGE", `node_exporter reads files whose name ends with .prom, not "${values.textfile}"`);
    }
    if (values.listen !== undefined) return await serve(call, values.listen);
    if (values.every === undefined) return await exportOnce(call);
    if (values.textfile === undefined) throw new BatonError("USAGE", "--every needs --listen or --textfile");
    return await follow(call, metricsFor(call), { everyMs: values.every });
  },
});

type MetricsOf = (reading: UseMetricsReading | null) => Metric[];

function metricsFor({ values }: MetricsCall): MetricsOf {
  const { release, commit } = readBuildFacts();
  const { namesMax } = values;
  const counted = new CountedMetricNames(namesMax);
  return (reading) => buildUseMetrics(reading, { namesMax, counted, release, commit });
}

async function exportOnce(call: MetricsCall): Promise<ExitCode> {
  const { values: { root, textfile }, io } = call;
  const metrics = metricsFor(call);
  const reading = await runInCoordinationSession(call, (zk) => readUseForMetrics(zk, { root, clock: systemClock() }));
  if (textfile === undefined) io.out(formatMetrics(metrics(reading)));
  else replaceFile(textfile, formatMetrics(metrics(reading)));
  return exitCodes.SUCCESS;
}

/** Keeps a session and reads at intervals until a signal arrives; always rejects with that signal. */
async function follow(
  call: MetricsCall,
  metrics: MetricsOf,
  { everyMs, onReading }: { readonly everyMs: number; readonly onReading?: (reading: UseMetricsReading) => void },
): Promise<never> {
  const { values: { root, textfile, quiet }, io } = call;
  const clock = systemClock();
  using stop = new StopRequest();
  const { signal } = stop;
  const onLate = (message: string) => quiet || io.err(message);
  const nextWish = () => new OneTimeEvent();
  const readings = followSessions(call, (zk) =>
    readPeriodically(() => readUseForMetrics(zk, { root, clock }), {
      ended: zk.session.ended,
      clock,
      signal,
      everyMs,
      onLate,
      nextWish,
    }), { what: "the metrics", signal, waitsForServer: true });
  for await (const reading of readings) {
    onReading?.(reading);
    if (textfile === undefined) continue;
    try {
      replaceFile(textfile, formatMetrics(metrics(reading)));
    } catch (thrown) {
      io.err(`baton: ${errorMessage(thrown)}\n`);
    }
  }
  throw signal.reason;
}

async function serve(call: MetricsCall, listen: string): Promise<ExitCode> {
  const { values, io } = call;
  refuseOpenSockets(planStatusPage(listen), values.insecure);
  const everyMs = values.every ?? everyMsDefault;
  const clock = systemClock();
  const metrics = metricsFor(call);
  let latest: { readonly reading: UseMetricsReading; readonly atMs: number } | null = null;
  // A reading stays valid for three intervals, so that one late reading does no harm.
  const valid = () => (latest !== null && clock.now() - latest.atMs <= 3 * everyMs ? latest.reading : null);
  await using page = await serveStatusPage(listen, {
    health: () => valid() === null ? `the servers were not read for ${formatDuration(3 * everyMs)}` : null,
    metrics: () => metrics(valid()),
  });
  if (!values.quiet) {
    io.err(`baton: metrics at ${formatAddress(page.address)}/metrics for ${socketReach(page.address, false)}\n`);
  }
  return await follow(call, metrics, {
    everyMs,
    onReading: (reading) => latest = { reading, atMs: clock.now() },
  });
}

/** Replaces a file atomically: a reader sees either the old or the new content. Throws CANNOT_CREATE. */
function replaceFile(path: string, text: string): void {
  const draft = `${resolve(path)}.${process.pid}`;
  try {
    refuseLinksOfOthers(dirname(draft));
    rmSync(draft, { force: true });
    const fd = openSync(draft, "wx"); // never through a link that another user of the folder has made
    try {
      fchmodSync(fd, 0o644);
      writeFileSync(fd, text);
    } finally {
      closeSync(fd);
    }
    renameSync(draft, path);
  } catch (thrown) {
    rmSync(draft, { force: true });
    throw new BatonError("CANNOT_CREATE", `Cannot write ${path}: ${errorReason(thrown)}`, { cause: thrown });
  }
}
