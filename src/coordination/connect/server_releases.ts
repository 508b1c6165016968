/**
 * Finds servers whose releases can lose acknowledged writes or end sessions that are alive. Asks each server with the
 * four-letter word srvr.
 */
import {
  type Address,
  currentTlsOptions,
  type Dial,
  formatAddress,
  type TlsSource,
} from "../../base/sockets/connection.ts";
import { CleanupScope, onAbort } from "../../base/support/abort.ts";
import type { Clock } from "../../base/support/clock.ts";
import { deadlineAfter } from "../../base/support/deadline.ts";

export interface ServerReleaseOptions {
  readonly addresses: readonly Address[];
  readonly tls?: TlsSource | undefined;
  readonly dial: Dial;
  readonly clock: Clock;
}

export interface ServerReleaseFault {
  readonly server: string;
  /** The problem, as a sentence without a full stop. */
  readonly what: string;
}

/** The time limit for one server, in milliseconds. All servers are asked at the same time. */
const answerMsMax = 2000;
/** The longest answer, in bytes. Answers to srvr have some hundred bytes. */
const answerBytesMax = 16_384;

/** Asks all servers. A server that does not answer, or does not allow srvr, gives no finding. */
export async function checkServerReleases(options: ServerReleaseOptions): Promise<ServerReleaseFault[]> {
  const remote = options.addresses.filter(({ kind }) => kind === "tcp");
  const findings = await Promise.all(remote.map(async (address): Promise<ServerReleaseFault[]> => {
    const answer = await askServer(address, options).catch(() => "");
    const server = formatAddress(address);
    return [zooKeeperReleaseFault(answer), clickHouseSessionFault(answer)].flatMap((
      what,
    ) => (what === null ? [] : [{ server, what }]));
  }));
  return findings.flat();
}

/**
 * Returns what is wrong with the ZooKeeper release in an answer to srvr. Returns null for other releases, a standalone
 * server, or any other text. Sources: ZOOKEEPER-4785 (fixed in 3.8.5 and 3.9.2), ZOOKEEPER-4925 (3.9.3 only).
 */
export function zooKeeperReleaseFault(answer: string): string | null {
  const found = /^Zookeeper version: (\d+)\.(\d+)\.(\d+)/m.exec(answer);
  const mode = /^Mode: (\w+)/m.exec(answer)?.[1];
  if (found === null || mode === undefined || mode === "standalone") return null;
  const [major = 0, minor = 0, patch = 0] = found.slice(1).map(Number);
  const release = `${major}.${minor}.${patch}`;
  const isBefore = (otherMinor: number, otherPatch: number) =>
    major < 3 || (major === 3 && (minor < otherMinor || (minor === otherMinor && patch < otherPatch)));
  const fault = release === "3.9.3"
    ? { issue: "ZOOKEEPER-4925", fixed: "3.9.4" }
    : isBefore(8, 5) || (major === 3 && minor === 9 && patch < 2)
    ? { issue: "ZOOKEEPER-4785", fixed: minor === 9 ? "3.9.4" : "3.8.5 or 3.9.4" }
    : null;
  if (fault === null) return null;
  return `ZooKeeper ${release} can lose acknowledged writes when servers of the ensemble are restarted ` +
    `(${fault.issue}): use ${fault.fixed} or later`;
}

/**
 * Returns how ClickHouse Keeper can end a session that is alive; null for a standalone server or another program. The
 * leader of ClickHouse Keeper does not learn of reads that a follower answers (ClickHouse issue 111102, open for 26.9).
 * ZooKeeper has no such problem: its followers report their sessions to the leader.
 */
export function clickHouseSessionFault(answer: string): string | null {
  const release = /^ClickHouse Keeper version: (\S+)/m.exec(answer)?.[1];
  const mode = /^Mode: (\w+)/m.exec(answer)?.[1];
  if (release === undefined || mode === undefined || mode === "standalone") return null;
  return `ClickHouse Keeper ${release} can expire the session of a client that only reads from a follower ` +
    "(ClickHouse issue 111102): holders of locks send heartbeats through the leader, " +
    "but programs that only watch may lose their sessions";
}

async function askServer(address: Address, { tls: source, dial, clock }: ServerReleaseOptions): Promise<string> {
  const tls = currentTlsOptions(source);
  using deadline = deadlineAfter(clock, answerMsMax, { reason: () => new Error("no answer") });
  const answered = Promise.withResolvers<void>();
  answered.promise.catch(() => {}); // the promise is awaited only after the connection is open
  let text = "";
  const decoder = new TextDecoder();
  const connection = await dial(address, {
    onData(chunk) {
      text += decoder.decode(chunk, { stream: true });
      if (text.length > answerBytesMax) connection.destroy();
    },
    onClosed: (error) => (error === null ? answered.resolve() : answered.reject(error)),
  }, { signal: deadline.signal, ...(tls === undefined ? {} : { tls }) });
  using _limit = new CleanupScope(onAbort(deadline.signal, () => connection.destroy()));
  connection.write(new TextEncoder().encode("srvr"));
  await answered.promise;
  return text;
}
