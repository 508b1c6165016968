/** Several jobs in one process, with real processes: whose leftovers are whose, seen from outside. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readProcess } from "../../../src/base/process/proc/process_table.ts";
import { eventually } from "../../support/eventually.ts";
import { ownSeconds, sleepers } from "../../support/sleepers.ts";
import { runtimes } from "../../support/supervise_run.ts";

setDefaultTimeout(20_000);

class JobsRun implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), "baton-jobs-"));
  readonly process: Bun.Subprocess;
  readonly #times: number[];

  /** `{}` in the scripts is the run's own folder. */
  constructor(
    command: readonly string[],
    jobs: Readonly<Record<string, string>>,
    times: number[],
    { leaseMs = 9_000 } = {},
  ) {
    this.#times = times;
    const fixture = command.map((word) => word.replace(/supervise\.ts$/, "supervise_jobs.ts"));
    const words = Object.entries(jobs).map(([name, script]) => `${name}=${script.replaceAll("{}", this.folder)}`);
    this.process = Bun.spawn([...fixture, this.folder, ...words], {
      stdio: ["ignore", "inherit", "inherit"],
      env: { ...process.env, LEASE_MS: String(leaseMs) },
      detached: true,
    });
  }

  has(name: string): boolean {
    return existsSync(join(this.folder, name));
  }

  make(name: string): void {
    writeFileSync(join(this.folder, name), "");
  }

  /** Names and endings of the jobs that are over, in their order. */
  over(): string[] {
    if (!this.has("report")) return [];
    const lines = readFileSync(join(this.folder, "report"), "utf8").trimEnd().split("\n");
    return lines.map((line) => JSON.parse(line) as { name: string; kind: string }).map((end) =>
      `${end.name} ${end.kind}`
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.process.kill("SIGKILL");
    await this.process.exited;
    for (const pid of this.#times.flatMap(sleepers)) process.kill(pid, "SIGKILL");
    rmSync(this.folder, { recursive: true });
  }
}

/** Waits for a file of the test's. */
const until = (name: string) => `while ! [ -e {}/${name} ]; do sleep 0.01; done`;
/** Out of the session, without parents, with a cleared environment. */
const daemon = (time: number) => `(env -i setsid sleep ${time} &)`;

for (const { name, command } of runtimes) {
  describe(name, () => {
    test("the end of one job takes what it left behind, and nothing of the other", async () => {
      const one = ownSeconds();
      const other = ownSeconds();
      const leave = (time: number) =>
        `sleep ${time} & setsid sleep ${time} & (setsid sleep ${time} &) ; touch {}/left-$JOB`;
      await using run = new JobsRun(command, {
        a: `${leave(one)}; ${until("end-a")}`,
        b: `${leave(other)}; ${until("end-b")}`,
      }, [one, other]);
      await eventually(() => sleepers(one).length === 3 && sleepers(other).length === 3, { withinMs: 10_000 });
      run.make("end-a");
      await eventually(() => run.over().length === 1);
      expect(run.over()).toEqual(["a exited"]);
      expect([sleepers(one).length, sleepers(other).length]).toEqual([0, 3]);
      run.make("end-b");
      expect(await run.process.exited).toBe(0);
      expect(run.over()).toEqual(["a exited", "b exited"]);
      expect(sleepers(other)).toEqual([]);
    });

    test("what may be either's is killed when both have ended, and until then the first keeps its lock", async () => {
      const time = ownSeconds();
      await using run = new JobsRun(command, {
        a: `touch {}/a; ${until("go")}; ${daemon(time)}; touch {}/left; ${until("end-a")}`,
        b: `touch {}/b; ${until("end-b")}`,
      }, [time]);
      await eventually(() => run.has("a") && run.has("b"), { withinMs: 10_000 });
      run.make("go");
      await eventually(() => run.has("left") && sleepers(time).length === 1);
      run.make("end-a");
      await eventually(() => run.process.exitCode === null && childrenNamed(run.process.pid, "sh") === 1);
      expect(run.over()).toEqual([]);
      expect(sleepers(time).length).toBe(1);
      run.make("end-b");
      await eventually(() => run.over().length === 2);
      expect([...run.over()].sort()).toEqual(["a exited", "b exited"]);
      expect(sleepers(time)).toEqual([]);
    });

    test("what was started before the other job began is the first one's alone", async () => {
      const time = ownSeconds();
      await using run = new JobsRun(command, {
        a: `${daemon(time)}; touch {}/left; ${until("end-a")}`,
      }, [time]);
      await eventually(() => run.has("left") && sleepers(time).length === 1, { withinMs: 10_000 });
      run.make("end-a");
      expect(await run.process.exited).toBe(0);
      expect(run.over()).toEqual(["a exited"]);
      expect(sleepers(time)).toEqual([]);
    });

    for (const [file, kind] of [["lose-a", "lost"], ["revoke-a", "revoked"]] as const) {
      test(`a job that is ${kind} is dead with all that may be its own, and the other runs on`, async () => {
        const time = ownSeconds();
        const others = ownSeconds();
        await using run = new JobsRun(command, {
          a: `touch {}/a; ${until("go")}; ${daemon(time)}; touch {}/left; sleep ${time}`,
          b: `touch {}/b; setsid sleep ${others} & ${until("end-b")}`,
        }, [time, others]);
        await eventually(() => run.has("a") && run.has("b"), { withinMs: 10_000 });
        run.make("go");
        await eventually(() => run.has("left") && sleepers(time).length === 2 && sleepers(others).length === 1);
        run.make(file);
        await eventually(() => run.over().length === 1);
        expect(run.over()).toEqual([`a ${kind}`]);
        expect([sleepers(time).length, sleepers(others).length]).toEqual([0, 1]);
        run.make("end-b");
        expect(await run.process.exited).toBe(0);
        expect(run.over()).toEqual([`a ${kind}`, "b exited"]);
      });
    }

    test("when baton is killed the guard ends all its jobs", async () => {
      const one = ownSeconds();
      const other = ownSeconds();
      await using run = new JobsRun(command, {
        a: `setsid sleep ${one} & sleep ${one}`,
        b: `setsid sleep ${other} & trap '' TERM; sleep ${other}`,
      }, [one, other]);
      await eventually(() => sleepers(one).length === 2 && sleepers(other).length === 2, { withinMs: 10_000 });
      run.process.kill("SIGKILL");
      await eventually(() => sleepers(one).length + sleepers(other).length === 0);
    });

    test("while baton is stopped the guard strikes each job at its lease end", async () => {
      const one = ownSeconds();
      const other = ownSeconds();
      await using run = new JobsRun(command, { a: `sleep ${one}`, b: `sleep ${other}` }, [one, other], {
        leaseMs: 3_000,
      });
      await eventually(() => sleepers(one).length === 1 && sleepers(other).length === 1, { withinMs: 10_000 });
      run.process.kill("SIGSTOP");
      await eventually(() => sleepers(one).length + sleepers(other).length === 0, { withinMs: 15_000 });
      run.process.kill("SIGCONT");
      expect(await run.process.exited).toBe(0);
      expect([...run.over()].sort()).toEqual(["a lost", "b lost"]);
    });
  });
}

function childrenNamed(parent: number, commandName: string): number {
  const rows = Array.from(new Bun.Glob("[0-9]*").scanSync({ cwd: "/proc", onlyFiles: false })).map(Number);
  return rows.filter((pid) => {
    try {
      return readProcess(pid)?.parent === parent && readFileSync(`/proc/${pid}/comm`, "utf8").trim() === commandName;
    } catch {
      return false;
    }
  }).length;
}
