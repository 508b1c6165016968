/**
 * What a baton that was killed with SIGKILL leaves on the server: its guard ends the session once everything of its job
 * is dead. T is a minute here, so that what is free within seconds did not become so by the session's expiry.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync } from "node:fs";
import process from "node:process";
import { listChildProcesses, readProcess } from "../../../src/base/process/proc/process_table.ts";
import { isGuardProcess } from "../../../src/base/process/guard/guard.ts";
import { backends, describeBackend, type RunningBackend, zooKeeperEnsemble } from "../../support/backends.ts";
import { BatonSession, untilMade } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { QuietTime } from "../../support/quiet_time.ts";

setDefaultTimeout(60_000);

/** "About 1 s" of docs/protocol/lock.md, with what a call of `baton who` takes on a machine that does other things. */
const freeWithinMs = 2500;

const runs = (pid: number) => readProcess(pid)?.dead === false;

class Scene {
  readonly session: BatonSession;

  constructor(session: BatonSession) {
    this.session = session;
  }

  async pidsIn(name: string): Promise<number[]> {
    return (await this.session.said(name)).split("\n").map(Number);
  }

  /** The processes that hold or wait, in their order. */
  async who(name: string, kind = "lock"): Promise<{ readonly holders: number[]; readonly waiters: number[] }> {
    const { stdout } = await this.session.run(`"$baton" who --json --kind ${kind} ${name}`);
    const { holders, waiters } = JSON.parse(stdout) as Record<string, { pid: number }[]>;
    return { holders: holders?.map(({ pid }) => pid) ?? [], waiters: waiters?.map(({ pid }) => pid) ?? [] };
  }

  async waits(pid: number, name: string, kind?: string): Promise<void> {
    await eventually(async () => (await this.who(name, kind)).waiters.includes(pid), { withinMs: 15_000 });
  }

  /**
   * Kills it: neither holder nor waiter within the promised time, and nothing of its job, or of its guard, runs then.
   * `listed`: the pid that `baton who` shows for it, which for a holder process is the script's.
   */
  async freed(
    killed: number,
    name: string,
    { kind, job = [], listed = killed }: { kind?: string; job?: readonly number[]; listed?: number | undefined } = {},
  ) {
    const guards = listChildProcesses(killed).filter(isGuardProcess);
    expect(guards).toHaveLength(1);
    const quiet = new QuietTime();
    process.kill(killed, "SIGKILL");
    const wait = { withinMs: 15_000, what: `${name} to be free` };
    await eventually(async () => {
      const { holders, waiters } = await this.who(name, kind);
      return ![...holders, ...waiters].includes(listed);
    }, wait);
    const quietMs = quiet.ms;
    expect(job.filter(runs)).toEqual([]);
    expect(quietMs).toBeLessThan(freeWithinMs);
    await eventually(() => !guards.some(runs), { what: "the guard to end" });
  }
}

