/** The table of the README that compares baton with flock and etcdctl lock: each claim, with the real programs. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { BatonSession, type Running } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { freePorts } from "../../support/free_ports.ts";
import { isAlive } from "../../support/is_alive.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { ServerProcess } from "../../support/server_process.ts";

setDefaultTimeout(120_000);

/** A program that runs a command under a lock: the line that does so. */
interface Contestant {
  readonly name: string;
  line(lock: string, command: string): string;
}

const baton: Contestant = { name: "baton", line: (lock, command) => `"$baton" lock ${lock} -- ${command}` };
const flock: Contestant = { name: "flock", line: (lock, command) => `flock ${lock} ${command}` };
const etcdctl: Contestant = { name: "etcdctl", line: (lock, command) => `etcdctl lock --ttl 2 ${lock} -- ${command}` };

/** A job that writes its process ID, and runs until it is killed. */
const job = (name: string) => `sh -c 'echo $$ >${name}; exec sleep 1000'`;

let session: BatonSession;
beforeAll(() => session = new BatonSession({ BATON_SERVERS: "embedded", ETCDCTL_API: "3" }));
afterAll(() => session[Symbol.asyncDispose]());

/** Whether a process runs: one that has ended and waits for its parent does not. */
function runs(pid: number): boolean {
  return isAlive(pid) && !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
}

async function holder({ name, line }: Contestant, lock: string): Promise<{ running: Running; job: number }> {
  const running = session.start(`exec ${line(lock, job(`${name}-${lock}`))}`);
  return { running, job: Number(await session.said(`${name}-${lock}`)) };
}

/** Kills the program that holds the lock; whether its command runs when the next one gets the lock. */
async function jobOutlivesLock(contestant: Contestant): Promise<boolean> {
  const { running, job } = await holder(contestant, "killed");
  running.child.kill("SIGKILL");
  try {
    expect(await session.run(contestant.line("killed", "true"))).toMatchObject({ code: 0 });
    return runs(job);
  } finally {
    if (runs(job)) process.kill(job, "SIGKILL");
  }
}

describe("baton lock", () => {
  test("kill -9: its command is dead when the next one gets the lock", async () => {
    expect(await jobOutlivesLock(baton)).toBe(false);
  });

  test("a lock that is lost: its command is dead before the session, and with it the lock, can end", async () => {
    const line = (lock: string, command: string) => `"$baton" lock --session-timeout 3s ${lock} -- ${command}`;
    const { running, job } = await holder({ name: "baton", line }, "lost");
    const keeper = session.keeperPid() ?? -1;
    process.kill(keeper, "SIGSTOP"); // as if the network were cut
    try {
      expect(await running.ended).toMatchObject({ code: 79 });
      expect(runs(job)).toBe(false);
    } finally {
      process.kill(keeper, "SIGCONT");
    }
  });

  test("a refusal names the holder", async () => {
    const { running } = await holder(baton, "busy");
    const refused = await session.run('"$baton" lock -n busy -- true');
    expect(refused).toMatchObject({ code: 75 });
    expect(refused.stderr).toContain(`(pid ${running.child.pid}, sh)`);
    running.child.kill("SIGTERM");
    await running.ended;
  });

  test("the exit code of the command is passed on; each grant has a higher fencing token", async () => {
    expect(await session.run('"$baton" lock code -- sh -c "exit 3"')).toMatchObject({ code: 3 });
    const token = async () =>
      Number((await session.run(`"$baton" lock t -- sh -c 'echo $BATON_FENCING_TOKEN'`)).stdout);
    expect(await token()).toBeLessThan(await token());
  });

  test("a background process of the command does not keep the lock: it is stopped", async () => {
    await session.run(`"$baton" lock left -- sh -c 'sleep 1000 & echo $! >left'`);
    expect(runs(Number(await session.said("left")))).toBe(false);
    expect(await session.run('"$baton" lock -n left -- true')).toMatchObject({ code: 0 });
  });
});

