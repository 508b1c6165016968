/**
 * Jobs with a process that baton may not kill (sudo, setuid): as long as it lives, its lock does not move, whoever is
 * left to keep the session alive. It needs root, to be both users.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync } from "node:fs";
import process from "node:process";
import { isGuardProcess } from "../../../src/base/process/guard/guard.ts";
import { listChildProcesses, readProcess } from "../../../src/base/process/proc/process_table.ts";
import { BatonSession, type Running } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { canBeOthers } from "../../support/other_user.ts";

setDefaultTimeout(60_000);

const can = canBeOthers("jobs that run as another user are not tried");
const other = "setpriv --reuid=64872 --regid=64872 --clear-groups";
const timeoutMs = 3000;

let session: BatonSession;
beforeAll(async () => {
  if (!can) return;
  session = new BatonSession({ BATON_SERVERS: "embedded", BATON_SESSION_TIMEOUT: `${timeoutMs}ms` });
  chmodSync(session.folder, 0o1777);
  // As sudo is: it may become root. The project's own folder may be closed to others.
  await session.run('cp "$(command -v setpriv)" asroot && chmod 4755 asroot; cp "$baton" baton; chmod 755 baton');
  await session.run(`${other} mkdir -m 700 keeper; ${other} ./baton lock first -- true`);
});
afterAll(async () => {
  if (!can) return;
  await session.run("for pid in $(cat *.pid 2>&-); do kill -9 $pid; done");
  await session[Symbol.asyncDispose]();
});

interface Scene {
  readonly baton: Running;
  readonly pid: number;
  /** The process that ignores every signal of baton's, and ends when the file NAME.go is there. */
  readonly root: number;
  readonly guard: number;
}

/** Starts `baton lock NAME` as an ordinary user; the job starts root's process, and then does `more`. */
async function holdWithRoot(name: string, { more = "wait", options = "", prefix = "" } = {}): Promise<Scene> {
  const loop = `trap "" TERM INT HUP; echo \\$\\$ >${name}.pid; until [ -e ${name}.go ]; do sleep 0.02; done`;
  const asRoot = `${prefix}./asroot --reuid=0 sh -c "${loop.replaceAll('"', '\\"')}"`;
  const job = `${asRoot} </dev/null >/dev/null 2>&1 & until [ -s ${name}.pid ]; do sleep 0.02; done; ${more}`;
  const baton = session.start(`exec ${other} ./baton lock ${name} ${options} -- sh -c '${job}'`);
  const root = Number(await session.said(`${name}.pid`));
  const pid = baton.child.pid ?? 0;
  const [guard = 0] = listChildProcesses(pid).filter(isGuardProcess);
  return { baton, pid, root, guard };
}

/** The lock stays where it is for longer than the session would live without a sign of life, and says why. */
async function isKept(name: string, { root }: Scene): Promise<void> {
  const next = await session.run(`${other} ./baton lock -w ${timeoutMs + 2000}ms ${name} -- true`);
  expect(next.code).toBe(75);
  const who = await session.run(`${other} ./baton who --json ${name}`);
  const { holders: [holder] } = JSON.parse(who.stdout) as { holders: [{ warning: string }] };
  expect(holder.warning).toStartWith(`cannot be stopped: pid ${root} sh (root)`);
  expect((await session.run(`${other} ./baton who ${name}`)).stdout).toContain(
    `(cannot be stopped: pid ${root} sh (root)`,
  );
}

async function movesOn(name: string): Promise<void> {
  expect((await session.run(`${other} ./baton lock -w 20s ${name} -- true`)).code).toBe(0);
}

const letGo = async (name: string) => await session.run(`touch ${name}.go`);

test.skipIf(!can).concurrent("the guard of a killed baton keeps the lock, and says so", async () => {
  const scene = await holdWithRoot("killed");
  process.kill(scene.pid, "SIGKILL");
  await isKept("killed", scene);
  expect(scene.baton.stderr()).toContain(
    `the command of a baton that was killed cannot be stopped: pid ${scene.root} sh (root)`,
  );
  await letGo("killed");
  await movesOn("killed");
  await eventually(() => readProcess(scene.guard)?.dead !== false, { what: "the guard to end", withinMs: 15_000 });
});

test.skipIf(!can).concurrent(
  "a process that has left its session and lost its parents is known to the guard",
  async () => {
    const scene = await holdWithRoot("orphan", { more: "exit 0", options: "-v --kill-after 60s", prefix: "setsid " });
    await eventually(() => scene.baton.stderr().includes("stopping (leftovers)"));
    process.kill(scene.pid, "SIGKILL");
    await isKept("orphan", scene);
    await letGo("orphan");
    await movesOn("orphan");
  },
);

test.skipIf(!can).concurrent(
  "baton that is told to end stays while such a process lives, then ends as its command did",
  async () => {
    const scene = await holdWithRoot("told", { options: "--kill-after 100ms -q" });
    process.kill(scene.pid, "SIGTERM");
    await isKept("told", scene);
    expect(scene.baton.stderr()).toContain(`the command cannot be stopped: pid ${scene.root} sh (root)`);
    await letGo("told");
    expect((await scene.baton.ended).signal ?? "SIGTERM").toBe("SIGTERM");
    await movesOn("told");
  },
);

test.skipIf(!can).concurrent(
  "what a command leaves and baton cannot stop keeps the lock; the exit code is the command's",
  async () => {
    const scene = await holdWithRoot("left", { more: "exit 7", options: "--kill-after 100ms" });
    await isKept("left", scene);
    await letGo("left");
    expect((await scene.baton.ended).code).toBe(7);
  },
);

test.skipIf(!can).concurrent("break --force gives the lock away: baton ends with 83", async () => {
  const scene = await holdWithRoot("forced", { options: "--kill-after 100ms" });
  const { code } = await session.run(`${other} ./baton break --force forced`);
  expect(code).toBe(0);
  const { code: ended, stderr } = await scene.baton.ended;
  expect([ended, stderr]).toEqual([83, expect.stringContaining("another process may get the lock while it runs")]);
  await movesOn("forced");
  expect(readProcess(scene.root)?.dead).toBe(false);
});

test.skipIf(!can).concurrent("break --force takes the lock from a guard, too", async () => {
  const scene = await holdWithRoot("taken");
  process.kill(scene.pid, "SIGKILL");
  await eventually(() => scene.baton.stderr().includes("its guard keeps the lock"));
  expect((await session.run(`${other} ./baton break --force taken`)).code).toBe(0);
  await movesOn("taken");
  expect(readProcess(scene.root)?.dead).toBe(false);
});

test.skipIf(!can).concurrent("the guard of a stopped baton keeps the lock, and gives the session back", async () => {
  const scene = await holdWithRoot("stopped", { options: "--kill-after 100ms" });
  process.kill(scene.pid, "SIGSTOP");
  await isKept("stopped", scene);
  process.kill(scene.pid, "SIGCONT");
  expect((await scene.baton.ended).code).toBe(83);
  await isKept("stopped", scene); // by the guard again
  await letGo("stopped");
  await movesOn("stopped");
});
