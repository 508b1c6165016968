/** Data of version 0.1's first form, whose rows had no checksums: they get theirs, in the transaction of whoever opens it. */
import type { DatabaseSync } from "node:sqlite";
import { withChecksum, zxidChecksum } from "./stored_records.ts";

export function addChecksums(database: DatabaseSync): void {
  for (const table of ["nodes", "sessions"]) {
    const bodyOf = database.prepare(`SELECT body FROM ${table} WHERE id = ?`);
    const put = database.prepare(`UPDATE ${table} SET body = ? WHERE id = ?`);
    const ids = database.prepare(`SELECT id FROM ${table}`);
    ids.setReadBigInts(true);
    for (const { id } of ids.all()) {
      const body = bodyOf.get(id ?? null)?.["body"];
      if (typeof id !== "bigint" || !(body instanceof Uint8Array)) throw new TypeError(`A row of ${table} is damaged`);
      put.run(withChecksum(id, body), id);
    }
  }
  database.exec("ALTER TABLE progress ADD COLUMN checksum INTEGER");
  const progress = database.prepare("SELECT zxid FROM progress");
  progress.setReadBigInts(true);
  const zxid = progress.get()?.["zxid"];
  if (typeof zxid === "bigint") database.prepare("UPDATE progress SET checksum = ?").run(zxidChecksum(zxid));
}
