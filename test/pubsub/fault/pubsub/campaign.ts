/**
 * One campaign: a service, its clients, a load, faults from a seed; then everything is healed, what was put is had by
 * all, and the history is judged. Owns the folder of all that, which goes when nothing was wrong.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { errorMessage } from "../../../../src/base/errors.ts";
import { verifyTopicStore } from "../../../../src/pubsub/store/sqlite/verify_topic_store.ts";
import { newGuid } from "../../../../src/base/support/guid.ts";
import { systemClock } from "../../../../src/base/support/clock.ts";
import { rejectOnAbort } from "../../../../src/base/support/abort.ts";
import { deadlineAfter, sleep } from "../../../../src/base/support/deadline.ts";
import { verdictLine } from "../../../checker/verdict_line.ts";
import type { Backend } from "../../../support/backends.ts";
import { eventually } from "../../../support/eventually.ts";
import { PostgresPair, type Replication } from "../../../support/postgres_pair.ts";
import { ProxyClient } from "../../../support/proxy_client.ts";
import { seededRandom, shuffled } from "../../../support/random.ts";
import { connectToZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../../src/protocols/zookeeper/hosts.ts";
import { postgresTopicTables } from "../../../../src/pubsub/store/postgres/postgres_tables.ts";
import { parseDatabaseUrl } from "../../../../src/base/postgres/database_address.ts";
import { migrateDatabase } from "../../../../src/base/postgres/database_schema.ts";
import { moveTopic } from "../../../../src/pubsub/admin/move_topics.ts";
import { ContentTap } from "./content_tap.ts";
import { CliCrew } from "./cli_crew.ts";
import { crewTopics, planCrew } from "./crew_plan.ts";
import { databaseFaults } from "./database_menu.ts";
import { type PubsubFault, pubsubFaults, reviveEnsemble } from "./faults.ts";
import type { NamedLoss, Sample } from "./history.ts";
import { HistoryWriter, readHistory } from "./history_file.ts";
import { grownBeyond, judge, type Verdict } from "./judge.ts";
import { judgeLogs } from "./log_history.ts";
import { NodeWatch } from "./node_watch.ts";
import type { Retention } from "./retention.ts";
import { Service } from "./service.ts";
import { StateFolders } from "./state_folders.ts";
import { storageFaults } from "./storage_menu.ts";
import { StorageFaults } from "../../../support/storage_faults/storage_faults.ts";
import { type TakeOver, takeOverMsMax, takeOvers } from "./take_overs.ts";
import { Worker } from "./worker.ts";
import type { World } from "./world.ts";

export interface DatabasePlan {
  /** What a fail-over loses, if not nothing, has to be named by the servers. */
  readonly replication: Replication;
  /** It has a small disk, which is full now and then; needs root. */
  readonly isOnSmallDisk: boolean;
  /** One server has a data directory: topics move from it into the database and back. */
  readonly isMixed?: boolean;
  /** A short dose: without faults that are slow, and nobody measures how soon topics are served again. */
  readonly isShort?: boolean;
}

export interface CampaignOptions {
  readonly backend: Backend;
  readonly seed: number;
  /** At least so many messages are put, and at least so many faults happen. */
  readonly messages: number;
  readonly faults: number;
  /** Messages a second that publishers try to put. */
  readonly rate: number;
  /** Faults at a time. */
  readonly lanes: number;
  readonly sessionTimeoutMs: number;
  readonly publishers: number;
  readonly subscribers: number;
  readonly workers: number;
  /** Faults of the disks below servers, too. */
  readonly hasStorageFaults: boolean;
  /** Servers share a database that is disturbed; left out: each has a data directory. */
  readonly database?: DatabasePlan;
  /** Servers give messages up; null: none. */
  readonly retention?: Retention | null;
  /** Only faults whose name has it. */
  readonly only?: string;
  readonly keepFolder?: boolean;
  readonly say: (line: string) => void;
}

export interface CampaignResult {
  readonly verdict: Verdict;
  /** What went wrong beside it. */
  readonly failures: readonly string[];
  /** How often each fault happened. */
  readonly faults: ReadonlyMap<string, number>;
  /** How soon topics of servers that died were served again; of a database alone. */
  readonly takeOvers: readonly TakeOver[];
  readonly seconds: number;
  /** Where the history is; null when it was removed. */
  readonly folder: string | null;
}

