import { describe, expect, test } from "bun:test";
import { parseZooKeeperServers, ZooKeeperHosts } from "../../../../src/protocols/zookeeper/hosts.ts";
import type { ResolveHost } from "../../../../src/base/sockets/resolve_host.ts";
import { FakeClock } from "../../../support/fake_clock.ts";

const tcp = (host: string, port = 2181) => ({ kind: "tcp" as const, host, port });

describe("a list of servers", () => {
  test("has hosts, ports, IPv6 literals and one chroot at its end", () => {
    expect(parseZooKeeperServers("zk1:2182,zk2, [::1]:2183 ,[fe80::1%eth0]/app/x")).toEqual({
      addresses: [tcp("zk1", 2182), tcp("zk2"), tcp("::1", 2183), tcp("fe80::1%eth0")],
      chroot: "/app/x",
    });
    expect(parseZooKeeperServers("zk1/")).toEqual({ addresses: [tcp("zk1")], chroot: "" });
  });

  test("may be a unix socket, commas and all", () => {
    expect(parseZooKeeperServers("unix:/run/a,b.sock")).toEqual({
      addresses: [{ kind: "unix", path: "/run/a,b.sock" }],
      chroot: "",
    });
  });

  test.each([
    ["", "is not host:port"],
    ["zk1,,zk2", "is not host:port"],
    ["::1:2181", "in brackets"],
    ["zk1:0", "0 is not a port"],
    ["zk1:70000", "70000 is not a port"],
    ["zk1:port", "is not host:port"],
    ["unix:keeper.sock", "absolute path"],
    ["zk1/app/", "ends with a slash"],
    ["zk1/app,zk2/app", "write the chroot once"],
    ["zk1/a//b", "a name in it is empty"],
  ])("%p is none: %s", (text, why) => {
    expect(() => parseZooKeeperServers(text)).toThrow(
      expect.objectContaining({ code: "USAGE", message: expect.stringContaining(why) }),
    );
  });
});

describe("a round", () => {
  const signal = new AbortController().signal;
  const hostsOf = (text: string, resolve: ResolveHost, random?: () => number) => {
    const clock = new FakeClock();
    return {
      clock,
      hosts: new ZooKeeperHosts(parseZooKeeperServers(text), { resolve, clock, ...(random ? { random } : {}) }),
    };
  };
  const ips = async (hosts: ZooKeeperHosts) =>
    (await hosts.resolveServers(1000, signal)).endpoints.map(({ address }) =>
      address.kind === "tcp" ? address.host : ""
    );

  test("asks for the names again each time, and takes every address of a name", async () => {
    const answers = [["10.0.0.1", "10.0.0.2"], ["10.0.0.3"]];
    const { hosts } = hostsOf("zk", () => Promise.resolve(answers.shift() ?? []));
    expect((await ips(hosts)).sort()).toEqual(["10.0.0.1", "10.0.0.2"]);
    expect(await ips(hosts)).toEqual(["10.0.0.3"]);
  });

  test("does not look up what is an address already", async () => {
    const { hosts } = hostsOf("10.0.0.1,[::1]", () => Promise.reject(new Error("asked")));
    expect((await ips(hosts)).sort()).toEqual(["10.0.0.1", "::1"]);
  });

  test("uses the last answer while the resolver is silent, and names a host that has none", async () => {
    let answer: () => Promise<string[]> = () => Promise.resolve(["10.0.0.1"]);
    const { clock, hosts } = hostsOf("zk1", () => answer());
    await ips(hosts);
    answer = () => new Promise(() => {});
    const second = ips(hosts);
    await clock.advance(1000);
    expect(await second).toEqual(["10.0.0.1"]);

    const fresh = hostsOf("zk1:2182,10.0.0.9", () => new Promise(() => {}));
    const round = fresh.hosts.resolveServers(1000, signal);
    await fresh.clock.advance(1000);
    expect((await round).failures).toEqual([{ name: "zk1:2182", why: "its name could not be resolved within 1 s" }]);
    expect((await round).endpoints.length).toBe(1);
  });

  test("is shuffled: each server comes first about as often", async () => {
    const { hosts } = hostsOf("10.0.0.1,10.0.0.2,10.0.0.3", () => Promise.resolve([]));
    const first: Record<string, number> = {};
    for (let i = 0; i < 600; i++) {
      const [ip = ""] = await ips(hosts);
      first[ip] = (first[ip] ?? 0) + 1;
    }
    for (const count of Object.values(first)) expect(count).toBeGreaterThan(120);
    expect(Object.keys(first).length).toBe(3);
  });
});
