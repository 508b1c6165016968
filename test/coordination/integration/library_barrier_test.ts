/** The library's barriers and gates. */
import { beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import {
  type BarrierOptions,
  enterBarrier,
  liftGate,
  openSession,
  setGate,
  waitGate,
} from "../../../src/library/baton.ts";
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
    const direct = () => ({ servers: rig.backend.servers, root });

    test("parties begin a round when all are there, and the next when all are through", async () => {
      await using other = openSession(direct());
      const said: string[] = [];
      const participant = async (options: BarrierOptions) => {
        for (const round of [1, 2, 3]) {
          const held = await enterBarrier("b", 4, options);
          said.push(`${round} in`);
          expect([held.rank >= 0 && held.rank < 4, held.size, held.generation]).toEqual([true, 4, round]);
          await rig.observer.exists(root);
          said.push(`${round} out`);
          await held.leave();
        }
      };
      const sessions = [direct(), direct(), { session: other }, { session: other }];
      await Promise.all(sessions.map(participant));
      const rounds = [1, 2, 3].map((round) => said.slice((round - 1) * 8, round * 8));
      rounds.forEach((round, at) => expect(new Set(round)).toEqual(new Set([`${at + 1} in`, `${at + 1} out`])));
    });

    test("too few within the time, and a participant lost before the start, have their own names", async () => {
      expect(await failureCode(enterBarrier("few", 3, { ...direct(), wait: 200 }))).toBe("BARRIER_TIMEOUT");
      const arrived = Promise.withResolvers<void>();
      const waiting = failureCode(enterBarrier("few", 3, { ...direct(), onWaiting: () => arrived.resolve() }));
      await arrived.promise;
      expect(await failureCode(enterBarrier("few", 3, { ...direct(), wait: 200 }))).toBe("BARRIER_TIMEOUT");
      expect(await waiting).toBe("BARRIER_BROKEN");
    });

    test("leaving takes as long as the others, or as long as it was given", async () => {
      const [one, other] = await Promise.all([1, 2].map(() => enterBarrier("leave", 2, direct())));
      expect(await failureCode(one?.leave({ wait: 100 }) ?? Promise.resolve())).toBe("BARRIER_TIMEOUT");
      expect(one?.isHeld()).toBe(false);
      await other?.leave();
    });

    test("a session that is closed ends every wait, and the others are told", async () => {
      const session = openSession(direct());
      const there = Promise.withResolvers<void>();
      const onWaiting = (gathered: number) => void (gathered === 2 && there.resolve());
      const broken = failureCode(enterBarrier("closed", 3, { ...direct(), onWaiting }));
      const ended = failureCode(enterBarrier("closed", 3, { session, onWaiting }));
      await there.promise;
      await session.close();
      expect([await ended, await broken]).toEqual(["AbortError", "BARRIER_BROKEN"]);
      expect(await failureCode(enterBarrier("closed", 3, { session }))).toBe("AbortError");
    });

    test("a callback that throws ends the wait with its error", async () => {
      const broken = new TypeError("of the program");
      const onWaiting = () => {
        throw broken;
      };
      const thrown = await enterBarrier("callback", 2, { ...direct(), onWaiting }).catch((error: unknown) => error);
      expect(thrown).toBe(broken);
    });

    test("a gate is closed by one, and opened for all that wait", async () => {
      expect([await setGate("g", { ...direct(), reason: "repair" }), await setGate("g", direct())]).toEqual([
        true,
        false,
      ]);
      for (const wait of [0, 100]) {
        const failure = waitGate("g", { ...direct(), wait }).catch((thrown: unknown) => thrown);
        expect(await failure).toMatchObject({ code: "BARRIER_TIMEOUT", message: expect.stringContaining("repair") });
      }
      const waiting = waitGate("g", direct());
      expect([await liftGate("g", direct()), await liftGate("g", direct())]).toEqual([true, false]);
      await waiting;
    });
  });
}
