/** Settings of single commands that files and variables give, too: sections `[elect]`, `[barrier]` and `[keeper]`. */
import { setting, type SettingTable } from "./setting.ts";
import { choice, duration, integer, list, sessionTimeout, text, toggle } from "./value_types.ts";

export const restartModes = ["always", "on-loss", "never"] as const;

/** For `baton elect`. What is one election's own, as its value, is for the command line. */
export const electSettings = {
  restart: setting(choice(restartModes), {
    flag: "--restart",
    key: "elect.restart",
    help:
      "when to campaign again: after leadership was lost or given up, also after the command has ended by itself, or never",
    default: "on-loss",
  }),
  preempt: setting(toggle(), {
    flag: "--preempt",
    key: "elect.preempt",
    help: "ask a leader of worse --priority to step down",
    default: false,
  }),
  health: setting(text("command"), {
    flag: "--health",
    key: "elect.health",
    once: true,
    help: "a line of shell that tells by its exit code whether the command is well; when it is not, another leads",
  }),
  healthInterval: setting(duration({ minMs: 1 }), {
    flag: "--health-interval",
    key: "elect.health_interval",
    help: "the time from the command's start, and from each check, to the next check",
    default: 5000,
  }),
  healthTimeout: setting(duration({ minMs: 1 }), {
    flag: "--health-timeout",
    key: "elect.health_timeout",
    help: "a check that takes longer has failed",
    default: 5000,
  }),
  healthFailures: setting(integer("count", { min: 1, max: 1000 }), {
    flag: "--health-failures",
    key: "elect.health_failures",
    help: "so many failures in a row, and the leadership is given up",
    default: 3,
  }),
  onElected: setting(text("command"), {
    flag: "--on-elected",
    key: "elect.on_elected",
    once: true,
    help: "a line of shell to run as the leader, before the command; its failure is told and stops nothing",
  }),
  onDeposed: setting(text("command"), {
    flag: "--on-deposed",
    key: "elect.on_deposed",
    once: true,
    help: "a line of shell to run when the command is dead, before the leadership is given up, if it is not lost",
  }),
  hookTimeout: setting(duration({ minMs: 1 }), {
    flag: "--hook-timeout",
    key: "elect.hook_timeout",
    help: "--on-elected and --on-deposed are stopped when they take longer",
    default: 10_000,
  }),
} satisfies SettingTable;

/** The most of src/recipes/barrier, which one transaction starts. */
export const barrierPartiesMax = 1000;

/** For `baton barrier`. */
export const barrierSettings = {
  parties: setting(integer("count", { min: 1, max: barrierPartiesMax }), {
    flag: "-N, --parties",
    key: "barrier.parties",
    help: "how many start together",
  }),
  within: setting(duration(), {
    flag: "-w, --within",
    key: "barrier.within",
    help: "how long to wait, for the start or for the gate; then exit 75",
  }),
  onMemberLost: setting(choice(["fail", "wait"]), {
    flag: "--on-member-lost",
    key: "barrier.on_member_lost",
    help: "when one of them is lost before the start: all others exit with 82, or wait for another",
    default: "fail",
  }),
  maxHold: setting(duration({ minMs: 1 }), {
    flag: "--max-hold",
    key: "barrier.max_hold",
    help: "stop the child so long after the start; then exit 124",
  }),
} satisfies SettingTable;

/** One of the times a keeper goes by. */
const time = (name: string, help: string, standardMs: number) =>
  setting(sessionTimeout({ minMs: 10 }), {
    flag: `--${name.replaceAll("_", "-")}`,
    key: `keeper.${name}`,
    help,
    default: standardMs,
  });

/** For `baton keeper`; limits and times are also those of the keeper that commands start by themselves. */
export const keeperSettings = {
  keeperListen: setting(list("unix:PATH|host:port,…"), {
    flag: "--listen",
    key: "keeper.listen",
    once: true,
    help: "where to listen; over TCP everybody who reaches the port may use it",
    unset: "a unix socket in the data folder",
  }),
  keeperTlsCert: setting(text("file"), {
    flag: "--tls-cert",
    key: "keeper.tls.cert",
    help: "PEM file with the server's certificate: TCP is TLS then",
  }),
  keeperTlsKey: setting(text("file"), {
    flag: "--tls-key",
    key: "keeper.tls.key",
    help: "PEM file with its private key",
  }),
  keeperTlsCa: setting(text("file"), {
    flag: "--tls-ca",
    key: "keeper.tls.ca",
    help: "PEM file with the authorities that clients' certificates must come from",
    unset: "clients need no certificate",
  }),
  keeperTickTime: time("tick_time", "the grain of session timeouts", 500),
  keeperSessionTimeoutMin: time("session_timeout_min", "the shortest session timeout a client gets", 1000),
  keeperSessionTimeoutMax: time("session_timeout_max", "the longest session timeout a client gets", 60_000),
  keeperContainerCheck: time("container_check", "how often empty containers are looked for", 60_000),
  keeperLimits: setting(list("NAME=VALUE,…"), {
    flag: "--limit",
    key: "keeper.limits",
    once: true,
    help:
      "other limits than docs/protocol/keeper.md has, by their names there, as in dataBytesMax=1GiB,nodesMax=2000000; " +
      "all of it is in memory",
  }),
  keeperIdleExit: setting(duration(), {
    flag: "--idle-exit",
    key: "keeper.idle_exit",
    help: "end after so long without a session",
    unset: "stay",
  }),
  keeperMetricsListen: setting(text("host:port|unix:PATH"), {
    flag: "--metrics-listen",
    key: "keeper.metrics_listen",
    help: "serve /healthz and /metrics (Prometheus) there by HTTP; :PORT means this machine only",
    unset: "nothing is served",
  }),
} satisfies SettingTable;
