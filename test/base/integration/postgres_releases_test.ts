/**
 * The oldest PostgreSQL that baton supports, and the newest: statements, schema, topics and queues have the same
 * results on them as on Debian's, where all tests of these files run. What needs a standby, takes long, or has nothing
 * to do with the release is left out here.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { execFile } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import { describeWithPeer } from "../../support/peers.ts";
import { UnpackedPostgres } from "../../support/postgres_release.ts";

setDefaultTimeout(120_000);
const execute = promisify(execFile);
const files = ["base/integration/database_lane", "base/integration/database_schema"]
  .concat(["pubsub/integration/postgres_topic_rows", "retry/integration/retry_store"])
  .map((name) => `./test/${name}_test.ts`);
const leftOut = "standby|fail-over|whose commits are gone|is cut|deadlock|not respond|killed|" +
  "in a folder|its deadline|unreachable|says nothing";

for (const [peer, release] of [["postgres13", "13.23.0"], ["postgres18", "18.6.0"]] as const) {
  describeWithPeer(peer, `PostgreSQL ${release.replace(/\.0$/, "")}`, () => {
    test("does what Debian's does", async () => {
      using unpacked = await UnpackedPostgres.of(release);
      const { PATH, HOME, TMPDIR } = process.env;
      // Nothing else: the variables of this run would make the other one a part of it.
      const env = { PATH, HOME, ...TMPDIR === undefined ? {} : { TMPDIR }, NO_COLOR: "1" };
      const { stderr } = await execute(
        process.execPath,
        ["test", "--timeout=60000", "--test-name-pattern", `^(?!.*(${leftOut}))`, ...files],
        {
          cwd: join(import.meta.dir, "../../.."),
          timeout: 110_000,
          killSignal: "SIGKILL",
          env: { ...env, BATON_POSTGRES_BIN: unpacked.programs },
        },
      );
      for (const file of files) expect(stderr).toContain(`${file.slice(2)}:\n(pass)`);
      expect(stderr).toMatch(/^ *0 fail$/m);
    });
  });
}
