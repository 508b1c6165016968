import { expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { describeWhoReachesSocket, describeWhoReachesSockets } from "../../../../src/base/sockets/socket_reach.ts";

const tcp = (host: string) => ({ kind: "tcp", host, port: 7 }) as const;
const own = process.geteuid?.() === 0 ? "root" : "this user";

test("loopback is for all users of the machine, every other address for other machines, too", () => {
  for (const host of ["localhost", "127.0.0.1", "127.1.2.3", "::1"]) {
    expect(describeWhoReachesSocket(tcp(host), true)).toBe("all users of this machine");
  }
  for (const host of ["0.0.0.0", "::", "10.0.0.1", "db1", "127.0.0.1.example.com", "fe80::1"]) {
    expect(describeWhoReachesSocket(tcp(host), true)).toBe("other machines, too");
    expect(describeWhoReachesSocket(tcp(host), false)).toBe("other machines, too, WITHOUT TLS OR KEYS");
  }
});

test("a path is for those who may write to the socket and search all folders above it", () => {
  const folder = mkdtempSync("/var/tmp/baton-reach-"); // the folder of the tests may be closed to others
  chmodSync(folder, 0o755);
  const path = join(folder, "inner", "socket");
  mkdirSync(join(folder, "inner"));
  writeFileSync(path, "");
  const reach = (folderMode: number, mode: number) => {
    chmodSync(join(folder, "inner"), folderMode);
    chmodSync(path, mode);
    return describeWhoReachesSocket({ kind: "unix", path }, false);
  };
  try {
    expect(reach(0o755, 0o666)).toBe("all users of this machine");
    expect(reach(0o755, 0o600)).toBe(`${own} only`);
    expect(reach(0o755, 0o660)).toBe(`${own} and its group`);
    expect(reach(0o700, 0o666)).toBe(`${own} only`);
    expect(reach(0o750, 0o666)).toBe(`${own} and its group`);
    expect(describeWhoReachesSocket({ kind: "unix", path: join(folder, "none") }, false)).toBe(`${own} only`);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("several addresses: one phrase if all are the same, otherwise one for each", () => {
  const here = [tcp("127.0.0.1"), tcp("::1")];
  expect(describeWhoReachesSockets(here, { isProtected: true })).toBe(
    "127.0.0.1:7, [::1]:7 for all users of this machine",
  );
  expect(describeWhoReachesSockets([tcp("::1"), tcp("0.0.0.0")], { isProtected: true })).toBe(
    "[::1]:7 for all users of this machine, 0.0.0.0:7 for other machines, too",
  );
});
