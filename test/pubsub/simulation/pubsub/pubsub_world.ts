/**
 * Topic servers, proxies, publishers and subscribers at one keeper, all of them real, under faults; and a quiet end, in
 * which everything that was put is had. The judge of the fault campaigns (test/pubsub/fault/pubsub) judges the history.
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { decodeKeeperNode, type KeeperDatabaseRow } from "../../../../src/coordination/keeper/storage/keeper_rows.ts";
import { PubsubPath } from "../../../../src/pubsub/ownership/pubsub_path.ts";
import { parseTopicNode } from "../../../../src/pubsub/ownership/topic_nodes.ts";
import { verifyTopicStore } from "../../../../src/pubsub/store/sqlite/verify_topic_store.ts";
import type { ZooKeeperServerList } from "../../../../src/protocols/zookeeper/hosts.ts";
import { crewTopics, planCrew } from "../../fault/pubsub/crew_plan.ts";
import type { History, HistoryEvent } from "../../fault/pubsub/history.ts";
import { historyOf, HistoryRecorder } from "../../fault/pubsub/history_recorder.ts";
import { judge } from "../../fault/pubsub/judge.ts";
import { judgeLogs } from "../../fault/pubsub/log_history.ts";
import { applyFaults, faultInTime, type FaultTargets } from "../../../world/apply_faults.ts";
import { arrivalMs, type Fault } from "../../../world/fault_plan.ts";
import { keeperPort, keeperProgram } from "../../../coordination/simulation/lock/keeper_program.ts";
import type { RunOptions, RunOutcome, RunPlan, Simulation } from "../../../world/simulation.ts";
import { SimDisk } from "../../../world/sim_disk.ts";
import { SimNetwork } from "../../../world/sim_network.ts";
import { SimProcess } from "../../../world/sim_process.ts";
import { SimWorld } from "../../../world/sim_world.ts";
import { ClientDisk } from "./client_disk.ts";
import { answerTo, commitOf, drawPlan, names, type PubsubWorldOptions } from "./pubsub_plan.ts";
import { clientProgram, operatorProgram, proxyProgram, type PubsubSystem, serverProgram } from "./pubsub_programs.ts";
import { TopicDisk } from "./topic_disk.ts";

const keeperHost = "10.0.0.1";
const serverPort = 7001;
const proxyPort = 7000;
const wallStartMs = 1_800_000_000_000;
/** The longest time until everything that was put is had, when there are no faults, in milliseconds. */
const drainMs = 90_000;
/** A server that has found its disk full takes no writes for so long, in milliseconds. */
const fullMs = 1000;
/** How long clients work after everything is healed, in milliseconds. */
const healedMs = 2000;
const lookMs = 100;
/** The longest way of an answer from a server to a client, when only servers have faults, in milliseconds. */
const wayMs = 500;

async function run(plan: RunPlan, options: RunOptions = {}): Promise<RunOutcome> {
  const folder = makeFolder();
  try {
    return await new PubsubWorld(plan, folder, options).run();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A folder in memory, where there is one: nothing of it has to reach a disk. */
function makeFolder(): string {
  return mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "baton-simulation-"));
}

