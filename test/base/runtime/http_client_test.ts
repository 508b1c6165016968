/** A request and what becomes of it are the same wherever baton runs: compiled, under Bun, under Deno. */
import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { RawBackend, rawResponse } from "../../support/raw_backend.ts";
import { requireBinary, runtimes } from "../../support/runtimes.ts";

setDefaultTimeout(60_000);

const folder = mkdtempSync(join(tmpdir(), "baton-http-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const answers: Readonly<Record<string, string>> = {
  "/cut": rawResponse(503, "hi", ["Content-Length: 100"]),
  "/gzip": rawResponse(200, "plain", ["Content-Encoding: gzip"]),
  "/moved": rawResponse(308, "", ["Location: /a\\b?\xfc"]),
  "/999": rawResponse(999, "never"),
};

describe.each([...runtimes])("$name", ({ name, command: [executable = "", ...first] }) => {
  async function call(url: string): Promise<{ code: number | null; stdout: string }> {
    const words = ["retry-processor", "call", "--store", join(folder, name), "--url", url];
    const env = {
      PATH: process.env["PATH"],
      DENO_DIR: process.env["DENO_DIR"] ?? join(tmpdir(), "baton-deno-cache"),
      http_proxy: "http://127.0.0.1:9",
    };
    const child = spawn(executable, [...first, ...words], { env, stdio: ["pipe", "pipe", "inherit"] });
    let stdout = "";
    child.stdout.on("data", (chunk: Buffer) => stdout += chunk.toString());
    child.stdin.end("order");
    const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
    return { code, stdout };
  }

  test("a body that breaks, one that is not what its header says, a redirection, and an invalid status", async () => {
    requireBinary();
    await using backend = await new RawBackend((request) => {
      return { parts: [answers[request.split(" ")[1] ?? ""] ?? rawResponse(200, "there")] };
    }).up();
    const ends = [];
    for (const path of Object.keys(answers)) ends.push({ path, ...await call(`${backend.url}${path}`) });
    expect(ends).toEqual([
      { path: "/cut", code: 75, stdout: "" },
      { path: "/gzip", code: 0, stdout: "plain" },
      { path: "/moved", code: 0, stdout: "there" },
      { path: "/999", code: 65, stdout: "never" },
    ]);
    const requests = backend.received.map((one) =>
      one.replace(/[0-9a-f]{32}/, "KEY").replaceAll(backend.url.slice(7), "HOST")
    );
    const rest = "HTTP/1.1\r\nHost: HOST\r\nIdempotency-Key: KEY\r\n" +
      "User-Agent: baton\r\nContent-Length: 5\r\nConnection: close\r\n\r\norder";
    expect(requests).toEqual(
      ["/cut", "/gzip", "/moved", "/a\\b?%FC", "/999"].map((path) => `POST ${path} ${rest}`),
    );
  });
});
