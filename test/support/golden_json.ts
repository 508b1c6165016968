/**
 * JSON that baton has printed, beside a golden file: what differs from run to run is replaced by what it might have
 * been.
 */
import { expect } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";

const folder = join(import.meta.dir, "../fixtures/json");

/** By the key: a value of another kind stays, so that the comparison shows it. */
const plausible: Readonly<Record<string, string | number>> = {
  host: "db1",
  pid: 812,
  user: "root",
  by: "root@db1:812",
  since: "2026-01-01T12:00:00.000Z",
  at: "2026-01-01T12:00:00.000Z",
  until: "2026-01-01T13:00:00.000Z",
  id: "0c6mvtqhzr5yk3b8x1nwd4jfe",
  session_id: "72057594037927936",
  fencing_token: "30064771074",
  token: "30064771074",
  fencing_tokens: "30064771074",
  zxid: "30064771074",
  event: "the hold of db1 (pid 812) ended after 12 m, failed: exit code 3",
  explanation:
    '"ticked" is free: the hold of db1 (pid 812) ended after 12 m, failed: exit code 3, 2026-01-01T12:12:04Z.',
  sum_ms: 130,
  times: 1,
  waited_ms: 12,
  held_ms: 345,
  remaining_ms: 9321,
  servers: "zk1:2181,zk2:2181,zk3:2181",
  public_key: "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID",
  secret_key: "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs",
  endpoint: "tcp://10.0.0.7:7001",
  bytes: 12288,
  puts_per_second: 20000,
  gets_per_second: 60000,
  nodes: 4,
  first: "9x4kq2mh-17",
  last: "9x4kq2mh-18",
  first_at: "2026-01-01T12:00:00.000Z",
  last_at: "2026-01-01T12:00:03.000Z",
  next_at: "2026-01-01T12:00:06.000Z",
  oldest: "2026-01-01T12:00:00.000Z",
  next: "2026-01-01T12:00:06.000Z",
  tick: "2026-01-01T12:00:00.000Z",
  settled_until: "2026-01-01T12:00:00.000Z",
  began: "2026-01-01T12:00:00.102Z",
  ended: "2026-01-01T12:12:04.511Z",
  late_ms: 102,
  used_bytes: 1048576,
  free_bytes: 52428800000,
  release: "0.1.0",
  commit: "0123456789abcdef0123456789abcdef01234567",
  date: "2026-01-31T12:00:00Z",
  platform: "linux-x64",
  // Of doctor: as many as the server has not cleared away yet.
  locks: 3,
};

/** `own` are texts of this run, and what stands for them. */
export function normalised(value: unknown, own: Readonly<Record<string, string>>, key = ""): unknown {
  if (Array.isArray(value)) return value.map((one) => normalised(one, own, key));
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, normalised(one, own, name)]));
  }
  // A message's id in its topic: short, and the same each time.
  if (typeof value === "string" && /^\d{1,6}$/.test(value)) return value;
  const instead = plausible[key];
  if (instead !== undefined && typeof instead === typeof value) return instead;
  if (typeof value !== "string") return value;
  let text = value;
  for (const [mine, other] of Object.entries(own)) text = text.replaceAll(mine, other);
  return text.replaceAll(/\w+@[\w.-]+:\d+/g, "root@db1:812").replaceAll(/\w+@[\w.-]+ \(pid \d+/g, "root@db1 (pid 812")
    .replaceAll(/\bfor \d+ m?s\b/g, "for 7 s");
}

/** Compares; with BATON_WRITE_GOLDEN=1 writes the file instead. */
export function expectGolden(name: string, value: unknown, own: Readonly<Record<string, string>>): void {
  const file = join(folder, `${name}.json`);
  const found = normalised(value, own);
  if (process.env["BATON_WRITE_GOLDEN"] === "1") writeFileSync(file, JSON.stringify(found, null, 2) + "\n");
  expect([name, found]).toEqual([name, JSON.parse(readFileSync(file, "utf8"))]);
}
