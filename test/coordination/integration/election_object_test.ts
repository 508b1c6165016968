/** The library's election as an object. */
import { beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { Election, parseServers } from "../../../src/library/baton.ts";
import { newGuid } from "../../../src/base/support/guid.ts";
import { backends, describeBackend } from "../../support/backends.ts";
import { ChaosProxy } from "../../support/chaos_proxy.ts";
import { eventually } from "../../support/eventually.ts";
import { failureCode } from "../../support/failure_code.ts";
import { observedBackend } from "../../support/observed_backend.ts";

setDefaultTimeout(20_000);

for (const kind of backends) {
  describeBackend(kind, () => {
    const rig = observedBackend(kind);
    let root: string;
    beforeEach(() => void (root = `/elections-${newGuid().slice(0, 12)}`));
    const place = () => ({ servers: parseServers(rig.backend.servers) });

    test("one leads, its value is known, and when it is asked to resign the other leads", async () => {
      await using one = new Election(place(), "echo", { root });
      await using other = new Election(place(), "echo", { root });
      expect((await one.leader()).leader).toBeNull();
      expect(await failureCode(one.resign())).toBe("NOT_FOUND");
      const first = await one.campaign("a:1");
      const next = other.campaign("b:2");
      expect((await other.leader()).leader?.value).toBe("a:1");
      first.lost.addEventListener("abort", () => void first.release());
      expect(await other.resign({ waitMs: 10_000 })).toMatchObject({ outcome: "released" });
      const second = await next;
      expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
      expect((await one.leader()).leader?.value).toBe("b:2");
    });

    test("closed, it gives leadership up and ends every wait", async () => {
      await using one = new Election(place(), "closed", { root });
      const other = new Election(rig.observer, "closed", { root });
      const leadership = await one.campaign("a:1");
      const waiting = failureCode(other.campaign("b:2"));
      const watching = (async () => {
        for await (const change of other.changes()) if (change.kind === "elected") continue;
      })();
      await other.close();
      expect(await waiting).toBe("AbortError");
      await watching;
      expect(await failureCode(other.campaign("b:2"))).toBe("AbortError");
      await one.close();
      expect([leadership.isHeld(), rig.observer.session.ended.aborted]).toEqual([false, false]);
      expect((await new Election(rig.observer, "closed", { root }).leader()).leader).toBeNull();
    });

    test("whoever follows misses no leader while its session expires", async () => {
      const [node] = rig.backend.nodes;
      if (node === undefined) throw new Error("no server");
      const proxy = await ChaosProxy.start(node.address);
      await using follower = new Election(
        { servers: parseServers(proxy.servers), sessionTimeoutMs: 1500 },
        "followed",
        { root },
      );
      await using leading = new Election(place(), "followed", { root });
      const seen: string[] = [];
      const stop = new AbortController();
      const looked = Promise.withResolvers<void>(); // from then on it misses nobody
      const watching = (async () => {
        for await (const change of follower.changes({ signal: stop.signal })) {
          looked.resolve();
          if (change.kind !== "vacant") seen.push(change.kind === "elected" ? change.grant.value : "missed");
        }
      })();
      await looked.promise;
      await (await leading.campaign("1")).release();
      await eventually(() => seen.length === 1);
      proxy.blackHole();
      for (const value of ["2", "3", "4"]) await (await leading.campaign(value)).release();
      await eventually(() => proxy.counts.connections > 2, { withinMs: 10_000 });
      proxy.heal();
      await eventually(() => seen.length === 4, { withinMs: 10_000 });
      expect(seen).toEqual(["1", "2", "3", "4"]);
      stop.abort();
      await watching;
      await follower.close();
      await proxy.close();
    });
  });
}
