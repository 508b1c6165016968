/**
 * Collects what the four-letter words and /metrics show about a running keeper. Facts that are slow to compute are
 * getters, so that they are computed only when they are read.
 */
import { type Address, formatAddress } from "../../../base/sockets/connection.ts";
import { aclPermission } from "../../../protocols/zookeeper/jute/zookeeper_operations.ts";
import { isPermittedByAcl } from "../state/acl_check.ts";
import type { KeeperClientConnection } from "./client_connection.ts";
import type { KeeperState } from "../state/keeper_state.ts";
import type { ZNode } from "../state/tree.ts";
import type { Histogram } from "../../../base/support/histogram.ts";
import type { KeeperReport } from "./four_letter_words.ts";

export interface KeeperReportSources extends Pick<KeeperReport, "options" | "zxid" | "writable"> {
  readonly connections: readonly KeeperClientConnection[];
  /** The number of requests received on connections that have ended. */
  readonly receivedBefore: number;
  readonly addresses: readonly Address[];
}

/**
 * Returns the ephemeral nodes that a client without an identity may read, because a client that sends a four-letter
 * word has no identity.
 */
function listableEphemerals(nodes: readonly ZNode[]) {
  const shown = nodes.filter(({ acl }) => isPermittedByAcl(acl, aclPermission.read, []));
  return { ephemerals: shown.map(({ path }) => path), ephemeralsHidden: nodes.length - shown.length };
}

export function buildKeeperReport(
  state: KeeperState<KeeperClientConnection>,
  sources: KeeperReportSources,
): KeeperReport {
  const { tree, sessions, watches } = state;
  const { options, connections, zxid, writable } = sources;
  const received = connections.reduce((sum, connection) => sum + connection.receivedCount, sources.receivedBefore);
  const waiting = connections.reduce((sum, connection) => sum + connection.outstandingCount, 0);
  return {
    zxid,
    nodes: tree.size,
    dataBytes: tree.bytes,
    get ephemerals() {
      return tree.ephemeralCount;
    },
    watches: watches.count,
    watchedPaths: watches.data.pathCount + watches.children.pathCount,
    get watchingConnections() {
      return new Set([...watches.data.watchers, ...watches.children.watchers]).size;
    },
    received,
    sent: received - waiting,
    options,
    listen: sources.addresses.map(formatAddress),
    writable,
    sessionCount: sessions.size,
    connections: connections.map(({ peer, session, receivedCount: received, outstandingCount: outstanding }) => ({
      peer,
      session: session?.id ?? null,
      received,
      outstanding,
    })),
    get sessions() {
      return [...sessions.all].map(({ id, timeoutMs }) => ({
        id,
        timeoutMs,
        ...listableEphemerals([...tree.ephemeralsOf(id)]),
      }));
    },
  };
}

/** The bounds of the histogram of commit durations, in seconds. They range from a fast flush to a failing disk. */
export const keeperCommitSecondsBounds = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5];

type KeeperCounts =
  & Pick<KeeperReport, "nodes" | "dataBytes" | "ephemerals" | "watches" | "received" | "writable" | "zxid">
  & { readonly connections: number; readonly sessions: number; readonly outstanding: number };

export interface KeeperStatistics extends KeeperCounts {
  readonly commitSeconds: Histogram;
  readonly commitsFailed: number;
  /** Bytes in the read buffers of connections that hold more than a few kilobytes. */
  readonly heldBytes: number;
  /** Bytes of responses that clients have not read, on connections that hold more than a few kilobytes. */
  readonly unsentBytes: number;
}

export function summarizeKeeperReport(report: KeeperReport): KeeperCounts {
  const { nodes, dataBytes, ephemerals, watches, received, sent, writable, zxid } = report;
  const counts = {
    connections: report.connections.length,
    sessions: report.sessionCount,
    outstanding: received - sent,
  };
  return { nodes, dataBytes, ephemerals, watches, received, writable, zxid, ...counts };
}
