/**
 * docs/examples/attack: its workload on real servers, with a server and a worker killed, and its checker. An engine is
 * not needed.
 */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { describeBackend, zooKeeperEnsemble } from "../../support/backends.ts";
import { BatonSession } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";

setDefaultTimeout(90_000);

const folder = join(import.meta.dirname, "../../../docs/examples/attack");
interface Service {
  readonly entrypoint?: readonly string[];
  readonly volumes?: readonly string[];
  readonly environment?: Readonly<Record<string, string | number>>;
}
const { services, volumes } = Bun.YAML.parse(readFileSync(join(folder, "compose.yaml"), "utf8")) as {
  services: Record<string, Service>;
  volumes: Record<string, unknown>;
};

test("the compose file names the scripts beside it, one volume, and each server once", () => {
  expect(Object.keys(services)).toEqual(["zk1", "zk2", "zk3", "worker", "check"]);
  expect(Object.keys(volumes)).toEqual(["history"]);
  for (const name of ["worker", "check"]) {
    const [own = "", script = ""] = services[name]?.volumes ?? [];
    expect(own).toBe("history:/history");
    const [from = "", to = ""] = script.split(":");
    expect(existsSync(join(folder, from))).toBe(true);
    expect(services[name]?.entrypoint).toContain(to);
  }
  const ids = ["zk1", "zk2", "zk3"].map((name) => services[name]?.environment?.["ZOO_MY_ID"]);
  expect(ids).toEqual([1, 2, 3]);
});

describe("the checker", () => {
  test.each([
    [
      "begin 10 a\nend 10 a\nbegin 11 b\nbegin 9999999999999999999 c\nend 9999999999999999999 c\n",
      0,
      "3 sections, 2 of them ended, 0 violations",
    ],
    ["", 1, "0 sections"],
    ["begin 10 a\nbegin 9 b\n", 1, "line 2: token 9 is not above"],
    ["begin 10 a\nbegin 10 b\n", 1, "line 2: token 10 is not above"],
    ["begin 10 a\nbegin 11 b\nend 10 a\nend 11 b\n", 1, "line 3: the end of 10 comes after"],
    ["begin 10 a\nsomething\n", 1, "line 2: no line of a worker"],
  ])("of %j ends with %d", async (history, code, said) => {
    await using session = new BatonSession();
    writeFileSync(session.path("history"), history);
    const ended = await session.run(`sh '${folder}/check.sh' history`);
    expect(ended).toMatchObject({ code, stdout: expect.stringContaining(said) });
  });
});

test("the checker finds the holders of a lock that excludes nobody", async () => {
  await using session = new BatonSession();
  const lock = `#!/bin/sh
if [ "$1" != lock ]; then exec "$real" "$@"; fi
while [ "$1" != -- ]; do shift; done
shift
BATON_FENCING_TOKEN=$(date +%s%N) exec "$@"
`;
  writeFileSync(session.path("lock"), lock, { mode: 0o755 });
  const worker = () => session.run(`real="$baton" baton="$dir/lock" sh '${folder}/workload.sh' sections 10`);
  await Promise.all([worker(), worker(), worker()]);
  const ended = await session.run(`sh '${folder}/check.sh' sections`);
  expect([ended.code, ended.stdout]).toEqual([1, expect.stringContaining(" comes after the begin of ")]);
  expect(await session.run(`sh '${folder}/check.sh' sections.fenced`)).toMatchObject({ code: 0 });
}, 60_000);

describeBackend(zooKeeperEnsemble, () => {
  test("the workload has one holder at a time while a server and a worker are killed", async () => {
    const server = await zooKeeperEnsemble.start();
    await using session = new BatonSession({ BATON_SERVERS: server.servers, BATON_SESSION_TIMEOUT: "4s" });
    try {
      const sections = () => existsSync(session.path("sections")) ? session.read("sections").split("\n").length : 0;
      const reach = (count: number) =>
        eventually(() => sections() >= count, { withinMs: 60_000, what: `${count} lines, after ${sections()}` });
      const worker = () => session.start(`exec sh '${folder}/workload.sh' sections 1000000`);
      const workers = [worker(), worker(), worker()];
      await reach(20);
      await (await server.leader()).kill();
      await reach(sections() + 20);
      process.kill(-(workers[0]?.child.pid ?? 0), "SIGKILL");
      await reach(sections() + 20);
      for (const { child, ended } of workers.slice(1)) {
        process.kill(-(child.pid ?? 0), "SIGTERM");
        await ended;
      }
      const { code, stdout } = await session.run(`sh '${folder}/check.sh' sections`);
      expect([code, stdout]).toEqual([
        0,
        expect.stringMatching(/^(\d+ sections, \d+ of them ended, 0 violations\n){2}$/),
      ]);
    } finally {
      await server.close();
    }
  });
});
