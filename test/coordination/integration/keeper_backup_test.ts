/** Copies of a keeper that is at work, and looks at it: each is of what the keeper was after one transaction. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startKeeper } from "../../../src/coordination/keeper/lifecycle/start_keeper.ts";
import { createFlag } from "../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { node } from "../conformance/zookeeper_fixture.ts";
import type { RunningBackend } from "../../support/backend.ts";
import { eventually } from "../../support/eventually.ts";
import { batonCommand, startKeeperProcess } from "../../support/keeper_server.ts";
import { RawClient } from "../../support/raw_client.ts";

setDefaultTimeout(60_000);

let root = "";
let keeper: RunningBackend;
beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), "baton-backup-"));
  keeper = await startKeeperProcess({}, { over: "unix" });
});
afterEach(async () => {
  await keeper.close();
  rmSync(root, { recursive: true, force: true });
});

/** `baton keeper backup FILE` or `verify`, beside whatever else is going on. */
function inspected(dataDir: string, ...action: string[]): Promise<{ code: number | null; stderr: string }> {
  const [program = "", ...words] = [...batonCommand(), "keeper", ...action, "--data-dir", dataDir];
  const child = spawn(program, words, { stdio: ["ignore", "ignore", "pipe"] });
  let stderr = "";
  child.stderr?.on("data", (chunk: Uint8Array) => stderr += chunk.toString());
  return new Promise((resolve) => child.on("close", (code) => resolve({ code, stderr })));
}

/** In a keeper started from a copy: what is below /box, and the number of the last transaction it knows of. */
async function contentOf(file: string, index: number): Promise<{ names: Set<string>; zxid: bigint }> {
  const dataDir = join(root, `copy-${index}`);
  mkdirSync(dataDir, { mode: 0o700 });
  renameSync(file, join(dataDir, "keeper.sqlite"));
  const address = { kind: "unix" as const, path: join(root, `${index}.sock`) };
  await using _ = await startKeeper({ dataDir, listen: [address], wallClock: () => 0 }); // which would raise the number
  const client = await RawClient.connect(address);
  const { value, zxid } = await client.call("getChildren", { path: "/box", watch: false });
  await client.drop();
  return { names: new Set(value?.children?.map(String)), zxid };
}

test("a copy made under load has everything up to one transaction; verify finds nothing wrong meanwhile", async () => {
  const [server] = keeper.nodes;
  if (server?.address.kind !== "unix") throw new Error("The keeper has no socket");
  const dataDir = join(server.address.path, "../data");
  const first = await RawClient.connect(server.address);
  await first.call("create", node("/box"));
  // Each makes a node and takes the one before it away: what is there tells which transactions are in a copy.
  const done: { zxid: bigint; made: string; gone: string | null }[] = [];
  let isOver = false;
  const writer = async (id: number): Promise<void> => {
    const client = await RawClient.connect(server.address);
    for (let index = 0; !isOver; index++) {
      const made = `w${id}-${index}`;
      const gone = index === 0 ? null : `w${id}-${index - 1}`;
      const { zxid, err } = await client.multi([
        { type: "create", ...node(`/box/${made}`, { data: new Uint8Array(500), flags: createFlag.ephemeral }) },
        ...gone === null ? [] : [{ type: "delete" as const, path: `/box/${gone}`, version: -1 }],
      ]);
      expect(err).toBe(0);
      done.push({ zxid, made, gone });
    }
    await client.drop();
  };
  const writers = Array.from({ length: 8 }, (_, id) => writer(id));
  const files = [1, 2, 3, 4].map((index) => join(root, `backup-${index}`));
  for (const file of files) {
    expect(await inspected(dataDir, "backup", file)).toEqual({ code: 0, stderr: "" });
    const before = done.length;
    await eventually(() => done.length > before + 2 * writers.length, { what: "writes between two copies" });
    for (let times = 0; times < 2; times++) expect(await inspected(dataDir, "verify")).toEqual({ code: 0, stderr: "" });
  }
  isOver = true;
  await Promise.all(writers);

  const zxids: bigint[] = [];
  for (const [index, file] of files.entries()) {
    const { names, zxid } = await contentOf(file, index);
    zxids.push(zxid);
    const expected = new Set<string>();
    for (const step of done.toSorted((a, b) => Number(a.zxid - b.zxid))) {
      if (step.zxid > zxid) break;
      expected.add(step.made);
      if (step.gone !== null) expected.delete(step.gone);
    }
    expect([...names].sort()).toEqual([...expected].sort());
  }
  expect(zxids).toEqual(zxids.toSorted((a, b) => Number(a - b)));
  expect(done.filter(({ zxid }) => zxid > (zxids[0] ?? 0n) && zxid < (zxids[3] ?? 0n)).length).toBeGreaterThan(20);
});
