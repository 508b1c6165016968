import { afterEach, beforeEach, expect, test } from "bun:test";
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readFileSync } from "node:fs";
import { dial } from "../../../../src/base/sockets/dial.ts";
import { listen } from "../../../../src/base/sockets/listen.ts";
import { TlsFiles } from "../../../../src/base/sockets/tls_files.ts";
import { eventually } from "../../../support/eventually.ts";

const fixtures = join(import.meta.dir, "../../../fixtures/tls");
const pem = (name: string) => readFileSync(join(fixtures, name), "utf8");

let folder = "";
beforeEach(() => folder = mkdtempSync(join(tmpdir(), "baton-tls-files-")));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const names = () => ({
  ca: join(folder, "ca.pem"),
  cert: join(folder, "server.pem"),
  key: join(folder, "server_key.pem"),
});

/** Copies files of the fixtures, by default all three. */
function install(from: string, files = ["ca.pem", "server.pem", "server_key.pem"]): void {
  for (const file of files) {
    copyFileSync(join(fixtures, from, file), join(folder, file));
    chmodSync(join(folder, file), 0o600); // a private key must be, and git keeps no such mode
  }
}

test("files that were written again are read for the next connection", () => {
  install(".");
  const tls = new TlsFiles(names());
  expect(tls.current().ca).toBe(pem("ca.pem"));
  install("renewed");
  expect(tls.current()).toEqual({
    ca: pem("renewed/ca.pem"),
    cert: pem("renewed/server.pem"),
    key: pem("renewed/server_key.pem"),
  });
});

test("a folder behind a link that points elsewhere now is read again, as Kubernetes renews secrets", () => {
  for (const [place, from] of [["old", "."], ["new", "renewed"]] as const) {
    mkdirSync(join(folder, place));
    copyFileSync(join(fixtures, from, "ca.pem"), join(folder, place, "ca.pem"));
  }
  symlinkSync("old", join(folder, "data"));
  const tls = new TlsFiles({ ca: join(folder, "data/ca.pem") });
  symlinkSync("new", join(folder, "next"));
  renameSync(join(folder, "next"), join(folder, "data"));
  expect(tls.current().ca).toBe(pem("renewed/ca.pem"));
});

test.each([
  ["text that is no certificate", () => writeFileSync(join(folder, "server.pem"), "half of a fi"), "no certificate"],
  ["an empty file", () => writeFileSync(join(folder, "ca.pem"), ""), "no certificate"],
  ["a certificate whose key is still the old one", () => install("renewed", ["server.pem"]), "does not belong"],
  ["a file that is gone", () => rmSync(join(folder, "server_key.pem")), "Cannot read"],
])("while new files cannot be used, the ones before stay, with one warning: %s", (_, spoil, why) => {
  install(".");
  const warnings: string[] = [];
  const tls = new TlsFiles(names(), { warn: (text) => warnings.push(text) });
  const before = tls.current();
  spoil();
  expect(tls.current()).toBe(before);
  expect(tls.current()).toBe(before);
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toContain(why);
  install("renewed");
  expect(tls.current().cert).toBe(pem("renewed/server.pem"));
  expect(warnings).toHaveLength(1);
});

test("files that cannot be used at the start are an error", () => {
  install(".");
  install("renewed", ["server.pem"]);
  expect(() => new TlsFiles(names())).toThrow("does not belong");
});

test("a listener takes a renewed certificate into use, and connections that are open stay", async () => {
  install(".");
  const { ca: _clientsNeedNone, ...own } = names();
  const listener = await listen({ kind: "tcp", host: "127.0.0.1", port: 0 }, (connection) => ({
    onData: (chunk) => connection.write(chunk.slice()),
    onClosed() {},
  }), { tls: new TlsFiles(own) });
  try {
    const connectWith = (ca: string) => {
      const heard: string[] = [];
      return dial(listener.address, {
        onData: (chunk) => void heard.push(new TextDecoder().decode(chunk)),
        onClosed: () => void heard.push("closed"),
      }, { tls: { ca } }).then((connection) => ({ connection, heard }), () => null);
    };
    const open = await connectWith(pem("ca.pem"));
    expect(await connectWith(pem("renewed/ca.pem"))).toBeNull();
    install("renewed");
    const renewed = await eventually(() => connectWith(pem("renewed/ca.pem")), { what: "the renewed certificate" });
    expect(await connectWith(pem("ca.pem"))).toBeNull();
    open?.connection.write(new TextEncoder().encode("still here"));
    await eventually(() => open?.heard.join() === "still here", { what: "the response on the open connection" });
    open?.connection.destroy();
    renewed?.connection.destroy();
  } finally {
    await listener.close();
  }
});

test("a file that cannot be read is an error of its setting at the start; later the old files stay in use", () => {
  install(".");
  const warnings: string[] = [];
  const tls = new TlsFiles(names(), { warn: (text) => warnings.push(text) });
  rmSync(names().ca);
  symlinkSync("ca.pem", names().ca);
  expect(tls.current().ca).toBe(pem("ca.pem"));
  expect(tls.current().ca).toBe(pem("ca.pem"));
  expect(warnings).toEqual([expect.stringMatching(/keeps using the previous ones: .*too many symbolic links/)]);
  expect(() => new TlsFiles(names())).toThrow(expect.objectContaining({ code: "CONFIG" }));
});
