/** The library's elections. */
import { beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { campaign, openSession, resign, type ServerOptions, watchLeader } from "../../../src/library/baton.ts";
import { newGuid } from "../../../src/base/support/guid.ts";
import { backends, describeBackend } from "../../support/backends.ts";
import { ChaosProxy } from "../../support/chaos_proxy.ts";
import { eventually } from "../../support/eventually.ts";
import { failureCode } from "../../support/failure_code.ts";
import { observedBackend } from "../../support/observed_backend.ts";

setDefaultTimeout(20_000);

/** Returns the leader's value; null: there is no leader. */
async function leaderOf(name: string, servers: ServerOptions): Promise<string | null> {
  for await (const change of watchLeader(name, { ...servers, wait: 0 })) {
    if (change.kind === "elected") return change.grant.value;
  }
  return null;
}

for (const kind of backends) {
  describeBackend(kind, () => {
    const rig = observedBackend(kind);
    let root: string;
    beforeEach(() => void (root = `/elections-${newGuid().slice(0, 12)}`));
    const direct = () => ({ servers: rig.backend.servers, root });

    test("one leads, its value is known, and when it is asked to resign the other leads", async () => {
      await using other = openSession(direct());
      expect(await leaderOf("echo", direct())).toBeNull();
      expect(await failureCode(resign("echo", direct()))).toBe("NOT_FOUND");
      const first = await campaign("echo", "a:1", direct());
      const next = campaign("echo", "b:2", { session: other });
      expect(await leaderOf("echo", direct())).toBe("a:1");
      first.signal.addEventListener("abort", () => void first.release());
      expect(await resign("echo", { ...direct(), wait: 10_000 })).toMatchObject({ outcome: "released" });
      const second = await next;
      expect(second.token).toBeGreaterThan(first.token);
      expect(await leaderOf("echo", direct())).toBe("b:2");
    });

    test("a session that is closed gives leadership up, and ends every wait and every iteration", async () => {
      const leading = openSession(direct());
      const session = openSession(direct());
      const leadership = await campaign("closed", "a:1", { session: leading });
      const waiting = failureCode(campaign("closed", "b:2", { session }));
      const looked = Promise.withResolvers<void>();
      const watching = (async () => {
        for await (const _change of watchLeader("closed", { session })) looked.resolve();
      })();
      await looked.promise;
      await session.close();
      expect(await waiting).toBe("AbortError");
      await watching;
      expect(await failureCode(campaign("closed", "b:2", { session }))).toBe("AbortError");
      await leading.close();
      expect(leadership.isHeld()).toBe(false);
      expect(await leaderOf("closed", direct())).toBeNull();
    });

    test("an iteration ends when nothing has changed for its time", async () => {
      const changes = [];
      for await (const change of watchLeader("quiet", { ...direct(), wait: 300 })) changes.push(change.kind);
      expect(changes).toEqual(["vacant"]);
    });

    test("whoever follows misses no leader while its session expires", async () => {
      const [node] = rig.backend.nodes;
      if (node === undefined) throw new Error("no server");
      const proxy = await ChaosProxy.start(node.address);
      await using session = openSession({ servers: proxy.servers, root, sessionTimeoutMs: 2000 });
      const lead = async (value: string) => (await campaign("followed", value, direct())).release();
      const seen: string[] = [];
      const stop = new AbortController();
      const looked = Promise.withResolvers<void>(); // from then on it misses no leader
      const watching = (async () => {
        for await (const change of watchLeader("followed", { session, wait: "forever", signal: stop.signal })) {
          looked.resolve();
          if (change.kind !== "vacant") seen.push(change.kind === "elected" ? change.grant.value : "missed");
        }
      })();
      await looked.promise;
      await lead("1");
      await eventually(() => seen.length === 1);
      proxy.blackHole();
      for (const value of ["2", "3", "4"]) await lead(value);
      await eventually(() => proxy.counts.connections > 2, { withinMs: 10_000 });
      proxy.heal();
      await eventually(() => seen.length === 4, { withinMs: 10_000 });
      expect(seen).toEqual(["1", "2", "3", "4"]);
      stop.abort();
      await watching;
      await session.close();
      await proxy.close();
    });
  });
}