/** Of the disk of a database: its log, and what a campaign puts. */
const diskMebibytes = 512;
const patienceMs = 180_000;
const reportMs = 10_000;
/** Work goes on for so long after all is healed. */
const healedMs = 1500;
const breathMs = 50;
const faultMsMax = 150_000;
/**
 * So long roles may rest before what they hold is looked at for the last time: the collector comes in its own time (up
 * to 10 s were measured after 300 MiB), and rows that were read are deleted bit by bit, when nothing else is to be
 * done.
 */
const restMsMax = 60_000;
const restLookMs = 1000;

export async function runPubsubCampaign(options: CampaignOptions): Promise<CampaignResult> {
  const beganMs = performance.now();
  const folder = mkdtempSync(join(tmpdir(), "baton-pubsub-fault-"));
  const campaign = new Campaign(folder, options);
  const failures: string[] = [];
  try {
    await campaign.run();
  } catch (thrown) {
    failures.push(errorMessage(thrown));
  } finally {
    await campaign.close();
  }
  failures.push(...campaign.failures);
  const { isDrained } = campaign;
  const { retention = null } = options;
  const mayLose = options.database?.replication === "asynchronous";
  const retains = retention === null ? {} : { retains: true, expiresAfterMs: retention.expiresAfterMs };
  const history = readHistory(join(folder, "history"));
  const verdict = judge(history, undefined, { isDrained, mayLose, ...retains });
  const logs = judgeLogs(history);
  options.say(`as logs: ${verdictLine(logs)}`);
  failures.push(...logs.failures);
  if (retention !== null && verdict.missed === 0) failures.push("nothing was given up before it was had");
  const isGood = failures.length === 0 && verdict.violations.length === 0;
  if (isGood && options.keepFolder !== true) rmSync(folder, { recursive: true, force: true });
  const seconds = (performance.now() - beganMs) / 1000;
  return {
    verdict,
    failures,
    faults: campaign.faults,
    takeOvers: campaign.takeOvers,
    seconds,
    folder: isGood ? null : folder,
  };
}

class Campaign {
  readonly failures: string[] = [];
  readonly faults = new Map<string, number>();
  takeOvers: readonly TakeOver[] = [];
  /** Everybody has had all. */
  isDrained = false;
  readonly #folder: string;
  readonly #options: CampaignOptions;
  readonly #ends: (() => Promise<unknown>)[] = [];

  constructor(folder: string, options: CampaignOptions) {
    this.#folder = folder;
    this.#options = options;
  }

