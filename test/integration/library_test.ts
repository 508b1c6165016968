/** baton as other programs import it, by its entry alone. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { acquireLock, BatonError, connect, type Keeper, LeaseSet, lockStatus, startKeeper } from "../../src/baton.ts";

setDefaultTimeout(30_000);

const folder = mkdtempSync(join(tmpdir(), "baton-library-"));
const socket = { kind: "unix", path: join(folder, "keeper.sock") } as const;
let keeper: Keeper;
beforeAll(async () => keeper = await startKeeper({ dataDir: join(folder, "data"), listen: [socket] }));
afterAll(async () => {
  await keeper.close();
  rmSync(folder, { recursive: true });
});

const open = () => connect({ servers: { addresses: [socket], chroot: "" } });

test("a lease is a value: had, seen by others, given back at the end of its scope", async () => {
  await using mine = await open();
  await using other = await open();
  let token: bigint;
  {
    await using lease = await acquireLock(mine, "job");
    token = lease.fencingToken;
    expect(lease.isHeld()).toBe(true);
    expect((await lockStatus(other, "job")).holders.map(({ holderId }) => holderId)).toEqual([lease.holderId]);
    const busy = await acquireLock(other, "job", { wait: "none" }).catch((thrown: unknown) => thrown);
    expect(busy).toBeInstanceOf(BatonError);
    expect(busy).toMatchObject({ code: "LOCK_BUSY" });
  }
  await using next = await acquireLock(other, "job", { wait: "none" });
  expect(next.fencingToken).toBeGreaterThan(token);
});

test("several leases as one: lost with the first of them, given back together", async () => {
  await using zk = await open();
  await using other = await open();
  const [a, b] = [await acquireLock(zk, "a"), await acquireLock(zk, "b")];
  const both = new LeaseSet([a, b]);
  expect([both.name, both.isHeld(), both.endMs()]).toEqual(["a, b", true, Math.min(a.endMs(), b.endMs())]);
  await b.release();
  expect(both.isHeld()).toBe(false);
  await both.release();
  await (await acquireLock(other, "a", { wait: "none" })).release();
});
