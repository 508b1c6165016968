/**
 * Statements for PostgreSQL have the same results and outcomes under Bun, compiled by Bun, and under Deno; and end when
 * they are done.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { promisify } from "node:util";
import { CertificateAuthority } from "../../support/certificate_authority.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { PostgresServer } from "../../support/postgres_server.ts";

setDefaultTimeout(60_000);
const execute = promisify(execFile);
const project = join(import.meta.dir, "../../..");
const program = join(project, "test/support/lane_program.ts");
const tool = (name: string) => join(project, "node_modules/.bin", name);

describeWithPeer("postgres", "statements for PostgreSQL", () => {
  let folder: string;
  let server: PostgresServer;
  let url: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "baton-lane-"));
    const authority = await CertificateAuthority.start(folder, "authority");
    const tls = await authority.issue("server", { names: "IP:127.0.0.1" });
    server = await PostgresServer.start({ tls, password: "geheim" });
    url = `${server.tcpUrl}?sslmode=verify-full&sslrootcert=${authority.ca}`;
  });
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  const compiled = async () => {
    const file = join(folder, "lane");
    const options = ["--compile", "--minify", "--bytecode", "--splitting", "--format=esm", program, "--outfile", file];
    await execute(tool("bun"), ["build", ...options], { cwd: folder });
    return [file];
  };
  test.each([
    ["Bun", () => Promise.resolve([tool("bun"), program])],
    ["compiled Bun", compiled],
    ["Deno", () => Promise.resolve([tool("deno"), "run", "-A", "--quiet", program])],
  ])("are the same under %s", async (_, commandOf) => {
    const [executable = "", ...args] = await commandOf();
    const env = {
      PATH: process.env["PATH"],
      PGPASSWORD: "geheim",
      DENO_DIR: process.env["DENO_DIR"] ?? join(tmpdir(), "baton-deno-cache"),
    };
    const { stdout, stderr } = await execute(executable, [...args, url], { env, cwd: folder, timeout: 30_000 });
    expect([JSON.parse(stdout), stderr]).toEqual([{
      isWhole: true,
      n: 128,
      tls: true,
      refused: "rolled_back 22012",
      ended: "unknown 57P01",
      late: "unknown null",
      word: "again",
    }, ""]);
  });
});