  async run(): Promise<void> {
    const { backend: kind, seed, sessionTimeoutMs, say, retention = null } = this.#options;
    const hasStorageFaults = this.#options.hasStorageFaults && this.#options.database === undefined;
    const folder = (name: string) => {
      const path = join(this.#folder, name);
      mkdirSync(path);
      return path;
    };
    const history = folder("history");
    const random = seededRandom(seed);
    const backend = await kind.start();
    this.#ends.push(() => backend.close());
    const control = new HistoryWriter(join(history, "control.jsonl"));
    this.#ends.push(() => Promise.resolve(control[Symbol.dispose]()));
    const database = await this.#startDatabase();
    const service = await Service.start({
      ...{ database, folder: folder("service"), backend, random, sessionTimeoutMs },
      isMixed: this.#options.database?.isMixed === true,
      ...{ servers: 3, proxies: 3, hasStorageFaults, serverWords: retention?.words ?? [] },
    });
    this.#ends.push(() => service[Symbol.asyncDispose]());
    // Somebody else's clients on this machine may find one of our ports where theirs was.
    const mark = newGuid().slice(0, 6);
    const crewed = crewTopics(mark);
    const topicOfCli = `cli ${mark}`;
    const plainTopic = `plain ${mark}`;
    // What those clients are told of messages that are gone is not in the history.
    const isCrewAlone = retention !== null || database?.replication === "asynchronous";
    const topics = isCrewAlone ? crewed : [...crewed, topicOfCli, plainTopic];
    const watch = NodeWatch.on(backend.servers, { path: service.path, topics, writer: control });
    this.#ends.push(() => watch[Symbol.asyncDispose]());
    const workers = this.#workersOf(service, { folder: folder("workers"), history, topics: crewed });
    const cli = new CliCrew({
      ...{ folder: folder("cli"), topic: topicOfCli, proxies: service.endpoints, random, history },
      ...{ sleeperTopic: crewed[0] ?? topicOfCli, plainTopic, isEmpty: isCrewAlone },
      killed: (client) => this.#count(control, "client of the binary killed", client),
      troubled: (why) => this.failures.push(why),
    });
    this.#ends.push(() => cli.close());
    const world: World = {
      ...{ service, backend, database, workers, watch, control, random, sessionTimeoutMs, topics },
      states: new StateFolders(folder("states")),
      wait: (ms) => sleep(systemClock(), ms),
      busy: new Set(),
    };
    for (const worker of workers) worker.start();
    await cli.begin();
    const counts = () => workers.reduce((sum, { counts: { put } }) => sum + put, 0);
    await this.#until(() => counts() >= 100 && workers.every((worker) => worker.counts.got > 0), "a load", workers);
    const baseline = service.roles.map((role) => role.sample("baseline"));
    for (const sample of baseline) control.sample(sample);
    say(`the load is there; ${service.roles.length} roles, ${workers.length} workers`);
    await this.#hurt(world, counts);
    cli.isHurt = false;
    await this.#heal(world);
    await this.#drain(world, cli);
    // Nothing else has the processors now.
    const { isShort = false, isMixed = false } = this.#options.database ?? {};
    if (database !== null && !isShort && !isMixed) await this.#judgeTakeOvers(world);
    // What expires on the way changes the content.
    if ((retention?.expiresAfterMs ?? Infinity) === Infinity) await this.#carryAround(world);
    await cli.wakeSleeper();
    this.isDrained = true;
    if (database !== null) { for (const loss of await namedLosses(database)) control.loss(loss); }
    this.#lookAtRoles(world);
    for (const sample of await this.#rested(service, baseline)) control.sample(sample);
    for (const role of service.roles) await role.stop();
    for (const { id, dataDir } of service.servers) {
      if (dataDir === null) continue;
      for (const problem of verifyTopicStore(dataDir).problems) this.failures.push(`the store of ${id}: ${problem}`);
    }
  }

  /** The tables are there when it resolves. */
  async #startDatabase(): Promise<PostgresPair | null> {
    const { database: plan } = this.#options;
    if (plan === undefined) return null;
    const { replication, isOnSmallDisk } = plan;
    const pair = await PostgresPair.start({ replication, ...(isOnSmallDisk ? { diskMebibytes } : {}) });
    this.#ends.push(() => pair[Symbol.asyncDispose]());
    const address = parseDatabaseUrl(pair.primary.url, { mayHavePassword: false, env: {} });
    await migrateDatabase(address, { tables: postgresTopicTables, clock: systemClock(), name: "campaign" });
    return pair;
  }

  async close(): Promise<void> {
    for (const end of this.#ends.reverse()) {
      await bounded(end(), "the end").catch((thrown) => this.failures.push(`at the end: ${errorMessage(thrown)}`));
    }
  }

  #workersOf(
    service: Service,
    { folder, history, topics }: {
      readonly folder: string;
      readonly history: string;
      readonly topics: readonly string[];
    },
  ): Worker[] {
    const { seed, publishers, subscribers, workers, rate } = this.#options;
    // A fail-over may undo where a subscriber has put itself, too: only messages are named as lost.
    const isFickle = this.#options.database?.replication !== "asynchronous";
    const crew = planCrew(seed, { topics, publishers, subscribers, workers, rate, isFickle });
    return crew.workers.map((clients, place) => {
      const name = `w${place + 1}`;
      const stateDir = join(folder, `state-${name}`);
      mkdirSync(stateDir);
      const storage = this.#options.hasStorageFaults ? new StorageFaults(stateDir) : null;
      const where = { name, folder, historyDir: history, stateDir: storage?.under ?? stateDir, storage };
      const worker = new Worker({ ...where, proxies: service.endpoints, clients });
      this.#ends.push(() => worker.kill().then(() => storage?.[Symbol.dispose]()));
      return worker;
    });
  }

