/**
 * A client with an ACL of its own: whatever the library's recipes make at it has that ACL, unless they are given
 * another.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { listObjectsInUse } from "../../../src/coordination/admin/list_in_use.ts";
import { findObjectKinds } from "../../../src/coordination/admin/object_details.ts";
import { acquireLock } from "../../../src/coordination/lock/acquire_lock.ts";
import type { Acl } from "../../../src/protocols/zookeeper/jute/zookeeper_records.ts";
import { campaign, enterBarrier, lock, openSession, runPool, setGate } from "../../../src/library/baton.ts";
import { parseZooKeeperServers } from "../../../src/protocols/zookeeper/hosts.ts";
import { connectToZooKeeper } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { backends, describeBackend } from "../../support/backends.ts";
import { observedBackend } from "../../support/observed_backend.ts";

setDefaultTimeout(20_000);

for (const kind of backends) {
  describeBackend(kind, () => {
    const rig = observedBackend(kind);
    const root = "/closed";

    test("nothing that a recipe makes is open to others", async () => {
      const place = {
        servers: parseZooKeeperServers(rig.backend.servers),
        auth: [{ scheme: "digest", credentials: "jo:one" }],
        acl: [{ perms: 31, id: { scheme: "auth", id: "" } }],
      };
      await using owner = await connectToZooKeeper(place);
      const seen = new Map<string, string>();
      const walk = async (path: string): Promise<void> => {
        seen.set(path, (await owner.getAcl(path)).acl.map(({ id }) => id.id.replace(/:.*/, "")).join());
        for (const child of (await owner.getChildren(path)).children) await walk(`${path}/${child}`);
      };
      const reach = { servers: rig.backend.servers, credentials: "digest:jo:one" };
      await using session = openSession({ ...reach, root, acl: ["creator"] });
      await lock("l", () => walk(root), { session });
      await using leadership = await campaign("e", "here:1", { session });
      const membership = await enterBarrier("b", 1, { session });
      await walk(root);
      await membership.leave();
      await setGate("g", { session });
      await runPool("p", ["one"], () => walk(root), { session, doneTtlMs: 60_000 });
      await walk(root);
      expect(leadership.isHeld()).toBe(true);
      expect(seen.size).toBeGreaterThan(20);
      expect([...seen].filter(([, who]) => who !== "jo")).toEqual([]);
      await expect(rig.observer.getChildren(root)).rejects.toHaveProperty("reason", "NOAUTH");

      await using open = openSession({ ...reach, root: "/open", acl: ["world:anyone:cdrwa"] });
      const seeLock = async () => expect((await rig.observer.getChildren("/open/locks")).children).toEqual(["l"]);
      await lock("l", seeLock, { session: open });
    });

    test("what one client may not read stops no other one", async () => {
      const places = (acl: Acl[], credentials: string) => ({
        servers: parseZooKeeperServers(rig.backend.servers),
        auth: [{ scheme: "digest", credentials }],
        acl,
      });
      const root = "/shared";
      const everyone = { scheme: "world", id: "anyone" };
      await using open = await connectToZooKeeper(places([{ perms: 31, id: everyone }], "jo:one"));
      await using owner = await connectToZooKeeper(places([{ perms: 31, id: { scheme: "auth", id: "" } }], "al:two"));
      await using mine = await acquireLock(open, "mine", { root });
      await using held = await acquireLock(owner, "theirs", { root });
      expect([mine.isHeld(), held.isHeld()]).toEqual([true, true]);
      // ZooKeeper 3.8.0 counts what cannot be read.
      const hidden = kind.release === "debian" ? 1 : null;
      const { lock } = await listObjectsInUse(open, { root });
      expect(lock).toEqual([
        { name: "mine", holders: 1, waiters: 0 },
        { name: "theirs", holders: hidden, waiters: hidden === null ? null : 0 },
      ]);
      expect(await findObjectKinds(open, "theirs", root)).toEqual(
        hidden === null ? [] : ["lock"],
      );
    });
  });
}
