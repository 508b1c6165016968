/** The progress of long operations: on a terminal, in a pipe, with --progress and -q. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { BatonSession, type Running } from "../../support/baton_session.ts";
import { PtySession } from "../../support/pty_session.ts";
import { startRole } from "../../support/session_talker.ts";

setDefaultTimeout(60_000);

let session: BatonSession;
beforeAll(() => session = new BatonSession({ BATON_SERVERS: "embedded" }));
afterAll(() => session[Symbol.asyncDispose]());

const erase = "\r\x1b[K";

describe("a message store", () => {
  const submit = (flags: string) =>
    session.run(`seq 1 100 | "$baton" retry-processor submit --lines --store "$dir/store" ${flags} -- true`);

  test("--progress prints a last line where stderr is no terminal; without it or with -q there is none", async () => {
    expect((await submit("--progress")).stderr).toContain("baton: 100 messages stored, ");
    expect((await submit("")).stderr).not.toContain("a second");
    expect((await submit("--progress -q")).stderr).toBe("");
  });

  test("verify counts its rows, redrive and purge their dead letters", async () => {
    const verify = await session.run('"$baton" retry-processor verify --store "$dir/store" --progress');
    expect(verify.stderr).toMatch(/^baton: checking the structure of the database\n(.*\n)*baton: 300 messages checked/);
    const run = (words: string) => session.run(`"$baton" retry-processor ${words} --store "$dir/dead"`);
    await session.run('seq 1 3 | "$baton" retry-processor submit --lines --store "$dir/dead" -- sh -c "exit 64"');
    await run("run --until-empty");
    expect((await run("dlq redrive --all --progress")).stderr).toContain("baton: 3 of 3 messages redriven, ");
    await run("run --until-empty");
    expect((await run("dlq export --progress")).stderr).toContain("baton: 3 of 3 messages exported, ");
    expect((await run("dlq purge --all --progress")).stderr).toContain("baton: 3 messages purged, ");
  });

  test("a terminal shows a line while it takes long, and it is erased at the end", async () => {
    await session.run("mkfifo lines");
    await using pty = new PtySession(
      ["/bin/sh", "-c", 'exec "$baton" retry-processor submit --lines --store "$dir/slow" lines -- true'],
      { env: session.env, cwd: session.folder },
    );
    const writer = session.start(
      "exec 3>lines; seq 1 2000 >&3; while ! [ -e shown ]; do sleep 0.05; done; echo end >&3",
    );
    await pty.shows(/\d+ messages? stored, /);
    writeFileSync(session.path("shown"), "");
    expect((await pty.ended()).ended).toEqual({ code: 0 });
    await writer.ended;
    expect(pty.output).toMatch(/2001 messages are stored/);
    expect(pty.output.lastIndexOf(erase)).toBeGreaterThan(pty.output.lastIndexOf(" messages stored, "));
  });
});

describe("work that blocks the program", () => {
  const program = [process.execPath, join(import.meta.dirname, "../../support/progress_program.ts")];

  test("shows its count on a terminal while it goes on, and erases it at the end", async () => {
    const file = session.path("blocked");
    await using pty = new PtySession([...program, file], { env: session.env, cwd: session.folder });
    await pty.shows("50 of 100 rows checked, ");
    writeFileSync(file, "");
    expect((await pty.ended()).ended).toEqual({ code: 0 });
    expect(pty.output).toEndWith(`${erase}done\r\n`);
  });

  test("shows nothing in a pipe, and one line at the end with --progress", async () => {
    const file = session.path("exists");
    writeFileSync(file, "");
    const run = (flags: string) => session.run(`${program.join(" ")} ${file} ${flags}`);
    expect(await run("")).toMatchObject({ code: 0, stdout: "done\n", stderr: "" });
    expect(await run("--progress -q")).toMatchObject({ code: 0, stderr: "" });
    expect((await run("--progress")).stderr).toMatch(/^baton: 50 of 100 rows checked, .*, 50 %.*\n$/);
  });

  test("the keeper's backup and verify", async () => {
    await session.run('"$baton" lock any -- true');
    const backup = await session.run('"$baton" keeper backup "$dir/keeper.copy" --progress');
    expect(backup).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/^baton: copying the database\n(.*\n)*baton: \d+ of \d+ nodes? checked/),
    });
    const verify = await session.run('"$baton" keeper verify --progress');
    expect(verify).toMatchObject({ code: 0, stderr: expect.stringMatching(/\nbaton: \d+ of \d+ nodes? checked/) });
  });
});

describe("publish and subscribe", () => {
  let server: Running;
  let proxy: Running;
  const client = (words: string) => session.run(`"$baton" pubsub client ${words}`);

  beforeAll(async () => {
    server = await startRole(session, "server --id s1 --data-dir s1 --session-timeout 2s");
    proxy = await startRole(session, 'proxy --listen "ipc://$dir/proxy"');
  });

  test("put of lines and get until empty; a single message has no progress", async () => {
    expect((await client("bob subscribe news")).code).toBe(0);
    const put = await session.run('seq 1 50 | "$baton" pubsub client ann put news --lines --progress');
    expect(put).toMatchObject({ code: 0, stderr: expect.stringContaining("baton: 50 messages stored, ") });
    const get = await client('bob get news --until-empty --lines --progress >"$dir/got"');
    expect(get).toMatchObject({ code: 0, stderr: expect.stringContaining("baton: 50 of 50 messages received, ") });
    expect((await session.run('echo x | "$baton" pubsub client ann put news - --progress')).stderr).toBe("");
    expect((await client("bob peek news --progress")).code).toBe(64);
  });

  test("move counts topics, backup and verify their rows", async () => {
    const other = await startRole(session, "server --id s2 --data-dir s2 --session-timeout 2s");
    const move = await session.run('"$baton" pubsub server move news --to s2 --progress');
    expect(move).toMatchObject({ code: 0, stderr: expect.stringContaining("baton: 1 of 1 topic moved, ") });
    const backup = await session.run('"$baton" pubsub server backup "$dir/copy" --data-dir s2 --progress');
    expect(backup).toMatchObject({ code: 0, stderr: expect.stringContaining("baton: 1 topic checked, ") });
    const verify = await session.run('"$baton" pubsub server verify --data-dir copy --progress');
    expect(verify).toMatchObject({ code: 0, stderr: expect.stringContaining("baton: 1 topic checked, ") });
    expect((await session.run('"$baton" pubsub server ls --progress')).code).toBe(64);
    for (const running of [other, proxy, server]) {
      running.child.kill("SIGTERM");
      await running.ended;
    }
  });
});

test("a pool prints lines with --progress", async () => {
  const ended = await session.run('"$baton" pool items --items a,b --progress -- true');
  expect(ended).toMatchObject({ code: 0, stderr: expect.stringContaining("baton: 2 of 2 items done, ") });
});
