import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { runCommandLine } from "../../../../../commands/command_line.ts";
import { fakeIo } from "../../../../support/fake_io.ts";
import { tlsFixture } from "../../../../support/tls_fixture.ts";

let folder = "";
const umask = process.umask(); // the command changes it
beforeAll(() => folder = mkdtempSync(join(tmpdir(), "baton-keeper-command-")));
afterAll(() => {
  process.umask(umask);
  rmSync(folder, { recursive: true });
});

async function keeper(...words: string[]): Promise<{ code: number; stderr: string; stdout: string }> {
  const io = fakeIo();
  const code = await runCommandLine(["keeper", ...words], io);
  return { code, stderr: io.stderr(), stdout: io.stdout() };
}

test("run by hand it keeps its data where the configuration file says, and verify looks there", async () => {
  const dir = join(folder, "named");
  const config = join(folder, "c.toml");
  writeFileSync(config, `keeper.dir = "${dir}"\n`);
  const ended = await keeper("--config", config, "--idle-exit", "1ms");
  expect(ended).toMatchObject({ code: 0, stderr: expect.stringContaining(`serves unix:${dir}/keeper.sock for `) });
  expect(existsSync(join(dir, "keeper.sqlite"))).toBe(true);
  expect((await keeper("verify", "--config", config)).stdout).toStartWith(`${dir} has no damage: `);
});

test("a certificate where nothing listens over TCP is a mistake", async () => {
  const words = ["--tls-cert", pem("server"), "--tls-key", tlsFixture("server_key", folder)];
  for (const listen of [[], ["--listen", `unix:${folder}/untouched.sock`]]) {
    const ended = await keeper("--data-dir", join(folder, "untouched"), ...listen, ...words);
    expect(ended).toMatchObject({ code: 64, stderr: expect.stringContaining("--tls-cert is for TCP") });
  }
});

const pem = (name: string) => join(import.meta.dir, `../../../../fixtures/tls/${name}.pem`);
test.each([
  [["--tls-cert", pem("server"), "--tls-key", pem("ca")], `--tls-key: ${pem("ca")} contains no private key`],
  [
    ["--tls-cert", pem("server_key"), "--tls-key", pem("server_key")],
    `--tls-cert: ${pem("server_key")} contains no certificate`,
  ],
  [["--tls-cert", pem("server")], "--tls-cert: a certificate and its private key must be given together"],
  [["--tls-ca", pem("ca")], "--tls-ca: a CA for client certificates needs TLS: add --tls-cert"],
])("before it takes its data it looks into its files: %p", async (words, message) => {
  const dataDir = join(folder, "untouched");
  const ended = await keeper("--data-dir", dataDir, "--listen", "127.0.0.1:0", ...words);
  expect(ended).toMatchObject({ code: 64, stderr: expect.stringContaining(`baton: ${message}`) });
  expect(existsSync(dataDir)).toBe(false);
});
