/** The plan of a run of publish/subscribe: its options and faults, drawn from the seed. */
import { drawFaults, type Fault } from "../../../world/fault_plan.ts";
import type { RunPlan } from "../../../world/simulation.ts";
import { Chance } from "../../../world/chance.ts";

export interface PubsubWorldOptions {
  readonly sessionTimeoutMs: number;
  readonly topics: number;
  readonly servers: number;
  readonly proxies: number;
  readonly publishers: number;
  readonly subscribers: number;
  readonly workers: number;
  /** Messages of all publishers, each second. */
  readonly rate: number;
  readonly operatorMs: number;
  /** Retention of messages by their number; 0: none. */
  readonly retainMessages: number;
  readonly clockSpread: number;
  readonly flushMs: number;
  readonly hasQuota: boolean;
  /** Clients' states can be lost with their disk. */
  readonly losesStates?: boolean;
  /** How likely a subscriber seeks, at each get. */
  readonly seeks?: number;
  /**
   * The operator gives up servers that do not run: what they have stored is lost. There are publishers alone, and
   * faults of servers alone, so that it is known when an answer has left its server.
   */
  readonly forgets?: boolean;
  readonly quietMs: number;
}

function drawOptions(chance: Chance): PubsubWorldOptions {
  const sessionTimeoutMs = chance.oneOf([2000, 4000, 10_000]);
  return {
    sessionTimeoutMs,
    topics: chance.oneOf([1, 2, 3]),
    servers: chance.oneOf([2, 2, 3]),
    proxies: chance.oneOf([1, 2]),
    publishers: chance.whole(1, 3),
    subscribers: chance.whole(1, 3),
    workers: chance.whole(2, 3),
    rate: chance.oneOf([2, 10, 40]),
    operatorMs: chance.oneOf([500, 3000, 10_000]),
    retainMessages: chance.oneOf([0, 0, 0, 3]),
    clockSpread: chance.oneOf([0, 0.005, 0.024]),
    flushMs: chance.oneOf([0.2, 2, 20]),
    hasQuota: chance.is(0.5),
    quietMs: chance.oneOf([10_000, 20_000, 40_000]),
    losesStates: chance.is(0.5),
    forgets: chance.is(0.15),
    seeks: chance.oneOf([0, 0, 0.03]),
  };
}

/**
 * A fault with this target waits for the next commit of the server whose name follows, and comes while it is on its
 * way.
 */
export const commitOf = "commit of ";

/**
 * A fault with this target waits for the next answer with messages that a client of the process whose name follows
 * gets, and comes soon afterwards: to the process, and to the server that has answered.
 */
export const answerTo = "answer to ";

export const names = (letter: string, count: number) => Array.from({ length: count }, (_, at) => `${letter}${at + 1}`);

export function drawPlan(seed: number): RunPlan {
  const chance = new Chance(seed).fork("plan");
  const options = drawOptions(chance);
  const servers = names("s", options.servers);
  const workers = names("w", options.workers);
  const others = [...names("p", options.proxies), ...workers];
  const faults = drawFaults(chance.fork("faults"), {
    untilMs: options.quietMs,
    sessionTimeoutMs: options.sessionTimeoutMs,
    clients: [...servers, ...servers, ...others, "operator"],
    server: "keeper",
  });
  const targets = chance.fork("disks");
  const moved = faults.map((fault): Fault => {
    if (fault.kind.startsWith("disk") && targets.is(0.85)) {
      return { ...fault, target: targets.oneOf([...servers, "holder"]) };
    }
    if (fault.kind !== "kill" && fault.kind !== "lose") return fault;
    const aim = targets.next();
    if (aim < 0.4) return { ...fault, target: `${commitOf}${targets.oneOf(servers)}` };
    return aim < 0.6 ? { ...fault, kind: "lose", target: `${answerTo}${targets.oneOf(workers)}` } : fault;
  });
  if (options.forgets === true) return drawForgetting(chance.fork("stops"), { seed, options, servers, faults });
  const aimed = drawAimed(chance.fork("answers"), options, workers);
  const splits = drawSplits(chance.fork("two roles"), options, workers);
  return { world: "pubsub", seed, options: { ...options }, faults: [...moved, ...aimed, ...splits] };
}

/** In some runs, two roles that cannot reach each other while both reach the keeper and all others. */
function drawSplits(chance: Chance, options: PubsubWorldOptions, workers: readonly string[]): Fault[] {
  const { quietMs, sessionTimeoutMs } = options;
  if (chance.is(0.7)) return [];
  const [servers, proxies] = [names("s", options.servers), names("p", options.proxies)];
  const whole = (ms: number) => Math.round(ms * 1000) / 1000;
  const faults: Fault[] = [];
  for (let at = chance.between(0, 4000); at < quietMs; at += chance.between(1000, 6000)) {
    const [left, right] = chance.oneOf([[servers, servers], [proxies, servers], [workers, proxies]] as const);
    const forMs = whole(Math.min(quietMs - at, chance.between(sessionTimeoutMs / 6, 2 * sessionTimeoutMs)));
    const direction = chance.oneOf(["to", "from", "both", "both"] as const);
    faults.push({
      at: whole(at),
      kind: "cut",
      target: chance.oneOf(left),
      peer: chance.oneOf(right),
      direction,
      forMs,
    });
  }
  return faults;
}

/**
 * In some runs, power cuts of a client and of its server at the same time: what one has forgotten, the other must know.
 */
function drawAimed(
  chance: Chance,
  { quietMs, sessionTimeoutMs }: PubsubWorldOptions,
  workers: readonly string[],
): Fault[] {
  if (chance.is(0.6)) return [];
  const whole = (ms: number) => Math.round(ms * 1000) / 1000;
  const faults: Fault[] = [];
  for (let at = chance.between(0, 4000); at < quietMs; at += chance.between(1000, 6000)) {
    const forMs = whole(Math.min(quietMs - at, chance.between(20, sessionTimeoutMs)));
    faults.push({ at: whole(at), kind: "lose", target: `${answerTo}${chance.oneOf(workers)}`, forMs });
  }
  return faults;
}

const serverFaults: readonly string[] = ["kill", "lose", "stop", "suspend", "disk slow", "wall step"];

/** Servers that are stopped while a commit is on its way, until their sessions have ended and longer. */
function drawForgetting(chance: Chance, { seed, options, servers, faults }: {
  readonly seed: number;
  readonly options: PubsubWorldOptions;
  readonly servers: readonly string[];
  readonly faults: readonly Fault[];
}): RunPlan {
  const { quietMs } = options;
  const few = faults.filter(({ kind, target }) =>
    serverFaults.includes(kind) && [...servers, "holder", "keeper"].includes(target) && chance.is(0.5)
  );
  const sessionTimeoutMs = 2000;
  const whole = (ms: number) => Math.round(ms * 1000) / 1000;
  const stops: Fault[] = [];
  for (let at = chance.between(0, 4000); at < quietMs - 5000; at += chance.between(3000, 8000)) {
    const forMs = whole(sessionTimeoutMs + chance.between(500, 3000));
    stops.push({ at: whole(at), kind: "stop", target: `${commitOf}${chance.oneOf(servers)}`, forMs });
  }
  const all = { ...options, sessionTimeoutMs, subscribers: 0, operatorMs: 300, retainMessages: 0 };
  return { world: "pubsub", seed, options: all, faults: [...few, ...stops] };
}
