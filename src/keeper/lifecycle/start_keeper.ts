/**
 * The keeper: a single-node server of ZooKeeper's protocol. This file is its outside: what it is given, what it gives.
 * What happens inside is in server.ts.
 */
import { BatonError, messageOf } from "../../errors.ts";
import type { Address, TlsOptions } from "../../sockets/connection.ts";
import { type Clock, systemClock } from "../../support/clock.ts";
import { type KeeperLimits, keeperLimitsDefault } from "../state/keeper_limits.ts";
import { KeeperServer } from "./keeper_server.ts";
import type { KeeperStatistics } from "../protocol/keeper_report.ts";
import { readFileSync } from "node:fs";

/** What holds when nothing else is said, in milliseconds; for the command line too. */
export const keeperTimes = {
  tickTimeMs: 500,
  sessionTimeoutMinMs: 1_000,
  sessionTimeoutMaxMs: 60_000,
  containerCheckMs: 60_000,
} as const;

export interface KeeperOptions {
  /** The folder of the data; made when it is missing. Belongs to one keeper at a time. */
  readonly dataDir: string;
  /** Where to listen; TCP port 0 lets the system choose. */
  readonly listen: readonly Address[];
  /** Unix sockets that every user may connect to; the others are for those whom the umask leaves in. */
  readonly openSocketPaths?: readonly string[];
  /** For the TCP addresses. */
  readonly tls?: TlsOptions;
  /** The grain of session timeouts, in milliseconds; this and the next three as in `keeperTimes` when left out. */
  readonly tickTimeMs?: number;
  /** Milliseconds. */
  readonly sessionTimeoutMinMs?: number;
  /** Milliseconds. */
  readonly sessionTimeoutMaxMs?: number;
  /** How often childless containers are looked for, in milliseconds. */
  readonly containerCheckMs?: number;
  /** Ends by itself after so many milliseconds without a session and a connection; never when left out. */
  readonly idleExitMs?: number;
  readonly limits?: Partial<KeeperLimits>;
  /** The digest id (`super:base64(sha1(…))`) that may do everything. */
  readonly superDigest?: string;
  /** The create counter of every new node, to test what happens near its end. */
  readonly sequenceStart?: number;
  readonly clock?: Clock;
  /** Milliseconds since 1970, for what people read and TTL nodes only; Date.now when left out. */
  readonly wallClock?: () => number;
  /** Hears what an operator should know, a sentence at a time. */
  readonly log?: (sentence: string) => void;
}

export interface Keeper extends AsyncDisposable {
  /** Where it listens, with the ports the system chose. */
  readonly addresses: readonly Address[];
  /** Those it goes by. */
  readonly limits: KeeperLimits;
  /** As of now, and since it started. */
  statistics(): KeeperStatistics;
  /** Resolves when it has ended: by `close`, or by itself when idle. Rejects with IO when its data cannot be read any more. */
  readonly ended: Promise<void>;
  /** Ends it; sessions and everything else stay for the next keeper on this data. */
  close(): Promise<void>;
}

/** The protocol's int. */
const timeoutMsMax = 0x7fffffff;

function isTimeout(milliseconds: number): boolean {
  return Number.isInteger(milliseconds) && milliseconds > 0 && milliseconds <= timeoutMsMax;
}

/**
 * Starts a keeper. Rejects with LOCK_BUSY when the data directory belongs to another one, with CONFIG for timeouts that
 * make no sense, with IO when the data cannot be read or written, with CANNOT_CREATE when it cannot listen.
 */
export async function startKeeper(options: KeeperOptions): Promise<Keeper> {
  const { tickTimeMs, sessionTimeoutMinMs, sessionTimeoutMaxMs, containerCheckMs } = { ...keeperTimes, ...options };
  const isRange = isTimeout(sessionTimeoutMinMs) && isTimeout(sessionTimeoutMaxMs) &&
    sessionTimeoutMinMs <= sessionTimeoutMaxMs;
  if (!(tickTimeMs > 0 && isRange)) {
    throw new BatonError(
      "CONFIG",
      `A keeper cannot run with a tick of ${tickTimeMs} ms and sessions of ${sessionTimeoutMinMs} to ${sessionTimeoutMaxMs} ms: ` +
        `the tick must be above 0, and the session timeouts whole numbers from 1 to ${timeoutMsMax}, the least first`,
    );
  }
  const wanted = { ...keeperLimitsDefault, ...options.limits };
  const limits = { ...wanted, connectionsMax: Math.min(wanted.connectionsMax, connectionsPossible()) };
  const server = await KeeperServer.open({
    dataDir: options.dataDir,
    tickTimeMs,
    sessionTimeoutMinMs,
    sessionTimeoutMaxMs,
    containerCheckMs,
    idleExitMs: options.idleExitMs ?? Infinity,
    limits,
    openSocketPaths: options.openSocketPaths ?? [],
    superDigest: options.superDigest ?? null,
    sequenceStart: options.sequenceStart ?? 0,
    clock: options.clock ?? systemClock(),
    wallClock: options.wallClock ?? Date.now,
    log: options.log ?? (() => {}),
  });
  try {
    for (const address of options.listen) await server.listen(address, options.tls);
  } catch (error) {
    await server.close();
    throw error instanceof BatonError ? error : new BatonError("CANNOT_CREATE", messageOf(error), { cause: error });
  }
  return {
    addresses: server.addresses,
    limits,
    ended: server.ended,
    statistics: () => server.statistics(),
    close: () => server.close(),
    [Symbol.asyncDispose]: () => server.close(),
  };
}

/** For the data, the listeners, the runtime, and connections on their way out. */
const otherDescriptors = 100;

/** Connections that this process has descriptors for; Infinity where the system does not say (all but Linux). */
export function connectionsPossible(limits: string = ownLimits()): number {
  const [, soft] = /^Max open files +(\d+) /m.exec(limits) ?? [];
  return soft === undefined ? Infinity : Math.max(1, Number(soft) - otherDescriptors);
}

function ownLimits(): string {
  try {
    return readFileSync("/proc/self/limits", "latin1");
  } catch {
    return "";
  }
}
