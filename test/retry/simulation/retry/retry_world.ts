/**
 * Processors, submitters and an operator on one machine with a message store, and a service that messages are sent to,
 * under faults; and a quiet end, in which every message comes to its end. In a part of the seeds runs end by
 * themselves, or the processors serve clients. The processors and the store are the real ones.
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectionSettings } from "../../../../src/coordination/settings/coordination_settings.ts";
import { type ConfigSources, resolveSettings } from "../../../../src/base/config/resolve_settings.ts";
import { retrySettings } from "../../../../src/retry/settings/retry_settings.ts";
import { readStoreRules } from "../../../../src/retry/processor/retry_rules.ts";
import { RetryDatabase } from "../../../../src/retry/queue/sqlite/retry_database.ts";
import { verifyRetryStore } from "../../../../src/retry/queue/sqlite/verify_retry_store.ts";
import { applyFaults, faultInTime, type FaultTargets } from "../../../world/apply_faults.ts";
import { drawFaults, type Fault } from "../../../world/fault_plan.ts";
import type { RunOptions, RunOutcome, RunPlan, Simulation } from "../../../world/simulation.ts";
import type { SqlRow } from "../../../../src/base/storage/sql_row.ts";
import { Chance } from "../../../world/chance.ts";
import { SimNetwork } from "../../../world/sim_network.ts";
import { SimProcess, type SimProgram } from "../../../world/sim_process.ts";
import { SimWorld } from "../../../world/sim_world.ts";
import { backendHost, backendProgram } from "./backend_program.ts";
import type { Ending } from "./ending_run.ts";
import { httpClientProgram } from "./client_program.ts";
import { lettersIn } from "./letter_sinks.ts";
import { MessageLoad } from "./message_load.ts";
import { RetryDisk } from "./retry_disk.ts";
import { RetryOracle } from "./retry_oracle.ts";
import { ServeOracle } from "./serve_oracle.ts";
import {
  folderStore,
  type FolderSystem,
  operatorProgram,
  processorProgram,
  submitterProgram,
} from "./retry_programs.ts";

interface RetryWorldOptions {
  readonly kind: "http" | "command";
  readonly processors: number;
  readonly submitEveryMs: number;
  readonly acceptRate: number;
  readonly operatorMs: number;
  readonly endsProcessors: boolean;
  /** Settings of the processors, as they are written on a command line. */
  readonly flags: readonly string[];
  readonly leaseMs: number;
  readonly failing: number;
  readonly clockSpread: number;
  readonly flushMs: number;
  readonly hasQuota: boolean;
  readonly checkpointEvery: number;
  readonly quietMs: number;
  readonly messagesMax: number;
  /** How the runs of each processor end; a processor that is left out runs until it is told to stop. */
  readonly endings?: readonly ("stopped" | Ending)[];
  /** The processors serve clients that send requests so often. */
  readonly requestEveryMs?: number;
  /** Calls may have no --dead-letter, and may fail finally. Left out in older cases. */
  readonly callsDiffer?: boolean;
}

const storeHost = "10.0.0.1";
const clientHost = "10.0.4.1";
const servedAddress = (at: number) => ({ kind: "tcp", host: storeHost, port: 8280 + at }) as const;
const wallStartMs = 1_800_000_000_000;
/** The longest time until every message is at its end, when there are no faults, in milliseconds. */
const drainMs = { usual: 180_000, cron: 1_200_000, slow: 500_000 };
const lookMs = 500;
/** A fault with this target comes while the next commit of the process whose name follows is on its way. */
const commitOf = "commit of ";

const names = (letter: string, count: number) => Array.from({ length: count }, (_, at) => `${letter}${at + 1}`);

