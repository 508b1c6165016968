/** Why a process cannot be stopped: its owner, or the kernel. */
import { expect, test } from "bun:test";
import { isKillPending, isUnstoppableByKernel } from "../../../../../src/base/process/proc/unstoppable.ts";

test.each([
  ["another user's process, whatever it does at the moment", true, 0, 1000, false],
  ["a process of the same user in the kernel", true, 1000, 1000, true],
  ["any process in the kernel, for root", true, 1000, 0, true],
  ["a process of an unknown user in the kernel", true, null, 1000, true],
  ["a process that runs", false, 1000, 1000, false],
])("the kernel keeps it alive: %s", (_, isInKernel, uid, ownUid, expected) => {
  expect(isUnstoppableByKernel(isInKernel, uid, ownUid)).toBe(expected);
});

test.each([
  ["sent to the process", "SigPnd:\t0000000000000000\nShdPnd:\t0000000000000100\n", true],
  ["sent to its thread", "SigPnd:\t0000000000000300\nShdPnd:\t0000000000000000\n", true],
  ["not sent, but SIGUSR1 and SIGTERM", "SigPnd:\t0000000000000200\nShdPnd:\t0000000000004000\n", false],
  ["unknown", "Uid:\t0\t0\t0\t0\n", false],
])("a SIGKILL that is %s", (_, status, expected) => {
  expect(isKillPending(`Name:\tsh\n${status}`)).toBe(expected);
});
