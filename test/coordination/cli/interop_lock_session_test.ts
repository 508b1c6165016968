/**
 * `baton lock --recipe` beside Curator's and kazoo's own programs on one path: never two at once, and nobody is
 * starved.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  type Backend,
  backends,
  currentZooKeepers,
  describeBackend,
  type RunningBackend,
} from "../../support/backends.ts";
import { BatonSession, type Running } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { CuratorPrograms, python } from "../../support/interop_clients.ts";
import { describeWithPeer, goContender, hasPeer } from "../../support/peers.ts";
import { tierRows } from "../../support/tier.ts";

setDefaultTimeout(60_000);

const fixtures = join(import.meta.dirname, "../../fixtures/interop");
const quoted = (words: readonly string[]) => words.map((word) => `'${word}'`).join(" ");

/** Turns of each contender; those of baton are processes of their own. */
const batonLoops = 3;
const batonTurns = 4;
const interopClients = 2;
const interopTurns = 15;

let programs: CuratorPrograms | null = null;
let currentPrograms: CuratorPrograms | null = null;
beforeAll(async () => {
  if (hasPeer("curator")) programs = await CuratorPrograms.compile("CuratorContender");
  if (hasPeer("curator59")) currentPrograms = await CuratorPrograms.compileCurrent("CuratorContender");
});
afterAll(() => {
  programs?.close();
  currentPrograms?.close();
});

for (const backend of tierRows({ everyday: backends, nightly: currentZooKeepers })) {
  describeBackend(backend, () => onBackend(backend));
}

