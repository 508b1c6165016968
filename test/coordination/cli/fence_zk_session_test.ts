/** `baton fence zk`, by sessions with the binary, on the keeper and on a real server. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import process from "node:process";
import { listChildProcesses, sendSignal } from "../../../src/base/process/proc/process_table.ts";
import { connect, parseServers, type ZooKeeper } from "../../../src/library/baton.ts";
import { backends, describeBackend, type RunningBackend } from "../../support/backends.ts";
import { BatonSession } from "../../support/baton_session.ts";

setDefaultTimeout(60_000);

const zk = (words: string) => `"$baton" fence zk ${words}`;
const under = (script: string, options = "") => `"$baton" lock -q ${options} n -- sh -c '${script}'`;

for (const kind of backends) {
  describeBackend(kind, () => {
    let backend: RunningBackend;
    let session: BatonSession;
    let client: ZooKeeper;
    beforeAll(async () => {
      backend = await kind.start({ sessionTimeoutMinMs: 2000 });
      client = await connect({ servers: parseServers(backend.servers) });
      await client.create("/chroot", new Uint8Array());
      session = new BatonSession({ BATON_SERVERS: `${backend.servers}/chroot` });
    }, 40_000);
    afterAll(async () => {
      await session[Symbol.asyncDispose]();
      await client.close();
      await backend.close();
    });

    const dataOf = async (path: string) => new TextDecoder().decode((await client.getData(`/chroot${path}`)).data);

    test("writes below the lock's chroot, and leaves nothing of its own", async () => {
      const made = await session.run(under(`${zk("create -p /app/state one")}; ${zk("set /app/state two --json")}`));
      expect(made).toMatchObject({
        code: 0,
        stdout: '{"version":1,"action":"set","path":"/app/state","node_version":1}\n',
        stderr: "",
      });
      expect(await dataOf("/app/state")).toBe("two");
      expect((await client.getChildren("/chroot/baton/fences")).children).toEqual([]);
      const numbered = await session.run(under(`${zk("create --sequential /app/log- x")}`));
      expect(numbered.stdout).toMatch(/^\/app\/log-\d{10}\n$/);
      expect(await session.run(under(zk("delete /app/state --version 1")))).toMatchObject({ code: 0, stdout: "" });
      expect(await client.exists("/chroot/app/state")).toBeNull();
    });

    test("takes the data from a word, a file, and standard input, byte for byte", async () => {
      await session.run(under(zk('create /bytes ""')));
      expect(await dataOf("/bytes")).toBe("");
      await session.run(under(`printf "a\\0b" | ${zk("set /bytes -")}`));
      expect(await dataOf("/bytes")).toBe("a\0b");
      await session.run(`printf 'from a file' >file; ${under(zk("set /bytes --data-file file"))}`);
      expect(await dataOf("/bytes")).toBe("from a file");
      await session.run(under(zk("set /bytes -- --dashed")));
      expect(await dataOf("/bytes")).toBe("--dashed");
      expect(await session.run(under(`head -c 1100000 /dev/zero | ${zk("set /bytes -")}`))).toMatchObject({ code: 65 });
      const closed = await session.run(
        under(`${zk("set /bytes - <&-")}; echo $?; ${zk("set /bytes --data-file - <&-")}`),
      );
      expect(closed).toMatchObject({ code: 74, stdout: "74\n" });
      expect(closed.stderr).toContain("Cannot read the data from standard input: it is closed");
      expect(await dataOf("/bytes")).toBe("--dashed");
    });

    test("a condition that is not met is exit code 1, and nothing is changed", async () => {
      await session.run(under(zk("create -p /one/two x")));
      const wrong: [words: string, says: string][] = [
        ["set /one/three x", 'Cannot set "/one/three": the node does not exist'],
        ["set /one/two y --version 7", "it has version 0, not version 7"],
        ["create /one/two y", "it already exists"],
        ["create /none/two y", 'the parent "/none" does not exist; -p creates it'],
        ["delete /one", "it has a child"],
        ["delete /one/two --version 1", "it has version 0, not version 1"],
      ];
      for (const [words, says] of wrong) {
        const ended = await session.run(under(zk(words)));
        expect([words, ended.code, ended.stdout]).toEqual([words, 1, ""]);
        expect(ended.stderr).toContain(says);
      }
      expect(await dataOf("/one/two")).toBe("x");
    });

    test("goes by all locks of the job, by a leadership, and by a place at a barrier", async () => {
      const jobs = [
        '"$baton" lock -q b a -- ',
        '"$baton" lock -q -N 3 sem -- ',
        '"$baton" lock -q outer -- "$baton" lock -q -s inner -- ',
        '"$baton" elect -q --value v e -- ',
        '"$baton" barrier -q b -N 1 -- ',
      ];
      for (const job of jobs) {
        expect([job, (await session.run(job + zk(`create -p "/by/${jobs.indexOf(job)}"`))).stderr]).toEqual([job, ""]);
      }
      expect((await client.getChildren("/chroot/by")).children.sort()).toEqual(jobs.map((_, index) => String(index)));
    });

    test("another's lock, another's token: 86", async () => {
      await session.run(under(zk("create /mine x")));
      const other = await session.run(under(`BATON_LOCK_COOKIE=abc ${zk("set /mine y")}`));
      expect(other).toMatchObject({ code: 86, stdout: "" });
      expect(other.stderr).toContain('"/mine" was not set: this job no longer holds lock "n"');
      const token = await session.run(under(zk("set /mine y --token 1")));
      expect(token.code).toBe(86);
      expect(token.stderr).toMatch(/"\/mine" was not changed: lock "n" is held with token \d+, but this job has 1\n$/);
      expect(await dataOf("/mine")).toBe("x");
    });

    test("a whole holder that was frozen, and whose command alone is woken when another holds, changes nothing", async () => {
      await session.run(`mkfifo go; ${under(zk("create /frozen before"))}`);
      const script = `echo $$ >old; touch held; read -r _ <go; ${zk("set /frozen zombie")} 2>said; echo $? >code`;
      const old = session.start(`exec ${under(script, "--session-timeout 2s")}`);
      await session.made("held");
      const child = Number(session.read("old"));
      const baton = old.child.pid ?? 0;
      const frozen = [baton, ...listChildProcesses(baton)]; // the guard and the command
      expect(frozen).toHaveLength(3);
      for (const pid of frozen) process.kill(pid, "SIGSTOP");
      try {
        const next = await session.run(under(zk("set /frozen next"), "-w 20s"));
        expect(next).toMatchObject({ code: 0, stderr: "" });
        process.kill(child, "SIGCONT"); // nobody is awake who could kill it
        await session.run("echo go >go");
        expect(await session.said("code")).toBe("86");
        expect(session.read("said")).toContain('"/frozen" was not set: this job no longer holds lock "n"');
        expect(await dataOf("/frozen")).toBe("next");
        expect((await client.exists("/chroot/frozen"))?.version).toBe(1);
      } finally {
        for (const pid of frozen) sendSignal(pid, "SIGCONT"); // the command has ended by now
      }
      await old.ended;
    });
  });
}

test("what does not fit together is a matter of usage, and nothing is asked for", async () => {
  await using session = new BatonSession({
    BATON_SERVERS: "127.0.0.1:1",
    BATON_LOCK_NAME: "n",
    BATON_LOCK_PATH: "/pool/n",
    BATON_LOCK_COOKIE: "abc",
  });
  const wrong: [words: string, says: string][] = [
    ["", "takes set, create or delete, but none was given"],
    ["put /a x", 'not "put"'],
    ["crate /a", 'did you mean "create"'],
    ["set", "needs the path of a node"],
    ["set /a", "needs data"],
    ["set a x", '"a" is not a ZooKeeper path: it does not start with a slash'],
    ["set /a x y", 'unexpected argument "y"'],
    ["set /a x --data-file f", "cannot be used together"],
    ["delete /a x", 'unexpected argument "x"'],
    ["delete /", "The root node / cannot be deleted"],
    ["create /a --version 3", "--version is for set and delete"],
    ["set /a x -p", "--parents is for create"],
    ["set /a x --store f", "--store is for baton fence run"],
    ["set /a x --token 1.5", '"1.5" is not a fencing token'],
    ["set /baton/locks/n x", "is reserved for baton"],
    ["delete /pool/n/h", "is reserved for baton"],
  ];
  for (const [words, says] of wrong) {
    const ended = await session.run(zk(words));
    expect([words, ended.code, ended.stdout]).toEqual([words, 64, ""]);
    expect(ended.stderr).toContain(says);
  }
  expect(await session.run(zk("set /a --data-file none"))).toMatchObject({ code: 74 });
  expect(await session.run(`env -u BATON_LOCK_NAME ${zk("set /a x")}`)).toMatchObject({
    code: 64,
    stderr: "baton: There is no lock to use: run baton fence zk inside baton lock, hold, elect, barrier or pool\n" +
      "baton: see: baton fence --help\n",
  });
  expect(await session.run(zk("set /a x --connect-timeout 300ms"))).toMatchObject({ code: 69 });
});
