/** `wait` of the library's functions is for the whole call: connecting, and the wait. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import process from "node:process";
import {
  acquireLock,
  campaign,
  enterBarrier,
  liftGate,
  listLocks,
  openSession,
  runPool,
  type Session,
  waitGate,
  watchLeader,
} from "../../../src/library/baton.ts";
import { describeBackend } from "../../support/backends.ts";
import { tierBackends } from "../../support/tier.ts";
import { ChaosProxy } from "../../support/chaos_proxy.ts";
import { failureCode } from "../../support/failure_code.ts";
import { observedBackend } from "../../support/observed_backend.ts";
import { QuietTime } from "../../support/quiet_time.ts";

setDefaultTimeout(20_000);

const wait = 700;
/** What leaving, and a busy machine, may take on top of it. Milliseconds. */
const slackMs = 2000;

/** Each call that waits, and those that only ask. */
const calls: Readonly<Record<string, (session: Session) => Promise<unknown>>> = {
  acquireLock: (session) => acquireLock("silent", { session, wait }),
  campaign: (session) => campaign("silent", "me", { session, wait }),
  watchLeader: (session) => watchLeader("silent", { session, wait }).next(),
  enterBarrier: (session) => enterBarrier("silent", 2, { session, wait }),
  waitGate: (session) => waitGate("silent", { session, wait }),
  runPool: (session) => runPool("silent", ["a"], () => {}, { session, wait }),
  listLocks: (session) => listLocks({ session, wait }),
};

for (const kind of tierBackends) {
  describeBackend(kind, () => {
    const rig = observedBackend(kind);
    let proxy: ChaosProxy;
    beforeEach(async () => {
      const [node] = rig.backend.nodes;
      if (node === undefined) throw new Error("no server");
      proxy = await ChaosProxy.start(node.address);
    });
    afterEach(() => proxy.close());
    const open = () => openSession({ servers: proxy.servers, sessionTimeoutMs: 4000 });

    test("of a lock that is only tried: connecting has its own limit", async () => {
      proxy.blackHole();
      process.env["BATON_CONNECT_TIMEOUT"] = `${wait}ms`;
      await using session = openSession({ servers: proxy.servers });
      expect(await failureCode(acquireLock("silent", { session, wait: "none" }))).toBe("UNREACHABLE");
      expect(await failureCode(acquireLock("silent", { session }))).toBe("UNREACHABLE");
      delete process.env["BATON_CONNECT_TIMEOUT"];
    });

    test("that is over is a try, and does not wait forever", async () => {
      await using session = open();
      await acquireLock("held", { session });
      expect(await failureCode(acquireLock("held", { session, wait: -1 }))).toBe("LOCK_BUSY");
    });

    test("of a change: its outcome is unknown when no server responds to it", async () => {
      await using session = open();
      await acquireLock("held", { session });
      proxy.blackHole();
      expect(await failureCode(liftGate("silent", { session, wait: 300 }))).toBe("OUTCOME_UNKNOWN");
      proxy.heal();
    });

    for (const [name, call] of Object.entries(calls)) {
      test(`of ${name}: a server that takes connections and says nothing`, async () => {
        proxy.blackHole();
        const quiet = new QuietTime();
        await using session = open();
        expect(await failureCode(call(session))).toBe("UNREACHABLE");
        expect(quiet.ms).toBeLessThan(wait + slackMs);
      });

      test(`of ${name}: a server that falls silent when the session is open`, async () => {
        void proxy.onFrame({ direction: "requests", nth: 1, action: "hold" });
        const quiet = new QuietTime();
        await using session = open();
        expect(await failureCode(call(session))).toBe("UNREACHABLE");
        expect(quiet.ms).toBeLessThan(wait + slackMs);
      });
    }
  });
}