function onBackend(backend: Backend): void {
  let server: RunningBackend;
  let session: BatonSession;
  beforeAll(async () => {
    // Empty containers go at once: whoever contends has to make the lock again.
    server = await backend.start({ containerCheckMs: 200 });
    session = new BatonSession({ BATON_SERVERS: server.servers });
  });
  afterAll(async () => {
    await session[Symbol.asyncDispose]();
    await server.close();
  });

  const curator = (...args: string[]) => programs?.command("CuratorContender", server.servers, ...args) ?? [];
  const currentCurator = (...args: string[]) =>
    currentPrograms?.command("CuratorContender", server.servers, ...args) ?? [];
  const goZooKeeper = (...args: string[]) => [goContender, "contend", server.servers, ...args];
  const kazoo = (...args: string[]) => [python, join(fixtures, "kazoo_contender.py"), server.servers, ...args];

  /** All at once on one path; gives the turns that each kind had. */
  async function contend(
    { recipe, command, path, kind, reads }: {
      recipe: string;
      command: (...args: string[]) => string[];
      path: string;
      kind: string;
      reads: "never" | "sometimes" | "always";
    },
  ) {
    const folder = session.path(path.replaceAll("/", "-"));
    mkdirSync(join(folder, "now"), { recursive: true });
    const critical = (part: string, name: string) => quoted(["sh", join(fixtures, "critical.sh"), folder, part, name]);
    const lock = (flags: string, part: string, name: string) =>
      `"$baton" lock -w 30s --recipe ${recipe} ${flags} ${path} -- ${critical(part, name)} || exit;`;
    const own = Array.from({ length: batonLoops }, (_, loop) => {
      const turns = Array.from({ length: batonTurns }, (_, turn) => {
        const isReader = reads === "always" || reads === "sometimes" && (loop + turn) % 2 === 0;
        return isReader ? lock("-s", "reader", `baton-${loop}`) : lock("", "inside", `baton-${loop}`);
      });
      return session.run(turns.join(" "));
    });
    const others = session.run(quoted(command(path, kind, folder, String(interopClients), String(interopTurns))));
    for (const { code, stderr } of await Promise.all([others, ...own])) {
      expect(code, stderr).toBe(0); // a server that is slow to answer is told on stderr
    }
    expect(existsSync(join(folder, "overlaps")) ? readFileSync(join(folder, "overlaps"), "utf8") : "").toBe("");
    expect(readdirSync(join(folder, "now"))).toEqual([]);
    const turns = readFileSync(join(folder, "turns"), "utf8").trim().split("\n");
    expect(turns.filter((line) => line.includes("-baton-")).length).toBe(batonLoops * batonTurns);
    expect(turns.length).toBe(batonLoops * batonTurns + interopClients * interopTurns);
  }

  // The current clients run on the current servers, the others on the same servers as all tests.
  if (!currentZooKeepers.includes(backend)) withDebianClients();
  withCurrentClients();

  function withDebianClients(): void {
    describeWithPeer("curator", "beside Curator", () => {
      test("InterProcessMutex: one at a time, also while its container is reaped between turns", async () => {
        await contend({ recipe: "curator", command: curator, path: "/app/curator", kind: "mutex", reads: "never" });
        const gone = async () =>
          (await session.run(`"$baton" lock -n --recipe curator /app/curator -- true`)).code === 0;
        expect(await gone()).toBe(true);
      });

      if (backend.kind === "keeper" && hasPeer("kazoo")) {
        test("an overlap would be seen: Curator and kazoo on one path do not see each other", async () => {
          const folder = session.path("control");
          mkdirSync(join(folder, "now"), { recursive: true });
          const running = [
            session.start(`exec ${quoted(curator("/app/control", "mutex", folder, "1", "100000"))}`),
            session.start(`exec ${quoted(kazoo("/app/control", "Lock", folder, "1", "100000"))}`),
          ];
          await eventually(() => existsSync(join(folder, "overlaps")), { withinMs: 30_000, what: "an overlap" });
          for (const { child, ended } of running) {
            child.kill("SIGKILL");
            await ended;
          }
        });
      }

      test("InterProcessReadWriteLock: readers together, writers alone", async () => {
        await contend({
          recipe: "curator-rw",
          command: curator,
          path: "/app/curator-rw",
          kind: "rw",
          reads: "sometimes",
        });
      });
    });

    describeWithPeer("kazoo", "beside kazoo", () => {
      test("Lock: one at a time", async () => {
        await contend({ recipe: "kazoo", command: kazoo, path: "/app/kazoo", kind: "Lock", reads: "never" });
      });

      test("WriteLock: alone, also beside readers", async () => {
        await contend({ recipe: "kazoo", command: kazoo, path: "/app/kazoo-w", kind: "WriteLock", reads: "sometimes" });
      });

      // With writers in between, kazoo 2.8's readers and writers wait for each other for ever, without baton too.
      test("ReadLock: together with readers", async () => {
        await contend({ recipe: "kazoo", command: kazoo, path: "/app/kazoo-r", kind: "ReadLock", reads: "always" });
      });
    });

    describe("alone", () => {
      /** Holds until it is told to leave. */
      async function hold(recipe: string, path: string): Promise<Running> {
        const name = path.replaceAll("/", "-");
        const running = session.start(
          `"$baton" lock --recipe ${recipe} --reason 'for a test' ${path} -- sh -c 'echo $BATON_FENCING_TOKEN >held${name}; until [ -e leave${name} ]; do sleep 0.02; done'`,
        );
        await session.said(`held${name}`);
        return running;
      }
      const leave = async (running: Running, path: string) => {
        await session.run(`touch leave${path.replaceAll("/", "-")}`);
        return await running.ended;
      };

      test("-n exits with 75 and says who holds it; a job knows that its lock is held", async () => {
        const holder = await hold("curator", "/alone/a");
        const busy = await session.run(`"$baton" lock -n --recipe curator /alone/a -- true`);
        expect(busy.code).toBe(75);
        expect(busy.stderr).toMatch(/^baton: Lock "\/alone\/a" is busy: held for .*, reason "for a test"\n$/);
        const who = await session.run('"$baton" who --recipe curator /alone/a');
        expect(who).toMatchObject({ code: 0, stdout: expect.stringMatching(/\nholds .* exclusive .* for a test\n$/) });
        // Not 1, which says that it is free.
        for (const other of ["curator-rw", "kazoo"]) {
          expect(await session.run(`"$baton" who --recipe ${other} /alone/a`)).toMatchObject({
            code: 78,
            stdout: "",
            stderr: expect.stringContaining("Use --recipe curator\n"),
          });
        }
        expect(await leave(holder, "/alone/a")).toMatchObject({ code: 0, stderr: "" });
        expect(await session.run('"$baton" who -q --recipe curator /alone/a')).toMatchObject({ code: 1, stdout: "" });
        const inside = `"$baton" check -q && BATON_LEASE= "$baton" check`;
        expect(await session.run(`"$baton" lock --recipe curator /alone/a -- sh -c '${inside}'`)).toMatchObject({
          code: 0,
          stderr: "",
        });
        const nested = `"$baton" lock --recipe curator /alone/a -- "$baton" lock --recipe curator /alone/a -- true`;
        expect(await session.run(nested)).toMatchObject({
          code: 64,
          stderr: expect.stringContaining("already held by this command"),
        });
      });

      test("tokens grow from grant to grant, also when the path was reaped between two", async () => {
        const token = async () => {
          const ended = await session.run(
            `"$baton" lock --recipe curator /alone/t -- sh -c 'echo $BATON_FENCING_TOKEN'`,
          );
          return BigInt(ended.stdout.trim());
        };
        const tokens = [await token(), await token(), await token()];
        expect(tokens).toEqual([...tokens].sort((left, right) => (left < right ? -1 : 1)));
        expect(new Set(tokens).size).toBe(3);
      });

      test.each(["curator", "kazoo"])(
        "%s: below a chroot that is not there yet, and one level deep",
        async (recipe) => {
          const place = { BATON_SERVERS: `${server.servers}/not/there/${recipe}` };
          for (const path of ["/deep/down/lock", "/lock"]) {
            const ended = await session.run(
              `"$baton" lock -w 10s --recipe ${recipe} ${path} -- sh -c 'echo $BATON_LOCK_PATH'`,
              place,
            );
            expect(ended).toMatchObject({ code: 0, stdout: `${path}\n`, stderr: "" });
          }
        },
      );

      test("hold and release", async () => {
        const script = [
          'held=$("$baton" hold --recipe kazoo /alone/held --pid $$) || exit',
          'eval "$held"; "$baton" check -q || exit',
          'env -u BATON_LOCK_COOKIE "$baton" lock -n -E 9 --recipe kazoo /alone/held -- true; echo $?',
          '"$baton" release /alone/held && "$baton" lock -n --recipe kazoo /alone/held -- echo free',
        ];
        expect(await session.run(script.join("\n"))).toMatchObject({ code: 0, stdout: "9\nfree\n" });
      });

      test("a path with children of another kind is refused with 78, and nothing is left there", async () => {
        const holder = await hold("kazoo", "/alone/other");
        const ended = await session.run(`"$baton" lock -n --recipe curator /alone/other -- true`);
        expect(ended.code).toBe(78);
        expect(ended.stderr).toContain('its child "');
        expect(ended.stderr).toContain("Use --recipe kazoo");
        expect(await leave(holder, "/alone/other")).toMatchObject({ code: 0 });
        const strange = await session.run(`"$baton" lock -n --recipe curator /zookeeper -- true`);
        expect(strange).toMatchObject({ code: 78, stderr: expect.stringContaining("has no name of this recipe") });
      });

      test.each([
        ["nightly", "", "NAME is the path of the lock's node"],
        ["/a", "-N 2", "--recipe and -N cannot be used together"],
        ["/a", "--priority 5", "--recipe and --priority cannot be used together"],
        ["/a", "-s", "--recipe curator-rw"],
        ["/a", "--root /x", "--recipe and --root (such a lock is named by its whole path) cannot be used together"],
      ])("%s %s is a usage error", async (name, flags, why) => {
        const ended = await session.run(`"$baton" lock --recipe curator ${flags} ${name} -- true`);
        expect(ended).toMatchObject({ code: 64, stderr: expect.stringContaining(why) });
      });

      test("Curator's Revoker asks a holder for its lock: the job is stopped, exit 80", async () => {
        const holder = await hold("curator", "/alone/revoked");
        const { connectToZooKeeper } = await import("../../../src/protocols/zookeeper/zookeeper_client.ts");
        const { parseZooKeeperServers } = await import("../../../src/protocols/zookeeper/hosts.ts");
        await using zk = await connectToZooKeeper({
          servers: parseZooKeeperServers(server.servers),
          sessionTimeoutMs: 10_000,
        });
        const [child] = (await zk.getChildren("/alone/revoked")).children;
        await zk.setData(`/alone/revoked/${child}`, new TextEncoder().encode("__REVOKE__"), -1);
        const ended = await holder.ended;
        expect(ended.code).toBe(80);
        expect(ended.stderr).toContain("Curator's Revoker");
        await eventually(async () =>
          ((await zk.getChildren("/alone/revoked").catch(() => null))?.children ?? []).length === 0
        );
      });
    });
  }

  function withCurrentClients(): void {
    describeWithPeer("curator59", "beside Curator 5.9.0", () => {
      test("InterProcessMutex: one at a time, also while its container is reaped between turns", async () => {
        await contend({ recipe: "curator", command: currentCurator, path: "/app/59", kind: "mutex", reads: "never" });
      });

      test("InterProcessReadWriteLock: readers together, writers alone", async () => {
        await contend({
          recipe: "curator-rw",
          command: currentCurator,
          path: "/app/59-rw",
          kind: "rw",
          reads: "sometimes",
        });
      });
    });

    describeWithPeer("goZookeeper", "beside go-zookeeper", () => {
      test("Lock: one at a time, in the queue of --recipe curator", async () => {
        await contend({ recipe: "curator", command: goZooKeeper, path: "/app/go", kind: "Lock", reads: "never" });
      });

      test("a program of go-zookeeper holds and baton waits, and the reverse; the queue keeps its order", async () => {
        const step = (name: string) =>
          `touch in-${name}; until [ -e go-${name} ]; do sleep 0.02; done; echo ${name} >>order`;
        const byGo = (name: string) => session.start(`exec '${goContender}' run /app/order sh -c '${step(name)}'`);
        const byBaton = (name: string) =>
          session.start(`exec "$baton" lock -q --recipe curator /app/order -- sh -c '${step(name)}'`);
        const length = (count: number) =>
          eventually(async () => {
            const { stdout } = await session.run('"$baton" ls --recipe curator /app/order --json');
            const [lock] = (JSON.parse(stdout) as { locks: { holders: number; waiters: number }[] }).locks;
            return lock !== undefined && lock.holders + lock.waiters === count;
          }, { withinMs: 20_000, what: `${count} contenders` });
        const first = byGo("first");
        await session.made("in-first");
        const busy = await session.run('"$baton" lock -n --recipe curator /app/order -- true');
        expect(busy).toMatchObject({ code: 75, stderr: expect.stringContaining("is busy") });
        const second = byBaton("second");
        await length(2);
        const third = byGo("third");
        await length(3);
        const fourth = byBaton("fourth");
        await length(4);
        for (const name of ["first", "second", "third", "fourth"]) {
          await session.made(`in-${name}`);
          await session.run(`touch go-${name}`);
        }
        for (const running of [first, second, third, fourth]) expect((await running.ended).code).toBe(0);
        expect(session.read("order")).toBe("first\nsecond\nthird\nfourth\n");
      });
    });
  }
}
