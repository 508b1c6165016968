/** What a keeper tells of itself, for the four-letter words and for /metrics. Lists are made when somebody wants them. */
import { type Address, formatAddress } from "../../sockets/connection.ts";
import { permission } from "../../wire/jute/zookeeper_operations.ts";
import { permits } from "../state/acl_check.ts";
import type { ClientConnection } from "./client_connection.ts";
import type { KeeperReport } from "./four_letter_words.ts";
import type { KeeperState } from "../state/keeper_state.ts";
import type { ZNode } from "../state/tree.ts";

export interface ReportSources {
  readonly options: Pick<KeeperReport, "tickTimeMs" | "sessionTimeoutMinMs" | "sessionTimeoutMaxMs" | "dataDir">;
  readonly connections: readonly ClientConnection[];
  /** Requests of connections that are gone. */
  readonly receivedBefore: number;
  readonly zxid: bigint;
  readonly writable: boolean;
  readonly addresses: readonly Address[];
}

/** A four-letter word comes without identities. */
function ephemeralsShown(
  nodes: readonly ZNode[],
): { readonly ephemerals: string[]; readonly ephemeralsHidden: number } {
  const shown = nodes.filter(({ acl }) => permits(acl, permission.read, []));
  return { ephemerals: shown.map(({ path }) => path), ephemeralsHidden: nodes.length - shown.length };
}

export function reportOf(state: KeeperState<ClientConnection>, sources: ReportSources): KeeperReport {
  const { tree, sessions, watches } = state;
  const { options, connections, zxid, writable } = sources;
  const received = connections.reduce((sum, connection) => sum + connection.received, sources.receivedBefore);
  const waiting = connections.reduce((sum, connection) => sum + connection.outstanding, 0);
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
    tickTimeMs: options.tickTimeMs,
    sessionTimeoutMinMs: options.sessionTimeoutMinMs,
    sessionTimeoutMaxMs: options.sessionTimeoutMaxMs,
    dataDir: options.dataDir,
    listen: sources.addresses.map(formatAddress),
    writable,
    sessionCount: sessions.size,
    connections: connections.map(({ peer, session, received, outstanding }) => ({
      peer,
      session: session?.id ?? null,
      received,
      outstanding,
    })),
    get sessions() {
      return [...sessions.all].map(({ id, timeoutMs }) => ({
        id,
        timeoutMs,
        ...ephemeralsShown([...tree.ephemeralsOf(id)]),
      }));
    },
  };
}
