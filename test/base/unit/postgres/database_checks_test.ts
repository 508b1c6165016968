import { describe, expect, test } from "bun:test";
import { parseDatabaseUrl } from "../../../../src/base/postgres/database_address.ts";
import {
  type DatabaseSafetyFacts,
  isReplicationSynchronous,
  judgeDatabaseSafety,
  requireSafeDatabase,
} from "../../../../src/base/postgres/database_checks.ts";

const safe = {
  fsync: "on",
  full_page_writes: "on",
  synchronous_commit: "on",
  synchronous_standby_names: "standby",
  data_checksums: "on",
  autovacuum: "on",
  server_version_num: "150018",
};
const standby = { name: "standby", state: "streaming", sync: "sync" };
const factsOf = (
  changed: Record<string, string>,
  standbys: DatabaseSafetyFacts["standbys"] = [standby],
): DatabaseSafetyFacts => ({
  settings: { ...safe, ...changed },
  standbys,
  systemId: "7",
  timeline: 1,
  nowMs: 0,
});
const judged = (facts: DatabaseSafetyFacts, requiresSync = false) =>
  judgeDatabaseSafety(facts, { requiresSync }).map(({ severity, sentence }) => `${severity}: ${sentence}`);

describe("a database", () => {
  test("with everything that is wanted has no finding", () => expect(judged(factsOf({}), true)).toEqual([]));

  test.each([
    [{ fsync: "off" }, /^refused: fsync is off/],
    [{ full_page_writes: "off" }, /^refused: full_page_writes is off/],
    [{ synchronous_commit: "off" }, /^refused: synchronous_commit is off for this role: a commit is not on the disk/],
    [{ synchronous_commit: "local" }, /^refused: synchronous_commit is local for this role: a commit does not wait/],
    [{ autovacuum: "off" }, /^refused: autovacuum is off/],
    [{ server_version_num: "120022" }, /^refused: PostgreSQL 12 is too old: 13 or newer is needed/],
    [{ data_checksums: "off" }, /^warning: data_checksums is off/],
    [{ synchronous_standby_names: "" }, /^warning: replication is asynchronous: a failover may lose/],
    [{ synchronous_commit: "remote_write" }, /^warning: synchronous_commit is remote_write/],
  ])("with %j is judged", (changed, sentence) => expect(judged(factsOf(changed))[0]).toMatch(sentence));

  test("without a synchronous standby is refused only where one is required", () => {
    expect(judged(factsOf({ synchronous_standby_names: "" }, []), true)).toEqual([
      "refused: there is no standby: acknowledged messages are lost with the disk of the database (--require-sync)",
    ]);
    expect(isReplicationSynchronous(factsOf({ synchronous_commit: "remote_apply" }))).toBe(true);
  });

  test("that hides its settings or standbys is judged by what it shows", () => {
    const hidden = { ...factsOf({}, null), settings: {} };
    expect(judged(hidden)).toEqual([
      "warning: replication is asynchronous: a failover may lose acknowledged messages; set synchronous_standby_names",
      "warning: the state of the standbys cannot be read: GRANT pg_read_all_stats to the role of baton",
    ]);
  });

  test("is refused with all reasons in one sentence", () => {
    const address = parseDatabaseUrl("postgres://pg1/shop", { mayHavePassword: false, env: { PGUSER: "ann" } });
    expect(() => requireSafeDatabase(address, factsOf({ fsync: "off", autovacuum: "off" }), { requiresSync: false }))
      .toThrow(
        /^The database postgres:\/\/pg1:5432\/shop cannot be used: fsync is off: .*; autovacuum is off: /,
      );
  });
});
