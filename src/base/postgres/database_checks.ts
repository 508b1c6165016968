/**
 * Checks how safely a database stores committed data: reads its settings and its standbys, and judges them. A managed
 * service may hide some settings; hidden settings are not judged.
 */
import { type DatabaseAddress, describeDatabase } from "./database_address.ts";
import type { PrimaryConnection } from "./primary_connection.ts";
import { StatementError } from "./statement_error.ts";

export interface DatabaseSafetyFacts {
  /**
   * The values of pg_settings in this session. The values of the whole database would not show that the role or the
   * database has weakened a setting.
   */
  readonly settings: Readonly<Record<string, string>>;
  /** Null if this role cannot read the standbys. */
  readonly standbys: readonly { readonly name: string; readonly state: string; readonly sync: string }[] | null;
  /**
   * The cluster's identifier, which all servers of a cluster have in common; a restored copy has the same identifier.
   * Null if it cannot be read.
   */
  readonly systemId: string | null;
  /** A number that increases each time a standby becomes the primary. */
  readonly timeline: number;
  /** The wall clock of the database, in milliseconds. */
  readonly nowMs: number;
}

export interface DatabaseSafetyFinding {
  /** `refused` means that baton must not use the database. */
  readonly severity: "refused" | "warning";
  readonly sentence: string;
}

const settingNames = [
  "fsync",
  "full_page_writes",
  "synchronous_commit",
  "synchronous_standby_names",
  "data_checksums",
  "autovacuum",
  "server_version_num",
] as const;

const oldestVersion = 13;

/**
 * Reads the identifier of the cluster. Returns null if an operator has forbidden this, or if the database is a program
 * that only imitates PostgreSQL.
 */
export async function readSystemId(connection: PrimaryConnection): Promise<string | null> {
  try {
    const text = "SELECT system_identifier::text AS system FROM pg_control_system()";
    const [row] = await connection.run({ name: "check_system", text }, []);
    return row === undefined ? null : String(row["system"]);
  } catch (error) {
    if (error instanceof StatementError && /^(42501|42883|0A000)$/.test(error.sqlState ?? "")) return null;
    throw error;
  }
}

export async function readDatabaseSafetyFacts(connection: PrimaryConnection): Promise<DatabaseSafetyFacts> {
  const settings = await connection.run({
    name: "check_settings",
    text: "SELECT name, setting FROM pg_settings WHERE name = ANY ($1::text[])",
  }, [settingNames]);
  const [identity] = await connection.run({
    name: "check_identity",
    // Reads the timeline from the name of the log file, because pg_control_checkpoint() still has the old timeline
    // after a promotion.
    text: "SELECT (('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int) AS timeline, " +
      "(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms",
  }, []);
  const standbys = await connection.run({
    name: "check_standbys",
    text: "SELECT application_name, state, sync_state FROM pg_stat_replication",
  }, []);
  // If a role lacks pg_read_all_stats, the rows have columns that are null.
  const isReadable = standbys.every((row) => row["sync_state"] !== null);
  return {
    settings: Object.fromEntries(settings.map((row) => [String(row["name"]), String(row["setting"])])),
    standbys: isReadable
      ? standbys.map((row) => ({
        name: String(row["application_name"]),
        state: String(row["state"]),
        sync: String(row["sync_state"]),
      }))
      : null,
    systemId: await readSystemId(connection),
    timeline: Number(identity?.["timeline"]),
    nowMs: Number(identity?.["now_ms"]),
  };
}

/** Returns true if a commit waits until it is on a standby's disk. A failover to that standby then loses nothing. */
export function isReplicationSynchronous({ settings }: DatabaseSafetyFacts): boolean {
  const commit = settings["synchronous_commit"];
  return (settings["synchronous_standby_names"] ?? "") !== "" && (commit === "on" || commit === "remote_apply");
}

/** Returns the reasons not to use the database, and the warnings. Pure. */
export function judgeDatabaseSafety(
  facts: DatabaseSafetyFacts,
  { requiresSync }: { readonly requiresSync: boolean },
): DatabaseSafetyFinding[] {
  const { settings, standbys } = facts;
  const findings: DatabaseSafetyFinding[] = [];
  const refuse = (sentence: string) => findings.push({ severity: "refused", sentence });
  const warn = (sentence: string) => findings.push({ severity: "warning", sentence });
  const version = Math.floor(Number(settings["server_version_num"] ?? oldestVersion * 10_000) / 10_000);
  if (version < oldestVersion) refuse(`PostgreSQL ${version} is too old: ${oldestVersion} or newer is needed`);
  if (settings["fsync"] === "off") refuse("fsync is off: a crash of the machine destroys the database; set fsync = on");
  if (settings["full_page_writes"] === "off") {
    refuse("full_page_writes is off: a crash of the machine may destroy pages; set full_page_writes = on");
  }
  const commit = settings["synchronous_commit"];
  if (commit === "off" || commit === "local") {
    const what = commit === "off" ? "a commit is not on the disk" : "a commit does not wait for a standby";
    refuse(`synchronous_commit is ${commit} for this role: ${what} when it is reported; set synchronous_commit = on`);
  }
  if (settings["autovacuum"] === "off") {
    refuse("autovacuum is off: the tables would grow without a limit; set autovacuum = on");
  }
  if (settings["data_checksums"] === "off") {
    warn(
      "data_checksums is off: the database does not detect damaged pages; baton checks the content of messages only",
    );
  }
  if (commit === "remote_write") {
    warn(
      "synchronous_commit is remote_write: " +
        "a failover after a crash of the standby's machine may lose acknowledged messages",
    );
  }
  if (!isReplicationSynchronous(facts)) {
    const sentence = standbys !== null && standbys.length === 0
      ? "there is no standby: acknowledged messages are lost with the disk of the database"
      : "replication is asynchronous: a failover may lose acknowledged messages; set synchronous_standby_names";
    if (requiresSync) refuse(`${sentence} (--require-sync)`);
    else warn(sentence);
  }
  if (facts.systemId === null) {
    warn(
      "the identifier of the cluster cannot be read, so baton cannot detect a change of the cluster: " +
        "GRANT EXECUTE ON FUNCTION pg_control_system() TO the role of baton",
    );
  }
  if (standbys === null) warn("the state of the standbys cannot be read: GRANT pg_read_all_stats to the role of baton");
  return findings;
}

/** Returns the warnings. Throws StatementError CONFIG with all reasons why the database cannot be used. */
export function requireSafeDatabase(
  address: DatabaseAddress,
  facts: DatabaseSafetyFacts,
  wanted: { readonly requiresSync: boolean },
): string[] {
  const findings = judgeDatabaseSafety(facts, wanted);
  const refusals = findings.filter(({ severity }) => severity === "refused").map(({ sentence }) => sentence);
  if (refusals.length > 0) {
    throw new StatementError(`The database ${describeDatabase(address)} cannot be used: ${refusals.join("; ")}`, {
      outcome: "not_sent",
      sqlState: null,
      code: "CONFIG",
    });
  }
  return findings.map(({ sentence }) => sentence);
}