for (const backend of [...backends, zooKeeperEnsemble]) {
  describeBackend(backend, () => {
    let server: RunningBackend;
    let session: BatonSession;
    let scene: Scene;
    beforeAll(async () => {
      server = await backend.start();
      session = new BatonSession({ BATON_SERVERS: server.servers, BATON_SESSION_TIMEOUT: "60s" });
      scene = new Scene(session);
    });
    afterAll(async () => {
      await session?.[Symbol.asyncDispose]();
      await server?.close();
    });

    test("a lock, and the next in line has it", async () => {
      const job = "trap '' TERM; setsid sleep 600 & echo $! >l.away; echo $$ >l.pid; wait; sleep 600";
      const first = session.start(`exec "$baton" lock l -- sh -c "${job.replaceAll("$", "\\$")}"`);
      const pids = [...await scene.pidsIn("l.pid"), ...await scene.pidsIn("l.away")];
      const second = session.start(`exec "$baton" lock l -- touch l.next`);
      await scene.waits(second.child.pid ?? 0, "l");
      await scene.freed(first.child.pid ?? 0, "l", { job: pids });
      expect((await second.ended).code).toBe(0);
    });

    test("the place of one that waited", async () => {
      const first = session.start(`exec "$baton" lock w -- sh -c '${untilMade("w.go")}'`);
      await eventually(async () => (await scene.who("w")).holders.length === 1);
      const waiting = session.start(`exec "$baton" lock w -- touch w.killed`);
      await scene.waits(waiting.child.pid ?? 0, "w");
      await scene.freed(waiting.child.pid ?? 0, "w");
      await session.run("touch w.go");
      expect((await first.ended).code).toBe(0);
      expect(existsSync(session.path("w.killed"))).toBe(false);
    });

    test("a leadership: while its command runs, and while a hook does", async () => {
      const job = `'echo $$ >e.pid; exec sleep 600'`;
      for (const words of [`-- sh -c ${job}`, `--on-elected ${job} -- true`, `--on-deposed ${job} -- true`]) {
        await session.run("rm -f e.pid");
        const leader = session.start(`exec "$baton" elect e --value a:1 --hook-timeout 10m ${words}`);
        const pids = await scene.pidsIn("e.pid");
        await scene.freed(leader.child.pid ?? 0, "e", { kind: "election", job: pids });
      }
    });

    test("a script with baton hold, when its holder is killed", async () => {
      const take = `held=$("$baton" hold s --pid $$) || exit; eval "$held"`;
      const script = session.start(`${take}; echo $BATON_LEASE >s.lease; echo $$ >s.pid; sleep 600; true`);
      const pids = await scene.pidsIn("s.pid");
      const holder = Number(/^\/proc\/(\d+)\//.exec(await session.said("s.lease"))?.[1]);
      await scene.freed(holder, "s", { job: [...pids, ...pids.flatMap(listChildProcesses)], listed: pids[0] });
      expect((await script.ended).signal).toBe("SIGKILL");
    });

    test("every item of a pool", async () => {
      const job = `'echo $$ >p.$1; exec sleep 600' sh {}`;
      const pool = session.start(`exec "$baton" pool p --items a,b,c -j 2 -- sh -c ${job}`);
      const pids = [...await scene.pidsIn("p.a"), ...await scene.pidsIn("p.b")];
      await scene.freed(pool.child.pid ?? 0, "p/a", { job: pids });
      expect((await scene.who("p/b")).holders).toEqual([]);
    });

    test("a member of a barrier: before the start, in its command, and while it waits for the others", async () => {
      const enter = `exec "$baton" barrier b --on-member-lost wait`;
      const waiting = session.start(`${enter} -N 2 -- true`);
      await scene.waits(waiting.child.pid ?? 0, "b", "barrier");
      await scene.freed(waiting.child.pid ?? 0, "b", { kind: "barrier" });

      const job = (name: string) => `sh -c 'echo $$ >${name}.pid; ${untilMade(`${name}.go`)}'`;
      const members = ["one", "two", "three"].map((name) => session.start(`${enter} -N 3 -- ${job(name)}`));
      const [one = 0, two = 0] = members.map(({ child }) => child.pid);
      const [oneJob = [], twoJob = []] = await Promise.all(
        ["one.pid", "two.pid", "three.pid"].map((name) => scene.pidsIn(name)),
      );
      await scene.freed(one, "b", { kind: "barrier", job: oneJob });
      await session.run("touch two.go");
      await eventually(() => !twoJob.some(runs));
      await scene.freed(two, "b", { kind: "barrier" });
      await session.run("touch three.go");
      expect((await members[2]?.ended)?.code).toBe(0);
    });
  });
}

describe("a pipeline", () => {
  test("ends with the killed baton, also while its server is silent", async () => {
    await using session = new BatonSession();
    const job = `sh -c 'echo $PPID >z.baton; exec sleep 600'`;
    const running = session.start(`{ "$baton" lock -q z -- ${job}; } 2>/dev/null | cat; echo over`);
    const baton = Number(await session.said("z.baton"));
    const keeper = session.keeperPid() ?? 0;
    process.kill(keeper, "SIGSTOP");
    try {
      const quiet = new QuietTime();
      process.kill(baton, "SIGKILL");
      expect((await running.ended).stdout).toBe("over\n");
      expect(quiet.ms).toBeLessThan(1000);
    } finally {
      process.kill(keeper, "SIGCONT");
    }
  });
});
