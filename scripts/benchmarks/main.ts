/** Runs the benchmarks by name and prints tables. Compare only figures of the same run, or ratios. */
import { parseArgs } from "node:util";
import { barrierMeetings } from "./barrier_meetings.ts";
import { curveCipher } from "./curve_cipher.ts";
import { electHandOver } from "./elect_hand_over.ts";
import { keeperSpeed } from "./keeper_speed.ts";
import { keeperSize } from "./keeper_size.ts";
import { lockCycles } from "./lock_cycles.ts";
import { lockHandOver } from "./lock_hand_over.ts";
import { lockUncontended } from "./lock_uncontended.ts";
import { holderMemory } from "./memory.ts";
import { machineLine, probeLine } from "./machine.ts";
import { operatorCommands } from "./operator_commands.ts";
import { poolThroughput } from "./pool_throughput.ts";
import { leftOutPeers, tryPeer } from "./peers.ts";
import { retrySpeed } from "./retry_speed.ts";
import { startContestants } from "./servers.ts";
import type { LockContestant } from "./contestant.ts";
import { pubsubSpeed } from "./pubsub_speed.ts";
import { serverScaling } from "./server_scaling.ts";
import { topicGrowth } from "./topic_growth.ts";
import { topicHandoff } from "./topic_handoff.ts";
import { topicTakeover } from "./topic_takeover.ts";
import { topicStore } from "./topic_store.ts";
import { uiCost } from "./ui_cost.ts";
import { zmtpSpeed } from "./zmtp_speed.ts";

const benchmarks: Record<string, (contestants: readonly LockContestant[], rounds: number) => Promise<string>> = {
  uncontended: (contestants, rounds) => lockUncontended(contestants, rounds * 5),
  memory: (contestants) => holderMemory(contestants),
  "hand-over-10": (contestants, rounds) => lockHandOver(contestants, 10, rounds),
  "hand-over-50": (contestants, rounds) => lockHandOver(contestants, 50, rounds),
  "hand-over-200": (contestants, rounds) => lockHandOver(contestants, 200, Math.min(rounds, 3)),
  elect: (contestants, rounds) => electHandOver(contestants, 10, rounds),
  barrier: (contestants, rounds) => barrierMeetings(contestants, { parties: 20, rounds }),
  cycles: (contestants, rounds) => lockCycles(contestants, { sessions: 50, rounds }),
  waiting: (contestants) => lockCycles(contestants, { sessions: 1000, rounds: 1 }),
  operator: (contestants, rounds) => operatorCommands(contestants, rounds * 3),
};

/** Benchmarks that start their own peers. They take minutes, and run only when they are named. */
const standalone: Record<string, (rounds: number) => Promise<string>> = {
  keeper: (rounds) => keeperSpeed(rounds),
  "keeper-size": (rounds) => keeperSize(rounds),
  pool: (rounds) => poolThroughput(rounds),
  pubsub: (rounds) => pubsubSpeed(rounds, "c"),
  "pubsub-clients": (rounds) => pubsubSpeed(rounds, "npm"),
  "pubsub-databases": (rounds) => pubsubSpeed(rounds, "stores"),
  "pubsub-servers": (rounds) => serverScaling(rounds),
  "pubsub-growth": (rounds) => topicGrowth(rounds),
  "pubsub-takeover": (rounds) => topicTakeover(rounds),
  "pubsub-handoff": (rounds) => topicHandoff(rounds),
  "pubsub-store": (rounds) => topicStore(rounds),
  retry: (rounds) => retrySpeed(rounds),
  ui: () => uiCost(),
  zmtp: (rounds) => zmtpSpeed({ rounds, mechanism: "NULL" }),
  "curve-cipher": (rounds) => curveCipher(rounds),
  "zmtp-curve": (rounds) => zmtpSpeed({ rounds, mechanism: "CURVE" }),
};

/** How long one benchmark may take, in milliseconds. */
const benchmarkMsMax = 3_600_000;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: "string", default: "9" }, help: { type: "boolean", short: "h" } },
});
const rounds = Number(values.rounds);
const names = positionals.length > 0 ? positionals : Object.keys(benchmarks);
const unknown = names.filter((name) => benchmarks[name] === undefined && standalone[name] === undefined);
if (values.help || unknown.length > 0 || !Number.isInteger(rounds) || rounds < 1) {
  console.error(
    `Usage: sh scripts/bench [--rounds N] [NAME…]\nNames: ${
      Object.keys(benchmarks).join(", ")
    }; and, only when named: ${Object.keys(standalone).join(", ")}`,
  );
  process.exit(values.help ? 0 : 64);
}

console.log(machineLine());
const running = await startContestants(names.some((name) => benchmarks[name] !== undefined));
for (const name of names) {
  console.log(`\n${await probeLine()}`);
  const run = async () => await (benchmarks[name]?.(running.contestants, rounds) ?? standalone[name]?.(rounds));
  console.log(await tryPeer(`the benchmark ${name}`, `${rounds} rounds`, run, benchmarkMsMax) ?? `${name}: no figures`);
}
console.log("\nNot measured: several machines, disks slower than this one, TLS.");
const failed = leftOutPeers();
if (failed.length > 0) console.log(`Not measured, because it did not respond or failed: ${failed.join("; ")}`);
// Whatever an unresponsive peer has left open must not keep the process alive.
await running[Symbol.asyncDispose]();
process.exit(failed.length === 0 ? 0 : 1);
