/** Settings of single commands that files and variables can set: sections `[elect]`, `[barrier]` and `[keeper]`. */
import { setting, type SettingTable } from "./setting.ts";
import { choice, duration, integer, list, sessionTimeout, text, toggle } from "./value_types.ts";

export const restartModes = ["always", "on-loss", "never"] as const;

/** Settings of `baton elect`. Settings of a single election, such as its value, are flags only. */
export const electSettings = {
  restart: setting(choice(restartModes), {
    flag: "--restart",
    key: "elect.restart",
    help:
      "when to stand for election again: on-loss (after the leadership was lost or given up), always (also after the command ended by itself), or never",
    default: "on-loss",
  }),
  preempt: setting(toggle(), {
    flag: "--preempt",
    key: "elect.preempt",
    help: "ask the leader to step down if its --priority has a higher number",
    default: false,
  }),
  health: setting(text("command"), {
    flag: "--health",
    key: "elect.health",
    once: true,
    help: "shell command that checks the health of the command; exit code 0 means healthy",
  }),
  healthInterval: setting(duration({ minMs: 1 }), {
    flag: "--health-interval",
    key: "elect.health_interval",
    help: "time from the start of the command, and from each check, to the next check",
    default: 5000,
  }),
  healthTimeout: setting(duration({ minMs: 1 }), {
    flag: "--health-timeout",
    key: "elect.health_timeout",
    help: "maximum duration of a health check; a longer check counts as failed",
    default: 5000,
  }),
  healthFailures: setting(integer("count", { min: 1, max: 1000 }), {
    flag: "--health-failures",
    key: "elect.health_failures",
    help: "number of consecutive failed checks after which the leadership is given up",
    default: 3,
  }),
  onElected: setting(text("command"), {
    flag: "--on-elected",
    key: "elect.on_elected",
    once: true,
    help: "shell command to run as leader before the command starts; if it fails, baton prints that and continues",
  }),
  onDeposed: setting(text("command"), {
    flag: "--on-deposed",
    key: "elect.on_deposed",
    once: true,
    help:
      "shell command to run after the command has ended and before the leadership is given up; not run if the leadership was lost",
  }),
  hookTimeout: setting(duration({ minMs: 1 }), {
    flag: "--hook-timeout",
    key: "elect.hook_timeout",
    help: "maximum duration of --on-elected and --on-deposed; then they are stopped",
    default: 10_000,
  }),
} satisfies SettingTable;

/** The same maximum as in src/coordination/barrier: one transaction starts all members. */
export const barrierPartiesMax = 1000;

/** Settings of `baton barrier`. */
export const barrierSettings = {
  parties: setting(integer("count", { min: 1, max: barrierPartiesMax }), {
    flag: "-N, --parties",
    key: "barrier.parties",
    help: "number of processes that start together",
  }),
  within: setting(duration(), {
    flag: "-w, --within",
    key: "barrier.within",
    help: "maximum wait for the start, or for the gate to open; then exit 75",
    unset: "no limit",
  }),
  onMemberLost: setting(choice(["fail", "wait"]), {
    flag: "--on-member-lost",
    key: "barrier.on_member_lost",
    help:
      "what happens when a member is lost before the start: the others exit with 82 (fail), or wait for a new member (wait)",
    default: "fail",
  }),
  maxHold: setting(duration({ minMs: 1 }), {
    flag: "--max-hold",
    key: "barrier.max_hold",
    help: "stop the command if it runs longer than this (exit 124)",
    unset: "no limit",
  }),
} satisfies SettingTable;

/** A duration of the keeper. */
const time = (name: string, help: string, standardMs: number) =>
  setting(sessionTimeout({ minMs: 10 }), {
    flag: `--${name.replaceAll("_", "-")}`,
    key: `keeper.${name}`,
    help,
    default: standardMs,
  });

/** Settings of `baton keeper`. Limits and durations also apply to the keeper that other commands start. */
export const keeperSettings = {
  keeperListen: setting(list("unix:PATH|host:port,…"), {
    flag: "--listen",
    key: "keeper.listen",
    once: true,
    help: "addresses to listen on; over TCP all clients that reach the port have access",
    unset: "a Unix socket in the data folder",
  }),
  keeperTlsCert: setting(text("file"), {
    flag: "--tls-cert",
    key: "keeper.tls.cert",
    help: "PEM file with the server certificate; turns on TLS for TCP connections",
  }),
  keeperTlsKey: setting(text("file"), {
    flag: "--tls-key",
    key: "keeper.tls.key",
    help: "PEM file with the private key of the server certificate",
  }),
  keeperTlsCa: setting(text("file"), {
    flag: "--tls-ca",
    key: "keeper.tls.ca",
    help: "PEM file with the authorities that sign client certificates",
    unset: "clients need no certificate",
  }),
  keeperTickTime: time("tick_time", "resolution of session timeouts", 500),
  keeperSessionTimeoutMin: time("session_timeout_min", "minimum session timeout of clients", 1000),
  keeperSessionTimeoutMax: time("session_timeout_max", "maximum session timeout of clients", 60_000),
  keeperContainerCheck: time("container_check", "interval between two searches for empty container nodes", 60_000),
  keeperLimits: setting(list("NAME=VALUE,…"), {
    flag: "--limit",
    key: "keeper.limits",
    once: true,
    help:
      "override limits listed in docs/protocol/keeper.md, for example dataBytesMax=1GiB,nodesMax=2000000; all data is kept in memory",
  }),
  keeperIdleExit: setting(duration(), {
    flag: "--idle-exit",
    key: "keeper.idle_exit",
    help: "exit after this time without a session",
    unset: "never",
  }),
  keeperMetricsListen: setting(text("host:port|unix:PATH"), {
    flag: "--metrics-listen",
    key: "keeper.metrics_listen",
    help:
      "serve /healthz and /metrics (Prometheus) over HTTP on this address; :PORT is reachable from this machine only",
    unset: "not served",
  }),
} satisfies SettingTable;

/** Settings for the log of commands that run for a long time. */
export const logSettings = {
  log: setting(choice(["text", "json"]), {
    flag: "--log",
    help: "format of the log on stderr: text, or one JSON object per line",
    default: "text",
  }),
} satisfies SettingTable;
