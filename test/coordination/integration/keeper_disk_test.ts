/** A disk that takes no more: nothing is acknowledged that is not stored, and what is stored goes on being served. */
import { afterEach, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ensureKeeper } from "../../../src/coordination/keeper/lifecycle/ensure_keeper.ts";
import { findKeeperLocation } from "../../../src/coordination/keeper/lifecycle/keeper_location.ts";
import { createFlag } from "../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { node } from "../conformance/zookeeper_fixture.ts";
import { eventually } from "../../support/eventually.ts";
import { fourLetterWord } from "../../support/four_letter_word.ts";
import { batonCommand } from "../../support/keeper_server.ts";
import { RawClient } from "../../support/raw_client.ts";
import { ServerProcess } from "../../support/server_process.ts";

let keeper: ServerProcess | null = null;
afterEach(async () => await keeper?.kill());

const hasPrlimit = spawnSync("prlimit", ["--version"]).status === 0;

/** A keeper whose files may not become larger than `blocks` of 512 bytes. */
async function startOnSmallDisk(blocks: number) {
  const folder = mkdtempSync(join(tmpdir(), "baton-disk-"));
  const address = { kind: "unix" as const, path: join(folder, "k.sock") };
  const words = ["keeper", "--data-dir", join(folder, "data"), "--listen", `unix:${address.path}`];
  const limited = `trap "" XFSZ; ulimit -S -f ${blocks}; exec "$@"`;
  const server = keeper = new ServerProcess(["/bin/sh", "-c", limited, "sh", ...batonCommand(), ...words], { folder });
  await eventually(async () => !server.alive || await fourLetterWord(address, "ruok") === "imok", { withinMs: 15_000 });
  return { server, address, close: () => rmSync(folder, { recursive: true, force: true }) };
}

test.skipIf(!hasPrlimit)(
  "a full disk: no false acknowledgement, sessions and reads go on, writes come back",
  async () => {
    const { server, address, close } = await startOnSmallDisk(600);
    const client = await RawClient.connect(address);
    await client.call("create", node("/held", { flags: createFlag.ephemeral }));
    const acknowledged: string[] = [];
    const fill = async () => {
      for (let index = 0;; index++) {
        const made = await client.call("create", node(`/full-${index}`, { data: new Uint8Array(10_000).fill(1) }));
        expect(made.err).toBe(0);
        acknowledged.push(`full-${index}`);
      }
    };
    await fill().catch(() => {});
    await client.closed;
    expect(server.output).toContain("writes are refused until the disk can store again");

    const { sessionId, passwd } = client.hello;
    const resume = () => RawClient.connect(address, { sessionId, passwd: passwd ?? new Uint8Array() });
    const reader = await eventually(resume);
    expect(reader.sessionId).toBe(sessionId);
    expect((await reader.ping()).err).toBe(0);
    expect((await reader.call("exists", { path: "/held", watch: false })).err).toBe(0);
    const children = (await reader.call("getChildren", { path: "/", watch: false })).value?.children ?? [];
    expect(acknowledged.filter((name) => !children.includes(name))).toEqual([]);

    spawnSync("prlimit", ["--pid", String(server.pid), "--fsize=unlimited:"]);
    const written = await eventually(async () => {
      const writer = await resume();
      return (await writer.call("create", node("/after"))).err === 0;
    }, { withinMs: 10_000 });
    expect(written).toBe(true);
    expect(server.output).toContain("can store again");
    close();
  },
  60_000,
);

test.skipIf(!hasPrlimit)("a disk that takes nothing at all: the keeper does not start, and says why", async () => {
  const { server, close } = await startOnSmallDisk(0);
  await server.exited;
  expect(server.output).toMatch(/cannot be read or written|Cannot/);
  close();
}, 30_000);

test("a keeper that could not even write down why it did not start is explained by its disk", async () => {
  const root = mkdtempSync(join(tmpdir(), "baton-disk-"));
  try {
    const place = findKeeperLocation({ BATON_KEEPER_DIR: join(root, "k") });
    await expect(ensureKeeper(place, { command: ["/bin/sh", "-c", "exit 74", "sh"] })).rejects.toThrow(
      `The keeper could not start (exit code 74): it wrote nothing to ${root}/k/keeper.log; is the disk full?`,
    );
  } finally {
    rmSync(root, { recursive: true });
  }
});
