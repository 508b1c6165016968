/** Locks of a keeper whose commits take longer than a third of the session timeout. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { lockCommandSettings, readLockOptions } from "../../../commands/coordination/lock_options.ts";
import { takeLocks } from "../../../commands/coordination/locked_job.ts";
import { type Keeper, startKeeper } from "../../../src/coordination/keeper/lifecycle/start_keeper.ts";
import { realKeeperSystem } from "../../../src/coordination/keeper/lifecycle/keeper_server.ts";
import type { StorageWorker } from "../../../src/base/storage/storage_thread.ts";
import { formatAddress } from "../../../src/base/sockets/connection.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { parseZooKeeperServers } from "../../../src/protocols/zookeeper/hosts.ts";
import { connectToZooKeeper } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { callOf } from "../../program/unit/commands/call_of.ts";
import { fakeIo } from "../../support/fake_io.ts";

const sessionTimeoutMs = 2000;
/** Longer than a third of the session timeout, after which a holder gives a connection up. */
const commitMs = 800;

let root = "";
let keeper: Keeper | null = null;
beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), "baton-slow-"));
  const listen = [{ kind: "tcp", host: "127.0.0.1", port: 0 }] as const;
  const system = { ...realKeeperSystem, startStoreThread: startSlowThread };
  keeper = await startKeeper({ dataDir: join(root, "data"), listen, tickTimeMs: 100, system });
});
afterEach(async () => {
  await keeper?.close();
  rmSync(root, { recursive: true, force: true });
});

/** A storage thread that gets each commit late: the commits behind it wait, as for a disk. */
function startSlowThread(): StorageWorker {
  const worker = realKeeperSystem.startStoreThread();
  let free = Promise.resolve();
  return {
    postMessage(request, transfer) {
      const isCommit = (request as { method?: string }).method === "commit";
      free = free.then(() => isCommit ? Bun.sleep(commitMs) : undefined).then(() =>
        worker.postMessage(request, transfer)
      );
    },
    on: (event, listener) => worker.on(event, listener),
    terminate: () => worker.terminate(),
  };
}

async function take(words: readonly string[]): Promise<boolean[]> {
  const [address] = keeper?.addresses ?? [];
  if (address === undefined) throw new Error("the keeper does not listen");
  const io = fakeIo();
  const call = await callOf(lockCommandSettings, [...words, "--", "true"], io);
  await using zk = await connectToZooKeeper({
    servers: parseZooKeeperServers(formatAddress(address)),
    sessionTimeoutMs,
  });
  const clock = systemClock();
  const { signal } = new AbortController();
  const context = { io, clock, signal, acl: undefined, startMs: clock.now(), notices: [] };
  const { leases } = await takeLocks(zk, readLockOptions(call), context);
  return leases.map((lease) => lease.isHeld());
}

test("one lock, and several locks that are taken together, are granted", async () => {
  expect(await Promise.all([take(["a"]), take(["b", "c"])])).toEqual([[true], [true, true]]);
}, 120_000);
