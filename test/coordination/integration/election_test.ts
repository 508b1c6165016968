/**
 * The election's recipe on real servers: one leader at a time, and every grant told once, whatever becomes of who
 * listens.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { campaign, type Leadership, resign } from "../../../src/coordination/election/campaign.ts";
import { type Grant, LeaderChanges } from "../../../src/coordination/election/election_history.ts";
import { readLeaderStatus, watchLeader } from "../../../src/coordination/election/leader_status.ts";
import { backends, describeBackend, type RunningBackend, zooKeeperEnsemble } from "../../support/backends.ts";
import { ChaosProxy } from "../../support/chaos_proxy.ts";
import { eventually } from "../../support/eventually.ts";
import { LockCrew } from "../../support/lock_crew.ts";

/** Follows over sessions, as often as a new one is needed, and writes down what it is told. */
class Follower {
  readonly grants: Grant[] = [];
  missed = 0;
  /** It has looked once: from now on it misses nothing. */
  hasBegun = false;
  readonly #changes = new LeaderChanges();
  readonly #over = new AbortController();

  async follow(crew: LockCrew, zk: ZooKeeper): Promise<void> {
    const options = { root: crew.root, changes: this.#changes, signal: this.#over.signal };
    for await (const change of watchLeader(zk, "e", options)) {
      this.hasBegun = true;
      if (change.kind === "elected") this.grants.push(change.grant);
      if (change.kind === "missed") this.missed += change.count ?? 0;
    }
  }

  stop(): void {
    this.#over.abort();
  }
}

for (const kind of [...backends, zooKeeperEnsemble]) {
  describeBackend(kind, () => {
    let backend: RunningBackend;
    beforeAll(async () => void (backend = await kind.start()), 60_000);
    afterAll(() => backend.close());

    const stand = (crew: LockCrew, zk: ZooKeeper, value: string) =>
      campaign(zk, "e", { value, root: crew.root, priority: value.endsWith("0") ? 50 : 100 });

    /** One leader after the other, and what each was told of itself. */
    async function lead(crew: LockCrew, clients: ZooKeeper[], terms: number) {
      const led: { token: bigint; value: string; id: string }[] = [];
      let leading = 0;
      await Promise.all(clients.map(async (zk, number) => {
        for (let term = 0; term < terms; term++) {
          const value = `host${number}:${term}`;
          const leadership: Leadership = await stand(crew, zk, value);
          expect(++leading).toBe(1);
          led.push({ token: leadership.fencingToken, value, id: leadership.holderId });
          await zk.exists(crew.root);
          leading--;
          await leadership.release();
        }
      }));
      return led;
    }

    test(
      "every leader is told once, in order, with its own token, to somebody whose connection is cut all the time",
      async () => {
        await using crew = new LockCrew(backend.servers);
        const proxies = await Promise.all(backend.nodes.map(({ address }) => ChaosProxy.start(address)));
        const follower = new Follower();
        const listener = await crew.client({ servers: proxies.map(({ servers }) => servers).join(",") });
        const following = follower.follow(crew, listener);
        await eventually(() => follower.hasBegun);
        let isOver = false;
        const cutting = (async () => {
          for (let turn = 0; !isOver; turn++) {
            for (const proxy of proxies) proxy.cut();
            const seen = follower.grants.length;
            await eventually(() => isOver || follower.grants.length > seen, { withinMs: 20_000 });
          }
        })();
        const led = await lead(crew, await crew.clients(5), 12);
        isOver = true;
        await cutting;
        await eventually(() => follower.grants.length + follower.missed === 60, { withinMs: 20_000 });
        follower.stop();
        await following;
        expect(follower.missed).toBe(0);
        expect(follower.grants.map(({ index }) => index)).toEqual(Array.from({ length: 60 }, (_, at) => at + 1));
        expect(follower.grants.map(({ token, value, id }) => ({ token, value, id }))).toEqual(led);
        // While there is a way to the servers: otherwise it looks for one as long as its session may live.
        await listener.close();
        await Promise.all(proxies.map((proxy) => proxy.close()));
      },
      60_000,
    );

    test("who was away for more than 64 leaders is told of the last 64 and how many were missed", async () => {
      await using crew = new LockCrew(backend.servers);
      const follower = new Follower();
      const [first, second, ...clients] = await crew.clients(5);
      if (first === undefined || second === undefined) throw new Error("no clients");
      const following = follower.follow(crew, first).catch(() => {});
      await eventually(() => follower.hasBegun);
      const led = await lead(crew, clients, 1);
      await eventually(() => follower.grants.length === 3);
      await first.close();
      await following;
      led.push(...await lead(crew, clients, 30));
      const again = follower.follow(crew, second);
      await eventually(() => follower.grants.length + follower.missed === 93);
      follower.stop();
      await again;
      expect([follower.missed, follower.grants.length]).toEqual([26, 67]);
      expect(follower.grants.slice(3).map(({ token }) => token)).toEqual(led.slice(29).map(({ token }) => token));
    }, 60_000);

    test("a leader resigns when it is asked to, and the next one in line leads", async () => {
      await using crew = new LockCrew(backend.servers);
      const [a, b, c] = await crew.clients(3);
      if (a === undefined || b === undefined || c === undefined) throw new Error("no clients");
      const first = await stand(crew, a, "a:1");
      const next = stand(crew, b, "b:1");
      const resigning = resign(c, "e", { root: crew.root, waitMs: 10_000 });
      await eventually(() => first.lost.aborted);
      expect((await readLeaderStatus(c, "e", { root: crew.root })).leader?.value).toBe("a:1");
      await first.release();
      expect((await resigning).outcome).toBe("released");
      const second = await next;
      const { leader, history } = await readLeaderStatus(c, "e", { root: crew.root });
      expect(leader).toMatchObject({ value: "b:1", token: second.fencingToken, index: 2 });
      expect(history.map(({ value }) => value)).toEqual(["a:1", "b:1"]);
      await second.release();
    }, 30_000);
  });
}
