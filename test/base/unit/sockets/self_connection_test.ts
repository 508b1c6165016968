import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import { selfConnectionError } from "../../../../src/base/sockets/self_connection.ts";

const port = 40_000;

test("both ends of a connection to itself are the same, and of no other", () => {
  const address = { kind: "tcp", host: "localhost", port } as const;
  const own = "127.0.0.1";
  const ends = { localAddress: own, localPort: port, remoteAddress: own, remotePort: port };
  expect(selfConnectionError(ends, address)).toMatchObject({ code: "ECONNREFUSED" });
  expect(selfConnectionError({ ...ends, localPort: port + 1 }, address)).toBeNull();
  expect(selfConnectionError({ ...ends, remoteAddress: "127.0.0.2" }, address)).toBeNull();
  expect(selfConnectionError({}, { kind: "unix", path: "/a" })).toBeNull();
});

/** Not every kernel lets every user have one. */
const hasOwnNetwork = spawnSync("unshare", ["-rn", "ip", "link", "set", "lo", "up"]).status === 0;

test.skipIf(!hasOwnNetwork)("a dial of a port where nobody listens never ends at itself", () => {
  const prepare = `ip link set lo up; echo "${port} ${port + 3}" >/proc/sys/net/ipv4/ip_local_port_range; exec "$@"`;
  const program = [process.execPath, join(import.meta.dirname, "../../../support/self_dial_program.ts"), String(port)];
  const { stdout } = spawnSync("unshare", ["-rn", "sh", "-c", prepare, "sh", ...program], { encoding: "utf8" });
  const outcomes = stdout.trim().split("\n");
  expect(outcomes).toHaveLength(40);
  expect(outcomes).not.toContain("bun connected");
  expect(outcomes).not.toContain("node connected");
  // It has happened.
  expect(outcomes).toContain("bun ECONNREFUSED itself");
  expect(outcomes).toContain("node ECONNREFUSED itself");
}, 30_000);
