/**
 * Starts the keeper, which is a single-node server for ZooKeeper's protocol. This file is the keeper's interface;
 * keeper_server.ts is the implementation.
 */
import { BatonError, errorMessage } from "../../../base/errors.ts";
import type { Address } from "../../../base/sockets/connection.ts";
import { systemClock } from "../../../base/support/clock.ts";
import { type KeeperLimits, keeperLimitsDefault, keeperTimingDefaults } from "../state/keeper_limits.ts";
import { type KeeperNodeView, type KeeperOptions, KeeperServer, realKeeperSystem } from "./keeper_server.ts";
import type { KeeperStatistics } from "../protocol/keeper_report.ts";
import { readFileSync } from "node:fs";

export type { KeeperNodeView };

export interface Keeper extends AsyncDisposable {
  /** The addresses on which the keeper listens, with the ports that the system chose. */
  readonly addresses: readonly Address[];
  readonly limits: KeeperLimits;
  statistics(): KeeperStatistics;
  /**
   * Reads a node with the permissions of a client without credentials. Throws KeeperOperationError with NONODE or
   * NOAUTH.
   */
  readNode(path: string): KeeperNodeView;
  /**
   * Resolves when the keeper has ended, after `close` or because it was idle. Rejects with IO if its data cannot be
   * read.
   */
  readonly ended: Promise<void>;
  /** Ends the keeper; sessions and data stay for the next keeper. */
  close(): Promise<void>;
}

/** The largest value of the protocol's integer type. */
const timeoutMsMax = 0x7fffffff;

function isTimeout(milliseconds: number): boolean {
  return Number.isInteger(milliseconds) && milliseconds > 0 && milliseconds <= timeoutMsMax;
}

/**
 * Starts a keeper. Rejects with LOCK_BUSY if another keeper owns the data directory, with CONFIG for impossible
 * timeouts, with IO if the data cannot be read or written, or with CANNOT_CREATE if the keeper cannot listen.
 */
export async function startKeeper(options: KeeperOptions): Promise<Keeper> {
  const { tickTimeMs, sessionTimeoutMinMs, sessionTimeoutMaxMs, containerCheckMs } = {
    ...keeperTimingDefaults,
    ...options,
  };
  const isRange = isTimeout(sessionTimeoutMinMs) && isTimeout(sessionTimeoutMaxMs) &&
    sessionTimeoutMinMs <= sessionTimeoutMaxMs;
  if (!(tickTimeMs > 0 && isRange)) {
    throw new BatonError(
      "CONFIG",
      `A keeper cannot run with a tick of ${tickTimeMs} ms and sessions of ${sessionTimeoutMinMs} to ` +
        `${sessionTimeoutMaxMs} ms: the tick must be above 0; session timeouts are whole numbers from 1 to ` +
        `${timeoutMsMax}, the minimum first`,
    );
  }
  const wanted = { ...keeperLimitsDefault, ...options.limits };
  const limits = { ...wanted, connectionsMax: Math.min(wanted.connectionsMax, readProcessConnectionsMax()) };
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
    system: options.system ?? realKeeperSystem,
    log: options.log ?? (() => {}),
  });
  try {
    for (const address of options.listen) await server.listen(address, options.tls);
  } catch (error) {
    await server.close();
    throw error instanceof BatonError ? error : new BatonError("CANNOT_CREATE", errorMessage(error), { cause: error });
  }
  return server;
}

/** The number of file descriptors reserved for data, listeners, the runtime, and connections that are being closed. */
const otherDescriptors = 100;

/**
 * Returns the number of connections for which this process has descriptors. The system silently rejects further
 * connections. Returns Infinity if the limit is unknown, as on all systems except Linux.
 */
export function readProcessConnectionsMax(limits: string = ownLimits()): number {
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
