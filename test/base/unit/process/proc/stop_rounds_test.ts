/** The order in which a job's processes are suspended and killed. */
import { afterEach, expect, test } from "bun:test";
import { ProcessKillRounds } from "../../../../../src/base/process/proc/stop_rounds.ts";
import { processSystem, useProcessSystem } from "../../../../../src/base/support/own_process.ts";

const before = processSystem;
afterEach(() => void useProcessSystem(before));

test("the group is suspended before the first search, and killed after it", () => {
  const events: string[] = [];
  useProcessSystem({ ...before, kill: (pid, signal) => void events.push(`${signal} ${pid}`) });
  let searches = 0;
  const rounds = new ProcessKillRounds({
    find(onFound) {
      events.push("search");
      if (searches++ === 0) onFound(71);
      return { alive: [71], isCertain: true };
    },
    group: () => 71,
  }, "cookie");
  rounds.kill();
  expect(events.slice(0, 3)).toEqual(["SIGSTOP -71", "search", "SIGSTOP 71"]);
  expect(events.slice(-2)).toEqual(["SIGKILL -71", "SIGKILL 71"]);
});
