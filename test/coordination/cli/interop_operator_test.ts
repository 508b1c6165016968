/**
 * `ls`, `break` and `doctor` on locks of Curator's and kazoo's: held by batons, and by nodes as those programs make
 * them.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { parseZooKeeperServers } from "../../../src/protocols/zookeeper/hosts.ts";
import type { ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { connectToZooKeeper } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { backends, describeBackend, type RunningBackend } from "../../support/backends.ts";
import { BatonSession } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";

setDefaultTimeout(60_000);

const guid = "0123456789abcdef0123456789abcdef";
const names = {
  curator: "_c_01234567-89ab-cdef-0123-456789abcdef-lock-",
  "curator-rw": "_c_01234567-89ab-cdef-0123-456789abcdef-__WRIT__",
  kazoo: `${guid}__lock__`,
};

for (const kind of backends) {
  describeBackend(kind, () => {
    let server: RunningBackend;
    let session: BatonSession;
    let client: ZooKeeper;
    beforeAll(async () => {
      server = await kind.start({ sessionTimeoutMinMs: 2000 });
      client = await connectToZooKeeper({ servers: parseZooKeeperServers(server.servers), sessionTimeoutMs: 10_000 });
      session = new BatonSession({ BATON_SERVERS: server.servers, BATON_SESSION_TIMEOUT: "10s" });
    }, 60_000);
    afterAll(async () => {
      await session[Symbol.asyncDispose]();
      await client.close();
      await server.close();
    });

    /** A holder that is no baton. */
    const holder = async (path: string, recipe: keyof typeof names) => {
      const missing = path.split("/").slice(1).map((_, index, all) => `/${all.slice(0, index + 1).join("/")}`);
      for (const node of missing) if (await client.exists(node) === null) await client.create(node, new Uint8Array());
      const theirs = new TextEncoder().encode("theirs");
      return (await client.create(`${path}/${names[recipe]}`, theirs, { mode: "ephemeralSequential" })).path;
    };
    const dataOf = async (node: string) => new TextDecoder().decode((await client.getData(node)).data);

    test("ls --recipe counts who holds and who waits, below a node and at one", async () => {
      await holder("/ls/one", "kazoo");
      await holder("/ls/two", "curator");
      const waits = session.start('exec "$baton" lock -q --recipe kazoo /ls/one -- true');
      await eventually(async () => (await client.getChildren("/ls/one")).children.length === 2);
      const below = await session.run('"$baton" ls --recipe kazoo /ls');
      expect(below).toMatchObject({ code: 0, stdout: expect.stringMatching(/^KIND .*\nlock +\/ls\/one +1 +1\n$/) });
      const json = await session.run('"$baton" ls --recipe kazoo /ls/one --json');
      expect(JSON.parse(json.stdout)).toMatchObject({
        version: 1,
        locks: [{ name: "/ls/one", holders: 1, waiters: 1 }],
        elections: [],
      });
      const told = async (words: string) => (await session.run(`"$baton" ls --recipe ${words}`)).stderr;
      expect(await told("curator-rw /ls")).toContain("no lock of Curator's InterProcessReadWriteLock is in use below");
      expect(await told("curator /nowhere")).toContain('node "/nowhere" does not exist');
      expect(await told("curator")).toContain("needs one path");
      expect(await told("curator x")).toContain("does not start with a slash");
      expect(await told("curator /ls --kind gate")).toContain("cannot be used together");
      waits.child.kill("SIGTERM");
      await waits.ended;
    });

    test("break --recipe asks a baton: its job is stopped, and its code is 80", async () => {
      for (const recipe of ["curator", "curator-rw", "kazoo"]) {
        const path = `/break/${recipe}`;
        const held = session.start(
          `exec "$baton" lock --recipe ${recipe} ${path} -- sh -c '>${recipe}; exec sleep 60'`,
        );
        await session.made(recipe);
        const who = JSON.parse((await session.run(`"$baton" who --recipe ${recipe} ${path} --json`)).stdout);
        const only = recipe === "kazoo" ? "" : `--holder ${who.holders[0].id.slice(0, 8)}`;
        expect(await session.run(`"$baton" break --recipe ${recipe} ${path} --holder ffff`)).toMatchObject({ code: 1 });
        const broken = await session.run(`"$baton" break --recipe ${recipe} ${path} ${only} --reason now`);
        expect(broken).toMatchObject({ code: 0, stderr: expect.stringContaining(`has released "${path}"`) });
        const { code, stderr } = await held.ended;
        expect([code, stderr]).toEqual([80, expect.stringMatching(/was broken by \w+, reason "now"/)]);
      }
      const other = await session.run('"$baton" break --recipe curator /break/none --holder abcd');
      expect(other).toMatchObject({ code: 1, stderr: expect.stringContaining("no process holds it") });
    });

    test("a Curator program is asked as by its Revoker, kazoo's cannot be, and --force takes both", async () => {
      for (const recipe of ["curator", "curator-rw"] as const) {
        const node = await holder(`/interop/${recipe}`, recipe);
        const words = `--recipe ${recipe} /interop/${recipe} --holder ${guid}`;
        expect(await session.run(`"$baton" break ${words} -w 10ms`)).toMatchObject({ code: 75 });
        expect(await dataOf(node)).toBe("__REVOKE__");
        expect(await session.run(`"$baton" break ${words} --force`)).toMatchObject({ code: 0 });
        expect(await client.exists(node)).toBeNull();
      }
      const node = await holder("/interop/kazoo", "kazoo");
      const words = `--recipe kazoo /interop/kazoo --holder ${guid}`;
      const cannot = await session.run(`"$baton" break ${words}`);
      expect(cannot).toMatchObject({ code: 78, stderr: expect.stringContaining("kazoo has no such request") });
      expect(await dataOf(node)).toBe("theirs");
      const other = await session.run(`"$baton" break --recipe curator /interop/kazoo --holder ${guid} --force`);
      expect(other).toMatchObject({ code: 78, stderr: expect.stringContaining("Use --recipe kazoo") });
      expect(await session.run(`"$baton" break ${words} --force --json`)).toMatchObject({
        code: 0,
        stdout: expect.stringContaining('"outcome":"deleted"'),
      });
      expect(await client.exists(node)).toBeNull();
    });

    test("doctor --recipe finds strangers, and nodes without a session, in the lines below a node", async () => {
      await holder("/doctor/mixed", "kazoo");
      await holder("/doctor/mixed", "curator");
      await holder("/doctor/well", "kazoo");
      const left = await client.create(`/doctor/well/${"f".repeat(32)}__lock__`, new Uint8Array(), {
        mode: "persistentSequential",
      });
      const found = await session.run('"$baton" doctor --recipe kazoo /doctor --session-timeout 10s --json');
      expect(found.code).toBe(1);
      const { locks, findings } = JSON.parse(found.stdout) as { locks: number; findings: Record<string, string>[] };
      const lines = findings.filter(({ where }) => where?.startsWith("lock "));
      expect([locks, lines]).toMatchObject([2, [
        { severity: "problem", where: 'lock "/doctor/mixed"', what: expect.stringContaining("belongs to Curator's") },
        { severity: "problem", where: 'lock "/doctor/well"', what: expect.stringContaining("belongs to no session") },
      ]]);
      await client.delete(left.path, -1);
      const well = await session.run('"$baton" doctor --recipe kazoo /doctor/well --json');
      expect(JSON.parse(well.stdout).findings.filter(({ where }: { where: string }) => where !== "session")).toEqual(
        [],
      );
      expect(await session.run('"$baton" doctor --recipe kazoo /nowhere')).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('Node "/nowhere" does not exist'),
      });
      expect(await session.run('"$baton" doctor --recipe kazoo')).toMatchObject({ code: 64 });
    });
  });
}
