/**
 * A message store whose disk is full, fails, or loses what was not synced when its process is killed: what was said to
 * be stored is, and every command ends or goes on as docs/retry_semantics.md says. `BATON_DOSE=full` goes through every
 * step of the disk.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { verifyRetryStore } from "../../../src/retry/queue/sqlite/verify_retry_store.ts";
import { isFullDose } from "../../support/dose.ts";
import { eventually } from "../../support/eventually.ts";
import { batonCommand } from "../../support/keeper_server.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { seededRandom, testSeed } from "../../support/random.ts";
import { StorageFaults } from "../../support/storage_faults/storage_faults.ts";

setDefaultTimeout(600_000);

const seed = testSeed();

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A store on such a disk, and the processes that use it. */
class FaultyStore implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), "baton-retry-disk-"));
  readonly faults: StorageFaults;
  readonly path: string;

  constructor() {
    mkdirSync(join(this.folder, "disk"));
    this.faults = new StorageFaults(join(this.folder, "disk"));
    this.path = join(this.faults.under, "store");
  }

  /** `faulty`: its disk is the one that fails. */
  start(words: readonly string[], { input = "", faulty = true } = {}) {
    const [program = "", ...args] = [...batonCommand(), "retry-processor", ...words];
    const env = { ...process.env, BATON_RETRY_STORE: this.path, ...(faulty ? this.faults.env : {}) };
    const child: ChildProcess = spawn(program, args, { cwd: this.folder, env, stdio: "pipe" });
    let [stdout, stderr] = ["", ""];
    child.stdout?.on("data", (chunk: Buffer) => stdout += chunk.toString());
    child.stderr?.on("data", (chunk: Buffer) => stderr += chunk.toString());
    child.stdin?.on("error", () => {});
    child.stdin?.end(input);
    const ended = new Promise<Ended>((resolve) => child.once("close", (code) => resolve({ code, stdout, stderr })));
    return { child, ended, stderr: () => stderr };
  }

  run(words: readonly string[], options?: { readonly input?: string; readonly faulty?: boolean }): Promise<Ended> {
    return this.start(words, options).ended;
  }

  /** By id, as somebody with a good disk sees it. */
  async states(): Promise<Map<string, string>> {
    const { stdout } = await this.run(["ls", "--json", "--limit", "100000"], { faulty: false });
    const { messages } = JSON.parse(stdout) as { messages: { id: string; state: string }[] };
    return new Map(messages.map(({ id, state }) => [id, state]));
  }

  [Symbol.dispose](): void {
    this.faults[Symbol.dispose]();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

let backend: Server;
let url: string;
let isDown = false;
/** By Idempotency-Key, what was answered with 200. */
const delivered = new Map<string, number>();
beforeAll(async () => {
  backend = createServer((request, response) => {
    request.resume();
    const key = String(request.headers["idempotency-key"]);
    if (!isDown) delivered.set(key, (delivered.get(key) ?? 0) + 1);
    response.writeHead(isDown ? 503 : 200).end();
  });
  await new Promise<void>((resolve) => backend.listen(0, "127.0.0.1", () => resolve()));
  url = `http://127.0.0.1:${(backend.address() as AddressInfo).port}/`;
});
afterAll(() => {
  backend.closeAllConnections();
  backend.close();
});

describeWithPeer("cc", `a message store whose disk fails it [BATON_SEED=${seed}]`, () => {
  const random = seededRandom(seed);

  test("serve says NOT STORED on a full disk and goes on; on a failing one MAY BE STORED, and ends", async () => {
    using store = new FaultyStore();
    isDown = true;
    const serving = store.start(["serve", "--url", url, "--interval", "1h"]);
    const at = await eventually(() => /at (127\.0\.0\.1:\d+),/.exec(serving.stderr())?.[1], { withinMs: 20_000 });
    const post = async () => {
      const answer = await fetch(`http://${at}/`, { method: "POST", body: "order" });
      return { status: answer.status, id: answer.headers.get("baton-message-id"), text: await answer.text() };
    };
    const told: string[] = [];
    for (let round = 0; round < 3; round++) {
      const good = await post();
      expect([good.status, good.id === null]).toEqual([503, false]);
      told.push(good.id ?? "");
      store.faults.fail({ calls: ["write", "sync"], error: "ENOSPC", path: "-wal", isShort: round === 1, skip: round });
      const refused = await eventually(async () => {
        const answer = await post();
        if (answer.id !== null) told.push(answer.id);
        return answer.id === null ? answer : null;
      });
      expect(refused).toMatchObject({ status: 503, text: expect.stringContaining("NOT STORED") });
      store.faults.fail();
      const again = await eventually(async () => {
        const answer = await post();
        return answer.id === null ? null : answer;
      });
      told.push(again.id ?? "");
    }
    store.faults.fail({ calls: ["write", "sync"], error: "EIO", path: "-wal" });
    const broken = await post();
    expect([broken.id, broken.text]).toEqual([null, expect.stringContaining("MAY BE STORED")]);
    expect((await serving.ended).code).toBe(74);
    store.faults.fail();
    const states = await store.states();
    expect(told.filter((id) => states.get(id) !== "waiting")).toEqual([]);
    // What was refused is not there; of the one of EIO nobody knows.
    expect(states.size - told.length).toBeLessThanOrEqual(1);
    expect(verifyRetryStore(store.path).problems).toEqual([]);
  });

  test("run goes on when a full disk has room again, ends with 74 on a failing disk, and loses nothing", async () => {
    using store = new FaultyStore();
    isDown = false;
    const lines = Array.from({ length: 200 }, (_, at) => `message ${at}`).join("\n");
    expect((await store.run(["submit", "--lines"], { input: lines, faulty: false })).code).toBe(0);
    const words = ["run", "--url", url, "-j", "8", "--lease", "2s", "--interval", "10ms", "--max-crashes", "100"];
    store.faults.fail({ calls: ["write"], error: "ENOSPC", path: "-wal", skip: 10 });
    const first = store.start(words);
    await eventually(() => /disk .* is full/.test(first.stderr()), {
      withinMs: 20_000,
      what: "it to find the disk full",
    });
    store.faults.fail();
    await eventually(async () => [...(await store.states()).values()].filter((state) => state === "done").length > 50, {
      withinMs: 30_000,
    });
    first.child.kill("SIGTERM");
    expect((await first.ended).code).toBe(0);
    await store.run(["submit", "--lines"], { input: lines, faulty: false });
    store.faults.fail({ calls: ["sync"], error: "EIO", path: "-wal", skip: 5 });
    expect(await store.run(words)).toMatchObject({
      code: 74,
      stderr: expect.stringContaining("cannot be read or written"),
    });
    store.faults.fail();
    expect((await store.run([...words, "--until-empty"])).code).toBe(0);
    const states = await store.states();
    expect([states.size, [...states].filter(([id, state]) => state !== "done" || !delivered.has(id))]).toEqual([
      400,
      [],
    ]);
    expect(verifyRetryStore(store.path).problems).toEqual([]);
  });

  test("submit ends with 85 on a full disk and 74 on a failing one, without an id; call with 85 and 76", async () => {
    using store = new FaultyStore();
    expect((await store.run(["submit"], { input: "first" })).code).toBe(0);
    for (const [error, submitted, called, says] of [["ENOSPC", 85, 85, "NOT"], ["EIO", 74, 76, "MAY BE"]] as const) {
      store.faults.fail({ calls: ["write", "sync"], error, path: "-wal" });
      const { code, stdout } = await store.run(["submit"], { input: "second" });
      expect([error, code, stdout]).toEqual([error, submitted, ""]);
      const call = await store.run(["call", "--no-stdin", "--", "false"]);
      expect([error, call.code, call.stderr]).toEqual([error, called, expect.stringContaining(`; ${says} STORED: `)]);
    }
    store.faults.fail();
    expect((await store.run(["submit"], { input: "third" })).code).toBe(0);
    const states = await store.states();
    // Of an EIO nobody knows what is there.
    expect([2, 3, 4]).toContain(states.size);
    expect(verifyRetryStore(store.path).problems).toEqual([]);
  });

  test("after a kill at any step of the disk, each message that was confirmed is stored, and ends", async () => {
    using store = new FaultyStore();
    isDown = false;
    const told: string[] = [];
    let steps = 0;
    const stride = isFullDose ? 1 : 12;
    for (let step = 1 + Math.floor(random() * stride);; step += stride) {
      store.faults.killAt(step);
      const { stdout, code } = await store.run(["submit"], { input: `message ${step}` });
      if (stdout !== "") told.push(stdout.trim());
      store.faults.disarm();
      store.faults.losePower(random() < 0.5 ? undefined : random);
      if (code === 0) break;
      steps++;
    }
    for (let step = 1 + Math.floor(random() * stride); step < 150; step += stride) {
      await store.run(["submit", "--lines"], { input: "a\nb\nc", faulty: false });
      store.faults.killAt(step);
      const processing = store.start(["run", "--url", url, "--until-empty", "--lease", "2s", "--max-crashes", "1000"]);
      const { code } = await processing.ended;
      store.faults.disarm();
      store.faults.losePower(random() < 0.5 ? undefined : random);
      if (code === 0) break;
      steps++;
      expect(verifyRetryStore(store.path).problems).toEqual([]);
    }
    console.log(`killed at ${steps} steps`);
    expect(steps).toBeGreaterThan(4);
    const last = ["run", "--url", url, "--until-empty", "--lease", "2s", "--interval", "10ms"];
    expect((await store.run([...last, "--max-crashes", "1000"], { faulty: false })).code).toBe(0);
    const states = await store.states();
    expect(told.filter((id) => states.get(id) !== "done")).toEqual([]);
    expect([...states].filter(([id, state]) => state !== "done" || !delivered.has(id))).toEqual([]);
    expect(verifyRetryStore(store.path).problems).toEqual([]);
  });
});
