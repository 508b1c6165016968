/**
 * Answers the four-letter words: text commands that a client may send instead of opening a session. Source: ServerCnxn.
 */

export interface KeeperReport {
  readonly zxid: bigint;
  readonly nodes: number;
  /** The bytes of all paths, data and ACLs. */
  readonly dataBytes: number;
  readonly ephemerals: number;
  readonly watches: number;
  readonly watchedPaths: number;
  readonly watchingConnections: number;
  readonly received: number;
  readonly sent: number;
  readonly options: Readonly<Record<"tickTimeMs" | "sessionTimeoutMinMs" | "sessionTimeoutMaxMs", number>> & {
    readonly dataDir: string;
  };
  readonly listen: readonly string[];
  readonly writable: boolean;
  readonly connections: readonly {
    readonly peer: string;
    readonly session: bigint | null;
    readonly received: number;
    readonly outstanding: number;
  }[];
  readonly sessionCount: number;
  readonly sessions: readonly {
    readonly id: bigint;
    readonly timeoutMs: number;
    /** Paths of the ephemeral nodes that all clients may read. */
    readonly ephemerals: readonly string[];
    /** The number of other ephemeral nodes. */
    readonly ephemeralsHidden: number;
  }[];
}

/** The version that the keeper reports. Clients parse this text. The keeper speaks the protocol of ZooKeeper 3.8. */
const version = "3.8.0-baton, built on 2026-01-01 00:00 UTC";

const words: Readonly<Record<string, (report: KeeperReport) => string[]>> = {
  ruok: () => ["imok"],
  isro: ({ writable }) => [writable ? "rw" : "ro"],
  srvr: (report) => [`Zookeeper version: ${version}`, ...summaryLines(report)],
  stat: (report) => [`Zookeeper version: ${version}`, "Clients:", ...clientLines(report), "", ...summaryLines(report)],
  cons: (report) => [...clientLines(report), ""],
  envi: (report) => ["Environment:", `zookeeper.version=${version}`, `user.dir=${report.options.dataDir}`],
  conf: ({ options, listen }) => [
    ...listen.map((address) => `listen=${address}`),
    `dataDir=${options.dataDir}`,
    `tickTime=${options.tickTimeMs}`,
    `minSessionTimeout=${options.sessionTimeoutMinMs}`,
    `maxSessionTimeout=${options.sessionTimeoutMaxMs}`,
    "serverId=0",
  ],
  mntr: (report) => [
    `zk_version\t${version}`,
    "zk_server_state\tstandalone",
    `zk_packets_received\t${report.received}`,
    `zk_packets_sent\t${report.sent}`,
    `zk_num_alive_connections\t${report.connections.length}`,
    `zk_outstanding_requests\t${report.received - report.sent}`,
    `zk_znode_count\t${report.nodes}`,
    `zk_watch_count\t${report.watches}`,
    `zk_ephemerals_count\t${report.ephemerals}`,
    `zk_approximate_data_size\t${report.dataBytes}`,
    `zk_global_sessions\t${report.sessionCount}`,
  ],
  dump: (report) => [
    "SessionTracker dump:",
    `Sessions (${report.sessions.length}):`,
    ...report.sessions.map(({ id, timeoutMs }) => `\t${hex(id)}\t${timeoutMs}ms`),
    "ephemeral nodes dump:",
    `Sessions with Ephemerals (${report.sessions.filter(hasEphemerals).length}):`,
    ...report.sessions.filter(hasEphemerals).flatMap(({ id, ephemerals, ephemeralsHidden }) => [
      `${hex(id)}:`,
      ...ephemerals.map((path) => `\t${path}`),
      ...(ephemeralsHidden === 0 ? [] : [`\t${ephemeralsHidden} hidden by their ACL`]),
    ]),
  ],
  wchs: (report) => [
    `${report.watchingConnections} connections watching ${report.watchedPaths} paths`,
    `Total watches:${report.watches}`,
  ],
};

function hasEphemerals({ ephemerals, ephemeralsHidden }: KeeperReport["sessions"][number]): boolean {
  return ephemerals.length + ephemeralsHidden > 0;
}

export function isFourLetterWord(word: string): boolean {
  return Object.hasOwn(words, word);
}

export function fourLetterResponse(word: string, report: KeeperReport): string {
  const lines = words[word]?.(report) ?? [];
  return lines.length === 1 ? lines.join("") : `${lines.join("\n")}\n`;
}

function summaryLines(report: KeeperReport): string[] {
  return [
    `Received: ${report.received}`,
    `Sent: ${report.sent}`,
    `Connections: ${report.connections.length}`,
    `Outstanding: ${report.received - report.sent}`,
    `Zxid: ${hex(report.zxid)}`,
    "Mode: standalone",
    `Node count: ${report.nodes}`,
  ];
}

function clientLines(report: KeeperReport): string[] {
  return report.connections.map(({ peer, session, received, outstanding }) => {
    const sid = session === null ? "" : `,sid=${hex(session)}`;
    const counts = `queued=${outstanding},recved=${received},sent=${received - outstanding}`;
    return ` /${peer}[${session === null ? 0 : 1}](${counts}${sid})`;
  });
}

function hex(number: bigint): string {
  return `0x${number.toString(16)}`;
}