  /** Faults, some at a time, until there were enough of them and of messages. */
  async #hurt(world: World, counts: () => number): Promise<void> {
    const { messages, faults, lanes, say } = this.#options;
    const deck = this.#deck(world);
    let happened = 0;
    const now = new Set<string>();
    const isEnough = () => counts() >= messages && happened >= faults;
    const report = setInterval(() => {
      say(`${counts()} messages put, ${happened} faults; now: ${[...now].join(", and ")}`);
    }, reportMs);
    const lane = async () => {
      while (!isEnough() && this.failures.length === 0) {
        const fault = deck();
        now.add(fault.name);
        const target = await bounded(fault.apply(world), fault.name);
        now.delete(fault.name);
        if (target === null) await world.wait(10 + world.random() * 40);
        else {
          happened++;
          this.#count(world.control, fault.name, target);
        }
        this.#lookAtRoles(world);
        // A breath: with faults alone nothing would ever be put, and they come while messages do.
        await world.wait(world.random() * 400);
        while (happened * messages > counts() * faults && !isEnough()) await world.wait(breathMs);
      }
    };
    await Promise.all(Array.from({ length: lanes }, lane)).finally(() => clearInterval(report));
  }

  /** Each as often as it weighs before any comes again. */
  #deck({ random, database }: World): () => PubsubFault {
    const { only, backend, hasStorageFaults, database: plan } = this.#options;
    const isEnsemble = backend.name.includes("three");
    const menu = [
      ...pubsubFaults.filter(({ losesState }) => plan?.replication !== "asynchronous" || losesState !== true),
      ...(hasStorageFaults && plan === undefined ? storageFaults : []),
      ...(database === null
        ? []
        : databaseFaults(database).filter(({ isSlow }) => plan?.isShort !== true || isSlow !== true)),
    ];
    const possible = menu.filter(({ needsLeader }) => isEnsemble || needsLeader !== true)
      .filter(({ name }) => only === undefined || name.includes(only));
    let deck: PubsubFault[] = [];
    return () => {
      if (deck.length === 0) {
        deck = shuffled(possible.flatMap((fault) => Array.from({ length: fault.weight }, () => fault)), random);
      }
      return deck.pop() as PubsubFault;
    };
  }

  #count(control: HistoryWriter, name: string, target: string): void {
    this.faults.set(name, (this.faults.get(name) ?? 0) + 1);
    control.fault(name, target);
  }

  #lookAtRoles({ service }: World): void {
    for (const role of service.roles) {
      if (role.lastWords === null) continue;
      this.failures.push(`${role.id} ended by itself, saying ${JSON.stringify(role.lastWords)}`);
      role.isAway = true;
    }
  }

  async #heal(world: World): Promise<void> {
    const { service, control, backend, wait, workers } = world;
    backend.resume();
    if (await reviveEnsemble(backend)) {
      this.#options.say("its servers elected a leader and commit nothing: the leader is started anew");
    }
    service.heal();
    for (const worker of workers) worker.signal("SIGCONT");
    for (const worker of workers) worker.order("calm");
    this.#options.say("healed; asking whether all is well");
    for (const proxy of service.proxies) {
      await using client = new ProxyClient(proxy.relay.endpoint);
      for (const topic of world.topics) {
        const ask = async () => (await client.say({ name: "INFO", sender: "doctor", topic, headers: {} }, 5000)).status;
        await eventually(async () => ["OK", "NOT_SUBSCRIBED"].includes(await ask()), {
          withinMs: patienceMs,
          everyMs: 100,
          what: `"${topic}" to be served by ${proxy.id}`,
        });
      }
    }
    // Requests that wait for an answer which was lost are given up, and sessions that were taken over begin again.
    await this.#until(() => workers.every(({ isCalm }) => isCalm), "clients to be calm", workers);
    control.healed();
    await wait(healedMs);
  }

  async #judgeTakeOvers(world: World): Promise<void> {
    this.takeOvers = await takeOvers(world);
    const limitMs = world.sessionTimeoutMs + takeOverMsMax;
    for (const { server, how, topics, sessionMs, tookMs } of this.takeOvers) {
      const ended = `its session had ended after ${sessionMs} ms`;
      this.#options.say(`${topics} topics of ${server}, ${how}, were served again after ${tookMs} ms; ${ended}`);
      if (tookMs <= limitMs) continue;
      this.failures.push(`topics of ${server}, ${how}, were served again after ${tookMs} ms, more than ${limitMs}`);
    }
  }

  async #drain({ workers }: World, cli: CliCrew): Promise<void> {
    for (const worker of workers) worker.order("end");
    cli.phase = "end";
    await this.#until(() => workers.every(({ hasEnded }) => hasEnded), "publishers to end", workers);
    await cli.published;
    this.#options.say("all was put; having the rest");
    for (const worker of workers) worker.order("drain");
    cli.phase = "drain";
    const got = () => workers.reduce((sum, { counts }) => sum + counts.got, 0);
    const hasDrained = () => workers.every(({ exit }) => exit !== null);
    // As long as it takes, if only it goes on.
    for (let before = -1; !hasDrained() && got() > before;) {
      before = got();
      await this.#until(() => hasDrained() || got() > before, "subscribers to have all", workers);
    }
    for (const { name, exit, said } of workers) {
      if (exit !== 0) this.failures.push(`${name} ended with ${exit}: ${said}`);
    }
    await cli.drained;
  }

  /** Nothing is put or had now: wherever a topic goes, it stays what it is. One client has had nothing of it so far. */
  async #carryAround({ service, backend, control, topics }: World): Promise<void> {
    using tap = new ContentTap(service.servers.map(({ relay }) => relay));
    await using zk = await connectToZooKeeper({ servers: parseZooKeeperServers(backend.servers) });
    const options = { clock: systemClock(), withinMs: patienceMs };
    // Within a database nothing is copied.
    const kindOf = (server: string | undefined) => service.servers.find(({ id }) => id === server)?.way ?? null;
    for (const topic of topics) {
      for (const { id } of [...service.servers, ...service.servers.slice(0, 1)]) {
        // A busy machine may cost a server its session: what was kept is moved at another try.
        const outcome = await eventually(async () => {
          const now = await moveTopic(zk, service.path, { topic, to: id }, options);
          return now.kind === "moved" || now.kind === "there" ? now : null;
        }, { withinMs: patienceMs, everyMs: 100, what: `"${topic}" to be moved to ${id}` });
        if (outcome.kind === "there" || (kindOf(id) !== null && kindOf(outcome.from) !== null)) continue;
        const content = tap.contents.get(topic);
        tap.contents.delete(topic);
        if (content !== undefined) control.content(topic, content.epoch, content.digest);
        else this.failures.push(`the handoff of "${topic}" to ${id} was not seen`);
      }
    }
  }

  /** What roles hold when nobody asks anything of them any more. */
  async #rested(service: Service, baseline: readonly Sample[]): Promise<Sample[]> {
    const { say } = this.#options;
    const clock = systemClock();
    const beganMs = clock.now();
    for (;;) {
      const end = service.roles.map((role) => role.sample("end"));
      const grown = end.flatMap((sample, place) => grownBeyond(baseline[place] ?? sample, sample));
      const restedMs = Math.round(clock.now() - beganMs);
      if (grown.length === 0 || restedMs >= restMsMax) {
        say(`${restedMs} ms of rest: ${grown.length === 0 ? "all is as it was" : "not all is as it was"}`);
        return end;
      }
      say(`after ${restedMs} ms of rest ${grown.join("; ")}`);
      await sleep(clock, restLookMs);
    }
  }

  async #until(condition: () => boolean, what: string, workers: readonly Worker[]): Promise<void> {
    await eventually(condition, { withinMs: patienceMs, everyMs: 20, what }).catch((thrown) => {
      throw new Error(`${errorMessage(thrown)}\n${workers.map(({ name, said }) => `${name}: ${said}`).join("\n")}`);
    });
  }
}

/** What servers have written down of fail-overs that may have lost something. */
async function namedLosses(database: PostgresPair): Promise<NamedLoss[]> {
  const rows = await database.sql(
    "SELECT encode(t.name, 'hex'), l.last FROM baton.topic_loss l JOIN baton.topic t ON t.id = l.topic",
  );
  return rows.split("\n").filter(Boolean).map((row) => {
    const [name = "", last] = row.split("|");
    return { topic: Buffer.from(name, "hex").toString(), last: Number(last) };
  });
}

/** Whatever a fault waits for has to come. */
async function bounded<T>(fault: Promise<T>, name: string): Promise<T> {
  const late = () => new Error(`"${name}" has not ended within ${faultMsMax} ms`);
  const deadline = deadlineAfter(systemClock(), faultMsMax, { reason: late });
  return await rejectOnAbort(fault, deadline.signal).finally(() => deadline.cancel());
}
