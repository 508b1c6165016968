/**
 * One ensemble, sessions that use it all the time, one fault after the other, and a judgement of everything at the end.
 */
import { connectToZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../../src/protocols/zookeeper/hosts.ts";
import type { ZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper.ts";
import { lockPath } from "../../../../src/coordination/nodes/node_paths.ts";
import { retryOnConnectionLoss } from "../../../../src/coordination/nodes/node_requests.ts";
import { systemClock } from "../../../../src/base/support/clock.ts";
import { sleep } from "../../../../src/base/support/deadline.ts";
import { zooKeeperEnsemble } from "../../../support/backends.ts";
import { eventually } from "../../../support/eventually.ts";
import { Partition } from "../../../support/partition.ts";
import { seededRandom } from "../../../support/random.ts";
import { allConnected, commits, type EnsembleFaultContext, ServerEnded, startAnew, whole } from "./faults.ts";
import { History } from "./history.ts";
import { judgeAppends, judgeHeld, judgeOrder, judgeRegister } from "./judge.ts";
import type { EnsemblePlan } from "./plan.ts";
import { lockNames, registers, Traffic, tree } from "./traffic.ts";
import { disagreements } from "./trees.ts";
import { WatchDuty, watchedRoot } from "./watch_duty.ts";
import { Way } from "./way.ts";

/**
 * T, in milliseconds; tickTime is a sixteenth of it, and a server that is not heard of for a quarter is left behind.
 */
export const sessionTimeoutMs = 4000;
/** Of the session that makes the changes: it leaves a server that stands still as soon as the others do. */
const observerTimeoutMs = sessionTimeoutMs * 1.5;
const server = { tickTimeMs: sessionTimeoutMs / 16, syncLimit: 4 };
/** SetWatches requests are no longer than this, as ZooKeeper's own client's are. */
const rearmBytesMax = 128 * 1024;
/** Every call ends T + T/3 after it was made; the rest is for a machine that is busy. */
const callMsMax = sessionTimeoutMs * 4 / 3 + 1500;
/** close() gives up after T/3. */
const closeMsMax = sessionTimeoutMs / 3 + 1500;
/** Rounds on one ensemble: its servers may come to differ (trees.ts), and then nothing of it is judged. */
const roundsMax = 20;
const nothing = new Uint8Array(0);

const lockPlaces = lockNames.flatMap((name) => {
  const { queue, holders } = lockPath(name, tree.locks);
  return [queue, holders];
});

export interface EnsembleResult {
  readonly plan: EnsemblePlan;
  readonly failures: readonly string[];
  /**
   * Why the servers were started anew: they committed nothing any more, or one ended by itself. Null when they were
   * not.
   */
  readonly stuck: string | null;
  /** … and sessions have ended by that: the rounds behind this one need another ensemble. */
  readonly isLost: boolean;
  readonly changes: number;
  readonly tookMs: number;
}

export interface EnsembleVerdict {
  readonly results: readonly EnsembleResult[];
  /** What is wrong with the history of all rounds. */
  readonly failures: readonly string[];
  /**
   * Where the servers have not the same tree, or all have again what they had acknowledged to be deleted: what hangs on
   * that shows nothing, and is not among the failures.
   */
  readonly disagreed: readonly string[];
  /** Of what it was, a line for each ensemble that it took. */
  readonly figures: string;
}

export interface EnsembleOptions {
  readonly sessions: number;
  readonly watches: number;
  /** Of the watched nodes, so many are changed in each round. */
  readonly changes: number;
  /** No round starts once this is true. */
  readonly isOver?: () => boolean;
  readonly finished?: (result: EnsembleResult) => void;
}

/**
 * On one ensemble as long as that keeps the sessions, and as its memory and the judge can have all nodes of the
 * history.
 */
export async function runEnsembleCampaign(
  plans: readonly EnsemblePlan[],
  options: EnsembleOptions,
): Promise<EnsembleVerdict> {
  const verdict = await runOnOneEnsemble(plans.slice(0, roundsMax), options);
  const left = plans.slice(verdict.results.length);
  const hasFailed = [...verdict.failures, ...verdict.results.flatMap(({ failures }) => failures)].length > 0;
  if (left.length === 0 || hasFailed || options.isOver?.() === true) return verdict;
  const { results, failures, disagreed, figures } = await runEnsembleCampaign(left, options);
  return {
    results: [...verdict.results, ...results],
    failures,
    disagreed: [...verdict.disagreed, ...disagreed],
    figures: `${verdict.figures}\n${figures}`,
  };
}

async function runOnOneEnsemble(plans: readonly EnsemblePlan[], options: EnsembleOptions): Promise<EnsembleVerdict> {
  await using stack = new AsyncDisposableStack();
  const partition = new Partition();
  stack.defer(() => partition.close());
  const ensemble = await zooKeeperEnsemble.start({ ...server, portBetween: partition.portBetween });
  stack.defer(() => ensemble.close());
  const observer = stack.use(
    await connectToZooKeeper({ servers: parseZooKeeperServers(ensemble.servers), sessionTimeoutMs: observerTimeoutMs }),
  );
  for (const path of [tree.log, tree.registers, ...registers]) await observer.create(path, nothing);
  const ways = await Promise.all(
    Array.from(
      { length: 1 + options.sessions },
      async () => stack.use(await Way.open(ensemble.nodes, sessionTimeoutMs)),
    ),
  );
  const [watcher, ...users] = ways;
  if (watcher === undefined) throw new Error("There is no session");
  const duty = await WatchDuty.start(watcher.zk, observer, options.watches);
  const history = new History();
  const traffic = users.map(({ zk }, number) => new Traffic(zk, { number, random: seededRandom(number), history }));
  const sessions = [...ways.map(({ zk }) => zk), observer];
  const results: EnsembleResult[] = [];
  for (const plan of plans) {
    if (options.isOver?.() === true) break;
    const random = seededRandom(plan.seed);
    const last = (from: number, to: number) => sleep(systemClock(), (from + (to - from) * random()) * sessionTimeoutMs);
    const result = await runRound(plan, {
      duty,
      changes: options.changes,
      context: { ensemble, partition, ways, sessions, sessionTimeoutMs, random, last },
    });
    results.push(result);
    options.finished?.(result);
    if (result.failures.length > 0 || result.isLost) break; // what is known of the nodes need not be true any more
  }
  const stopped = Promise.all(traffic.map((one) => one.stop())).then(() => true);
  const hasEnded = () => Promise.race([stopped, sleep(systemClock(), 3 * callMsMax).then(() => false)]);
  let ended = await hasEnded();
  let isLost = results.at(-1)?.isLost === true;
  if (!ended && !await commits(ensemble)) {
    isLost = true;
    await startAnew(ensemble);
    ended = await hasEnded();
  }
  const failures = ended ? [] : [`${history.open} calls never end, or a lock is never granted`];
  if (!isLost) failures.push(...endsOf(sessions));
  const reader = stack.use(await connectToZooKeeper({ servers: parseZooKeeperServers(ensemble.servers) }));
  await asked(reader, () => reader.sync("/"));
  const left = await nodesLeft(reader);
  failures.push(
    ...await judge(history, reader),
    ...judgeRearmed(watcher),
    ...left.map((path) => `${path} is left behind`),
  );
  // What servers say that have not the same tree is not the client's fault, and shows nothing about it.
  const isSuspect = failures.length > 0 || results.some((result) => result.failures.length > 0);
  const { suspects } = duty;
  const places = [tree.log, watchedRoot, ...registers, ...lockPlaces, ...suspects];
  const disagreed = [
    ...isSuspect ? await disagreements(ensemble, places) : [],
    ...left.filter((path) => history.deleted.has(path)).map((path) => `${path} (is there again)`),
  ];
  // A watch that told nothing is the client's fault as long as the servers agree about what it watched, whatever else
  // they say.
  const isExcused =
    (suspects.length === 0 ? disagreed : disagreed.filter((path) => suspects.includes(path))).length > 0;
  const closing = await judgeClose(ways, ensemble);
  return {
    results: isExcused ? results.map((result) => ({ ...result, failures: [] })) : results,
    failures: disagreed.length === 0 ? [...failures, ...closing] : closing,
    disagreed,
    figures: figuresOf(history, watcher),
  };
}

async function runRound(plan: EnsemblePlan, { duty, changes, context }: {
  readonly duty: WatchDuty;
  readonly changes: number;
  readonly context: EnsembleFaultContext;
}): Promise<EnsembleResult> {
  const startMs = performance.now();
  const failures: string[] = [];
  let stuck: string | null = null;
  let isCut = false;
  try {
    await duty.arm();
    const all = duty.some(changes, context.random);
    const later = all.splice(0, all.length >> 1);
    const begin = (change: () => Promise<void>) => {
      const changing = change();
      changing.catch(() => {}); // heard below
      return changing;
    };
    const changing = all.map(begin);
    await plan.fault.apply(context);
    // At once, while sessions are still on their way to another server.
    changing.push(...later.map(begin));
    stuck = await obstacleOf(context.ensemble);
    if (stuck !== null) await startAnew(context.ensemble);
    await Promise.all(changing);
    await allConnected(context.sessions, sessionTimeoutMs);
    failures.push(...await duty.settle(sessionTimeoutMs));
  } catch (thrown) {
    if (thrown instanceof ServerEnded) {
      stuck = thrown.message;
      await startAnew(context.ensemble);
      isCut = true;
    } else failures.push(thrown instanceof Error ? thrown.message : String(thrown));
  }
  const ends = endsOf(context.sessions);
  // Servers that are started anew when they have stood still for longer than T may end whoever is well.
  const isLost = isCut || (stuck !== null && ends.length > 0);
  const tookMs = performance.now() - startMs;
  return { plan, failures: isLost ? [] : [...failures, ...ends], stuck, isLost, changes: duty.changes, tookMs };
}

/** Why the servers must be started anew, whatever their clients do; null when they serve and commit. */
async function obstacleOf(ensemble: EnsembleFaultContext["ensemble"]): Promise<string | null> {
  try {
    await whole(ensemble);
  } catch (thrown) {
    if (thrown instanceof ServerEnded) return thrown.message;
    throw thrown;
  }
  return await commits(ensemble) ? null : "the servers were stuck";
}

function endsOf(sessions: readonly ZooKeeper[]): string[] {
  return sessions.flatMap(({ session: { ended } }, number) =>
    ended.aborted ? [`session ${number} has ended: ${(ended.reason as Error).message}`] : []
  );
}

function asked<T>(zk: ZooKeeper, ask: () => Promise<T>): Promise<T> {
  return retryOnConnectionLoss(zk, ask, { clock: systemClock() });
}

async function judge(history: History, reader: ZooKeeper): Promise<string[]> {
  const { children } = await asked(reader, () => reader.getChildren(tree.log));
  const failures = [...history.surprises, ...judgeAppends(history.appends, children)];
  for (const node of registers) {
    const { stat } = await asked(reader, () => reader.getData(node));
    failures.push(...judgeRegister(node, history.accesses, stat));
  }
  failures.push(...judgeOrder(history.accesses), ...judgeHeld(history.held));
  if (history.slowestMs > callMsMax) failures.push(`a call took ${Math.round(history.slowestMs)} ms to end`);
  return failures;
}

/** The nodes of locks that are still there, though all have stopped and their sessions live. */
async function nodesLeft(reader: ZooKeeper): Promise<string[]> {
  let left: string[] = [];
  await eventually(async () => {
    const children = await Promise.all(lockPlaces.map(async (path) => {
      return (await reader.getChildren(path)).children.map((child) => `${path}/${child}`);
    }));
    left = children.flat();
    return left.length === 0;
  }, { withinMs: sessionTimeoutMs }).catch(() => {});
  return left;
}

function judgeRearmed({ rearmed: { bytesMax } }: Way): string[] {
  return bytesMax > rearmBytesMax ? [`watches were set again with ${bytesMax} bytes at once`] : [];
}

/** With servers that stand still nobody is told to wait for longer than close() may take. */
async function judgeClose(ways: readonly Way[], ensemble: EnsembleFaultContext["ensemble"]): Promise<string[]> {
  ensemble.pause();
  const startMs = performance.now();
  await Promise.all(ways.map(({ zk }) => zk.close()));
  const tookMs = performance.now() - startMs;
  ensemble.resume();
  return tookMs > closeMsMax ? [`close() took ${Math.round(tookMs)} ms with servers that stand still`] : [];
}

function figuresOf({ appends, accesses, held, slowestMs }: History, { rearmed }: Way): string {
  const outcomes = [...appends, ...accesses].map(({ outcome }) => outcome);
  const count = (wanted: string) => outcomes.filter((outcome) => outcome === wanted).length;
  return `${outcomes.length} calls: ${count("done")} answered, ${count("CONNECTIONLOSS")} unknown, ` +
    `${count("OPERATIONTIMEOUT")} not done, the slowest ${Math.round(slowestMs)} ms; ${held.length} grants; ` +
    `watches set again in ${rearmed.batches} requests of ${rearmed.bytesMax} bytes at most`;
}

/** One line about one round, and one about each thing that is wrong with it. */
export function ensembleLine({ plan, failures, stuck, isLost, changes, tookMs }: EnsembleResult): string {
  const head = `${failures.length === 0 ? "ok  " : "FAIL"} round ${plan.number}: ${plan.fault.name}; ` +
    `${changes} changes, ${(tookMs / 1000).toFixed(1)} s${stuck === null ? "" : `; ${stuck}; all were started anew`}${
      isLost ? ", and the round is cut short, or sessions have ended: NOT JUDGED" : ""
    }`;
  return [head, ...failures.slice(0, 20).map((failure) => `       ${failure}`)].join("\n");
}
