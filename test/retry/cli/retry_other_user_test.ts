/** A message store of one user, and another one who may read it. It needs root, to be both. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync } from "node:fs";
import { BatonSession } from "../../support/baton_session.ts";
import { canBeOthers } from "../../support/other_user.ts";

setDefaultTimeout(60_000);

const isRoot = canBeOthers("a store of another one is not tried");

let session: BatonSession;
beforeAll(() => void (session = new BatonSession()));
afterAll(() => session[Symbol.asyncDispose]());

test.skipIf(!isRoot)(
  "who may only read a store is told whose it is, and that looking at it takes more",
  async () => {
    chmodSync(session.folder, 0o755);
    // The project's own folder may be closed to others.
    await session.run('cp "$baton" baton; chmod 755 baton; echo x | ./baton retry-processor submit --store mail');
    await session.run("chmod 755 mail; chmod 644 mail/*");
    for (const words of ["ls", "show 1", "stats", "verify", "dlq ls"]) {
      const other = "setpriv --reuid=64871 --regid=64871 --clear-groups";
      const ended = await session.run(`${other} ./baton retry-processor ${words} --store mail`);
      const says = expect.stringMatching(
        /cannot be opened without write access: .* the owner of the store is root, this process runs as 64871/,
      );
      expect([words, ended.code, ended.stderr]).toEqual([words, 74, says]);
    }
  },
);
