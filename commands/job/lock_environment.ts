/** Environment of a command under a lock: the variables it gets, and the secrets it does not inherit. Pure. */
import type { ChildEnvironment } from "../../src/config/child_variables.ts";
import { type SettingTable, variableOf } from "../../src/config/setting.ts";
import { allSettings } from "../../src/config/settings.ts";
import type { Scope } from "../../src/config/settings.ts";
import type { Lease } from "../../src/process/lease.ts";

export interface BarrierFacts {
  readonly name: string;
  readonly rank: number;
  readonly size: number;
  readonly generation: number;
}

export interface PoolFacts {
  readonly name: string;
  readonly item: string;
}

export interface LockFacts {
  /** Leases in the order of their names; at least one. */
  readonly leases: readonly Lease[];
  readonly scope: Scope;
  readonly servers: string;
  readonly root: string;
  /** File with the end of the lease; empty if the system has none. */
  readonly leasePath: string;
  /** Wall-clock time of the grant, for display. */
  readonly acquiredAt: Date;
  readonly waitedMs: number;
  /** Holder ids of the command around this call; empty if there is none. */
  readonly outerCookie: string;
  /** Election that the command leads, if any. */
  readonly election?: { readonly name: string; readonly value: string } | undefined;
  /** Started barrier of which the command is a member, if any. */
  readonly barrier?: BarrierFacts | undefined;
  /** Pool and item of the command, if any. */
  readonly pool?: PoolFacts | undefined;
}

/**
 * Returns a value for every variable; undefined removes the value of an outer call. Supervision appends its own holder id to
 * BATON_LOCK_COOKIE.
 */
export function lockEnvironment(facts: LockFacts): ChildEnvironment {
  const { leases } = facts;
  const [first] = leases;
  const each = (value: (lease: Lease) => string) => leases.map(value).join("\n");
  const mode = first?.mode ?? "exclusive";
  return {
    BATON_LOCK_NAME: each((lease) => lease.name),
    BATON_LOCK_PATH: each((lease) => lease.path),
    BATON_LOCK_MODE: mode,
    BATON_LOCK_SLOT: mode === "permit" ? each((lease) => String(lease.slot)) : undefined,
    BATON_LOCK_LIMIT: mode === "shared" ? "" : mode === "permit" ? each((lease) => String(lease.limit)) : "1",
    BATON_LOCK_SCOPE: facts.scope,
    BATON_LOCK_COOKIE: [facts.outerCookie, ...leases.slice(1).map((lease) => lease.holderId)].filter(Boolean).join(":"),
    BATON_LOCK_ACQUIRED_AT: facts.acquiredAt.toISOString(),
    BATON_LOCK_WAITED_MS: String(Math.round(facts.waitedMs)),
    BATON_ELECTION_NAME: facts.election?.name,
    BATON_ELECTION_VALUE: facts.election?.value,
    BATON_BARRIER_NAME: facts.barrier?.name,
    BATON_BARRIER_GENERATION: facts.barrier?.generation.toString(),
    BATON_RANK: facts.barrier?.rank.toString(),
    BATON_SIZE: facts.barrier?.size.toString(),
    BATON_POOL_NAME: facts.pool?.name,
    BATON_ITEM: facts.pool?.item,
    BATON_HOLD: undefined,
    BATON_FENCING_TOKEN: each((lease) => lease.fencingToken.toString()),
    BATON_SESSION_ID: first?.sessionId.toString() ?? "",
    BATON_SESSION_TIMEOUT_MS: String(first?.sessionTimeoutMs ?? ""),
    BATON_SERVERS: facts.servers,
    BATON_ROOT: facts.root,
    BATON_LEASE: facts.leasePath,
  };
}

let secrets: readonly string[] | undefined;

/** Returns the variables with secrets, which the command does not inherit without --pass-auth. */
export function secretVariables(): readonly string[] {
  return secrets ??= Object.values<SettingTable[string]>(allSettings).flatMap(({ key, secret }) =>
    key !== undefined && secret === true ? [variableOf(key)] : []
  );
}
