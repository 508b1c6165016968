/**
 * Bad clients at work on a keeper while somebody holds a lock on it: the lock stays held, the keeper stays small, and
 * others are served. `BATON_DOSE=full` goes through all of them with a lock's shortest session of two seconds, and
 * another's of one.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { setPriority } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { acquireLock, openSession } from "../../../src/library/baton.ts";
import { createFlag } from "../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { node as znode } from "../conformance/zookeeper_fixture.ts";
import type { RunningBackend } from "../../support/backend.ts";
import { dose, isFullDose } from "../../support/dose.ts";
import { eventually } from "../../support/eventually.ts";
import { attackNames } from "../../support/keeper_attack_names.ts";
import { startKeeperProcess } from "../../support/keeper_server.ts";
import { seededRandom, shuffled, testSeed } from "../../support/random.ts";
import { RawClient } from "../../support/raw_client.ts";

setDefaultTimeout(120_000);

const seed = testSeed();
/**
 * The shortest that a lock is held with, and a session with an ephemeral of its own. A busy machine of a gate may take
 * a second away from anybody.
 */
const lockTimeoutMs = dose({ gate: 4_000, full: 2_000 });
const sessionTimeoutMs = dose({ gate: 4_000, full: 1_000 });
const atWorkMs = dose({ gate: 1_500, full: 8_000 });
/** Its limits come to less together; what was given up is not given back to the system at once. */
const memoryMibMax = 1_200;

let keeper: RunningBackend;
let attacker: ChildProcess | null = null;
beforeEach(async () => {
  keeper = await startKeeperProcess({}, { over: "unix" });
});
afterEach(async () => {
  attacker?.kill("SIGKILL");
  attacker = null;
  await keeper.close();
});

function residentMib(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1] ?? NaN) / 1024;
}

/**
 * Resolves when it has begun. It has what is left of the processor: what it does to the keeper is to be seen, not that
 * it is there.
 */
async function attack(name: string, socketPath: string): Promise<void> {
  const program = join(import.meta.dirname, "../../support/keeper_attacks.ts");
  const child = attacker = spawn(process.execPath, [program, name, socketPath], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  setPriority(child.pid ?? 0, 19);
  let said = "";
  child.stdout?.on("data", (chunk: Uint8Array) => said += chunk.toString());
  await eventually(() => said.includes("at work") || child.exitCode !== null, { withinMs: 60_000 });
  expect(child.exitCode).toBe(null);
}

const chosen = isFullDose ? attackNames : shuffled(attackNames, seededRandom(seed)).slice(0, 4);
for (const name of chosen) {
  test.skipIf(process.platform !== "linux")(`a lock stays held beside ${name} [BATON_SEED=${seed}]`, async () => {
    const [node] = keeper.nodes;
    if (node === undefined || node.address.kind !== "unix") throw new Error("The keeper has no socket");
    await using session = openSession({ servers: keeper.servers, sessionTimeoutMs: lockTimeoutMs });
    const held = await acquireLock("held", { session });
    await attack(name, node.address.path);
    const other = await RawClient.connect(node.address, { timeoutMs: sessionTimeoutMs });
    await other.call("create", znode("/other", { flags: createFlag.ephemeral }));
    const endMs = performance.now() + atWorkMs;
    const pingsMs: number[] = [];
    let mostMib = 0;
    await eventually(async () => {
      const sentMs = performance.now();
      await other.ping();
      pingsMs.push(performance.now() - sentMs);
      mostMib = Math.max(mostMib, residentMib(node.pid));
      return performance.now() > endMs;
    }, { withinMs: atWorkMs + 60_000, everyMs: 20 });
    const slowestMs = Math.max(...pingsMs);
    console.log(
      `${name}: ${pingsMs.length} pings, the slowest ${slowestMs.toFixed(0)} ms; at most ${mostMib.toFixed(0)} MiB`,
    );
    expect(held.signal.aborted).toBe(false);
    expect(mostMib).toBeLessThan(memoryMibMax);
    expect((await other.call("exists", { path: "/other", watch: false })).err).toBe(0);
  });
}
