import { describe, expect, test } from "bun:test";
import type { SupervisedChildEnding } from "../../../../src/base/process/spawn/child_outcome.ts";
import { decideLockEnding } from "../../../../src/coordination/job/lock_ending.ts";
import { BatonError } from "../../../../src/base/errors.ts";

const lost = AbortSignal.abort(new BatonError("LOCK_LOST", 'Lock "a" is lost: its node is gone'));
const facts = { what: '"a"', lost: new AbortController().signal, maxHoldMs: 1500 };
const killed = { kind: "signaled", signal: "SIGKILL", signalNumber: 9 } as const;

describe("how a command ended, as an exit code", () => {
  const endings: [ending: SupervisedChildEnding, exitCode: number, reason: string, message: RegExp | null][] = [
    [{ kind: "exited", code: 7 }, 7, "command_exited", null],
    [{ kind: "exited", code: 75 }, 75, "command_exited", null],
    [killed, 137, "command_signaled", null],
    [{ kind: "unreadable", why: "ECHILD" }, 70, "internal", /"a" has ended with an unknown exit status: ECHILD$/],
    [
      { kind: "lost", child: { kind: "unreadable", why: "ECHILD" } },
      79,
      "lock_lost",
      /unknown exit status \(ECHILD\)$/,
    ],
    [
      { kind: "lost", child: killed },
      79,
      "lock_lost",
      /^Lock "a" is lost: its node is gone; the command was stopped by SIGKILL$/,
    ],
    [{ kind: "lost", child: null }, 79, "lock_lost", /the command did not run/],
    [
      { kind: "revoked", child: { kind: "exited", code: 0 } },
      80,
      "revoked",
      /; the command was stopped and exited with 0$/,
    ],
    [{ kind: "time_limit", child: killed }, 124, "time_limit", /longer than 1.5 s \(--max-hold\)/],
    [{ kind: "breach", child: null, survivors: [12, 13], isDead: false }, 83, "fence_breach", /\(pids 12, 13\)/],
    [
      { kind: "breach", child: null, survivors: [], isDead: true },
      83,
      "fence_breach",
      /was stopped after the end of its lease/,
    ],
    [{ kind: "not_found", message: "no" }, 127, "command_not_found", /^no$/],
    [{ kind: "not_executable", message: "no" }, 126, "not_executable", /^no$/],
    [{ kind: "start_failed", message: "no" }, 125, "start_failed", /^no$/],
  ];
  for (const [ending, exitCode, reason, message] of endings) {
    test(`${JSON.stringify(ending)} is ${exitCode}`, () => {
      const result = decideLockEnding({ ...ending, pid: 1, heldMs: 1 }, { ...facts, lost });
      expect(result).toMatchObject({ exitCode, reason });
      if (message === null) expect(result?.message).toBeNull();
      else expect(result?.message).toMatch(message);
    });
  }

  test("a lock that is lost because no server responds says why none does", () => {
    const outcome = { kind: "lost", child: killed, pid: 1, heldMs: 1 } as const;
    const outage = " (zk1:2281: its certificate has expired)";
    expect(decideLockEnding(outcome, { ...facts, outage })?.message).toBe(
      'Lock "a" is lost: no server responded in time (zk1:2281: its certificate has expired); ' +
        "the command was stopped by SIGKILL",
    );
  });

  test("of a script that holds the lock nobody knows how it ended, and nothing is said of that", () => {
    const messageOf = (ending: SupervisedChildEnding) =>
      decideLockEnding({ ...ending, pid: 1, heldMs: 1 }, { ...facts, isScript: true })?.message;
    expect(messageOf({ kind: "lost", child: { kind: "exited", code: 0 } })).toMatch(/; the script was stopped$/);
    expect(messageOf({ kind: "revoked", child: null })).toMatch(/; the script was not notified of the lock$/);
    expect(messageOf({ kind: "breach", child: null, survivors: [12], isDead: false })).toMatch(
      /^The script under "a" may still be running/,
    );
  });

  test("a request to stop before the start has no exit code", () => {
    expect(decideLockEnding({ kind: "cancelled", pid: null, heldMs: 0 }, facts)).toBeNull();
  });
});