class PubsubWorld {
  readonly #plan: RunPlan;
  readonly #options: PubsubWorldOptions;
  readonly #folder: string;
  readonly #untilMs: number | undefined;
  readonly #world: SimWorld;
  readonly #system: PubsubSystem;
  readonly #keeperDisk: SimDisk;
  readonly #disks = new Map<string, TopicDisk>();
  readonly #processes = new Map<string, SimProcess>();
  readonly #events = new Map<string, HistoryEvent[]>();
  readonly #recorder: HistoryRecorder;
  /** The owner of each topic, as the keeper's disk has it. */
  readonly #owners = new Map<
    string,
    { readonly owner: string; readonly state: string; readonly incarnation: string }
  >();
  /** Contents that were given up: message ids up to `last`. */
  readonly #givenUp: {
    readonly topic: string;
    readonly last: number;
    readonly owner: string;
    readonly atMs: number;
  }[] = [];
  /** Called once by process, with the server that has answered a get. */
  readonly #atNextAnswer = new Map<string, (server: string) => void>();
  readonly #told = new Map<string, (how: { readonly handOff: boolean }) => void>();
  readonly #clients = { calm: new Set<string>(), published: new Set<string>(), drained: new Set<string>() };
  #phase: "work" | "end" | "drain" = "work";
  #isCalm = false;
  #isDone = false;
  #roles: readonly { readonly id: string; readonly role: string }[] = [];

  constructor(plan: RunPlan, folder: string, { log, untilMs }: RunOptions) {
    this.#plan = plan;
    this.#options = plan.options as unknown as PubsubWorldOptions;
    this.#folder = folder;
    this.#untilMs = untilMs;
    this.#world = new SimWorld({ seed: plan.seed, log });
    const servers: ZooKeeperServerList = {
      addresses: [{ kind: "tcp", host: keeperHost, port: keeperPort }],
      chroot: "",
    };
    this.#system = {
      network: new SimNetwork(this.#world),
      ...{ servers, path: new PubsubPath(), sessionTimeoutMs: this.#options.sessionTimeoutMs },
    };
    this.#keeperDisk = new SimDisk(this.#world, "keeper");
    this.#keeperDisk.onFlushed = (rows) => this.#nodesFlushed(rows);
    this.#recorder = this.#recorderOf("control");
  }

  async run(): Promise<RunOutcome> {
    const world = this.#world;
    this.#addProcesses();
    this.#applyFaults();
    for (const one of this.#processes.values()) world.after(world.chance.between(0, 50), () => one.start());
    const { quietMs } = this.#options;
    world.after(quietMs, () => this.#isCalm = true);
    // A request of a client's earlier life takes over its later one when it arrives.
    const { faults } = this.#plan;
    const wasFull = faults.some((fault) => fault.kind === "disk full" && fault.at + fault.forMs > quietMs - fullMs);
    world.after(Math.max(arrivalMs(faults, quietMs), wasFull ? quietMs + fullMs : 0), () => {
      this.#endWhenDone(quietMs + drainMs);
    });
    try {
      await world.run(this.#untilMs ?? this.#options.quietMs + drainMs + 1000);
    } finally {
      for (const one of this.#processes.values()) one.die("killed");
    }
    this.#judge();
    return world.outcome;
  }

  #applyFaults(): void {
    const world = this.#world;
    const targets: FaultTargets = {
      world,
      network: this.#system.network,
      diskOf: (process) => process.name === "keeper" ? this.#keeperDisk : this.#disks.get(process.name),
      target: (name) => this.#processes.get(name === "holder" ? this.#holder() : name),
    };
    const moments = world.chance.fork("moments in commits");
    const soon = (fault: Fault, names: readonly string[], afterMs: number) => {
      if (this.#isCalm) return;
      const leftMs = this.#options.quietMs - world.nowMs;
      applyFaults(names.flatMap((target) => faultInTime(fault, { target, afterMs, leftMs })), targets);
    };
    for (const fault of this.#plan.faults) {
      const [, aim, name = ""] = /^(commit of |answer to )(.*)$/.exec(fault.target) ?? [];
      if (aim === commitOf) {
        const call = (durationMs: number) => soon(fault, [name], moments.next() * durationMs);
        world.after(fault.at, () => this.#disks.get(name)?.atNextCommit(call));
      } else if (aim === answerTo) {
        // Later than what the client has noted at that time.
        const afterMs = 0.001 + moments.oneOf([0, 1, 20]) * moments.next();
        const call = (server: string) => soon(fault, [name, server], afterMs);
        world.after(fault.at, () => void this.#atNextAnswer.set(name, call));
      } else applyFaults([fault], targets);
    }
  }

  #addProcesses(): void {
    const { tickTimeMs, servers, proxies, flushMs, hasQuota, retainMessages } = {
      tickTimeMs: 100,
      ...this.#options,
    };
    const [world, system] = [this.#world, this.#system];
    this.#keeperDisk.flushMs = flushMs;
    this.#add(
      "keeper",
      keeperHost,
      keeperProgram({ host: keeperHost, tickTimeMs, disk: this.#keeperDisk, network: system.network }),
    );
    for (const [at, name] of names("s", servers).entries()) {
      const disk = new TopicDisk(world, name, join(this.#folder, name));
      disk.flushMs = flushMs;
      disk.hasQuota = hasQuota;
      this.#disks.set(name, disk);
      const host = `10.0.1.${at + 1}`;
      const whenTold = (process: SimProcess) =>
        new Promise<{ readonly handOff: boolean }>((resolve) =>
          this.#told.set(name, (how) => void process.schedule("network", 0, () => resolve(how)))
        );
      const store = retainMessages === 0 ? {} : { retainMessages };
      this.#add(name, host, serverProgram(system, { host, port: serverPort, disk, whenTold, store }));
    }
    const endpoints = names("p", proxies).map((name, at) => {
      const host = `10.0.2.${at + 1}`;
      const endpoint = `tcp://${host}:${proxyPort}`;
      this.#add(name, host, proxyProgram(system, endpoint));
      return endpoint;
    });
    this.#addClients(endpoints);
  }

  #addClients(proxies: readonly string[]): void {
    const { publishers, subscribers, workers, rate, topics: count, servers, operatorMs, seeks = 0 } = this.#options;
    const topics = crewTopics("").slice(0, count);
    const crew = planCrew(this.#plan.seed, { topics, publishers, subscribers, workers, rate });
    const { calm, published, drained } = this.#clients;
    for (const [at, planned] of crew.workers.entries()) {
      // With few topics a client would have one twice; at a low rate a large batch would be followed by a pause of
      // minutes.
      const clients = planned.map((client) => ({
        ...client,
        topics: [...new Set(client.topics)],
        seeks: client.role === "subscriber" ? seeks : 0,
        batch: Math.min(client.batch, Math.ceil(2 * client.rate) || client.batch),
      }));
      if (clients.length === 0) continue;
      const name = `w${at + 1}`;
      const disk = new ClientDisk(this.#world, {
        ...{ name, folder: join(this.#folder, name), losesStates: this.#options.losesStates === true },
        onLoss: (client, what) => this.#recorder.state(client, what),
      });
      const program = clientProgram(this.#system, {
        ...{ clients, proxies, disk },
        recorderOf: ({ life }) => this.#recorderOf(`${name}.${life}`, (event) => this.#answered(name, event)),
        phase: () => this.#phase,
        isCalm: () => this.#isCalm,
        calmed: (client) => void calm.add(client),
        published: (client) => void published.add(client),
        drained: (client) => void drained.add(client),
      });
      this.#add(name, `10.0.3.${at + 1}`, program);
    }
    const operator = operatorProgram(this.#system, {
      ...{ topics, servers: names("s", servers), everyMs: operatorMs, forgets: this.#options.forgets === true },
      isQuiet: () => this.#isCalm,
      leave: (server, handOff) => this.#told.get(server)?.({ handOff }),
    });
    this.#add("operator", "10.0.4.1", operator);
    this.#roles = crew.workers.flat();
  }

  #add(name: string, host: string, program: ConstructorParameters<typeof SimProcess>[2]): void {
    const clocks = this.#world.chance.fork(`clock ${name}`);
    const { clockSpread } = this.#options;
    const machine = this.#world.machine(host, {
      clockRate: 1 + clockSpread * clocks.oneOf([-1, 1, clocks.between(-1, 1)]),
      wallMs: wallStartMs + clocks.between(-5000, 5000),
    });
    this.#processes.set(name, new SimProcess(machine, name, program));
  }

  #answered(process: string, event: HistoryEvent): void {
    if (event.kind !== "return" || (event.result.got?.length ?? 0) === 0) return;
    const { by = "" } = event.result;
    const call = this.#atNextAnswer.get(process);
    this.#atNextAnswer.delete(process);
    call?.(by);
  }

  #recorderOf(name: string, onEvent: (event: HistoryEvent) => void = () => {}): HistoryRecorder {
    const events: HistoryEvent[] = [];
    this.#events.set(name, events);
    return new HistoryRecorder(() => this.#world.nowMs, (event) => {
      events.push(event);
      onEvent(event);
      this.#world.log(() => `${name}: ${JSON.stringify(event)}`);
    });
  }

  /** The server that is about to hand a topic over, or any that owns one. */
  #holder(): string {
    const all = [...this.#owners.values()];
    return (all.find(({ state }) => state === "moving" || state === "sealed") ?? all[0])?.owner ?? "";
  }

  #nodesFlushed(rows: readonly KeeperDatabaseRow[]): void {
    const prefix = `${this.#system.path.topics}/`;
    for (const row of rows) {
      if (row.body === null) continue;
      const { path, data, version } = decodeKeeperNode(row);
      if (data === null) continue;
      if (!path.startsWith(prefix) || path.slice(prefix.length).split("/").length !== 2) continue;
      const { topic, owner, epoch, state, incarnation, baseOffset } = parseTopicNode(data, path);
      const before = this.#owners.get(topic);
      this.#world.log(() => `topic "${topic}": ${state} at ${owner}, epoch ${epoch}, version ${version}`);
      if (before !== undefined && before.owner !== owner) this.#world.count("mark topic changed its owner");
      if (before !== undefined && before.incarnation !== incarnation) {
        this.#givenUp.push({ topic, last: baseOffset, owner: before.owner, atMs: this.#world.nowMs });
        this.#world.count("mark topic given up");
      }
      this.#owners.set(topic, { owner, state, incarnation });
      this.#recorder.node({ topic, owner, epoch, state, incarnation, version });
    }
  }

  /** Goes from one phase to the next as soon as all clients have done their part. */
  #endWhenDone(endMs: number): void {
    const world = this.#world;
    const { calm, published, drained } = this.#clients;
    const missing = (done: ReadonlySet<string>, role = "") =>
      this.#roles.filter(({ id, role: own }) => own.startsWith(role) && !done.has(id)).map(({ id }) => id);
    const steps: (() => string[])[] = [
      () => missing(calm),
      () => missing(published, "publisher"),
      () => missing(drained, "subscriber"),
    ];
    const after = [
      () => {
        this.#recorder.healed();
        world.log(() => "healed");
        world.after(healedMs, () => this.#phase = "end");
      },
      () => this.#phase = "drain",
      () => {
        for (const one of this.#processes.values()) one.die("killed");
      },
    ];
    const look = (): void => {
      const left = steps[0]?.() ?? [];
      if (left.length > 0 && world.nowMs >= endMs) {
        const what = ["drained", "published", "answered"][steps.length - 1];
        return world.fail(`never ${what}`, left.join(", "));
      }
      if (left.length === 0) {
        steps.shift();
        after.shift()?.();
      }
      if (steps.length > 0) world.after(lookMs, look);
      else this.#isDone = true;
    };
    look();
  }

  #judge(): void {
    const world = this.#world;
    if (world.failure !== null && !world.failure.kind.startsWith("never")) return;
    const retains = this.#options.retainMessages > 0;
    const history = historyOf(this.#events);
    this.#judgeGivenUp(history);
    const { violations, puts, redelivered, missed } = judge(history, undefined, {
      isDrained: this.#isDone,
      retains,
      keeps: this.#options.retainMessages,
    });
    world.count("mark put of unknown outcome", puts.unknown);
    world.count("mark message delivered again", redelivered);
    world.count("mark message given up by retention", missed);
    world.count("puts", puts.all);
    const [first] = violations;
    if (first !== undefined && (world.failure === null || first.invariant !== "after healing")) {
      world.failure = null;
      world.fail(first.invariant, `${first.count} times; ${first.first}`);
    }
    this.#judgeLogs(history);
    if (world.failure !== null || !this.#isDone) return;
    for (const [name, { folder }] of this.#disks) {
      for (const problem of verifyTopicStore(folder).problems) world.fail("store", `${name}: ${problem}`);
    }
  }

  /** A second judge. What was given up leaves gaps in logs. */
  #judgeLogs(history: History): void {
    if (this.#givenUp.length > 0) return;
    const { partitions, failures } = judgeLogs(history);
    for (const failure of failures) this.#world.fail("not linearizable", failure);
    this.#world.count("mark topic judged as a log", partitions.length);
  }

  /** Nobody stores a message in a content that was given up, and says so. */
  #judgeGivenUp({ operations }: History): void {
    if (this.#options.forgets !== true) return;
    for (const { topic, do: what, result: { outcome, ids = [], by = "" }, returnedAt } of operations) {
      if (what !== "put" || outcome !== "ok" || ids.length === 0) continue;
      const gone = this.#givenUp.find((one) => one.topic === topic && Math.max(...ids) <= one.last);
      if (gone === undefined || returnedAt <= gone.atMs + wayMs) continue;
      const stored = `${by} stored message ${ids[0]} of "${topic}", and answered by ${returnedAt.toFixed(1)} ms`;
      this.#world.fail(
        "one owner",
        `${stored}; the content of ${gone.owner} was given up at ${gone.atMs.toFixed(1)} ms`,
      );
    }
  }
}

export const pubsubSimulation: Simulation = {
  name: "pubsub",
  plan: drawPlan,
  run,
  marks: [
    ...["mark put of unknown outcome", "mark message delivered again"],
    ...["mark topic changed its owner", "mark move: moved", "mark server left", "mark message given up by retention"],
    ...["effect commit torn by a power cut", "effect commit kept by a power cut"],
    ...["effect commit not written by a killed process", "mark client state lost transactions"],
    ...[
      "mark two roles cut off from each other",
      "mark client state lost",
      "mark topic given up",
      "mark topic judged as a log",
    ],
  ],
  ...{ gateSeeds: 20, gateFrom: 5 },
};
