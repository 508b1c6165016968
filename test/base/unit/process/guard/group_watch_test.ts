import { expect, test } from "bun:test";
import { ProcessGroupWatch } from "../../../../../src/base/process/guard/kill_job.ts";

const child = { pid: 77, ownGroup: true, startTicks: 1000 };

/** `leader`: when the process with the group's number started; null for none. */
function watch(of: Partial<typeof child> = {}) {
  const system = { members: 1, leader: 1000 as number | null };
  const group = new ProcessGroupWatch({ ...child, ...of }, {
    exists: (number) => number === 77 && system.members > 0,
    startTicks: (pid) => pid === 77 ? system.leader : null,
  });
  return { system, group };
}

test("a group is the command's as long as somebody is in it, whether or not its leader lives", () => {
  const { system, group } = watch();
  expect(group.isOurs()).toBe(true);
  system.leader = null;
  expect(group.isOurs()).toBe(true);
});

test("a group that was empty once is not the command's again, whoever has its number", () => {
  const { system, group } = watch();
  Object.assign(system, { members: 0, leader: null });
  expect(group.isOurs()).toBe(false);
  Object.assign(system, { members: 3, leader: null });
  expect(group.isOurs()).toBe(false);
});

test("a group whose processes were all killed is not the command's again, also while a zombie has its number", () => {
  const { system, group } = watch();
  group.lose();
  expect(group.isOurs()).toBe(false);
  system.leader = null;
  expect(group.isOurs()).toBe(false);
});

test("a leader that started at another time leads another group", () => {
  const { system, group } = watch();
  system.leader = 2000;
  expect(group.isOurs()).toBe(false);
});

test("where the start is not known the group has to be there", () => {
  const { system, group } = watch({ startTicks: 0 });
  expect(group.isOurs()).toBe(true);
  system.members = 0;
  expect(group.isOurs()).toBe(false);
});

test("a command without a group of its own has none", () => {
  expect(watch({ ownGroup: false }).group.isOurs()).toBe(false);
});
