import { expect, test } from "bun:test";
import { DiskWatch } from "../../../../src/pubsub/store/disk_watch.ts";

const mebibyte = 2 ** 20;

/** Of 100 MiB of a file system so many are taken, and by the store so many. */
function watch(takenMiB: number, storeMiB: number, maxMiB: number | null): DiskWatch {
  const fileSystem = () => ({ bytes: 100 * mebibyte, freeBytes: (100 - takenMiB) * mebibyte });
  const database = { usedBytes: () => storeMiB * mebibyte, fileSystem };
  return new DiskWatch(database, maxMiB === null ? null : maxMiB * mebibyte);
}

test("a file system over the limit is told as it is", () => {
  const disk = watch(96, 1, null);
  disk.expectBytes(4 * mebibyte);
  expect(disk.fullSentence()).toBe("96 % of the file system is used; the limit is 95 %");
});

test("what is being written counts, and is not told as taken", () => {
  const disk = watch(94, 1, null);
  expect(disk.fullSentence()).toBeNull();
  disk.expectBytes(4 * mebibyte);
  expect(disk.usedShare).toBeGreaterThan(1);
  expect(disk.fullSentence()).toBe(
    "94 % of the file system is used, more with the data being written; the limit is 95 %",
  );
});

test("of the store's own limit the same", () => {
  const disk = watch(1, 9, 10);
  expect(disk.fullSentence()).toBeNull();
  expect(disk.warningSentence()).toBe("the store uses 9437184 of 10485760 bytes; the limit is 80 %");
  disk.expectBytes(mebibyte);
  expect(disk.fullSentence()).toBe(
    "the store uses 9437184 of 10485760 bytes, more with the data being written; the limit is 95 %",
  );
});

test("of two limits the one is told that is over", () => {
  const disk = watch(91, 92, 100);
  disk.expectBytes(2.5 * mebibyte);
  expect(disk.fullSentence()).toBe(
    "91 % of the file system is used, more with the data being written; the limit is 95 %",
  );
});