function drawOptions(chance: Chance): RetryWorldOptions {
  const leaseMs = chance.oneOf([2000, 4000, 10_000]);
  const flags = [`retryLease=${leaseMs}ms`, `retryMaxRetries=${chance.oneOf([0, 1, 2, 4])}`];
  const backoff = chance.oneOf(["fixed", "fixed", "linear", "exponential", "list"]);
  flags.push(`retryBackoff=${backoff}`, `retryInterval=${chance.oneOf(["100ms", "500ms", "2s"])}`);
  if (backoff === "list") flags.push("retryDelays=200ms,1s,3s");
  if (backoff !== "list" && chance.is(0.3)) flags.push(`retryJitter=${chance.oneOf(["full", "equal"])}`);
  if (chance.is(0.2)) flags.push("retryMaxDelay=1500ms");
  if (chance.is(0.15)) flags.push("retryMaxElapsed=20s");
  flags.push(`retryMaxCrashes=${chance.oneOf([1, 3, 3])}`, `retryConcurrency=${chance.oneOf([1, 2, 8])}`);
  flags.push(`retryOrder=${chance.oneOf(["none", "key", "key", "fifo"])}`);
  if (chance.is(0.2)) flags.push(`retryRate=${chance.oneOf(["5/s", "60/m"])}`);
  const hasCron = chance.is(0.06);
  if (hasCron) flags.push("retryCron=* * * * *");
  if (chance.is(0.2)) flags.push(`retryBatch=${hasCron ? 5 : chance.oneOf([1, 5])}`);
  chance.next(); // an option that no longer exists: known seeds keep their plans
  flags.push(
    `retryAttemptTimeout=${chance.oneOf(["1s", "5s"])}`,
    `retryDrainTimeout=${chance.oneOf(["500ms", "10s"])}`,
  );
  flags.push(`retryDeadLetter=${chance.oneOf(["store", "store", "drop", "file:LETTERS", "file:LETTERS"])}`);
  if (chance.is(0.3)) flags.push(`retryMaxMessages=${chance.oneOf([10, 30])}`);
  const isSlow = flags.some((flag) => /^retry(Order=fifo|Rate|Batch|Cron)/.test(flag));
  return {
    kind: chance.oneOf(["http", "command"]),
    processors: chance.oneOf([1, 2, 2, 3]),
    submitEveryMs: chance.oneOf([500, 2000, 5000]),
    acceptRate: chance.oneOf([0, 0, 1, 5]),
    operatorMs: chance.oneOf([500, 3000, 10_000]),
    endsProcessors: chance.is(0.4),
    flags,
    leaseMs,
    failing: chance.oneOf([0, 0.3, 0.7]),
    clockSpread: chance.oneOf([0, 0.005, 0.05]),
    flushMs: chance.oneOf([0.2, 2, 20]),
    hasQuota: chance.is(0.5),
    checkpointEvery: chance.oneOf([10, 50, 1000]),
    quietMs: chance.oneOf([15_000, 30_000, 60_000]),
    messagesMax: hasCron ? 15 : isSlow ? 30 : 150,
    callsDiffer: true,
  };
}

const commandLetters = "retryDeadLetter=exec:letters";

/** What a part of the seeds has in addition. */
function drawMore(drawn: RetryWorldOptions, chance: Chance): RetryWorldOptions {
  const isCommand = chance.fork("dead letters").is(0.4);
  const flags = drawn.flags.map((flag) => isCommand && flag === "retryDeadLetter=store" ? commandLetters : flag);
  const hasAge = flags.some((flag) => flag.startsWith("retryMaxElapsed"));
  if (chance.fork("age").is(0.12) && !hasAge) flags.push("retryMaxElapsed=6s");
  const options = { ...drawn, flags };
  const hasCron = options.flags.some((flag) => flag.startsWith("retryCron"));
  const endings: readonly Ending[] = ["tried", "empty"];
  const draw = chance.next();
  if (draw < 0.25 && !hasCron) {
    const others = names("p", options.processors - 1).map(() => chance.oneOf(["stopped", ...endings] as const));
    return { ...options, endings: [chance.oneOf(endings), ...others] };
  }
  if (draw < 0.5 && !hasCron) return { ...options, processors: chance.oneOf([2, 3, 4]) };
  if (draw < 0.75) {
    const flags = [...options.flags];
    if (chance.is(0.3)) flags.push("retryAnswerStored=202");
    if (chance.is(0.3)) flags.push(`retryMaxBackendRequests=${chance.oneOf([1, 3])}`);
    return { ...options, kind: "http", flags, acceptRate: 0, requestEveryMs: chance.oneOf([200, 1000, 3000]) };
  }
  return options;
}

