/**
 * Another user of the same machine, a real one: what he puts in the way of a keeper is not used, and what is the
 * keeper's is not his. Needs root, who can be two other users.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import process from "node:process";
import { withoutSlowServers } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";
import { canBeOthers } from "../../support/other_user.ts";
import { fourLetterWord } from "../../support/four_letter_word.ts";
import { requireBinary, runtimes } from "../../support/runtimes.ts";
import { ServerProcess } from "../../support/server_process.ts";

setDefaultTimeout(60_000);

/** Users whom nobody knows: they have no home, and their keepers are below /var/tmp. */
const user = 64_871;
const stranger = 64_872;
const place = `/var/tmp/baton-${user}`;
const isRoot = canBeOthers("what a stranger may do to a keeper is not tried");
const asUser = (uid: number, words: readonly string[]) => [
  ...["setpriv", `--reuid=${uid}`, `--regid=${uid}`, "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"],
  ...["env", "-i", "PATH=/usr/bin:/bin"],
  ...words,
];

let root = "";
let baton = "";
let keeper: ServerProcess | null = null;
beforeEach(() => {
  requireBinary();
  root = mkdtempSync("/var/tmp/baton-others-");
  chmodSync(root, 0o1777);
  baton = join(root, "baton"); // the project's own folder may be closed to others
  copyFileSync(runtimes[0]?.command[0] ?? "", baton);
  chmodSync(baton, 0o755);
});
afterEach(async () => {
  await keeper?.kill();
  keeper = null;
  rmSync(place, { recursive: true, force: true });
  rmSync(root, { recursive: true, force: true });
});

function run(uid: number, words: readonly string[]): { status: number | null; stderr: string; stdout: string } {
  const [program = "", ...rest] = asUser(uid, words);
  return spawnSync(program, rest, { cwd: "/", encoding: "utf8", timeout: 30_000 });
}

/** A folder of somebody's. */
function folderOf(uid: number, path: string, mode: number): string {
  mkdirSync(path);
  chownSync(path, uid, uid);
  chmodSync(path, mode);
  return path;
}

const lock = () => run(user, [baton, "lock", "x", "--", "echo", "held"]);

test.skipIf(!isRoot)("a stranger who was first at the keeper's place keeps its user from using it", () => {
  folderOf(stranger, place, 0o777);
  expect(lock()).toMatchObject({
    status: 78,
    stdout: "",
    stderr: expect.stringContaining(`belongs to user ${stranger}`),
  });
  chmodSync(place, 0o700);
  expect(lock()).toMatchObject({ status: 78, stdout: "" });
});

test.skipIf(!isRoot)("so does a link of his to a folder of his own, and to one of the user's", () => {
  symlinkSync(folderOf(stranger, join(root, "trap"), 0o755), place);
  expect(lock()).toMatchObject({ status: 78, stdout: "", stderr: expect.stringContaining("it is a link") });
  rmSync(place);
  symlinkSync(folderOf(user, join(root, "own"), 0o700), place);
  expect(lock()).toMatchObject({ status: 78, stdout: "" });
});

test.skipIf(!isRoot)(
  "a folder that was named and that others write to is not used, by a command or by a keeper",
  () => {
    for (const [owner, mode] of [[stranger, 0o777], [stranger, 0o700], [user, 0o777]] as const) {
      const folder = folderOf(owner, join(root, `named-${owner}-${mode}`), mode);
      const named = run(user, ["env", `BATON_KEEPER_DIR=${folder}`, baton, "lock", "x", "--", "echo", "held"]);
      expect(named).toMatchObject({ status: 78, stdout: "" });
      expect(run(user, [baton, "keeper", "--data-dir", folder, "--idle-exit", "1ms"])).toMatchObject({
        status: 78,
        stderr: expect.stringContaining("is not safe to use"),
      });
    }
  },
);

