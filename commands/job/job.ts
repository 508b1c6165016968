/** Common parts of the verbs that run a command under a lease: supervision, environment, status. */
import type { ChildEnding } from "../../src/process/spawn/child_outcome.ts";
import { processSignals, type SignalSource } from "../../src/process/supervise/signal_source.ts";
import type { LeaseNote } from "../../src/process/supervise/lease_note.ts";
import type { SuperviseOptions } from "../../src/process/supervise/supervise_child.ts";
import type { Io } from "../../src/terminal/io.ts";
import type { StatusReport } from "../../src/terminal/status_report.ts";
import type { SettingValues } from "../../src/config/setting.ts";
import type { lockSettings } from "../../src/config/settings.ts";
import type { Lease } from "../../src/process/lease.ts";
import { type Clock, systemClock } from "../../src/support/clock.ts";
import type { Coordination } from "../../src/coordination/connect/coordination_servers.ts";
import { type BarrierFacts, lockEnvironment, type PoolFacts, secretVariables } from "./lock_environment.ts";
import { connect, type ConnectOptions } from "../../src/zookeeper/zookeeper_client.ts";
import type { ZooKeeper } from "../../src/zookeeper/zookeeper.ts";

export interface JobOptions {
  readonly command: readonly [string, ...string[]];
  readonly verbose: boolean;
  readonly values: Pick<SettingValues<typeof lockSettings>, "killAfter" | "signal" | "onDoubt"> & {
    readonly foreground: boolean;
    readonly maxHold?: number | undefined;
    readonly minHold?: number | undefined;
  };
}

export function superviseOptions(
  { command, verbose, values }: JobOptions,
  io: Io,
  { clock, signals }: { readonly clock: Clock; readonly signals: SignalSource },
) {
  return {
    command,
    clock,
    signals,
    descriptors: io.inheritedFds,
    killAfterMs: values.killAfter,
    stopSignal: values.signal,
    onDoubt: values.onDoubt,
    maxHoldMs: values.maxHold ?? null,
    minHoldMs: values.minHold ?? null,
    foreground: values.foreground || "auto",
    onEvent: (event) => {
      if (verbose) io.err(`baton: ${event.kind}${"reason" in event ? ` (${event.reason})` : ""}\n`);
    },
  } as const satisfies Partial<SuperviseOptions>;
}

export interface JobFacts {
  readonly leases: readonly Lease[];
  readonly waitedMs: number;
  readonly place: Coordination;
  /** Null on systems without lease notes. */
  readonly note: LeaseNote | null;
  /** True: the command inherits the credentials of baton's environment. */
  readonly passAuth: boolean;
  readonly election?: { readonly name: string; readonly value: string };
  readonly barrier?: BarrierFacts;
  readonly pool?: PoolFacts;
}

export function jobEnvironment(io: Io, facts: JobFacts): Record<string, string | undefined> {
  const { leases, waitedMs, place, note, passAuth, election, barrier, pool } = facts;
  const secrets = passAuth ? [] : secretVariables().map((name) => [name, undefined]);
  return {
    ...Object.fromEntries(secrets),
    ...lockEnvironment({
      leases,
      waitedMs,
      election,
      barrier,
      pool,
      scope: place.scope,
      servers: place.servers,
      root: place.root,
      leasePath: note?.path ?? "",
      acquiredAt: new Date(),
      outerCookie: io.env["BATON_LOCK_COOKIE"] ?? "",
    }),
    ...(barrier === undefined ? outer(io, barrierVariables) : {}),
    ...(pool === undefined ? outer(io, poolVariables) : {}),
    ...outer(io, ["BATON_HOLD"]),
  };
}

const barrierVariables = ["BATON_BARRIER_NAME", "BATON_BARRIER_GENERATION", "BATON_RANK", "BATON_SIZE"] as const;

const poolVariables = ["BATON_POOL_NAME", "BATON_ITEM"] as const;

/**
 * Variables of an outer call that stay set: a command inside a barrier or a pool keeps its rank or item when it takes another
 * lock, and the commands of a script may release the script's locks.
 */
function outer(io: Io, names: readonly string[]): Record<string, string | undefined> {
  return Object.fromEntries(names.map((name) => [name, io.env[name]]));
}

/** Returns the exit status of the command for the status report. */
export function commandStatusOf(outcome: ChildEnding): StatusReport["command_status"] {
  switch (outcome.kind) {
    case "exited":
      return { code: outcome.code, signal: null };
    case "signaled":
      return { code: null, signal: outcome.signal };
    case "lost":
    case "revoked":
    case "time_limit":
    case "breach":
      return outcome.child === null ? null : commandStatusOf(outcome.child);
    default:
      return null;
  }
}

/** Returns `"a", "b"`, with control characters escaped. */
export function quotedNames(names: readonly string[]): string {
  return names.map((name) => JSON.stringify(name)).join(", ");
}

export interface JobDependencies {
  readonly clock: Clock;
  readonly signals: SignalSource;
  connect(options: ConnectOptions): Promise<ZooKeeper>;
}

export function jobDependencies(): JobDependencies {
  const clock = systemClock();
  return { clock, signals: processSignals(), connect: (options) => connect({ ...options, clock }) };
}
