/**
 * Processors on several machines that share a message store in a database, submitters and an operator, under faults:
 * of the processes and the network, and of the database, whose statements are late, whose answers are lost, and whose
 * fail-overs undo what no standby has. Then a quiet end, in which every message comes to its end. All of them run the
 * real code, over a simulated database.
 */
import { type ConfigSources, resolveSettings } from "../../../../src/base/config/resolve_settings.ts";
import { connectionSettings } from "../../../../src/coordination/settings/coordination_settings.ts";
import { readStoreRules } from "../../../../src/retry/processor/retry_rules.ts";
import { retrySettings } from "../../../../src/retry/settings/retry_settings.ts";
import { applyFaults, faultInTime, type FaultTargets } from "../../../world/apply_faults.ts";
import { Chance } from "../../../world/chance.ts";
import { drawFaults } from "../../../world/fault_plan.ts";
import { SimNetwork } from "../../../world/sim_network.ts";
import { SimProcess, type SimProgram } from "../../../world/sim_process.ts";
import { SimWorld } from "../../../world/sim_world.ts";
import type { RunOptions, RunOutcome, RunPlan, Simulation } from "../../../world/simulation.ts";
import { backendHost, backendProgram } from "./backend_program.ts";
import { databaseOperator, databaseStore, databaseSubmitter, lettersSink } from "./database_programs.ts";
import { MessageLoad } from "./message_load.ts";
import { RetryOracle } from "./retry_oracle.ts";
import { processorProgram, type RetrySystem } from "./retry_programs.ts";
import { databaseHost, SimPostgres } from "./sim_postgres.ts";

interface DatabaseWorldOptions {
  readonly kind: "http" | "command";
  readonly processors: number;
  readonly submitEveryMs: number;
  readonly acceptRate: number;
  readonly operatorMs: number;
  /** Settings of the processors, as they are written on a command line. */
  readonly flags: readonly string[];
  readonly leaseMs: number;
  readonly failing: number;
  readonly flushMs: number;
  readonly lossRate: number;
  readonly quietMs: number;
  readonly messagesMax: number;
}

/** The longest time until every message is at its end, when there are no faults, in milliseconds. */
const drainMs = 500_000;
const lookMs = 500;
/** The target of a fault that comes while the next commit of the database is on its way to the standby. */
const commitOf = "commit of database";
const wallStartMs = 1_800_000_000_000;

const names = (letter: string, count: number) => Array.from({ length: count }, (_, at) => `${letter}${at + 1}`);

function drawOptions(chance: Chance): DatabaseWorldOptions {
  const leaseMs = chance.oneOf([2000, 4000, 10_000]);
  const order = chance.oneOf(["none", "key", "key", "fifo"]);
  const flags = [
    ...[`retryLease=${leaseMs}ms`, `retryMaxRetries=${chance.oneOf([0, 1, 2, 4])}`],
    ...[`retryInterval=${chance.oneOf(["100ms", "500ms", "2s"])}`, `retryOrder=${order}`],
    ...[`retryMaxCrashes=${chance.oneOf([1, 3, 3])}`, `retryConcurrency=${chance.oneOf([1, 2, 8])}`],
    ...[`retryAttemptTimeout=${chance.oneOf(["1s", "5s"])}`, `retryDrainTimeout=${chance.oneOf(["500ms", "10s"])}`],
    `retryDeadLetter=${chance.oneOf(["store", "drop", "exec:letters", "exec:letters"])}`,
  ];
  if (chance.is(0.3)) flags.push("retryJitter=full");
  if (chance.is(0.3)) flags.push("retryMaxMessages=30");
  return {
    kind: chance.oneOf(["http", "command"]),
    processors: chance.oneOf([1, 2, 2, 3]),
    submitEveryMs: chance.oneOf([500, 2000, 5000]),
    acceptRate: chance.oneOf([0, 1, 5]),
    operatorMs: chance.oneOf([1000, 3000, 10_000]),
    flags,
    leaseMs,
    failing: chance.oneOf([0, 0.3, 0.7]),
    flushMs: chance.oneOf([0.5, 5, 50]),
    lossRate: chance.oneOf([0, 0.01, 0.05, 0.2]),
    quietMs: chance.oneOf([15_000, 30_000, 60_000]),
    messagesMax: order === "fifo" ? 25 : 80,
  };
}

