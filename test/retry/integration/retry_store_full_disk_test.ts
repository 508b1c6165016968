/**
 * A message store on a disk that its messages fill: what was accepted can be tried, recorded and opened again. It needs
 * root.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RetryStore } from "../../../src/retry/queue/sqlite/retry_store.ts";
import { verifyRetryStore } from "../../../src/retry/queue/sqlite/verify_retry_store.ts";
import { rigMessage, rigRules, rigSuccess } from "../../support/retry_rig.ts";
import { canMountDisk, SmallDisk } from "../../support/small_disk.ts";

setDefaultTimeout(60_000);

const hasDisks = canMountDisk("no message store is tried on a disk that its messages fill");
const diskMiB = 64;

let root = "";
let disk: SmallDisk | null = null;
beforeEach(() => root = mkdtempSync(join(tmpdir(), "baton-full-store-")));
afterEach(() => {
  disk?.[Symbol.dispose]();
  disk = null;
  rmSync(root, { recursive: true, force: true });
});

const rules = { ...rigRules, maxBytes: 2 ** 40, maxMessages: 100_000 };
const open = () => RetryStore.open(join(root, "disk/store"), { rules });

/** Stores messages, so many at the same time, until one is refused. Returns the number of the accepted ones. */
async function fill(store: RetryStore, bytes: number, atOnce: number): Promise<number> {
  const message = { ...rigMessage(""), body: new Uint8Array(bytes).fill(7) };
  for (let accepted = 0;;) {
    const results = await Promise.allSettled(
      Array.from({ length: atOnce }, () => store.call("accept", [message], Date.now())),
    );
    accepted += results.filter(({ status }) => status === "fulfilled").length;
    const refused = results.filter(({ status }) => status === "rejected") as PromiseRejectedResult[];
    if (refused.length === 0) continue;
    for (const { reason } of refused) {
      expect(reason).toMatchObject({ code: "STORE_FULL", message: expect.stringContaining("space reserved") });
    }
    return accepted;
  }
}

/** Claims each message and records its success. Returns their number. */
async function drain(store: RetryStore): Promise<number> {
  const owner = await store.call("register", "boot", Number.MAX_SAFE_INTEGER, 1, Date.now());
  for (let done = 0;;) {
    const nowMs = Date.now();
    const { messages } = await store.call("claim", { owner, nowMs, max: 16, order: "any" } as never);
    if (messages.length === 0) return done;
    for (const { seq, fence } of messages) {
      await store.call("finish", { seq, fence, owner, end: rigSuccess, error: null, nowMs: Date.now() });
    }
    done += messages.length;
  }
}

test.skipIf(!hasDisks).each([
  { percent: 0.1, atOnce: 20, least: 400 },
  { percent: 1, atOnce: 1, least: 30 },
  { percent: 1, atOnce: 40, least: 30 },
  { percent: 5, atOnce: 1, least: 6 },
  { percent: 10, atOnce: 1, least: 3 },
  { percent: 10, atOnce: 6, least: 2 },
])("bodies of $percent % of the disk, $atOnce together: filled, opened, drained and opened again", async ({
  percent,
  atOnce,
  least,
}) => {
  disk = new SmallDisk(join(root, "disk"), diskMiB);
  const bytes = Math.floor(diskMiB * (1 << 20) * percent / 100);
  let store = await open();
  await store.call("reserveLog");
  const reopen = async () => {
    await store.close();
    store = await open();
  };
  const accepted = await fill(store, bytes, atOnce);
  expect(accepted).toBeGreaterThanOrEqual(least);
  await reopen();
  expect(await drain(store)).toBe(accepted);
  await reopen();
  expect(await fill(store, bytes, atOnce)).toBeGreaterThanOrEqual(least);
  await store.close();
  expect(verifyRetryStore(join(root, "disk/store")).problems).toEqual([]);
});
