/** What a backup of a topic store does to those who use the store. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { backupTopicStore } from "../../../src/pubsub/store/sqlite/backup_topic_store.ts";
import { TopicDatabase, topicDatabaseName } from "../../../src/pubsub/store/sqlite/topic_database.ts";

setDefaultTimeout(60_000);

const bun = realpathSync(join(import.meta.dir, "../../../node_modules/.bin/bun"));
const openAndClose =
  `const { DatabaseSync } = require("node:sqlite"); const database = new DatabaseSync(process.argv[1]);
  database.exec("SELECT count(*) FROM topics"); database.close();`;

test("a backup keeps its locks: another process that ends meanwhile does not take itself for the last one", () => {
  const root = mkdtempSync(join(tmpdir(), "baton-backup-"));
  try {
    const store = new TopicDatabase(join(root, "store"));
    cpSync(join(root, "store"), join(root, "killed"), { recursive: true }); // with its log, as a kill leaves it
    store.close();
    const path = join(root, "killed", topicDatabaseName);
    expect(existsSync(`${path}-wal`)).toBe(true);
    let isLogThere = false;
    backupTopicStore(join(root, "killed"), join(root, "copy"), () => {
      const { status, stderr } = spawnSync(bun, ["-e", openAndClose, path]);
      expect([status, stderr.toString()]).toEqual([0, ""]);
      isLogThere = existsSync(`${path}-wal`); // the last one would have removed it
    });
    expect(isLogThere).toBe(true);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});
