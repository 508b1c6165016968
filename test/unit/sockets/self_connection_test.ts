import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import process from "node:process";
import { describeWithPeer } from "../../support/peers.ts";

describeWithPeer("network", "a port of the kernel's own range, where nobody listens", () => {
  test("a dial that has reached itself is refused", () => {
    const port = 40_000;
    const prepare = `ip link set lo up; echo "${port} ${port + 3}" >/proc/sys/net/ipv4/ip_local_port_range; exec "$@"`;
    const program = [process.execPath, join(import.meta.dirname, "../../support/self_dial_program.ts"), String(port)];
    const { stdout } = spawnSync("unshare", ["-rn", "sh", "-c", prepare, "sh", ...program], { encoding: "utf8" });
    const outcomes = stdout.trim().split("\n");
    expect(outcomes).toHaveLength(40);
    expect(outcomes).not.toContain("bun connected");
    expect(outcomes).not.toContain("node connected");
    // It has happened.
    expect(outcomes).toContain("bun ECONNREFUSED itself");
    expect(outcomes).toContain("node ECONNREFUSED itself");
  }, 30_000);
});
