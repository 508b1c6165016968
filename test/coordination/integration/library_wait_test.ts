/** `wait` of the library's objects is for the whole call: the opening of the session, and the wait. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { Barrier, Election, Lock, parseServers, Pool } from "../../../src/library/baton.ts";
import { backends, describeBackend } from "../../support/backends.ts";
import { ChaosProxy } from "../../support/chaos_proxy.ts";
import { failureCode } from "../../support/failure_code.ts";
import { observedBackend } from "../../support/observed_backend.ts";

setDefaultTimeout(20_000);

const waitMs = 700;
/** What leaving, and a busy machine, may take on top of it. Milliseconds. */
const slackMs = 2000;

for (const kind of backends) {
  describeBackend(kind, () => {
    const rig = observedBackend(kind);
    let proxy: ChaosProxy;
    beforeEach(async () => {
      const [node] = rig.backend.nodes;
      if (node === undefined) throw new Error("no server");
      proxy = await ChaosProxy.start(node.address);
    });
    afterEach(() => proxy.close());

    /** Each with a way to wait, or to try, and what it is told when no server answers. */
    const calls: Readonly<Record<string, { lost: string; wait(): Promise<unknown> }>> = {
      lock: {
        lost: "CONNECTION_LOST",
        async wait() {
          await using lock = new Lock(place(), "silent");
          await lock.acquire({ wait: waitMs });
        },
      },
      election: {
        lost: "UNREACHABLE",
        async wait() {
          await using election = new Election(place(), "silent");
          await election.campaign("me", { wait: waitMs });
        },
      },
      barrier: {
        lost: "UNREACHABLE",
        async wait() {
          await using barrier = new Barrier(place(), "silent", 2);
          await barrier.enter({ wait: waitMs });
        },
      },
      pool: {
        lost: "UNREACHABLE",
        async wait() {
          await using pool = new Pool(place(), "silent", { wait: waitMs });
          await pool.run(["a"], () => {});
        },
      },
    };
    const place = () => ({ servers: parseServers(proxy.servers), sessionTimeoutMs: 4000 });

    test("of a lock that is only tried: connecting has its own limit, and the error is the same", async () => {
      proxy.blackHole();
      await using lock = new Lock({ ...place(), connectTimeoutMs: waitMs }, "silent", { wait: "none" });
      expect(await failureCode(lock.acquire())).toBe("CONNECTION_LOST");
    });

    test("that is no time is refused, and one that is over is a try: neither waits forever", async () => {
      const untyped = (value: unknown) => value as number;
      await using lock = new Lock(place(), "held");
      await lock.acquire();
      expect(await failureCode(lock.acquire({ wait: -1 }))).toBe("LOCK_BUSY");
      await using election = new Election(place(), "held");
      await using barrier = new Barrier(place(), "held", 2);
      for (const wait of [untyped("5s"), Number.NaN]) {
        expect(await failureCode(lock.acquire({ wait }))).toBe("USAGE");
        expect(await failureCode(election.campaign("me", { wait }))).toBe("USAGE");
        expect(await failureCode(barrier.enter({ wait }))).toBe("USAGE");
      }
    });

    for (const [name, { lost, wait }] of Object.entries(calls)) {
      test(`of a ${name}: a server that takes connections and says nothing`, async () => {
        proxy.blackHole();
        const startMs = performance.now();
        const closing = 4000 / 3; // the session's end is asked for, at the end of the test's scope
        expect(await failureCode(wait())).toBe(lost);
        expect(performance.now() - startMs).toBeLessThan(waitMs + slackMs + closing);
      });

      test(`of a ${name}: a server that falls silent when the session is open`, async () => {
        void proxy.onFrame({ direction: "requests", nth: 1, action: "hold" });
        const startMs = performance.now();
        expect(await failureCode(wait())).toBe(lost);
        expect(performance.now() - startMs).toBeLessThan(waitMs + slackMs + 4000 / 3);
      });
    }
  });
}
