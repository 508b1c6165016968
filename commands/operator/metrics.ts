/** Defines `baton metrics`, which exports the numbers of everything below the root node for Prometheus. */
import { connectionSettings } from "../../src/coordination/settings/coordination_settings.ts";
import { flagSetting, insecureFlagHelp, type SettingTable, toggleSetting } from "../../src/base/config/setting.ts";
import { durationType, integerType, textType } from "../../src/base/config/value_types.ts";
import { BatonError, errorMessage } from "../../src/base/errors.ts";
import { StopRequestListener } from "../../src/base/process/supervise/signal_source.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import { formatDuration } from "../../src/base/support/duration.ts";
import { formatMetrics, type Metric, metricFactory } from "../../src/base/terminal/metrics_text.ts";
import { serveStatusPage } from "../../src/base/terminal/status_page.ts";
import { formatAddress } from "../../src/base/sockets/connection.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import { type Command, type CommandCall, defineCommand } from "../command.ts";
import { followSessions } from "../follow_sessions.ts";
import { runInCoordinationSession } from "../coordination_session.ts";
import { type ExitCode, exitCodes } from "../../src/base/exit_codes.ts";
import { planStatusPageSocket, refuseUnprotectedSockets } from "../../src/base/config/listen_address.ts";
import type { Product } from "../product.ts";
import { readPeriodically } from "./read_periodically.ts";
import { readBuildFacts } from "../../src/base/support/build.ts";
import { describeWhoReachesSocket } from "../../src/base/sockets/socket_reach.ts";
import { replaceFile } from "../../src/base/support/replace_file.ts";

const everyMsDefault = 15_000;

const settings = {
  insecure: toggleSetting("--insecure", { group: "security", help: insecureFlagHelp }),
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

export const metricsCommandFor = (products: readonly Product[]): Command =>
  defineCommand({
    name: "metrics",
    summary: "export the numbers of locks, elections, barriers, pools and ticks for Prometheus",
    usage: "[--listen ADDRESS | --textfile FILE] [options]",
    details: [
      "Without --listen and --textfile it prints the metrics once. Holders and waiters are counted at the moment of " +
      "a reading. Numbers of ends, waiting and holding times come from the history: they are exact, and stay when " +
      "this program starts again, but only ticks and calls with --history (history.enabled in the configuration) " +
      "are in them.",
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
    run: (call) => exportMetrics(call, products),
  }) as Command;

async function exportMetrics(call: MetricsCall, products: readonly Product[]): Promise<ExitCode> {
  const { values, names } = call;
  if (names.length > 0) throw new BatonError("USAGE", `baton metrics takes no names, not "${names.join(" ")}"`);
  if (values.listen !== undefined && values.textfile !== undefined) {
    throw new BatonError("USAGE", "--listen and --textfile cannot be used together; run baton metrics twice");
  }
  if (values.textfile !== undefined && !values.textfile.endsWith(".prom")) {
    throw new BatonError("USAGE", `node_exporter reads files whose name ends with .prom, not "${values.textfile}"`);
  }
  if (values.every !== undefined && values.listen === undefined && values.textfile === undefined) {
    throw new BatonError("USAGE", "--every needs --listen or --textfile");
  }
  const read = await metricsReader(call, products);
  if (values.listen !== undefined) return await serve(call, read, values.listen);
  if (values.every === undefined) return await exportOnce(call, read);
  return await follow(call, read, { everyMs: values.every });
}

type ReadMetrics = (zk: ZooKeeper) => Promise<Metric[]>;

async function metricsReader({ values }: MetricsCall, products: readonly Product[]): Promise<ReadMetrics> {
  const { root, namesMax } = values;
  const views = await Promise.all(products.map((product) => product.view()));
  const readers = await Promise.all(views.map((view) => view.metrics?.({ root, namesMax, clock: systemClock() })));
  return async (zk) => (await Promise.all(readers.map((read) => read?.(zk) ?? []))).flat();
}

const { metric, gauge } = metricFactory("baton");

/** Returns the metrics about the exporter. `isUp` is true if the servers could be read. */
export function exporterMetrics(isUp: boolean): Metric[] {
  const { release, commit } = readBuildFacts();
  const help = "1 if the coordination service could be read, else 0: the other metrics are missing then.";
  return [
    gauge("up", help, Number(isUp)),
    metric("gauge", "build_info", "The version of the exporter; the value is always 1.", [
      { labels: { version: release, commit: commit ?? "" }, value: 1 },
    ]),
  ];
}

function textOf(reading: readonly Metric[]): string {
  return formatMetrics([...exporterMetrics(true), ...reading]);
}

async function exportOnce(call: MetricsCall, read: ReadMetrics): Promise<ExitCode> {
  const { values: { textfile }, io } = call;
  const text = textOf(await runInCoordinationSession(call, read));
  if (textfile === undefined) io.out(text);
  else replaceFile(textfile, text, { mode: 0o644 });
  return exitCodes.SUCCESS;
}

/** Reads the metrics at intervals until a signal arrives. Never resolves; rejects with StoppedBySignal or an error. */
async function follow(
  call: MetricsCall,
  read: ReadMetrics,
  { everyMs, onReading }: { readonly everyMs: number; readonly onReading?: (reading: readonly Metric[]) => void },
): Promise<never> {
  const { values: { textfile, quiet }, io } = call;
  const clock = systemClock();
  using stop = new StopRequestListener();
  const { signal } = stop;
  const onLate = (message: string) => quiet || io.err(message);
  const readings = followSessions(call, (zk) =>
    readPeriodically(() => read(zk), {
      ended: zk.session.ended,
      clock,
      signal,
      everyMs,
      onLate,
    }), { what: "the metrics", signal, waitsForServer: true });
  for await (const reading of readings) {
    onReading?.(reading);
    if (textfile === undefined) continue;
    try {
      replaceFile(textfile, textOf(reading), { mode: 0o644 });
    } catch (thrown) {
      io.err(`baton: ${errorMessage(thrown)}\n`);
    }
  }
  throw signal.reason;
}

async function serve(call: MetricsCall, read: ReadMetrics, listen: string): Promise<ExitCode> {
  const { values, io } = call;
  refuseUnprotectedSockets(planStatusPageSocket(listen), values.insecure);
  const everyMs = values.every ?? everyMsDefault;
  const clock = systemClock();
  let latest: { readonly reading: readonly Metric[]; readonly atMs: number } | null = null;
  // A reading stays valid for three intervals, so that a single late reading does not matter.
  const valid = () => (latest !== null && clock.now() - latest.atMs <= 3 * everyMs ? latest.reading : null);
  await using page = await serveStatusPage(listen, {
    health: () => valid() === null ? `the servers were not read for ${formatDuration(3 * everyMs)}` : null,
    metrics: () => {
      const reading = valid();
      return [...exporterMetrics(reading !== null), ...reading ?? []];
    },
  });
  if (!values.quiet) {
    io.err(
      `baton: metrics at ${formatAddress(page.address)}/metrics for ${describeWhoReachesSocket(page.address, false)}\n`,
    );
  }
  return await follow(call, read, {
    everyMs,
    onReading: (reading) => latest = { reading, atMs: clock.now() },
  });
}
