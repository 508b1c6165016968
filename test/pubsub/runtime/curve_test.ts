/** CURVE under Bun, under Deno and compiled: what depends on a runtime's cryptography. */
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

setDefaultTimeout(60_000);

const project = join(import.meta.dirname, "../../..");
const fixtures = join(project, "test/fixtures/curve");
const program = join(fixtures, "handshake.ts");
const tool = (name: string) => join(project, "node_modules/.bin", name);

const folder = mkdtempSync(join(tmpdir(), "baton-curve-"));
afterAll(() => rmSync(folder, { recursive: true }));

async function run(...command: readonly string[]): Promise<string> {
  const child = Bun.spawn([...command], { stdout: "pipe", stderr: "pipe", cwd: folder });
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  expect([code, err]).toEqual([0, ""]);
  return out;
}

const recordings = ["libzmq_server.hex", "libzmq_client.hex"].map((name) => join(fixtures, name));

/** As baton is compiled: scripts/compile.sh. */
async function compiled(): Promise<string> {
  const binary = join(folder, "handshake");
  const options = ["--compile", "--minify", "--bytecode", "--format=esm", program, "--outfile", binary];
  const child = Bun.spawn([tool("bun"), "build", ...options], { stdout: "ignore", stderr: "pipe", cwd: folder });
  const err = await child.stderr.text();
  expect([await child.exited, err]).toEqual([0, expect.not.stringContaining("error")]);
  return binary;
}

test("a handshake, its messages and libzmq's recordings are the same in every runtime", async () => {
  const bun = await run(tool("bun"), program, ...recordings);
  expect(JSON.parse(bun)).toMatchObject({
    random: "ZmtpError: The peer's HELLO cannot be opened: it expects another server key than this one",
    heard: [
      ["ready ROUTER  ", "message heard 5 5 0 300", "message again 5"],
      [expect.stringContaining("ready DEALER libzmq "), "message hello 5 0 300"],
    ],
    lowOrder: [null, null],
  });
  expect(await run(tool("deno"), "run", "-A", "--quiet", program, ...recordings)).toBe(bun);
  expect(await run(await compiled(), ...recordings)).toBe(bun);
});
