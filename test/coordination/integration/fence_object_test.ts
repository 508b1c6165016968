/** The library's fence: writes that succeed only while every lease is held. */
import { beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { breakLock, Fence, Lock, parseServers, Semaphore } from "../../../src/library/baton.ts";
import { newGuid } from "../../../src/base/support/guid.ts";
import { backends, describeBackend } from "../../support/backends.ts";
import { ChaosProxy } from "../../support/chaos_proxy.ts";
import { failureCode } from "../../support/failure_code.ts";
import { observedBackend } from "../../support/observed_backend.ts";

setDefaultTimeout(20_000);

for (const kind of backends) {
  describeBackend(kind, () => {
    const rig = observedBackend(kind);
    let root: string;
    beforeEach(() => root = `/fences-${newGuid().slice(0, 12)}`);
    const place = () => ({ servers: parseServers(rig.backend.servers) });
    const read = async (path: string) => new TextDecoder().decode((await rig.observer.getData(path)).data);

    test("nodes are created, set and deleted while the locks are held, by their version", async () => {
      await using lock = new Lock(place(), "nightly", { root });
      await using permits = new Semaphore(place(), "gpu", 2, { root });
      const leases = [await lock.acquire(), await permits.acquire()];
      await using fence = new Fence(place(), leases, { root });
      const path = `${root}/app/state`;
      expect(await failureCode(fence.set(path, "one"))).toBe("NOT_FOUND");
      expect(await fence.create(path, "one", { parents: true })).toEqual({ path, nodeVersion: 0 });
      expect(await fence.set(path, "two", { version: 0 })).toEqual({ path, nodeVersion: 1 });
      expect(await failureCode(fence.set(path, "three", { version: 0 }))).toBe("FALSE");
      expect(await read(path)).toBe("two");
      await fence.delete(path);
      expect(await rig.observer.exists(path)).toBeNull();
    });

    test("nothing is written after one of the locks was released or taken back", async () => {
      await using lock = new Lock(place(), "nightly", { root });
      await using other = new Lock(place(), "other", { root });
      const [lease, second] = [await lock.acquire(), await other.acquire()];
      await using fence = new Fence(rig.observer, [lease, second], { root });
      const path = `${root}/state`;
      await fence.create(path, "one");
      await breakLock(rig.observer, "other", second.holderId, { root, force: true });
      expect(await failureCode(fence.set(path, "two"))).toBe("STALE_TOKEN");
      await using alone = new Fence(rig.observer, lease, { root });
      await alone.set(path, "three");
      await lease.release();
      expect(await failureCode(alone.set(path, "four"))).toBe("STALE_TOKEN");
      expect(await read(path)).toBe("three");
    });

    test("baton's own nodes are refused, and a server that says nothing costs the time of `wait`", async () => {
      await using lock = new Lock(place(), "nightly", { root });
      const lease = await lock.acquire();
      await using fence = new Fence(place(), lease, { root });
      expect(await failureCode(fence.create(`${root}/locks/x`, ""))).toBe("USAGE");
      expect(() => new Fence(place(), [])).toThrow("at least one lease");
      const [node] = rig.backend.nodes;
      if (node === undefined) throw new Error("no server");
      const proxy = await ChaosProxy.start(node.address);
      try {
        proxy.blackHole();
        await using far = new Fence({ servers: parseServers(proxy.servers) }, lease, { root });
        expect(await failureCode(far.create(`${root}/x`, "", { wait: 300 }))).toBe("UNREACHABLE");
        const stop = AbortSignal.abort(new DOMException("enough", "AbortError"));
        expect(await failureCode(far.create(`${root}/x`, "", { signal: stop }))).toBe("AbortError");
      } finally {
        await proxy.close();
      }
    });
  });
}