test.skipIf(!isRoot)("a keeper warns of a folder below one that a stranger may rename", () => {
  for (const [owner, mode] of [[stranger, 0o755], [user, 0o777], [stranger, 0o1777]] as const) {
    const above = folderOf(owner, join(root, `above-${owner}-${mode}`), mode);
    const named = folderOf(user, join(above, "data"), 0o700);
    const started = run(user, [baton, "keeper", "--data-dir", named, "--idle-exit", "1ms"]);
    expect(started).toMatchObject({
      status: 0,
      stderr: expect.stringContaining(`warning: The keeper's folder ${above} is not safe to use`),
    });
  }
  const named = folderOf(user, join(root, "data"), 0o700);
  expect(run(user, [baton, "keeper", "--data-dir", named, "--idle-exit", "1ms"]).status).toBe(0);
});

test.skipIf(!isRoot)("--output-dir in which this user may not write stops baton cron before its jobs", () => {
  const folder = folderOf(stranger, join(root, "output"), 0o755);
  const call =
    `echo '* * * * * true' >crontab && exec ${baton} cron crontab --servers 127.0.0.1:1 --output-dir ${folder}`;
  const home = folderOf(user, join(root, "home"), 0o700);
  expect(run(user, ["sh", "-c", `cd ${home} && ${call}`])).toMatchObject({
    status: 73,
    stderr: expect.stringContaining(`baton: Cannot write into --output-dir ${folder}: permission denied`),
  });
});

test.skipIf(!isRoot)(
  "a socket of a stranger where a keeper is to listen stops it, and stays the stranger's",
  async () => {
    const path = join(root, "squat.sock");
    const server = createServer((socket) => socket.destroy());
    await new Promise<void>((resolve) => server.listen(path, resolve));
    chownSync(path, stranger, stranger);
    const data = folderOf(user, join(root, "data"), 0o700);
    const started = run(user, [baton, "keeper", "--data-dir", data, "--listen", `unix:${path}`]);
    expect(started).toMatchObject({ status: 73, stderr: expect.stringContaining(`Cannot listen on unix:${path}`) });
    expect(existsSync(path)).toBe(true);
    server.close();
  },
);

test.skipIf(!isRoot)("the files and the socket of a keeper are closed to a stranger", async () => {
  const data = folderOf(user, join(root, "data"), 0o755); // which shows what is in it
  const words = asUser(user, [baton, "keeper", "--data-dir", data]);
  keeper = new ServerProcess(words, { folder: root });
  const path = join(data, "keeper.sock");
  await eventually(async () => await fourLetterWord({ kind: "unix", path }, "ruok", 500) === "imok", {
    withinMs: 15_000,
  });
  const servers = `--servers=unix:${path}`;
  expect(run(user, [baton, "lock", servers, "x", "--", "echo", "held"])).toMatchObject({ status: 0, stdout: "held\n" });
  const other = run(stranger, [baton, "lock", servers, "--connect-timeout", "500ms", "x", "--", "echo", "held"]);
  expect(other).toMatchObject({ status: 77, stdout: "", stderr: expect.stringContaining("permission denied") });
  for (const name of ["keeper.sqlite", "keeper.sqlite-wal", "keeper.sqlite-shm", "owner.sqlite"]) {
    expect(run(stranger, ["cat", join(data, name)])).toMatchObject({ status: 1, stdout: "" });
    expect(run(stranger, ["rm", "-f", join(data, name)]).status).toBe(1);
  }
  expect(run(stranger, [baton, "keeper", "verify", "--data-dir", data]).status).not.toBe(0);
});

test.skipIf(!isRoot)(
  "a user other than root can release a lock twice and hold it again where nothing reaps the first holder",
  () => {
    // The kernel gives /proc/PID/fd of a process that has ended to root.
    const script = `eval "$(${baton} hold x)"; for code in 0 1; do ${baton} release -q x; echo $?; done
    eval "$(${baton} hold -n x)"; ${baton} release -q x; echo $?`;
    const adopter = `import { loadLibc } from "${join(import.meta.dirname, "../../../src/base/process/libc.ts")}";
    (await loadLibc())?.becomeSubreaper();
    Bun.spawnSync(${
      JSON.stringify(asUser(user, ["sh", "-c", script]))
    }, { cwd: "/", stdio: ["ignore", "inherit", "inherit"] });`;
    const ended = spawnSync(process.execPath, ["-e", adopter], { encoding: "utf8", timeout: 30_000 });
    expect([ended.stdout, withoutSlowServers(ended.stderr)]).toEqual(["0\n1\n0\n", ""]);
  },
);
