/**
 * Jobs that start themselves again every some hundred microseconds: none of them runs beside the lock's next holder.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { BatonSession, type Running } from "../../support/baton_session.ts";
import type { RunningBackend } from "../../support/backend.ts";
import { ChaosProxy } from "../../support/chaos_proxy.ts";
import { compiledProgram } from "../../support/compiled_program.ts";
import { dose } from "../../support/dose.ts";
import { eventually } from "../../support/eventually.ts";
import { startKeeperProcess } from "../../support/keeper_server.ts";
import { describeWithPeer } from "../../support/peers.ts";

const rounds = dose({ gate: 1, full: 20 });
setDefaultTimeout(rounds * 120_000);

const generations = [500, 2000, 5000, 50_000];
const kinds = ["", "setsid", "setsid double"];

/** In the gate each generation once, each kind at least once. */
const jobs = generations.flatMap((lifetimeUs, index) =>
  Array.from({ length: dose({ gate: 1, full: kinds.length }) }, (_, more) => {
    return { lifetimeUs, kind: kinds[(index + more) % kinds.length] };
  })
);

/** How many run beside each other. */
const besides = 4;

const withoutCgroups = 'while read -r _ _ _ _ point rest; do case $rest in *" - cgroup2 "*) umount "$point"; esac; ' +
  'done </proc/self/mountinfo; exec "$@"';
const canUnmount = spawnSync("unshare", ["-m", "sh", "-c", withoutCgroups, "sh", "true"]).status === 0;
if (!canUnmount) console.error("MISSING: this user may not unmount the cgroups; jobs are not ended without them");

/** One job under a lock, and the one that waits for the lock. */
class Round {
  readonly first: Running;
  readonly next: Running;
  readonly #life: string;

  constructor(session: BatonSession, { name, words, servers, isWithoutCgroups }: {
    readonly name: string;
    readonly words: string;
    readonly servers: { readonly first: string; readonly next: string };
    readonly isWithoutCgroups: boolean;
  }) {
    this.#life = session.path(`${name}.life`);
    const wrap = isWithoutCgroups ? `unshare -m sh -c '${withoutCgroups}' sh` : "";
    const lock = (servers: string) =>
      `"$baton" lock -q --servers ${servers} --session-timeout 3s --kill-after 200ms ${name} --`;
    const job = `'exec >/dev/null 2>&1; "$program" run "$life" ${words} & sleep 1000'`;
    const env = {
      program: compiledProgram(join(import.meta.dirname, "../../fixtures/respawning_job.c")),
      life: this.#life,
    };
    this.first = session.start(`exec ${wrap} ${lock(servers.first)} sh -c ${job}`, env);
    this.next = session.start(
      `while ! [ -e "$life" ]; do sleep 0.01; done; exec ${lock(servers.next)} "$program" judge "$life" 200`,
      env,
    );
  }

  async runs(): Promise<void> {
    await eventually(() => readFileSync(this.#life).readBigInt64LE(8) >= 3n, {
      withinMs: 20_000,
      what: "the job to run",
    });
  }
}

describeWithPeer("cc", "a job that starts itself again and again", () => {
  let session: BatonSession;
  let keeper: RunningBackend;
  let proxy: ChaosProxy;
  beforeEach(async () => {
    session = new BatonSession();
    keeper = await startKeeperProcess({}, { over: "unix" });
    const [node] = keeper.nodes;
    if (node === undefined) throw new Error("there is no keeper");
    proxy = await ChaosProxy.start(node.address, { over: "unix" });
  });
  afterEach(async () => {
    keeper.resume();
    await session[Symbol.asyncDispose]();
    await proxy.close();
    await keeper.close();
  });

  /** What became of them: the first one's exit code, and for how many milliseconds it ran beside the next holder. */
  async function attack(strike: (rounds: readonly Round[]) => Promise<void> | void): Promise<string[]> {
    const ends: string[] = [];
    for (let number = 0; number < rounds * jobs.length; number += besides) {
      const batch = Array.from({ length: Math.min(besides, rounds * jobs.length - number) }, (_, index) => {
        const job = jobs[(number + index) % jobs.length];
        return new Round(session, {
          name: `respawn-${number + index}`,
          words: `${job?.lifetimeUs} ${job?.kind}`,
          servers: { first: proxy.servers, next: keeper.servers },
          isWithoutCgroups: canUnmount && index % 2 === 1,
        });
      });
      await Promise.all(batch.map((round) => round.runs()));
      await strike(batch);
      for (const { first, next } of batch) {
        const [{ code, signal }, { stdout, stderr }] = await Promise.all([first.ended, next.ended]);
        ends.push(`${code ?? signal}, overlap ${stdout.trim() || stderr} ms`);
      }
      proxy.heal();
    }
    return ends;
  }

  test("is dead before the server gives the lock away when the lease cannot be renewed", async () => {
    const ends = await attack(() => proxy.blackHole());
    expect(ends).toEqual(ends.map(() => "79, overlap 0 ms"));
  });

  test("is dead when baton says that it is, where the server stands still", async () => {
    const ends = await attack(async (batch) => {
      keeper.pause();
      await Promise.all(batch.map(({ first }) => first.ended));
      keeper.resume();
    });
    expect(ends).toEqual(ends.map(() => "79, overlap 0 ms"));
  });

  test("is ended by the guard of a baton that was killed", async () => {
    const ends = await attack((batch) => batch.forEach(({ first }) => first.child.kill("SIGKILL")));
    expect(ends).toEqual(ends.map(() => "SIGKILL, overlap 0 ms"));
  });
});
