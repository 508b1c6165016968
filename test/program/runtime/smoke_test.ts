/** The same smoke run under Bun, Deno and the binary: what depends on a runtime rather than on baton. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { eventually } from "../../support/eventually.ts";
import { freePorts } from "../../support/free_ports.ts";
import { requireBinary, runtimes } from "../../support/runtimes.ts";

setDefaultTimeout(60_000);
beforeAll(requireBinary);

interface Ended {
  readonly stdout: string;
  readonly stderr: string;
  readonly code: number | null;
}

/** Ends whatever was started on demand for this folder. */
function killProcessesNaming(folder: string): void {
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      if (readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(folder)) process.kill(Number(pid), "SIGKILL");
    } catch {
      // It has ended by itself.
    }
  }
}

describe.each(runtimes)("under $name", ({ name, command }) => {
  let folder = "";
  /** `baton` in the shell's words. */
  const baton = command.map((word) => `'${word}'`).join(" ");

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "baton-smoke-"));
    mkdirSync(join(folder, "keeper"), { mode: 0o700 });
  });

  afterAll(() => {
    killProcessesNaming(folder);
    rmSync(folder, { recursive: true, force: true });
  });

  function start(script: string): ChildProcess {
    const env = {
      HOME: folder,
      PATH: process.env["PATH"],
      BATON_KEEPER_DIR: join(folder, "keeper"),
      BATON_PUBSUB_STATE_DIR: join(folder, "states"),
      BATON_STATE_DIR: join(folder, "state"),
      // Deno's own cache of compiled source, which HOME would move.
      DENO_DIR: process.env["DENO_DIR"] ?? join(tmpdir(), "baton-deno-cache"),
    };
    return spawn("/bin/sh", ["-c", script], { cwd: folder, env, stdio: "pipe" });
  }

  /** The first thing it says; rejects when it ends without a word. */
  function firstWords(child: ChildProcess): Promise<string> {
    return new Promise((resolve, reject) => {
      child.stdout?.once("data", (chunk: Buffer) => resolve(chunk.toString()));
      child.on("close", (code) => reject(new Error(`It ended with ${code} and said nothing`)));
    });
  }

  async function endByTerm(child: ChildProcess): Promise<void> {
    const ended = new Promise((resolve) => child.on("close", resolve));
    child.kill("SIGTERM");
    await ended;
  }

  function shell(script: string, input = ""): Promise<Ended> {
    const child = start(script);
    let stdout = "", stderr = "";
    child.stdout?.setEncoding("utf8").on("data", (chunk: string) => stdout += chunk);
    child.stderr?.setEncoding("utf8").on("data", (chunk: string) => stderr += chunk);
    child.stdin?.end(input);
    return new Promise((resolve) => child.on("close", (code) => resolve({ stdout, stderr, code })));
  }

  test("it says its version", async () => {
    const { version } = JSON.parse(readFileSync(join(import.meta.dir, "../../../package.json"), "utf8")) as {
      version: string;
    };
    const said = await shell(`${baton} --version`);
    expect(said).toEqual({ stdout: expect.stringMatching(/^baton \S+ \(.*\w+-\w+\)\n$/), stderr: "", code: 0 });
    expect(said.stdout).toStartWith(`baton ${version} (`);
  });

  test("a lock starts the keeper and its storage thread, and the token grows", async () => {
    const first = await shell(`${baton} lock smoke -- sh -c 'echo "$BATON_FENCING_TOKEN"'`);
    expect(first.stderr).not.toContain("rror");
    expect({ code: first.code, token: /^\d+\n$/.test(first.stdout) }).toEqual({ code: 0, token: true });
    const second = await shell(`${baton} lock smoke -- sh -c 'echo "$BATON_FENCING_TOKEN"'`);
    expect(BigInt(second.stdout.trim())).toBeGreaterThan(BigInt(first.stdout.trim()));
  });

  // `bun main.ts` reads .env whatever the program thinks of it; that is for working on the source only.
  if (name !== "Bun") {
    test("a .env in the folder it is started in does not turn it to other servers", async () => {
      writeFileSync(join(folder, ".env"), "BATON_SERVERS=127.0.0.1:1\n");
      expect((await shell(`${baton} lock --connect-timeout 2s smoke -- true`)).code).toBe(0);
      rmSync(join(folder, ".env"));
    });
  }

  test.each([
    ["exit 7", 7],
    ["kill -TERM $$", 143],
    ["kill -KILL $$", 137],
  ])("a child's end by `%s` is %d", async (script, code) => {
    expect((await shell(`${baton} lock smoke -- sh -c '${script}'`)).code).toBe(code);
  });

  test("failures have their numbers", async () => {
    writeFileSync(join(folder, "not executable"), "");
    const [port = 0] = await freePorts(1);
    const unreachable = `--servers 127.0.0.1:${port} --connect-timeout 500ms`;
    const codes: Record<string, number> = {
      "lock --no-such-flag a -- true": 64,
      "lock smoke -- ./nowhere": 127,
      "lock smoke -- './not executable'": 126,
      [`lock ${unreachable} smoke -- true`]: 69,
      "lock --scope cluster smoke -- true": 78,
      "who nobody-ever-took-this": 1,
    };
    const seen = await Promise.all(
      Object.keys(codes).map(async (words) => [words, (await shell(`${baton} ${words}`)).code]),
    );
    expect(Object.fromEntries(seen)).toEqual(codes);
  });

  test("a held lock is busy, and free again when its holder is told to stop", async () => {
    const holder = start(`exec ${baton} lock held -- sh -c 'echo started; exec sleep 600'`);
    await firstWords(holder);
    expect((await shell(`${baton} lock -n held -- true`)).code).toBe(75);
    await endByTerm(holder);
    expect((await shell(`${baton} lock -n held -- true`)).code).toBe(0);
  });

  test("a killed baton takes its child with it", async () => {
    const holder = start(`exec ${baton} lock killed -- sh -c 'echo $$; sleep 600; true'`);
    const pid = Number(await firstWords(holder));
    holder.kill("SIGKILL");
    const gone = () => {
      try {
        // A zombie whose parent has not looked yet is dead as well.
        return / [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
      } catch {
        return true;
      }
    };
    await eventually(gone, { withinMs: 2000, what: "the child of a killed baton to be gone" });
  });

  test("a key pair for CURVE is made, and read again", async () => {
    const made = await shell(`${baton} pubsub keygen -q curve.key`);
    expect([made.code, made.stdout.length]).toEqual([0, 41]);
    expect(await shell(`${baton} pubsub keygen --public curve.key`)).toEqual({ ...made, stderr: "" });
    await shell("rm curve.key curve.key.pub");
  });

  test("a script holds a lock over its steps, and a pool works through a list", async () => {
    const hold = `held=$(${baton} hold steps --pid $$) || exit; eval "$held"; ${baton} check -q && echo held`;
    expect(await shell(hold)).toMatchObject({ code: 0, stdout: "held\n" });
    const pool = await shell(`${baton} pool smoke --items a,b,c -j 2 -- echo {}`);
    expect([pool.code, pool.stdout.trim().split("\n").toSorted()]).toEqual([0, ["a", "b", "c"]]);
  });

  test("a job of a crontab runs", async () => {
    // A killed call leaves its tick, which is due again.
    const killed = start(`exec ${baton} lock job --tick '* * * * *' --timezone UTC --catch-up 1h -- \
      sh -c 'echo started; exec sleep 600'`);
    await firstWords(killed);
    killed.kill("SIGKILL");
    await shell(`${baton} lock -w 40 job -- true`);
    const ran = join(folder, "ran"); // a job starts in the user's home
    const line = `* * * * * echo ran >>${ran}`;
    writeFileSync(join(folder, "cron"), `CRON_TZ=UTC\n#baton name=job catch-up=1h retry=1 retry-delay=0\n${line}\n`);
    const cron = start(`exec ${baton} cron cron --splay 0`);
    await eventually(() => existsSync(ran), { withinMs: 40_000, what: "the job to run" });
    await endByTerm(cron);
  });

  test("ui serves its page, and rows to who has the token of its link; metrics are counted", async () => {
    const ui = start(`exec ${baton} ui --listen 127.0.0.1:0`);
    const [, address, token] = /(http\S*?)\/?#token=([\w-]+)/.exec(await firstWords(ui)) ?? [];
    expect(await (await fetch(`${address}/`)).text()).toContain("<html");
    expect((await fetch(`${address}/series`)).status).toBe(401);
    const series = await fetch(`${address}/series`, { headers: { authorization: `Bearer ${token}` } });
    expect(await series.json()).toHaveProperty("activity");
    await endByTerm(ui);
    expect((await shell(`${baton} metrics`)).stdout).toContain("# TYPE baton_");
  });

  test("a message is published and received", async () => {
    const service = start(`exec ${baton} pubsub serve 2>&1`);
    await firstWords(service);
    await shell(`${baton} subscribe news --until-empty`);
    await shell(`${baton} publish news hello`);
    expect(await shell(`${baton} subscribe news --until-empty`)).toMatchObject({ code: 0, stdout: "hello\n" });
    await endByTerm(service);
  });

  test("stdin and open descriptors reach the child, baton's own do not", async () => {
    expect((await shell(`${baton} lock smoke -- cat`, "through")).stdout).toBe("through");
    writeFileSync(join(folder, "nine"), "nine");
    expect((await shell(`${baton} lock smoke -- cat /dev/fd/9 9<nine`)).stdout).toBe("nine");
    const direct = await shell(`ls /proc/self/fd 9<nine`);
    expect((await shell(`${baton} lock smoke -- ls /proc/self/fd 9<nine`)).stdout).toBe(direct.stdout);
  });
});
