/**
 * scripts/baton and scripts/build, in a project of their own with a program of a few lines: what they add is under
 * test.
 */
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { readFileSync, realpathSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import process from "node:process";
import { eventually } from "../../support/eventually.ts";

setDefaultTimeout(60_000);

const project = join(import.meta.dir, "../../..");
const realBun = realpathSync(join(project, "node_modules/.bin/bun"));

const program = `
import { readFileSync } from "node:fs";
const [, , word = "", ...rest] = process.argv;
if (word === "exit") process.exitCode = Number(rest[0]);
if (word === "args") console.log(JSON.stringify(rest));
if (word === "cat") console.log(readFileSync(Number(rest[0])).toString());
if (word === "env") console.log(Object.keys(process.env).sort().join("\\n"));
if (word === "cwd") console.log(process.cwd());
`;

let folder: string;
let root: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "baton launcher "));
  root = join(folder, "a clone");
  for (const name of ["scripts", "commands", "src", "bin"]) mkdirSync(join(root, name), { recursive: true });
  for (const name of ["baton", "build", "build_lock.sh", "compile.sh", "freshness.sh", "runtime_patch.ts"]) {
    copyFileSync(join(project, "scripts", name), join(root, "scripts", name));
  }
  for (const name of ["package.json", "package-lock.json"]) copyFileSync(join(project, name), join(root, name));
  writeFileSync(join(root, "commands/main.ts"), program);
  // Installs what a build needs out of this project, and remembers how it was called.
  writeExecutable(
    "bin/npm",
    `#!/bin/sh
    echo "$*" >>npm.log
    cat >>npm.log
    mkdir -p node_modules/.bin node_modules/bun node_modules/deno
    echo 'require("node:fs").symlinkSync(${JSON.stringify(realBun)}, "../.bin/bun")' >node_modules/bun/install.js
    rm -f node_modules/.bin/bun
    : >node_modules/deno/install.cjs`,
  );
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

function writeExecutable(path: string, text: string): void {
  writeFileSync(join(root, path), text);
  chmodSync(join(root, path), 0o755);
}

interface Session {
  readonly cwd?: string;
  readonly path?: string;
  readonly input?: string;
}

interface Ended {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number | null;
}

const launcher = () => `"${join(root, "scripts/baton")}"`;

function start(script: string, { cwd = root, path = process.env["PATH"] ?? "" }: Session = {}): ChildProcess {
  const env = { HOME: folder, PATH: [join(root, "bin"), path].join(delimiter) };
  return spawn("/bin/sh", ["-c", script], { cwd, env, stdio: "pipe", detached: true });
}

async function shell(script: string, session: Session = {}): Promise<Ended> {
  const child = start(script, session);
  let stdout = "", stderr = "";
  child.stdout?.setEncoding("utf8").on("data", (chunk: string) => stdout += chunk);
  child.stderr?.setEncoding("utf8").on("data", (chunk: string) => stderr += chunk);
  child.stdin?.end(session.input ?? "");
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
  return { stdout, stderr, code };
}

/** The tools a build needs, without flock. */
function pathWithoutFlock(): string {
  const bin = join(folder, "no flock");
  mkdirSync(bin);
  const tools = [
    "sh",
    "cat",
    "cmp",
    "cp",
    "dirname",
    "find",
    "ln",
    "mkdir",
    "mv",
    "node",
    "ps",
    "readlink",
    "rm",
    "rmdir",
  ];
  for (const tool of [...tools, "sleep", "touch"]) {
    const found = (process.env["PATH"] ?? "").split(delimiter).map((dir) => join(dir, tool)).find(existsSync);
    if (found !== undefined) symlinkSync(found, join(bin, tool));
  }
  return bin;
}

describe("a first call", () => {
  test("says what it installs and builds, and a second one says nothing", async () => {
    const first = await shell(`${launcher()} exit 0`);
    expect(first).toEqual({
      stdout: "",
      stderr: "baton: installing the pinned dependencies into node_modules (npm ci)\nbaton: building dist/baton\n",
      code: 0,
    });
    expect(await shell(`${launcher()} exit 0`)).toEqual({ stdout: "", stderr: "", code: 0 });
    expect(readFileSync(join(root, "npm.log"), "utf8")).toStartWith("ci --ignore-scripts");
  });

  test("leaves stdin to the program, although npm reads all it can get", async () => {
    const { stdout } = await shell(`${launcher()} cat 0`, { input: "for the program" });
    expect(stdout).toBe("for the program\n");
  });

  test("tells what npm could not do, and runs nothing", async () => {
    writeExecutable("bin/npm", "#!/bin/sh\necho 'npm error no network' >&2\nexit 1\n");
    const { stderr, code } = await shell(`${launcher()} exit 0`);
    expect(code).toBe(69);
    expect(stderr).toContain("npm error no network\nbaton: npm ci failed, see above; nothing was built\n");
  });

  test("tells that Node.js is missing", async () => {
    const path = pathWithoutFlock();
    rmSync(join(path, "node"));
    const { stderr, code } = await shell(`PATH='${path}' ${launcher()} exit 0`, { path });
    expect({ stderr, code }).toEqual({
      stderr: "baton: building needs Node.js with npm, and node or npm was not found in PATH\n",
      code: 69,
    });
  });
});

