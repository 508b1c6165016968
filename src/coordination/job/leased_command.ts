/** Prepares the supervision and the environment of a command that runs under a lease. */
import { ownSignalSource, type SignalSource } from "../../base/process/supervise/signal_source.ts";
import type { LeaseNoteFile } from "../../base/process/supervise/lease_note.ts";
import type { SuperviseOptions } from "../../base/process/supervise/supervise_child.ts";
import type { Io } from "../../base/terminal/io.ts";
import type { SettingValues } from "../../base/config/setting.ts";
import type { LockCommandEnvironment } from "../../base/config/child_variables.ts";
import { connectionSecretVariables, type lockSettings } from "../settings/coordination_settings.ts";
import type { BarrierMembership } from "../barrier/barrier_membership.ts";
import type { Lease } from "../../base/process/lease.ts";
import { type Clock, systemClock } from "../../base/support/clock.ts";
import type { CoordinationServers } from "../connect/coordination_servers.ts";
import { connectToZooKeeper, type ZooKeeperConnectOptions } from "../../protocols/zookeeper/zookeeper_client.ts";
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { leftoverProcessesMessage, unstoppableProcessesMessage } from "../../base/process/supervise/leftovers.ts";

export interface CommandRunOptions {
  readonly command: readonly [string, ...string[]];
  readonly quiet: boolean;
  readonly verbose: boolean;
  /** The running script; undefined if there is a command to start. */
  readonly script?: { readonly pid: number };
  /** The item that the command processes; undefined if it runs outside a pool. */
  readonly item?: string | undefined;
  readonly values: Pick<SettingValues<typeof lockSettings>, "killAfter" | "signal" | "onDoubt"> & {
    readonly foreground: boolean;
    readonly maxHold?: number | undefined;
  };
}

export function toSuperviseOptions(
  { command, quiet, verbose, script, item, values }: CommandRunOptions,
  io: Io,
  { clock, signals }: { readonly clock: Clock; readonly signals: SignalSource },
) {
  const noun = script !== undefined
    ? "script"
    : item !== undefined
    ? `command of item ${quotedNames([item])}`
    : "command";
  return {
    command,
    clock,
    signals,
    descriptors: io.inheritedFds,
    killAfterMs: values.killAfter,
    stopSignal: values.signal,
    onDoubt: values.onDoubt,
    maxHoldMs: values.maxHold ?? null,
    foreground: values.foreground || "auto",
    onEvent: (event) => {
      if (event.kind === "unstoppable") return io.err(`baton: ${unstoppableProcessesMessage(event.what, noun)}\n`);
      const leftovers = leftoverProcessesMessage(event, noun);
      if (leftovers !== null) {
        if (!quiet) io.err(`baton: ${leftovers}\n`);
      } else if (verbose) io.err(`baton: ${event.kind}${"reason" in event ? ` (${event.reason})` : ""}\n`);
    },
  } as const satisfies Partial<SuperviseOptions>;
}

export interface CommandEnvironmentFacts {
  /** The leases in the order of their names; at least one. */
  readonly leases: readonly Lease[];
  readonly waitedMs: number;
  readonly place: CoordinationServers;
  /** The lease note; null on systems without lease notes. */
  readonly note: LeaseNoteFile | null;
  /** True if the command inherits the credentials in baton's environment. */
  readonly passAuth: boolean;
  readonly election?: { readonly name: string; readonly value: string };
  /** The started barrier of which the command is a member; undefined if there is none. */
  readonly barrier?: Pick<BarrierMembership, "name" | "rank" | "size" | "generation">;
  readonly pool?: { readonly name: string; readonly item: string } | undefined;
  readonly tick?: { readonly tickMs: number; readonly attempt: number } | undefined;
}

/**
 * Returns the command's variables. If a value is undefined, the variable of an outer call must be removed. Supervision
 * later appends the first lease's holder ID to BATON_LOCK_COOKIE.
 */
