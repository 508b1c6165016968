import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BatonError } from "../../../../../src/base/errors.ts";
import { systemKeeperDataFiles } from "../../../../../src/coordination/keeper/storage/data_files.ts";
import { KeeperOwnershipMonitor } from "../../../../../src/coordination/keeper/storage/ownership_monitor.ts";
import { FakeClock } from "../../../../support/fake_clock.ts";

let root = "";
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "baton-guard-"));
  for (const name of files) writeFileSync(join(root, name), name);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const files = ["keeper.sqlite", "keeper.sqlite-wal", "keeper.sqlite-shm", "owner.sqlite"];

function guarded(confirm: () => Promise<void> = () => Promise.resolve()) {
  const clock = new FakeClock();
  const lost: BatonError[] = [];
  let present = 0;
  const guard = new KeeperOwnershipMonitor({
    clock,
    dataDir: root,
    files: systemKeeperDataFiles,
    confirm,
    onLost: (error) => lost.push(error),
    onPresent: () => present++,
  });
  return { clock, guard, lost, present: () => present };
}

/** A new file under the same name, while the old one is still there: it gets another number. */
function replace(name: string): void {
  writeFileSync(join(root, "new"), name);
  renameSync(join(root, "new"), join(root, name));
}

test.each(files)(
  "%s removed or replaced: within 100 ms nothing is held any more, whether a timer has run or not",
  (name) => {
    for (const act of [() => replace(name), () => rmSync(join(root, name))]) {
      const { clock, guard, lost } = guarded();
      expect(guard.ownsData()).toBe(true);
      act();
      clock.stall(100);
      expect([guard.ownsData(), guard.ownsData()]).toEqual([false, false]);
      expect(lost.map(({ code, message }) => [code, message.includes(name)])).toEqual([["IO", true]]);
    }
  },
);

test("a file that is gone when the guard begins counts as removed", () => {
  rmSync(join(root, "owner.sqlite"));
  expect(guarded().guard.ownsData()).toBe(false);
});

test("while nobody asks it looks by itself, and says that all is there", async () => {
  const { clock, guard, lost, present } = guarded();
  guard.watch();
  await clock.advance(3000);
  expect(present()).toBe(3);
  replace("owner.sqlite");
  await clock.advance(1000);
  expect([lost.length, present(), clock.timers]).toEqual([1, 3, 0]);
});

test("rows that name another keeper end it, also where all files are the same", async () => {
  let answer = () => Promise.resolve();
  const { clock, guard, lost } = guarded(() => answer());
  guard.watch();
  await clock.advance(2000);
  expect(lost).toEqual([]);
  answer = () => Promise.reject(new BatonError("IO", "the disk is in trouble"));
  await clock.advance(1000);
  expect([guard.ownsData(), lost]).toEqual([true, []]);
  const taken = new BatonError("LOCK_BUSY", "taken");
  answer = () => Promise.reject(taken);
  await clock.advance(2000);
  expect([guard.ownsData(), lost]).toEqual([false, [taken]]);
});

test("a store that does not answer is asked once", async () => {
  let asked = 0;
  const { clock, guard } = guarded(() => new Promise(() => void asked++));
  guard.watch();
  await clock.advance(5000);
  guard.stop();
  expect(asked).toBe(1);
});

test("files that nobody writes look used, so that whoever removes old ones leaves them", async () => {
  const { clock, guard } = guarded();
  const old = new Date(0);
  const age = () => files.forEach((name) => utimesSync(join(root, name), old, old));
  const touched = () => files.filter((name) => statSync(join(root, name)).mtimeMs > 0).length;
  age();
  guard.watch();
  await clock.advance(1000);
  expect(touched()).toBe(files.length);
  age();
  await clock.advance(3_600_000);
  guard.stop();
  expect(touched()).toBe(files.length);
});