describeWithPeer("flock", "flock", () => {
  test("kill -9: the command continues, and keeps the lock", async () => {
    const { running, job } = await holder(flock, "killed-flock");
    running.child.kill("SIGKILL");
    await eventually(() => !runs(running.child.pid ?? -1));
    expect(runs(job)).toBe(true);
    expect(await session.run("flock -n killed-flock true")).toMatchObject({ code: 1 });
    process.kill(job, "SIGKILL");
    expect(await session.run("flock -w 20 killed-flock true")).toMatchObject({ code: 0 });
  });

  test("a refusal is silent, and names no holder", async () => {
    const { running, job } = await holder(flock, "busy-flock");
    expect(await session.run("flock -n busy-flock true")).toMatchObject({ code: 1, stdout: "", stderr: "" });
    process.kill(job, "SIGKILL");
    await running.ended;
  });

  test("the exit code of the command is passed on; there is no fencing token", async () => {
    expect(await session.run("flock code-flock sh -c 'exit 3'")).toMatchObject({ code: 3 });
    const plain = (await session.run("sh -c env | sort")).stdout;
    expect((await session.run("flock env-flock sh -c env | sort")).stdout).toBe(plain);
  });

  test("a background process of the command keeps the lock", async () => {
    await session.run("flock left-flock sh -c 'exec sleep 1000 >/dev/null 2>&1 & echo $! >left-flock-pid'");
    expect(await session.run("flock -n left-flock true")).toMatchObject({ code: 1 });
    process.kill(Number(await session.said("left-flock-pid")), "SIGKILL");
  });
});

describeWithPeer("etcd", "etcdctl lock", () => {
  let folder = "";
  let server: ServerProcess;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "baton-etcd-"));
    const [client, peer] = (await freePorts(2)).map((port) => `http://127.0.0.1:${port}`);
    const urls = ["--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer];
    server = new ServerProcess(["etcd", "--data-dir", join(folder, "data"), ...urls.map(String)], { folder });
    process.env["ETCDCTL_API"] = "3";
    process.env["ETCDCTL_ENDPOINTS"] = client;
    Object.assign(session.env, { ETCDCTL_ENDPOINTS: client });
    await eventually(() => spawnSync("etcdctl", ["endpoint", "health"]).status === 0, {
      withinMs: 30_000,
      everyMs: 100,
    });
  });
  afterAll(async () => {
    await server.kill();
    rmSync(folder, { recursive: true, force: true });
  });

  test("kill -9: the command continues, while the next one has the lock", async () => {
    expect(await jobOutlivesLock(etcdctl)).toBe(true);
  });

  test("a lock that is lost: the command continues, while the next one has the lock", async () => {
    const { running, job } = await holder(etcdctl, "lost-etcd");
    const leases = spawnSync("etcdctl", ["lease", "list"], { encoding: "utf8" }).stdout.trim().split("\n").slice(1);
    for (const lease of leases) spawnSync("etcdctl", ["lease", "revoke", lease]);
    expect(await session.run(etcdctl.line("lost-etcd", "true"))).toMatchObject({ code: 0 });
    expect(runs(job)).toBe(true);
    process.kill(job, "SIGKILL");
    await running.ended;
  });

  test("there is no option for not waiting, or for a limited time", async () => {
    const help = (await session.run("etcdctl lock --help")).stdout;
    const options = help.slice(help.indexOf("OPTIONS"), help.indexOf("GLOBAL"));
    expect(options.match(/--[\w-]+/g)?.toSorted()).toEqual(["--help", "--ttl"]);
  });

  test("each grant has a revision, which the command gets", async () => {
    const revision = async () =>
      Number((await session.run(etcdctl.line("rev-etcd", `sh -c 'echo $ETCD_LOCK_REV'`))).stdout);
    expect(await revision()).toBeLessThan(await revision());
  });
});

test("the table of the README links this file, and pages for what it does not prove", () => {
  const readme = readFileSync(join(import.meta.dir, "../../../README.md"), "utf8");
  const cells = (line: string) => line.split("|").slice(2, -1).map((cell) => cell.trim());
  const rows = readme.split("\n").filter((line) => line.startsWith("| ")).map(cells).filter(({ length }) =>
    length === 4
  );
  expect(rows.length).toBeGreaterThan(6);
  // The last column is consul: what it says has a page, or is no claim.
  const claims = rows.map((row) => row[3] ?? "").filter((cell) => /after|exit|-n 3|page|-timeout|agent/.test(cell));
  for (const claim of claims) expect(claim).toContain("[consul]");
  expect(readme).toContain("(test/program/cli/comparison_test.ts)");
});
