/** The runner of the tests ends what it has started, and counts what ended otherwise as a failure. */
import { describe, expect, test } from "bun:test";
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { runTestCommand } from "../../../scripts/tests/run_command.ts";
import { eventually } from "../../support/eventually.ts";
import { isAlive } from "../../support/is_alive.ts";

const root = join(import.meta.dir, "../../..");
const surroundings = { root, env: process.env, silentMsMax: 60_000, signal: new AbortController().signal };

/** A command that prints the pid of a process that it starts, and waits for it. */
const parent = `sh -c 'trap "" TERM; echo "child $$"; while :; do sleep 1; echo still here; done' & wait`;

/** Runs the command, and says what it printed and which process it started. */
function runParent(more: Partial<Parameters<typeof runTestCommand>[1]>) {
  let shown = "";
  const show = (text: string) => void (shown += text);
  const ended = runTestCommand({ name: "tests", command: ["sh", "-c", parent] }, { ...surroundings, ...more, show });
  const childPid = () => Number(/child (\d+)/.exec(shown)?.[1]);
  return { ended, childPid, started: eventually(() => childPid() > 0), shown: () => shown };
}

describe("a run", () => {
  test("in which no test ends is stopped with all that it has started, although it prints", async () => {
    const { ended, childPid, shown } = runParent({ silentMsMax: 500 });
    const { failed, failures } = await ended;
    expect({ failed: failed > 0, first: failures[0] }).toEqual({
      failed: true,
      first: "(fail) tests: no test ended for 0 minutes: it was stopped",
    });
    expect(shown()).toContain("child");
    await eventually(() => !isAlive(childPid()));
  }, 30_000);

  test("is stopped by a signal with all that it has started", async () => {
    const stopping = new AbortController();
    const { ended, childPid, started } = runParent({ signal: stopping.signal });
    await started;
    stopping.abort("SIGINT");
    expect((await ended).failures[0]).toBe("(fail) tests: SIGINT: it was stopped");
    await eventually(() => !isAlive(childPid()));
  }, 30_000);

  test("goes on while tests end", async () => {
    const command = ["sh", "-c", "for n in 1 2 3 4; do sleep 0.4; echo '(pass) a'; done; echo ' 4 pass'"];
    const show = () => {};
    const { passed, failed } = await runTestCommand({ name: "a", command }, {
      ...surroundings,
      silentMsMax: 1000,
      show,
    });
    expect({ passed, failed }).toEqual({ passed: 4, failed: 0 });
  }, 30_000);
});

test.each([["SIGINT", 130], ["SIGTERM", 143]] as const)(
  "%s ends the runner and its tests",
  async (signal, exitCode) => {
    const folder = mkdtempSync(join(tmpdir(), "baton-runner-"));
    const path = join(folder, "endless_test.ts");
    const pidFile = join(folder, "pid");
    writeFileSync(
      path,
      `import { test } from "bun:test";
     import { writeFileSync } from "node:fs";
     test("never ends", async () => {
       writeFileSync(${JSON.stringify(pidFile)}, String(process.pid));
       await new Promise(() => {});
     });`,
    );
    const runner = spawn("bun", ["scripts/run_tests.ts", path], { cwd: root, stdio: ["ignore", "pipe", "ignore"] });
    let said = "";
    runner.stdout.setEncoding("utf8").on("data", (chunk: string) => said += chunk);
    const ended = new Promise((resolve) => runner.on("close", resolve));
    const testPid = (): number => {
      try {
        return Number(readFileSync(pidFile, "utf8"));
      } catch {
        return 0;
      }
    };
    try {
      await eventually(() => testPid() > 0, { withinMs: 30_000 });
      runner.kill(signal);
      expect(await ended).toBe(exitCode);
      expect(said).toContain(`(fail) chosen tests: ${signal}: it was stopped`);
      await eventually(() => !isAlive(testPid()));
    } finally {
      runner.kill("SIGKILL");
      rmSync(folder, { recursive: true });
    }
  },
  60_000,
);

test.each([["retri", []], ["--nightli", []], ["retry", ["test/base"]]])("%s %p is a usage error", (word, more) => {
  const { status } = spawnSync("bun", ["scripts/tests/check_words.ts", word, ...more], { cwd: root });
  expect(status).toBe(64);
});