function drawPlan(seed: number): RunPlan {
  const chance = new Chance(seed).fork("plan");
  const options = drawMore(drawOptions(chance), chance.fork("more"));
  const processors = names("p", options.processors);
  const faults = drawFaults(chance.fork("faults"), {
    untilMs: options.quietMs,
    sessionTimeoutMs: options.leaseMs,
    clients: [...processors, ...processors, "submitter", "operator"],
    server: "backend",
  });
  const targets = chance.fork("aims");
  const moved = faults.map((fault): Fault => {
    if (fault.kind.startsWith("disk") || (fault.kind === "wall step" && targets.is(0.8))) {
      return { ...fault, target: "p1" };
    }
    const isAimed = fault.kind === "kill" || fault.kind === "lose" || fault.kind === "stop";
    return isAimed && fault.target !== "backend" && targets.is(0.5)
      ? { ...fault, target: `${commitOf}${targets.oneOf([...processors, ...processors, "submitter", "operator"])}` }
      : fault;
  });
  return { world: "retry", seed, options: { ...options }, faults: moved };
}

async function run(plan: RunPlan, options: RunOptions = {}): Promise<RunOutcome> {
  const folder = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "baton-simulation-"));
  try {
    return await new RetryWorld(plan, folder, options).run();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

class RetryWorld {
  readonly #plan: RunPlan;
  readonly #options: RetryWorldOptions;
  readonly #untilMs: number | undefined;
  readonly #world: SimWorld;
  readonly #network: SimNetwork;
  readonly #disk: RetryDisk;
  readonly #oracle: RetryOracle;
  readonly #system: FolderSystem;
  readonly #letterPath: string;
  readonly #processes = new Map<string, SimProcess>();
  readonly #told = new Map<string, () => void>();
  readonly #load: MessageLoad;
  readonly #served: ServeOracle | null;
  #isQuiet = false;
  #isSubmitted = false;
  #isDone = false;
  /** Processors whose runs end by themselves, and whose last one has ended when all messages were at their ends. */
  readonly #endedEmpty = new Set<string>();

  constructor(plan: RunPlan, folder: string, { log, untilMs }: RunOptions) {
    this.#plan = plan;
    this.#untilMs = untilMs;
    const options = this.#options = plan.options as unknown as RetryWorldOptions;
    const world = this.#world = new SimWorld({ seed: plan.seed, log });
    this.#network = new SimNetwork(world);
    const { kind, failing } = options;
    const isQuiet = () => this.#isQuiet;
    const load = this.#load = new MessageLoad(world, { kind, failing, isQuiet });
    const letterPath = this.#letterPath = join(folder, "letters.jsonl");
    const written = options.flags.map((flag) => flag.replace("LETTERS", letterPath));
    const flags = new Map(written.map((flag) => flag.split(/=(.*)/s).slice(0, 2) as [string, string]));
    const sources: ConfigSources = { flags, env: {}, files: [] };
    const values = resolveSettings({ ...retrySettings, ...connectionSettings }, sources);
    const rules = readStoreRules(values, sources);
    this.#disk = new RetryDisk(world, join(folder, "store"), options);
    const openBeside = (seq: number, key: string | null) =>
      this.#disk.read(
        `SELECT seq, state FROM messages WHERE state < 2 AND seq <> ? ${
          key === null ? "" : "AND key = ?"
        } ORDER BY seq`,
        ...(key === null ? [seq] : [seq, key]),
      ) ?? [];
    this.#oracle = new RetryOracle(world, openBeside, {
      ...{ policy: rules.policy, maxCrashes: rules.maxCrashes, drops: rules.drops },
      ...{ order: values.retryOrder, kind: options.kind, concurrency: values.retryConcurrency },
    });
    this.#served = options.requestEveryMs === undefined ? null : new ServeOracle(world, this.#oracle);
    const letters = {
      ...{ disk: this.#disk, letterPath, letterLock: { owner: null } },
      ...{ letterRuns: this.#oracle.letterRuns, letterAct: () => load.letterAct() },
    };
    this.#system = {
      ...{ network: this.#network, disk: this.#disk, oracle: this.#oracle, kind: options.kind },
      ...{ sources, rules, store: folderStore(this.#disk, letters), served: this.#served },
      callsDiffer: options.callsDiffer === true,
      act: (id, body) => load.commandAct(id, body),
      isWhole: load.isWhole,
      isQuiet,
      isEnough: () => this.#isQuiet || load.count >= options.messagesMax,
    };
  }

  async run(): Promise<RunOutcome> {
    const world = this.#world;
    const { quietMs, flags } = this.#options;
    const hasCron = flags.some((flag) => flag.startsWith("retryCron"));
    // A dead letter whose command has failed often is tried again after five minutes; a run of a crontab may try one
    // message.
    const isSlow = flags.includes(commandLetters) || this.#options.endings !== undefined;
    const endMs = quietMs + (hasCron ? drainMs.cron : isSlow ? drainMs.slow : drainMs.usual);
    this.#addProcesses();
    this.#applyFaults();
    for (const one of this.#processes.values()) world.after(world.chance.between(0, 50), () => one.start());
    world.after(quietMs, () => {
      this.#isQuiet = true;
      this.#endWhenDone(endMs);
    });
    let isWhole = false;
    try {
      await world.run(this.#untilMs ?? endMs + 1000);
      isWhole = this.#isDone && world.failure === null;
    } finally {
      for (const one of this.#processes.values()) one.die("killed");
    }
    if (isWhole) this.#judge();
    return world.outcome;
  }

  #addProcesses(): void {
    const { processors, submitEveryMs, operatorMs, endsProcessors, acceptRate, kind } = this.#options;
    const { endings = [], requestEveryMs } = this.#options;
    const system = this.#system;
    const machine = this.#machine(storeHost);
    const add = (name: string, program: SimProgram, on = machine) => {
      this.#processes.set(name, new SimProcess(on, name, program));
    };
    const newMessage = (chance: Chance) => this.#load.newMessage(chance);
    for (const [at, name] of names("p", processors).entries()) {
      const until = endings[at] ?? "stopped";
      const whenTold = (process: SimProcess) =>
        new Promise<void>((resolve) => this.#told.set(name, () => void process.schedule("network", 0, resolve)));
      const ended = () => void (this.#isSubmitted && this.#open()?.length === 0 && this.#endedEmpty.add(name));
      const accepts = until === "stopped" ? acceptRate : 0;
      const address = this.#served === null ? null : servedAddress(at);
      const shared = { acceptRate: accepts, address, until, ended, whenTold, newMessage };
      add(name, processorProgram(system, shared));
    }
    if (requestEveryMs !== undefined && this.#served !== null) {
      const addresses = names("p", processors).map((_, at) => servedAddress(at));
      const { isEnough } = system;
      const shared = { network: this.#network, oracle: this.#served, everyMs: requestEveryMs, addresses };
      add("client", httpClientProgram({ ...shared, newMessage, isEnough }), this.#machine(clientHost));
    }
    add(
      "submitter",
      submitterProgram(system, { everyMs: submitEveryMs, newMessage, ended: () => this.#isSubmitted = true }),
    );
    const tell = endsProcessors ? (processor: string) => this.#told.get(processor)?.() : null;
    add("operator", operatorProgram(system, { everyMs: operatorMs, processors: names("p", processors), tell }));
    const backend = backendProgram(this.#network, (request) => {
      const act = this.#load.backendAct(request);
      this.#served?.arrived(request, act.response?.status ?? null);
      return act;
    });
    add("backend", kind === "http" ? backend : async () => {}, this.#machine(backendHost));
  }

  #machine(host: string) {
    const clocks = this.#world.chance.fork(`clock ${host}`);
    const { clockSpread } = this.#options;
    return this.#world.machine(host, {
      clockRate: 1 + clockSpread * clocks.oneOf([-1, 1, clocks.between(-1, 1)]),
      wallMs: wallStartMs + clocks.between(-5000, 5000),
    });
  }

  #target(name: string): SimProcess | undefined {
    return name === "holder" ? this.#oracle.holder() : this.#processes.get(name);
  }

  #applyFaults(): void {
    const world = this.#world;
    const targets: FaultTargets = {
      world,
      network: this.#network,
      diskOf: ({ machine: { name } }) => name === storeHost ? this.#disk : undefined,
      target: (name) => this.#target(name),
    };
    const isAimed = ({ target }: Fault) => target.startsWith(commitOf);
    applyFaults(this.#plan.faults.filter((fault) => !isAimed(fault)), targets);
    const moments = world.chance.fork("moments in commits");
    for (const fault of this.#plan.faults.filter(isAimed)) {
      const target = fault.target.slice(commitOf.length);
      world.after(fault.at, () =>
        this.#disk.atCommit(({ name }, durationMs) => {
          if (name !== target) return false;
          if (this.#isQuiet) return true;
          const [afterMs, leftMs] = [moments.next() * durationMs, this.#options.quietMs - world.nowMs];
          applyFaults(faultInTime(fault, { target, afterMs, leftMs }), targets);
          return true;
        }));
    }
  }

  /** Messages that are not at their ends; null: no process has the store open. */
  #open(): SqlRow[] | null {
    const pending = this.#system.rules.letters === "pending" ? "0, 1, 2" : "1, 2";
    return this.#disk.read(
      `SELECT * FROM messages WHERE state < 2 OR (state = 3 AND forwarding IN (${pending})) ORDER BY seq`,
    );
  }

  /** Ends the processors when every message is at its end, and each run has ended that ends by itself. */
  #endWhenDone(endMs: number): void {
    const world = this.#world;
    const { endings = [] } = this.#options;
    const ending = names("p", endings.length).filter((_, at) => endings[at] !== "stopped");
    const look = (): void => {
      const open = this.#open();
      if ((open?.length ?? 0) > 0) this.#endedEmpty.clear();
      const hasEnded = ending.every((name) => this.#endedEmpty.has(name));
      const isEmpty = open === null ? ending.length > 0 : open.length === 0;
      if (isEmpty && hasEnded && this.#isSubmitted && this.#disk.lockedMs() === 0) {
        this.#isDone = true;
        world.count("mark all messages at their ends");
        for (const one of this.#processes.values()) one.die("killed");
        return;
      }
      if (world.nowMs < endMs) return void world.after(lookMs, look);
      if (isEmpty && !hasEnded) return world.fail("run never ends", ending.join(", "));
      const wallMs = this.#processes.get("p1")?.machine.wallMs() ?? 0;
      const described = (open ?? []).slice(0, 8).map(({ seq, state, key, is_next, forwarding, next_ms }) =>
        JSON.stringify({ seq, state, key, is_next, forwarding, dueInMs: Number(next_ms) - wallMs })
      );
      world.fail("never at its end", `${open?.length} messages, such as ${described.join(", ")}`);
    };
    look();
  }

  #judge(): void {
    const { folder } = this.#disk;
    const problems = [...verifyRetryStore(folder).problems];
    using database = new RetryDatabase(folder, { mustExist: true });
    const rows = database.all("SELECT * FROM messages ORDER BY seq");
    const name = String(database.get("SELECT name FROM store")?.["name"]);
    const { rules } = this.#system;
    const isCommand = this.#options.flags.includes(commandLetters);
    this.#oracle.judge(rows, (seq) => `${name}-${seq}`, {
      letters: rules.letters !== "pending"
        ? null
        : isCommand
        ? this.#oracle.letterRuns.delivered
        : lettersIn(this.#letterPath, (sentence) => problems.push(sentence)),
      isOnce: !isCommand,
      problems,
    });
  }
}

export const retrySimulation: Simulation = {
  name: "retry",
  plan: drawPlan,
  run,
  marks: [
    ...["retry", "cancel", "redrive", "purge", "store paused", "processor told to stop"].map((name) => `mark ${name}`),
    ...["mark message refused", "mark message waits behind another one", "mark checkpoint"],
    ...["fails", "limits", "is busy", "loses", "hangs"].map((what) => `mark backend ${what}`),
    ...["exhausted", "final", "final in call", "crashed"].map((reason) => `mark ends dead (${reason})`),
    ...["mark event reclaimed", "mark event lease_lost", "mark event dead_letter_forwarded"],
    ...["effect commit torn by a power cut", "effect commit kept by a power cut"],
    ...["mark run --once ended", "mark run --until-empty ended"],
    ...["with an id", "without an id", "NOT STORED"].map((what) => `mark answer ${what}`),
    ...["mark request stored without a try", "mark request without an answer"],
    ...["mark command of a dead letter", "mark command of a dead letter failed"],
  ],
  ...{ gateSeeds: 14, gateFrom: 18 },
  traceSeeds: { from: 2, seeds: 2 },
};
