/** The library's barrier as an object. */
import { beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { Barrier, parseServers } from "../../../src/library/baton.ts";
import { newGuid } from "../../../src/base/support/guid.ts";
import { backends, describeBackend } from "../../support/backends.ts";
import { failureCode } from "../../support/failure_code.ts";
import { observedBackend } from "../../support/observed_backend.ts";

setDefaultTimeout(20_000);

for (const kind of backends) {
  describeBackend(kind, () => {
    const rig = observedBackend(kind);
    let root: string;
    beforeEach(() => void (root = `/barriers-${newGuid().slice(0, 12)}`));
    const place = () => ({ servers: parseServers(rig.backend.servers) });

    test("parties begin a round when all are there, and the next when all are through", async () => {
      await using one = new Barrier(place(), "b", 4, { root });
      await using other = new Barrier(rig.observer, "b", 4, { root });
      const said: string[] = [];
      await Promise.all([one, one, other, other].map(async (barrier) => {
        for (const round of [1, 2, 3]) {
          await barrier.pass(async ({ rank, size }) => {
            said.push(`${round} in`);
            expect([rank >= 0 && rank < 4, size]).toEqual([true, 4]);
            await rig.observer.exists(root);
            said.push(`${round} out`);
          });
        }
      }));
      const rounds = [1, 2, 3].map((round) => said.slice((round - 1) * 8, round * 8));
      rounds.forEach((round, at) => expect(new Set(round)).toEqual(new Set([`${at + 1} in`, `${at + 1} out`])));
    });

    test("too few within the time, and a member lost before the start, have their own names", async () => {
      await using barrier = new Barrier(place(), "few", 3, { root });
      expect(await failureCode(barrier.enter({ wait: 200 }))).toBe("BARRIER_TIMEOUT");
      await using waits = new Barrier(place(), "few", 3, { root });
      const arrived = Promise.withResolvers<void>();
      const waiting = failureCode(waits.enter({ onWaiting: () => arrived.resolve() }));
      await arrived.promise;
      expect(await failureCode(barrier.enter({ wait: 200 }))).toBe("BARRIER_TIMEOUT");
      expect(await waiting).toBe("BARRIER_BROKEN");
    });

    test("closed, it ends every wait, and the others are told", async () => {
      const leaving = new Barrier(rig.observer, "closed", 3, { root });
      await using staying = new Barrier(place(), "closed", 3, { root });
      const there = Promise.withResolvers<void>();
      const broken = failureCode(staying.enter({ onWaiting: (gathered) => gathered === 2 && there.resolve() }));
      const ended = failureCode(leaving.enter({ onWaiting: (gathered) => gathered === 2 && there.resolve() }));
      await there.promise;
      await leaving.close();
      expect([await ended, await broken]).toEqual(["AbortError", "BARRIER_BROKEN"]);
      expect(await failureCode(leaving.enter())).toBe("AbortError");
      expect(rig.observer.session.ended.aborted).toBe(false);
    });
  });
}
