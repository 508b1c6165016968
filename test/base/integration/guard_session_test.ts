/** When the guard leaves a session to expire: told by hand of a session, a job, and an owner that the test is. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, closeSync, constants, copyFileSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { jobCookieEnvironment, listChildProcesses, readProcess } from "../../../src/base/process/proc/process_table.ts";
import { guardChildLine, guardSessionLine, guardWatchLine } from "../../../src/base/process/guard/guard_state.ts";
import { connectToZooKeeper, type ZooKeeperConnectOptions } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../src/protocols/zookeeper/hosts.ts";
import { encodeSessionHandle } from "../../../src/protocols/zookeeper/end_session.ts";
import type { ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { newGuid } from "../../../src/base/support/guid.ts";
import { keeper, type RunningBackend } from "../../support/backends.ts";
import { eventually } from "../../support/eventually.ts";
import { batonCommand } from "../../support/keeper_server.ts";
import { canBeOthers } from "../../support/other_user.ts";

setDefaultTimeout(60_000);

let server: RunningBackend;
let own: ZooKeeperConnectOptions;
let zk: ZooKeeper;
beforeAll(async () => {
  server = await keeper.start();
  own = { servers: parseZooKeeperServers(server.servers), sessionTimeoutMs: 60_000 };
  zk = await connectToZooKeeper(own);
});
afterAll(async () => {
  await zk.close();
  await server.close();
});

const neverMs = Number.MAX_SAFE_INTEGER;
const runs = (pid: number) => readProcess(pid)?.dead === false;

/** A shell that starts a guard, as baton does; what it is told comes from the test. */
class Owner implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "baton-owner-"));
  readonly #shell: Bun.Subprocess;
  #input: number | null;

  constructor(around: readonly string[] = []) {
    const pipe = join(this.#folder, "pipe");
    Bun.spawnSync(["mkfifo", pipe]);
    this.#input = openSync(pipe, constants.O_RDWR);
    const input = openSync(pipe, constants.O_RDONLY);
    // Another user may not be able to reach the folder that the tests' binary is in.
    chmodSync(this.#folder, 0o755);
    const [program = "", ...words] = batonCommand();
    const copy = join(this.#folder, "baton");
    copyFileSync(program, copy);
    chmodSync(copy, 0o755);
    this.#shell = Bun.spawn([...around, "sh", "-c", 'exec 3<&0; "$@" __guard <&3 & wait', "sh", copy, ...words], {
      cwd: this.#folder, // the project's own may be closed to others
      stdio: [input, "ignore", "inherit"],
    });
    closeSync(input);
  }

  get pid(): number {
    return this.#shell.pid;
  }

  async guard(): Promise<number> {
    return await eventually(() =>
      listChildProcesses(this.pid).find((pid) => readProcess(pid)?.isCopy === false) ?? null
    );
  }

  tell(...lines: string[]): void {
    if (this.#input !== null) writeSync(this.#input, lines.join(""));
  }

  kill(): void {
    this.#shell.kill("SIGKILL");
  }

  /** As when whoever writes to the guard is gone. */
  endPipe(): void {
    if (this.#input !== null) closeSync(this.#input);
    this.#input = null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.endPipe();
    this.kill();
    await this.#shell.exited;
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function startJob(cookie: string) {
  const env = { ...process.env, ...jobCookieEnvironment(cookie, undefined) };
  const job = Bun.spawn(["sleep", "600"], { detached: true, env, stdio: ["ignore", "ignore", "ignore"] });
  const child = { pid: job.pid, ownGroup: true, startTicks: readProcess(job.pid)?.startTicks ?? 0 };
  return {
    job,
    lines: guardWatchLine(cookie, neverMs) + guardChildLine(cookie, child),
    async [Symbol.asyncDispose]() {
      job.kill("SIGKILL");
      await job.exited;
    },
  };
}

const isThere = async (path: string) => await zk.exists(path) !== null;

test("of a dead owner it ends the session; of one that lives it kills the job and leaves the session", async () => {
  for (const isKilled of [false, true]) {
    const mine = await connectToZooKeeper(own);
    const { path } = await mine.create("/mine-", new Uint8Array(0), { mode: "ephemeralSequential" });
    await using owner = new Owner();
    const guard = await owner.guard();
    await using started = startJob(newGuid());
    const { job, lines } = started;
    owner.tell(guardSessionLine({ owner: owner.pid, handle: encodeSessionHandle(own, mine.session) }), lines);
    if (isKilled) owner.kill();
    owner.endPipe();
    await job.exited;
    await eventually(() => !runs(guard), { withinMs: 10_000 });
    expect(job.signalCode).toBe("SIGKILL");
    expect(await isThere(path)).toBe(!isKilled);
    await mine.close();
  }
});

test.skipIf(!canBeOthers("whether a process that the guard may not kill keeps the session is not tested"))(
  "while a process lives that it may not kill, it keeps the session alive, and then leaves",
  async () => {
    const short = { ...own, sessionTimeoutMs: 4000 };
    await using mine = await connectToZooKeeper(short);
    const { path } = await mine.create("/mine-", new Uint8Array(0), { mode: "ephemeralSequential" });
    await using owner = new Owner(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]);
    const guard = await owner.guard();
    await using started = startJob(newGuid()); // root's
    const { job, lines } = started;
    owner.tell(guardSessionLine({ owner: owner.pid, handle: encodeSessionHandle(short, mine.session) }), lines);
    // As the owner that is killed, whose client disconnects.
    mine.leave?.();
    owner.kill();
    owner.endPipe();
    const endMs = performance.now() + 1.5 * mine.session.timeoutMs;
    await eventually(() => performance.now() >= endMs, { withinMs: 30_000 });
    expect([runs(job.pid), runs(guard), await isThere(path)]).toEqual([true, true, true]);
    job.kill("SIGKILL");
    await job.exited;
    await eventually(() => !runs(guard), { withinMs: 20_000 });
  },
);
