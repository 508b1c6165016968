/**
 * Writes to its folder by node:fs and by node:sqlite, with and without syncs, as storage_faults_test.ts tells. argv:
 * folder, act.
 */
import { spawnSync } from "node:child_process";
import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, writeFileSync, writeSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { DatabaseSync } from "node:sqlite";

const [folder = "", act = ""] = process.argv.slice(2);
const file = (name: string, { synced, flags = "w" }: { synced: boolean; flags?: string }, text: string) => {
  const fd = openSync(join(folder, name), flags);
  writeSync(fd, text);
  if (synced) fsyncSync(fd);
  closeSync(fd);
};
const syncFolder = () => {
  const fd = openSync(folder, "r");
  fsyncSync(fd);
  closeSync(fd);
};
const die = () => process.kill(process.pid, "SIGKILL");

switch (act) {
  case "files":
    file("kept", { synced: true }, "synced");
    file("content lost", { synced: false }, "not synced");
    file("longer", { synced: true }, "synced");
    mkdirSync(join(folder, "kept folder"));
    syncFolder();
    file("longer", { synced: false, flags: "a" }, ", and more");
    writeFileSync(join(folder, "kept"), "overwritten");
    file("name lost", { synced: true }, "synced");
    renameSync(join(folder, "longer"), join(folder, "renamed"));
    die();
    break;
  case "spawn": {
    const write = async () => {
      for (;;) await writeFile(join(folder, "busy"), "written by another thread");
    };
    for (let writer = 0; writer < 8; writer++) void write();
    for (;;) {
      spawnSync("true", { stdio: ["ignore", "inherit", "ignore"] });
      await new Promise(setImmediate);
    }
  }
  case "rows": {
    const database = new DatabaseSync(join(folder, "rows.sqlite"));
    database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE rows (id INTEGER PRIMARY KEY)");
    const insert = database.prepare("INSERT INTO rows (id) VALUES (?)");
    for (let id = 1;; id++) {
      insert.run(id);
      writeSync(1, `${id}\n`);
    }
  }
}
