import { afterAll, beforeAll, expect, test } from "bun:test";
import type { ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { enterBarrier, type EnterBarrierOptions } from "../../../src/coordination/barrier/enter_barrier.ts";
import { liftGate, setGate, waitGate } from "../../../src/coordination/barrier/barrier_gate.ts";
import type { BarrierMembership } from "../../../src/coordination/barrier/barrier_membership.ts";
import { parseBarrierParticipantNodes } from "../../../src/coordination/barrier/barrier_state.ts";
import { backends, describeBackend, type RunningBackend, zooKeeperEnsemble } from "../../support/backends.ts";
import { eventually } from "../../support/eventually.ts";
import { LockCrew } from "../../support/lock_crew.ts";

const info = { host: "db1", pid: 812, user: "root", argv0: "agent", reason: "" };

for (const kind of [...backends, zooKeeperEnsemble]) {
  describeBackend(kind, () => {
    let backend: RunningBackend;
    beforeAll(async () => void (backend = await kind.start()), 60_000);
    afterAll(() => backend.close());

    const enter = (crew: LockCrew, zk: ZooKeeper, options: Partial<EnterBarrierOptions> = {}) =>
      enterBarrier(zk, "b", { parties: 3, root: crew.root, info, ...options });
    const present = async (crew: LockCrew, zk: ZooKeeper) =>
      parseBarrierParticipantNodes(
        (await zk.getChildren(`${crew.root}/barriers/b`).catch(() => ({ children: [] }))).children,
      )
        .length;
    const there = (crew: LockCrew, zk: ZooKeeper, count: number) =>
      eventually(async () => await present(crew, zk) === count, { what: `${count} parties to be there` });
    const codeOf = (promise: Promise<unknown>) =>
      promise.then(() => ({ code: "none", message: "" }), (error) => ({ code: error.code, message: error.message }));

    test("8 parties start together and leave together, generation by generation, with agreed ranks", async () => {
      await using crew = new LockCrew(backend.servers);
      const clients = await crew.clients(8);
      let [entered, left] = [0, 0];
      const tokens: bigint[] = [];
      await Promise.all(clients.map(async (zk) => {
        for (let round = 1; round <= 4; round++) {
          entered++;
          const member = await enter(crew, zk, { parties: 8 });
          expect(entered).toBeGreaterThanOrEqual(8 * round);
          expect([member.generation, member.size, member.isHeld()]).toEqual([round, 8, true]);
          tokens[round] ??= member.fencingToken;
          expect(member.fencingToken).toBe(tokens[round] ?? 0n);
          ranks.push(member.rank);
          left++;
          await member.leave();
          expect(left).toBeGreaterThanOrEqual(8 * round);
        }
      }));
      expect(ranks.sort()).toEqual(Array.from({ length: 32 }, (_, index) => index >> 2));
      expect(tokens.slice(1)).toEqual(tokens.slice(1).sort((one, other) => (one < other ? -1 : 1)));
    }, 30_000);
    const ranks: number[] = [];

    test(
      "one more than needed waits for the next generation, which starts when the others have left",
      async () => {
        await using crew = new LockCrew(backend.servers);
        const clients = await crew.clients(4);
        const started: BarrierMembership[] = [];
        const entering = clients.map((zk) =>
          enter(crew, zk, { parties: 2 }).then((member) => void started.push(member))
        );
        await eventually(() => started.length === 2);
        const [first, second] = [...started];
        if (clients[0] === undefined) throw new Error("no client");
        await there(crew, clients[0], 4);
        const leaving = first?.leave();
        await there(crew, clients[0], 3);
        expect(started).toHaveLength(2);
        await Promise.all([leaving, second?.leave()]);
        await Promise.all(entering);
        expect(started.map((member) => member.generation)).toEqual([1, 1, 2, 2]);
      },
      15_000,
    );

    test("a member that is lost before the start breaks the gathering, and the others hear who it was", async () => {
      await using crew = new LockCrew(backend.servers);
      const [a, lost, other] = await crew.clients(3);
      if (!a || !lost || !other) throw new Error("no clients");
      const left = codeOf(enter(crew, a));
      await there(crew, a, 1);
      const { code, message } = await codeOf(enter(crew, other, { parties: 4 }));
      expect(code).toBe("LIMIT_MISMATCH");
      expect(message).toBe('Cannot enter barrier "b": the other participants wait for 3 parties, and this one for 4');
      const gone = await codeOf(enter(crew, lost, { wait: 200, info: { ...info, pid: 13 } }));
      expect(gone.code).toBe("BARRIER_TIMEOUT");
      const broken = await left;
      expect(broken.code).toBe("BARRIER_BROKEN");
      expect(broken.message).toMatch(
        /: root@db1 \(pid 13, agent\) was lost before the start: it stopped waiting after 200/,
      );
    }, 15_000);

    test("a session that ends before the start breaks the gathering, or is waited for in vain", async () => {
      await using crew = new LockCrew(backend.servers);
      const [a, b, c] = await crew.clients(3);
      if (!a || !b || !c) throw new Error("no clients");
      const lost = await crew.client();
      const first = codeOf(enter(crew, lost, { info: { ...info, pid: 13 } }));
      await there(crew, a, 1);
      const knows = Promise.withResolvers<void>();
      const second = codeOf(enter(crew, a, { onWaiting: (gathered) => gathered === 2 && knows.resolve() }));
      await knows.promise;
      await lost.close();
      expect((await first).code).toBe("BARRIER_BROKEN");
      expect((await second).message).toContain("root@db1 (pid 13, agent) was lost before the start: its session ended");
      const waits = { onMemberLost: "wait" } as const;
      const patient = enter(crew, b, waits);
      await there(crew, b, 1);
      const other = await crew.client();
      const replaced = codeOf(enter(crew, other, waits));
      await there(crew, b, 2);
      await other.close();
      await replaced;
      const members = await Promise.all([patient, enter(crew, a, waits), enter(crew, c, waits)]);
      expect(members.map((member) => member.rank).sort()).toEqual([0, 1, 2]);
      await Promise.all(members.map((member) => member.leave()));
    }, 15_000);

    test("who waits in vain is told who is there and how many are missing", async () => {
      await using crew = new LockCrew(backend.servers);
      const [a, b] = await crew.clients(2);
      if (!a || !b) throw new Error("no clients");
      const other = codeOf(enter(crew, a, { onMemberLost: "wait", wait: 5000 }));
      await there(crew, a, 1);
      const { code, message } = await codeOf(enter(crew, b, { onMemberLost: "wait", wait: 300 }));
      expect(code).toBe("BARRIER_TIMEOUT");
      expect(message).toMatch(
        /within 300\s?ms: 2 of 3 are here: root@db1 \(pid 812, agent\).*, this one; 1 is missing$/,
      );
      await there(crew, a, 1);
      await a.close();
      await other;
    }, 15_000);

    test("a member that is lost after the start is not waited for longer than its session lives", async () => {
      await using crew = new LockCrew(backend.servers);
      const [a, b] = await crew.clients(2);
      const lost = await crew.client();
      if (!a || !b) throw new Error("no clients");
      const members = await Promise.all([a, b, lost].map((zk) => enter(crew, zk)));
      const leaving = members.slice(0, 2).map((member) => member.leave());
      await lost.close();
      await Promise.all(leaving);
      expect(members[2]?.lost.aborted).toBe(true);
    }, 15_000);

    test("a gate is waited at while it is closed, and is open when nobody ever closed it", async () => {
      await using crew = new LockCrew(backend.servers);
      const [a, b] = await crew.clients(2);
      if (!a || !b) throw new Error("no clients");
      const at = { root: crew.root };
      await waitGate(a, "g", at);
      expect([await setGate(a, "g", { ...at, info }), await setGate(b, "g", at)]).toEqual([true, false]);
      const late = await codeOf(waitGate(b, "g", { ...at, waitMs: 50 }));
      expect(late.code).toBe("BARRIER_TIMEOUT");
      expect(late.message).toContain("closed by root@db1 (pid 812, agent)");
      let isThrough = false;
      const waiting = waitGate(b, "g", at).then(() => void (isThrough = true));
      await a.sync("/");
      expect(isThrough).toBe(false);
      expect([await liftGate(a, "g", at), await liftGate(a, "g", at)]).toEqual([true, false]);
      await waiting;
    }, 15_000);
  });
}