export function commandEnvironment({ env }: Io, facts: CommandEnvironmentFacts): Record<string, string | undefined> {
  const { leases, place, election, barrier, pool, tick } = facts;
  const [first] = leases;
  const each = (value: (lease: Lease) => string) => leases.map(value).join("\n");
  const mode = first?.mode ?? "exclusive";
  const cookies = [env["BATON_LOCK_COOKIE"], ...leases.slice(1).map((lease) => lease.holderId)];
  const variables: LockCommandEnvironment = {
    BATON_LOCK_NAME: each((lease) => lease.name),
    BATON_LOCK_PATH: each((lease) => lease.path),
    BATON_LOCK_MODE: mode,
    BATON_LOCK_SLOT: mode === "permit" ? each((lease) => String(lease.slot)) : undefined,
    BATON_LOCK_LIMIT: mode === "shared" ? "" : mode === "permit" ? each((lease) => String(lease.limit)) : "1",
    BATON_LOCK_SCOPE: place.scope,
    BATON_LOCK_COOKIE: cookies.filter(Boolean).join(":"),
    BATON_LOCK_ACQUIRED_AT: new Date().toISOString(),
    BATON_LOCK_WAITED_MS: String(Math.round(facts.waitedMs)),
    BATON_ELECTION_NAME: election?.name,
    BATON_ELECTION_VALUE: election?.value,
    BATON_BARRIER_NAME: barrier?.name,
    BATON_BARRIER_GENERATION: barrier?.generation.toString(),
    BATON_RANK: barrier?.rank.toString(),
    BATON_SIZE: barrier?.size.toString(),
    BATON_POOL_NAME: pool?.name,
    BATON_ITEM: pool?.item,
    BATON_TICK: tick === undefined ? undefined : new Date(tick.tickMs).toISOString().replace(".000Z", "Z"),
    BATON_TICK_UNIX: tick === undefined ? undefined : String(Math.floor(tick.tickMs / 1000)),
    BATON_TICK_ATTEMPT: tick?.attempt.toString(),
    BATON_HOLD: undefined,
    BATON_FENCING_TOKEN: each((lease) => lease.fencingToken.toString()),
    BATON_SESSION_ID: first?.sessionId.toString() ?? "",
    BATON_SESSION_TIMEOUT_MS: String(first?.sessionTimeoutMs ?? ""),
    BATON_SERVERS: place.servers,
    BATON_ROOT: place.root,
    BATON_LEASE: facts.note?.path ?? "",
  };
  // A command inside a barrier, a pool or a tick keeps its rank, item or tick when it takes another lock. BATON_HOLD
  // also stays, so that a script can release the locks it holds.
  const outer = [
    "BATON_HOLD",
    ...(barrier === undefined ? ["BATON_BARRIER_NAME", "BATON_BARRIER_GENERATION", "BATON_RANK", "BATON_SIZE"] : []),
    ...(pool === undefined ? ["BATON_POOL_NAME", "BATON_ITEM"] : []),
    ...(tick === undefined ? ["BATON_TICK", "BATON_TICK_UNIX", "BATON_TICK_ATTEMPT"] : []),
  ];
  return {
    ...Object.fromEntries((facts.passAuth ? [] : connectionSecretVariables()).map((name) => [name, undefined])),
    ...variables,
    ...Object.fromEntries(outer.map((name) => [name, env[name]])),
  };
}

/** Returns a list such as `"a", "b"`, with control characters escaped. */
export function quotedNames(names: readonly string[]): string {
  return names.map((name) => JSON.stringify(name)).join(", ");
}

export interface CommandRunDependencies {
  readonly clock: Clock;
  readonly signals: SignalSource;
  connect(options: ZooKeeperConnectOptions): Promise<ZooKeeper>;
}

export function commandRunDependencies(): CommandRunDependencies {
  const clock = systemClock();
  return { clock, signals: ownSignalSource(), connect: (options) => connectToZooKeeper({ ...options, clock }) };
}
