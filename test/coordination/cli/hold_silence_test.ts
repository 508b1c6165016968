/**
 * `baton hold` and `baton release` where servers take every connection and answer nothing: what is said, with which
 * code, and when.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { readProcess } from "../../../src/base/process/proc/process_table.ts";
import { describeBackend, keeper, zooKeeperEnsemble } from "../../support/backends.ts";
import { BatonSession } from "../../support/baton_session.ts";

setDefaultTimeout(60_000);

/** What a busy machine may take on top of a limit, in milliseconds. */
const slackMs = 3000;
const taking = (words: string) => `held=$("$baton" hold --pid $$ ${words}) || exit; eval "$held"`;

for (const backend of [keeper, zooKeeperEnsemble]) {
  describeBackend(backend, () => {
    test("a call without a session reports it in time, a waiter respects its limit, a holder is stopped", async () => {
      const servers = await backend.start();
      try {
        await using session = new BatonSession({ BATON_SERVERS: servers.servers });
        const holding = session.start(
          `trap '"$baton" release held 2>said; echo release $? >released; exit 7' TERM
           ${taking("held --session-timeout 12s --kill-after 3s")}; sleep 60 & echo $! >child; >up; wait`,
        );
        await session.made("up");
        const waiting = session.start(`${taking("held -w 6s --session-timeout 4s")}; echo never`);
        await session.becomesTrue('"$baton" who --json held | grep -q \'"waiters":\\[{\'');
        servers.pause();
        const beginning = session.start(`${taking("new --connect-timeout 2s")}; echo never`);

        const [begun, waited, held] = await Promise.all([beginning.ended, waiting.ended, holding.ended]);
        expect(begun).toMatchObject({ code: 69, stdout: "" });
        expect(begun.stderr).toMatch(
          /^baton: Cannot open a ZooKeeper session within [2-4](\.\d+)? s: .*: no response to the handshake/m,
        );
        expect(begun.quietMs).toBeLessThan(2000 + slackMs);

        expect([69, 75]).toContain(waited.code ?? 0);
        expect(waited.stdout).toBe("");
        expect(waited.stderr).toMatch(/^baton: (Cannot acquire lock|Lock) "held"/m);
        expect(waited.quietMs).toBeLessThan(8000 + 2 * slackMs);

        expect(held.code).toBe(7);
        expect(held.stderr).toMatch(/Lock "held" is lost: no server responded in time.*; the script was stopped/);
        expect(session.read("released")).toMatch(/^release (76|79)\n$/);
        expect(session.read("said")).toMatch(/^baton: .*"held"/);
        expect(readProcess(Number(session.read("child")))?.dead ?? true).toBe(true);
      } finally {
        servers.resume();
        await servers.close();
      }
    });
  });
}
