/** Why a process cannot be stopped: its owner, or the kernel. */
import { expect, test } from "bun:test";
import { isUnstoppableByKernel } from "../../../../../src/base/process/proc/unstoppable.ts";

test.each([
  ["another user's process, whatever it does at the moment", { isInKernel: true, uid: 0, ownUid: 1000 }, false],
  ["a process of the same user in the kernel", { isInKernel: true, uid: 1000, ownUid: 1000 }, true],
  ["any process in the kernel, for root", { isInKernel: true, uid: 1000, ownUid: 0 }, true],
  ["a process of an unknown user in the kernel", { isInKernel: true, uid: null, ownUid: 1000 }, true],
  ["a process that runs", { isInKernel: false, uid: 1000, ownUid: 1000 }, false],
])("the kernel keeps it alive: %s", (_, facts, expected) => {
  expect(isUnstoppableByKernel(facts)).toBe(expected);
});
