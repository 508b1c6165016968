import { expect, test } from "bun:test";
import type { DiskSpace } from "../../../../../src/base/storage/disk_space.ts";
import { StoreDiskWatch } from "../../../../../src/pubsub/store/limits/disk_watch.ts";

const mebibyte = 2 ** 20;

/** A disk of 100 MiB, of which so many MiB are taken. */
class Disk {
  takenMiB = 0;
  usedMiB = 1;
  unusedMiB = 0;
  longLogMiB = 0;

  space(): DiskSpace {
    const bytes = (count: number) => count * mebibyte;
    const free = 100 - this.takenMiB;
    return {
      bytes: bytes(100),
      freeBytes: bytes(free),
      usedBytes: bytes(this.usedMiB),
      unusedBytes: bytes(this.unusedMiB),
    };
  }

  freeLog(): boolean {
    const has = this.longLogMiB > 0;
    this.takenMiB -= this.longLogMiB;
    this.longLogMiB = 0;
    return has;
  }
}

function watch(space: Partial<Disk>, maxMiB: number | null = null): { disk: Disk; watch: StoreDiskWatch } {
  const disk = Object.assign(new Disk(), space);
  return { disk, watch: new StoreDiskWatch(disk, maxMiB === null ? null : maxMiB * mebibyte) };
}

test("a file system over the limit is named as it is", () => {
  const { watch: disk } = watch({ takenMiB: 96 });
  expect(disk.fullSentence()).toBe("96 % of the file system is used; the limit is 95 %");
});

test("a message counts twice before it is accepted, and so do those of its batch", () => {
  const { watch: disk } = watch({ takenMiB: 50 });
  expect(disk.fullSentence(20 * mebibyte)).toBeNull();
  disk.expectBytes(20 * mebibyte);
  expect(disk.fullSentence(20 * mebibyte)).toBe(
    "50 % of the file system is used, 131 % with the data being written to the log and to the database; " +
      "the limit is 95 %",
  );
  expect(disk.fullSentence(mebibyte)).toBeNull();
});

test("the database's copy takes its unused pages first, the log's copy does not", () => {
  const { watch: disk } = watch({ takenMiB: 80, unusedMiB: 40 });
  expect(disk.fullSentence(14 * mebibyte)).toBeNull();
  expect(disk.fullSentence(15 * mebibyte)).not.toBeNull();
});

test("the space of a long log is given back before a message is refused", () => {
  const { disk, watch: space } = watch({ takenMiB: 90, longLogMiB: 30 });
  expect(space.fullSentence(10 * mebibyte)).toBeNull();
  expect(disk.takenMiB).toBe(60);
});

test("space that another program takes between two batches is seen by the second one", () => {
  const { disk, watch: space } = watch({ takenMiB: 10 });
  space.beginBatch();
  expect(space.fullSentence(mebibyte)).toBeNull();
  disk.takenMiB = 100;
  space.beginBatch();
  expect(space.fullSentence(1)).not.toBeNull();
});

test("what a commit has written counts until the next measurement", () => {
  const { watch: disk } = watch({ takenMiB: 50 });
  disk.expectBytes(10 * mebibyte);
  disk.noteCommit();
  expect(disk.usedShare).toBeGreaterThan(0.7);
  disk.measure();
  expect(disk.usedShare).toBe(0.5);
});

test("the store's own limit is checked with the batch, which counts once there", () => {
  const { watch: disk } = watch({ usedMiB: 9 }, 10);
  expect(disk.fullSentence()).toBeNull();
  expect(disk.warningSentence()).toBe("the store uses 9437184 of 10485760 bytes; the limit is 80 %");
  expect(disk.fullSentence(mebibyte)).toBe(
    "the store uses 9437184 of 10485760 bytes, 100 % with the data being written; the limit is 95 %",
  );
});

test("of two limits the nearer one is named", () => {
  const { watch: disk } = watch({ takenMiB: 91, usedMiB: 92 }, 100);
  expect(disk.fullSentence(2.5 * mebibyte)).toStartWith("91 % of the file system is used, 96 % with the data");
});

test("without a folder there is no limit: the next transaction says that it is gone", () => {
  const gone = { bytes: 0, freeBytes: 0, usedBytes: 0, unusedBytes: 0 };
  expect(new StoreDiskWatch({ space: () => gone, freeLog: () => false }, null).fullSentence(mebibyte)).toBeNull();
});