function drawPlan(seed: number): RunPlan {
  const chance = new Chance(seed).fork("plan");
  const options = drawOptions(chance);
  const processors = names("p", options.processors);
  const faults = drawFaults(chance.fork("faults"), {
    untilMs: options.quietMs,
    sessionTimeoutMs: options.leaseMs,
    clients: [...processors, ...processors, "submitter", "operator", "backend"],
    server: "database",
  });
  // The times of messages are those of the database's clock, whatever those of the machines are.
  const targets = chance.fork("aims");
  const aimed = faults.map((fault) =>
    fault.kind.startsWith("disk")
      ? { ...fault, target: "database" }
      : (fault.kind === "kill" || fault.kind === "lose") && targets.is(fault.target === "database" ? 0.7 : 0.3)
      ? { ...fault, target: commitOf }
      : fault.kind === "wall step" && fault.target === "database"
      ? { ...fault, target: "p1" }
      : fault
  );
  return { world: "retry-database", seed, options: { ...options }, faults: aimed };
}

class DatabaseWorld {
  readonly #plan: RunPlan;
  readonly #options: DatabaseWorldOptions;
  readonly #untilMs: number | undefined;
  readonly #world: SimWorld;
  readonly #network: SimNetwork;
  readonly #database: SimPostgres;
  readonly #oracle: RetryOracle;
  readonly #load: MessageLoad;
  readonly #system: RetrySystem;
  readonly #processes = new Map<string, SimProcess>();
  readonly #letters: string[] = [];
  #isQuiet = false;
  #isSubmitted = false;
  #isDone = false;

