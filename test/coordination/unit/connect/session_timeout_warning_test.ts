import { expect, test } from "bun:test";
import { longSessionTimeoutWarning } from "../../../../src/coordination/connect/command_session.ts";

test("what was asked for, or less, is nothing to tell", () => {
  for (const grantedMs of [3000, 4000]) {
    expect(longSessionTimeoutWarning({ askedMs: 4000, grantedMs, isStandalone: false })).toBeNull();
  }
});

test("servers that grant more have a tick that is too long for it: both ways out are named", () => {
  expect(longSessionTimeoutWarning({ askedMs: 3000, grantedMs: 4000, isStandalone: false })).toBe(
    "baton: requested a session timeout of 3 s, but the minimum of the servers is 4 s; with ZooKeeper's default " +
      "minimum of two ticks the servers' tickTime is then 2 s, and should be at most a fifth of the session timeout: " +
      "use --session-timeout 10s, or set tickTime to 600 ms (docs/limits.md)\n",
  );
});

test("the tick of a keeper behind its socket is of no importance", () => {
  expect(longSessionTimeoutWarning({ askedMs: 1000, grantedMs: 2000, isStandalone: true })).toBe(
    "baton: requested a session timeout of 1 s, but the minimum of the servers is 2 s; set --session-timeout to " +
      "that, or give the keeper a lower minimum\n",
  );
});