describe("a later call", () => {
  beforeEach(async () => {
    const built = await shell(`sh scripts/build`);
    expect(built.code).toBe(0);
  });

  test("passes arguments, descriptors, variables, the folder and the exit code through", async () => {
    expect((await shell(`${launcher()} args -- "a  b" '' '$x' '*' -z --`)).stdout)
      .toBe(`["--","a  b","","$x","*","-z","--"]\n`);
    writeFileSync(join(folder, "seven"), "seven");
    expect((await shell(`${launcher()} cat 7 7<'${join(folder, "seven")}'`)).stdout).toBe("seven\n");
    expect((await shell(`${launcher()} exit 7`)).code).toBe(7);
    expect((await shell(`${launcher()} cwd`, { cwd: "/" })).stdout).toBe("/\n");
    const direct = await shell(`"${join(root, "dist/baton")}" env`);
    expect((await shell(`${launcher()} env`)).stdout).toBe(direct.stdout);
  });

  test("works through links, through PATH, and from within scripts", async () => {
    symlinkSync("a clone/scripts/baton", join(folder, "first link"));
    symlinkSync(join(folder, "first link"), join(root, "bin/baton"));
    for (const call of [`'${join(folder, "first link")}'`, "baton", "cd scripts; sh baton"]) {
      expect(await shell(`${call} args here`)).toEqual({ stdout: `["here"]\n`, stderr: "", code: 0 });
    }
  });

  test("builds again after a change, a new file and a removed one", async () => {
    for (const change of ["touch commands/main.ts", ": >src/new.ts", "rm src/new.ts", "touch package-lock.json"]) {
      await shell(change);
      expect((await shell(`${launcher()} exit 0`)).stderr).toBe("baton: building dist/baton\n");
      expect((await shell(`${launcher()} exit 0`)).stderr).toBe("");
    }
  });

  test("an edit made while a build runs is not missed", async () => {
    // A compiler that takes its time: it waits for the edit before it writes its result.
    rmSync(join(root, "node_modules/.bin/bun"));
    writeExecutable(
      "node_modules/.bin/bun",
      `#!/bin/sh\n: >compiling\nuntil [ -e edited ]; do sleep 0.01; done\nexec '${realBun}' "$@"\n`,
    );
    writeFileSync(join(root, "src/a.ts"), "");
    const building = shell("sh scripts/build");
    await eventually(() => existsSync(join(root, "compiling")));
    writeFileSync(join(root, "commands/main.ts"), `${program}console.log("edited");`);
    writeFileSync(join(root, "edited"), "");
    await building;
    expect((await shell(`${launcher()} exit 0`)).stderr).toBe("baton: building dist/baton\n");
  });

  test("installs again when the lock file has changed, or the last install was cut short", async () => {
    rmSync(join(root, "node_modules/.baton-lock.json"));
    writeFileSync(join(root, "package-lock.json"), `${readFileSync(join(root, "package-lock.json"), "utf8")}\n`);
    expect((await shell(`${launcher()} exit 0`)).stderr).toContain("baton: installing the pinned dependencies");
  });

  test("tells a user who may not build that the owner of the clone has to", async () => {
    await shell(`${launcher()} exit 0`);
    writeFileSync(join(root, "commands/main.ts"), "console.log('new');\n");
    rmSync(join(root, "dist/.build.lock"), { force: true });
    mkdirSync(join(root, "dist/.build.lock")); // root may write into every folder, and into no folder as a file
    expect(await shell(`${launcher()} exit 0`)).toEqual({
      stdout: "",
      stderr:
        `baton: cannot write ${
          realpathSync(root)
        }/dist/.build.lock; dist/baton is missing or older than the source: the owner of ` +
        "this folder has to run sh scripts/build\n",
      code: 73,
    });
  });

  test("refuses to run an old binary when the source does not compile, and leaves no litter", async () => {
    writeFileSync(join(root, "commands/main.ts"), `import "./nowhere.ts";`);
    const { stderr, code } = await shell(`${launcher()} exit 0`);
    expect(code).toBe(70);
    expect(stderr).toContain("nowhere.ts");
    expect(stderr).toEndWith("baton: dist/baton could not be built, see above\n");
    expect(readdirSync(join(root, "dist")).sort()).toEqual([".build.lock", "baton"]);
  });
});

for (
  const { title, path } of [
    { title: "with flock", path: () => process.env["PATH"] ?? "" },
    { title: "without flock", path: pathWithoutFlock },
  ]
) {
  describe(`many at once, ${title}`, () => {
    test("build once", async () => {
      const session = { path: path() };
      const calls = await Promise.all(Array.from({ length: 5 }, (_, n) => shell(`${launcher()} args ${n}`, session)));
      expect(calls.map(({ stdout, code }) => ({ stdout, code })))
        .toEqual(calls.map((_, n) => ({ stdout: `["${n}"]\n`, code: 0 })));
      const said = calls.map(({ stderr }) => stderr).join("");
      expect(said.match(/installing/g)?.length).toBe(1);
      expect(said.match(/building/g)?.length).toBe(1);
      expect(readFileSync(join(root, "npm.log"), "utf8").match(/^ci /gm)?.length).toBe(1);
    });

    test("a builder that was killed holds nobody up", async () => {
      const session = { path: path() };
      await shell("sh scripts/build", session);
      rmSync(join(root, "node_modules/.bin/bun"));
      writeExecutable("node_modules/.bin/bun", `#!/bin/sh\n: >compiling\nexec sleep 600\n`);
      utimesSync(join(root, "commands/main.ts"), new Date(), new Date());
      const builder = start(`exec sh scripts/build`, session);
      await eventually(() => existsSync(join(root, "compiling")));
      process.kill(-(builder.pid ?? 0), "SIGKILL");
      rmSync(join(root, "node_modules/.bin/bun"));
      symlinkSync(realBun, join(root, "node_modules/.bin/bun"));
      expect((await shell(`${launcher()} exit 3`, session)).code).toBe(3);
      expect(statSync(join(root, "dist/baton")).isFile()).toBe(true);
      expect(readdirSync(join(root, "dist")).filter((name) => !/^(baton|\.build\.lock)$/.test(name))).toEqual([]);
    });
  });
}
