/**
 * docs/examples/container: what the services of compose.yaml run does what its comments say. An engine is not needed
 * for that.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { BatonSession } from "../../support/baton_session.ts";
import { eventually } from "../../support/eventually.ts";

setDefaultTimeout(60_000);

const folder = join(import.meta.dirname, "../../../docs/examples/container");

interface Service {
  readonly image: string;
  readonly command?: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly deploy?: { readonly replicas: number };
}
const { services } = Bun.YAML.parse(readFileSync(join(folder, "compose.yaml"), "utf8")) as {
  services: Record<string, Service>;
};

/** The command of a service as a shell's, for the container with this host name. */
function commandOf(name: string, host: string): string {
  const words = (services[name]?.command ?? []).map((word) =>
    `'${word.replaceAll("$$", "$").replaceAll("$(hostname)", host).replaceAll("'", `'\\''`)}'`
  );
  return `exec "$baton" ${words.join(" ")}`;
}

const hosts = ["one", "two", "three"];

test("the three workers share the list: each item is imported by one of them", async () => {
  await using session = new BatonSession({ BATON_SERVERS: "embedded" });
  const workers = hosts.map((host) => session.start(commandOf("worker", host)));
  const ended = await Promise.all(workers.map(({ ended }) => ended));
  expect(ended.map(({ code }) => code)).toEqual([0, 0, 0]);
  const items = ended.flatMap(({ stdout }) => stdout.trim().split("\n")).filter((line) => line !== "");
  expect(items.map((line) => line.replace(/^.* imports /, "")).sort()).toEqual(Array.from("123456789"));
});

test("one leader at a time; when it is killed, another one leads", async () => {
  await using session = new BatonSession({ BATON_SERVERS: "embedded" });
  const candidates = hosts.map((host) => session.start(commandOf("leader", host)));
  const leading = () => candidates.filter(({ stdout }) => stdout().includes("leads"));
  await eventually(() => leading().length === 1, { withinMs: 15_000 });
  leading()[0]?.child.kill("SIGKILL");
  await eventually(() => leading().length === 2, { withinMs: 30_000 });
});

test("every worker reaches the three servers of the ensemble, which know each other", () => {
  const servers = ["zk1", "zk2", "zk3"];
  for (const name of ["leader", "worker"]) {
    expect(services[name]).toMatchObject({
      image: "${BATON_IMAGE:-baton}",
      environment: { BATON_SERVERS: servers.map((server) => `${server}:2181`).join(",") },
      deploy: { replicas: 3 },
    });
  }
  for (const [index, server] of servers.entries()) {
    const environment = services[server]?.environment ?? {};
    expect(environment["ZOO_MY_ID"]).toEqual(expect.anything());
    expect(Number(environment["ZOO_MY_ID"])).toBe(index + 1);
    expect(environment["ZOO_SERVERS"]).toBe(
      servers.map((each, at) => `server.${at + 1}=${each}:2888:3888;2181`).join(" "),
    );
  }
});

test("the image has the archives of the musl binaries, by the names that scripts/release gives them", () => {
  const text = readFileSync(join(folder, "Dockerfile"), "utf8");
  expect(text.match(/^ADD .*$/gm)).toEqual([
    "ADD baton-*-linux-x64-musl.tar.gz /",
    "ADD baton-*-linux-arm64-musl.tar.gz /",
  ]);
});
