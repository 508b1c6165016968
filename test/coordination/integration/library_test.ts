/** baton as other programs import it, by its entry alone. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  acquireLock,
  BatonError,
  connect,
  Election,
  type Keeper,
  LeaseSet,
  Lock,
  lockStatus,
  startKeeper,
} from "../../../src/library/baton.ts";
import { type Clock, systemClock } from "../../../src/base/support/clock.ts";

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

test("a lock and a leadership that are lost while their session lives on are free for others", async () => {
  await using mine = await open();
  await using other = await open();
  const system = systemClock();
  let aheadMs = 0;
  const clock: Clock = { ...system, now: () => system.now() + aheadMs };
  await using lock = new Lock(mine, "kept", { clock });
  await using election = new Election(mine, "kept", { clock });
  const leases = [await lock.acquire(), await election.campaign("mine")];
  aheadMs = 3_600_000;
  expect(leases.map((lease) => lease.isHeld())).toEqual([false, false]);
  aheadMs = 0;
  expect(mine.session.ended.aborted).toBe(false);
  await using next = await acquireLock(other, "kept", { wait: 10_000 });
  expect(next.isHeld()).toBe(true);
  await using others = new Election(other, "kept");
  expect((await others.campaign("other", { wait: 10_000 })).isHeld()).toBe(true);
  await expect(lock.release()).rejects.toMatchObject({ code: "NOT_HELD" });
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