  constructor(plan: RunPlan, { log, untilMs }: RunOptions) {
    this.#plan = plan;
    this.#untilMs = untilMs;
    const options = this.#options = plan.options as unknown as DatabaseWorldOptions;
    const world = this.#world = new SimWorld({ seed: plan.seed, log });
    const network = this.#network = new SimNetwork(world);
    const { kind, failing, flushMs, lossRate } = options;
    const flags = new Map(options.flags.map((flag) => flag.split(/=(.*)/s).slice(0, 2) as [string, string]));
    const sources: ConfigSources = { flags, env: {}, files: [] };
    const values = resolveSettings({ ...retrySettings, ...connectionSettings }, sources);
    const rules = readStoreRules(values, sources);
    const isQuiet = () => this.#isQuiet;
    const load = this.#load = new MessageLoad(world, { kind, failing, isQuiet });
    const server: SimProcess = new SimProcess(
      this.#machine(databaseHost, 0),
      "database",
      (process) => this.#database.program(process),
    );
    this.#processes.set("database", server);
    const redriving = (id: string) => this.#oracle.touched(id, "redrive");
    const database = this.#database = new SimPostgres(server, { network, flushMs, lossRate, isQuiet, redriving });
    const openBeside = (seq: number, key: string | null) =>
      database.tables.where((row) => row.state < 2 && row.seq !== seq && (key === null || row.key?.toString() === key));
    this.#oracle = new RetryOracle(world, openBeside, {
      ...{ policy: rules.policy, maxCrashes: rules.maxCrashes, drops: rules.drops },
      ...{ order: values.retryOrder, kind, concurrency: values.retryConcurrency },
      database: {
        leaseMs: values.retryLease,
        isWritten: (seq, fence) => database.tables.messages.get(seq)?.ended.split(",").includes(String(fence)) === true,
      },
    });
    const chance = world.chance.fork("letters");
    const fails = () => !this.#isQuiet && chance.is(0.3);
    this.#system = {
      ...{ network, oracle: this.#oracle, kind, sources, rules, disk: null, served: null },
      store: databaseStore(database, (process) => lettersSink(process, { letters: this.#letters, fails })),
      act: (id, body) => load.commandAct(id, body),
      isWhole: load.isWhole,
      isQuiet,
      isEnough: () => this.#isQuiet || load.count >= options.messagesMax,
    };
  }

  async run(): Promise<RunOutcome> {
    const world = this.#world;
    const { quietMs } = this.#options;
    this.#addProcesses();
    const targets: FaultTargets = {
      world,
      network: this.#network,
      diskOf: ({ name }) => name === "database" ? this.#database : undefined,
      target: (name) => name === "holder" ? this.#oracle.holder() : this.#processes.get(name),
    };
    applyFaults(this.#plan.faults.filter(({ target }) => target !== commitOf), targets);
    const moments = world.chance.fork("moments in commits");
    for (const fault of this.#plan.faults.filter(({ target }) => target === commitOf)) {
      world.after(fault.at, () =>
        this.#database.atCommit((durationMs) => {
          const [afterMs, leftMs] = [moments.next() * durationMs, quietMs - world.nowMs];
          applyFaults(faultInTime(fault, { target: "database", afterMs, leftMs }), targets);
        }));
    }
    for (const one of this.#processes.values()) world.after(world.chance.between(0, 50), () => one.start());
    world.after(quietMs, () => {
      this.#isQuiet = true;
      this.#endWhenDone(quietMs + drainMs);
    });
    let isWhole = false;
    try {
      await world.run(this.#untilMs ?? quietMs + drainMs + 1000);
      isWhole = this.#isDone && world.failure === null;
    } finally {
      for (const one of this.#processes.values()) one.die("killed");
    }
    if (isWhole) this.#judge();
    return world.outcome;
  }

  #machine(host: string, spread = 0.005) {
    const clocks = this.#world.chance.fork(`clock ${host}`);
    return this.#world.machine(host, {
      clockRate: 1 + spread * clocks.oneOf([-1, 0, 1]),
      wallMs: wallStartMs + clocks.between(-5000, 5000),
    });
  }

  #addProcesses(): void {
    const { processors, submitEveryMs, acceptRate, operatorMs, kind } = this.#options;
    const system = this.#system;
    const database = this.#database;
    const newMessage = (chance: Chance) => this.#load.newMessage(chance);
    const add = (name: string, host: string, program: SimProgram) =>
      this.#processes.set(name, new SimProcess(this.#machine(host), name, program));
    for (const [at, name] of names("p", processors).entries()) {
      const program = processorProgram(system, {
        ...{ acceptRate, newMessage, address: null, until: "stopped", ended: () => {} },
        whenTold: () => new Promise(() => {}),
      });
      add(name, `10.0.0.${at + 1}`, program);
    }
    const ended = () => this.#isSubmitted = true;
    add("submitter", "10.0.4.1", databaseSubmitter(system, { database, everyMs: submitEveryMs, newMessage, ended }));
    add("operator", "10.0.4.2", databaseOperator(system, { database, everyMs: operatorMs }));
    const backend = backendProgram(this.#network, (request) => this.#load.backendAct(request));
    add("backend", backendHost, kind === "http" ? backend : async () => {});
  }

  #endWhenDone(endMs: number): void {
    const world = this.#world;
    const forwards = this.#system.rules.letters === "pending";
    const look = (): void => {
      const open = this.#database.tables.where(({ state, forwarding }) =>
        state < 2 || (state === 3 && forwarding >= (forwards ? 0 : 1) && forwarding < 3)
      );
      if (open.length === 0 && this.#isSubmitted) {
        this.#isDone = true;
        world.count("mark all messages at their ends");
        for (const one of this.#processes.values()) one.die("killed");
        return;
      }
      if (world.nowMs < endMs) return void world.after(lookMs, look);
      const described = open.slice(0, 8).map(({ seq, state, key, turn, owner, forwarding }) =>
        JSON.stringify({ seq, state, key: key?.toString(), turn, owner, forwarding })
      );
      world.fail("never at its end", `${open.length} messages, such as ${described.join(", ")}`);
    };
    look();
  }

  #judge(): void {
    const { tables } = this.#database;
    const { rules } = this.#system;
    const rows = tables.where(() => true);
    const nameOf = (seq: number) => `${tables.queue.key}-${seq}`;
    const owned = rows.filter(({ state, owner }) => state !== 1 && owner !== null);
    const told = new Set(this.#oracle.told);
    const copies = new Map<string, number>();
    for (const { seq, content } of rows) {
      const other = copies.get(content);
      const isTold = told.has(nameOf(seq)) || (other !== undefined && told.has(nameOf(other)));
      if (other !== undefined && isTold) this.#world.fail("stored twice", `${nameOf(other)} and ${nameOf(seq)}`);
      copies.set(content, seq);
    }
    this.#oracle.judge(rows, nameOf, {
      letters: rules.letters === "pending" ? this.#letters : null,
      isOnce: false,
      problems: owned.map(({ seq }) => `message ${seq} is not in flight, but a processor owns it`),
    });
  }
}

export const retryDatabaseSimulation: Simulation = {
  name: "retry-database",
  plan: drawPlan,
  run: (plan: RunPlan, options: RunOptions = {}) => new DatabaseWorld(plan, options).run(),
  marks: [
    ...["retry", "cancel", "redrive", "purge", "store paused"].map((name) => `mark ${name}`),
    ...["lost", "late", "unanswered", "refused"].map((fate) => `mark statement ${fate}`),
    ...["mark commit undone by a fail-over", "mark command failed", "mark dead letter forwarded"],
    ...["mark message refused", "mark message waits behind another one"],
    ...["exhausted", "final", "final in call", "crashed"].map((reason) => `mark ends dead (${reason})`),
    ...["reclaimed", "lease_lost", "store_busy", "dead_letter_failed"].map((event) => `mark event ${event}`),
  ],
  gateSeeds: 14,
};
