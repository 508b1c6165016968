import { afterEach, expect, test } from "bun:test";
import { ProcessGroupWatch } from "../../../../../src/base/process/guard/kill_job.ts";
import { processSystem, useProcessSystem } from "../../../../../src/base/support/own_process.ts";

const child = { pid: 77, ownGroup: true, startTicks: 1000 };
const before = processSystem;
afterEach(() => void useProcessSystem(before));

function refuse(code: string): never {
  throw Object.assign(new Error(code), { code });
}

/**
 * `leader`: when the process with the group's number started; null for none. `last`: the number that the kernel gave
 * last.
 */
function watch(of: Partial<typeof child> = {}) {
  const system = { members: 1, leader: 1000 as number | null | "unknown", last: 90 as number | null, others: false };
  useProcessSystem({
    ...before,
    kill(pid) {
      if (pid === -77 ? system.members === 0 : pid !== 77 || system.leader === null) refuse("ESRCH");
      if (system.others) refuse("EPERM");
    },
    readText(path) {
      if (path === "/proc/sys/kernel/ns_last_pid" && system.last !== null) return `${system.last}\n`;
      if (path !== "/proc/77/stat" || typeof system.leader !== "number") refuse("ENOENT");
      return `77 (sh) S 1 77 77 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 ${system.leader} ${"0 ".repeat(30)}\n`;
    },
  });
  return { system, group: new ProcessGroupWatch({ ...child, ...of }) };
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

test.each([
  { to: 95, isOurs: true },
  { to: 76, isOurs: true },
  { to: 77, isOurs: false },
  { to: 80, isOurs: false },
  { to: 89, isOurs: false },
  { to: null, isOurs: true },
])("after the death of the leader, another group may have the number once the kernel has come by: at $to", (when) => {
  const { system, group } = watch();
  expect(group.isOurs()).toBe(true);
  Object.assign(system, { leader: null, last: when.to });
  expect(group.isOurs()).toBe(when.isOurs);
  expect(group.isOurs()).toBe(when.isOurs);
});

test("the kernel does not give the number while the leader lives, or a process that it does not show", () => {
  for (const leader of [1000, "unknown"] as const) {
    const { system, group } = watch();
    Object.assign(system, { leader });
    for (const last of [90, 80, 90, 80]) {
      Object.assign(system, { last });
      expect(group.isOurs()).toBe(true);
    }
  }
});

test("a group of other users keeps its lock: no signal reaches it, whose it may be", () => {
  const { system, group } = watch();
  group.isOurs();
  Object.assign(system, { leader: null, last: 80, others: true });
  expect(group.isOurs()).toBe(true);
  Object.assign(system, { last: 85, others: false });
  expect(group.isOurs()).toBe(false);
});
