/**
 * `baton lock` killed at any moment of its life, its start included, while others want the same lock. T is a minute, so
 * that a lock, or a place in the queue, that is left to expire shows as a wait that takes too long.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { systemClock } from "../../../src/base/support/clock.ts";
import { sleep } from "../../../src/base/support/deadline.ts";
import { backends, describeBackend, type RunningBackend } from "../../support/backends.ts";
import { BatonSession } from "../../support/baton_session.ts";
import { isFullDose } from "../../support/dose.ts";
import { seededRandom, testSeed } from "../../support/random.ts";

setDefaultTimeout(300_000);

const seed = testSeed();
const workers = 4;
const callsEach = isFullDose ? 400 : 40;
/** Up to which moment after its start a call is killed, in milliseconds: while it starts, connects, waits, holds. */
const killedWithinMs = [20, 60, 150, 400];
/** Some that hold and some that wait are killed one after the other, each of which takes about a second at most. */
const waitMsMax = 15_000;

for (const backend of backends) {
  describeBackend(backend, () => {
    let server: RunningBackend;
    let session: BatonSession;
    beforeAll(async () => {
      server = await backend.start();
      session = new BatonSession({ BATON_SERVERS: server.servers, BATON_SESSION_TIMEOUT: "60s" });
    });
    afterAll(async () => {
      await session?.[Symbol.asyncDispose]();
      await server?.close();
    });

    test(`no two are inside, and nobody waits for a session to expire [BATON_SEED=${seed}]`, async () => {
      // The kernel's lock is held for as long as any process of the section lives.
      const section = `flock -n "$dir/inside" sh -c 'sleep 0.02' || touch "$dir/overlap"`;
      const call = async (random: () => number): Promise<number | null> => {
        const startMs = performance.now();
        const words = ["lock", "-q", "any", "--", "sh", "-c", section];
        const child = spawn(session.env["baton"] ?? "", words, { env: session.env, stdio: "ignore" });
        const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
        const isKilled = random() < 0.6;
        if (isKilled) {
          const withinMs = killedWithinMs[Math.floor(random() * killedWithinMs.length)] ?? 0;
          await Promise.race([ended, sleep(systemClock(), random() * withinMs)]);
          child.kill("SIGKILL");
        }
        await ended;
        return isKilled ? null : performance.now() - startMs;
      };
      const work = async (_: unknown, worker: number) => {
        const random = seededRandom(seed + worker);
        const waits: number[] = [];
        for (let calls = 0; calls < callsEach; calls++) {
          const waitedMs = await call(random);
          if (waitedMs !== null) waits.push(waitedMs);
        }
        return waits;
      };
      const waits = (await Promise.all(Array.from({ length: workers }, work))).flat();
      expect(existsSync(session.path("overlap"))).toBe(false);
      expect(waits.length).toBeGreaterThan(0);
      expect(Math.max(...waits)).toBeLessThan(waitMsMax);
    });
  });
}
