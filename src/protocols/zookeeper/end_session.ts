/**
 * Ends the session of another process, which must be dead; the server then deletes the session's ephemeral nodes. Also
 * finds out the length of the servers' tick, which they do not report: opens a session with the shortest timeout, which
 * is two ticks.
 */
import { resolve } from "node:path";
import { dial } from "../../base/sockets/dial.ts";
import { currentTlsOptions, type Dial, type TlsFileNames, type TlsSource } from "../../base/sockets/connection.ts";
import { type ResolveHost, resolveHost } from "../../base/sockets/resolve_host.ts";
import { backoffMs, requestBackoff } from "../../base/support/backoff.ts";
import type { Clock } from "../../base/support/clock.ts";
import { deadlineAfter, sleep } from "../../base/support/deadline.ts";
import { ZooKeeperConnector } from "./connector.ts";
import { ZooKeeperHosts, type ZooKeeperServerList } from "./hosts.ts";
import { onAbort } from "../../base/support/abort.ts";
import { ByteReader } from "../../base/wire/bytes.ts";
import { encodeLengthFrame } from "../../base/wire/length_frame.ts";
import { zooKeeperOperations } from "./jute/zookeeper_operations.ts";
import { ReplyHeader, RequestHeader } from "./jute/zookeeper_records.ts";
import type { EstablishedConnection } from "./establish.ts";
import { isSessionResumable, type SessionIdentity, type ZooKeeperCredentials } from "./handshake.ts";
import type { ZooKeeperSession } from "./zookeeper.ts";

interface EndSessionOptions {
  readonly clock: Clock;
  /** The time limit in milliseconds. When it has passed, the session is not ended but will expire. */
  readonly limitMs: number;
  readonly dial?: Dial;
  readonly resolve?: ResolveHost;
}

/** Limits that prevent one hanging server from using up all the time, in milliseconds. */
const staggerMs = 200;
const attemptMs = 2000;

/**
 * Ends the session that a text of `encodeSessionHandle` describes. Resolves with true if the session has ended, and
 * with false if that is unknown. Never rejects.
 */
export async function endSessionOfDeadProcess(word: string, options: EndSessionOptions): Promise<boolean> {
  const { clock, limitMs } = options;
  const { servers, tls, auth, identity } = await decodeSessionHandle(word);
  if (!isSessionResumable(identity)) return false; // only the session's own connection can end such a session
  const hosts = new ZooKeeperHosts(servers, { resolve: options.resolve ?? resolveHost, clock });
  const connector = new ZooKeeperConnector(hosts, { dial: options.dial ?? dial, clock, tls, auth, asksPorts: false });
  // Resumes the session with a timeout of 1 ms, so that it expires soon if closing it fails.
  const wanted = { identity, timeoutMs: 1, lastZxid: 0n };
  using deadline = deadlineAfter(clock, limitMs, { reason: () => null });
  try {
    for (let failures = 0;; failures++) {
      const outcome = await connector.tryEachServer(wanted, { attemptMs, staggerMs, signal: deadline.signal });
      if (outcome.kind === "expired") return !outcome.isReplaced;
      if (outcome.kind === "refused") return false;
      const err = outcome.kind === "accepted" ? await closeSessionOn(outcome.established, deadline.signal) : null;
      if (err !== null) return err === 0; // the server would return other errors again
      await sleep(clock, backoffMs(failures, requestBackoff), deadline.signal);
    }
  } catch {
    return false; // the time limit is over
  }
}

/**
 * Sends closeSession and waits for the response, until the server closes the connection or the signal aborts. Then
 * closes the connection. Resolves with the response's error code (0 for success); with null if there was no response.
 * Never rejects.
 */
function closeSessionOn(
  { accepted, stream }: EstablishedConnection,
  signal: AbortSignal,
): Promise<number | null> {
  const xid = accepted.nextXid;
  return new Promise((resolve) => {
    let offAbort = () => {};
    const over = (err: number | null) => {
      offAbort();
      stream.destroy();
      resolve(err);
    };
    offAbort = onAbort(signal, () => over(null));
    stream.listen({
      onFrame(bytes) {
        const reply = ReplyHeader.read(new ByteReader(bytes));
        if (reply.xid === xid) over(reply.err);
      },
      onChunkEnd() {},
      onClosed: () => over(null),
    });
    stream.send(
      encodeLengthFrame((writer) => RequestHeader.write(writer, { xid, type: zooKeeperOperations.closeSession.code })),
    );
  });
}

/**
 * Returns the shortest session timeout that the servers grant, in milliseconds, by opening and closing a session with a
 * timeout of 1 ms. Returns null if no server responds in time. Never rejects.
 */
export async function probeShortestSessionTimeout(connector: ZooKeeperConnector, { clock, attemptMs, signal }: {
  readonly clock: Clock;
  readonly attemptMs: number;
  readonly signal: AbortSignal;
}): Promise<number | null> {
  try {
    const wanted = { identity: null, timeoutMs: 1, lastZxid: 0n };
    const outcome = await connector.tryEachServer(wanted, { attemptMs, staggerMs: attemptMs, signal });
    if (outcome.kind !== "accepted") return null;
    // Does not wait for the response to closeSession, because such a short session expires soon anyway.
    const limit = deadlineAfter(clock, attemptMs, { signal, reason: () => null });
    void closeSessionOn(outcome.established, limit.signal).then(() => limit.cancel());
    return outcome.established.accepted.timeoutMs;
  } catch {
    return null; // the session that needs the result has ended
  }
}

/**
 * Everything that another process needs to end a session or to keep it alive. It is secret; a private pipe carries it
 * as one word of text.
 */
interface SessionHandle {
  readonly servers: ZooKeeperServerList;
  readonly tls?: TlsSource | undefined;
  /**
   * The credentials of the session. Servers with enforce.auth.enabled accept no request, not even closeSession, before
   * they have received credentials.
   */
  readonly auth: readonly ZooKeeperCredentials[];
  readonly identity: SessionIdentity;
  readonly timeoutMs: number;
}

export function encodeSessionHandle(
  { servers, tls, auth = [] }: Pick<SessionHandle, "servers" | "tls"> & Partial<Pick<SessionHandle, "auth">>,
  { id, password, timeoutMs }: Pick<ZooKeeperSession, "id" | "password" | "timeoutMs">,
): string {
  const tlsFiles = tls !== undefined && "names" in tls ? absolute(tls.names) : undefined;
  const text = JSON.stringify({
    servers,
    tls: currentTlsOptions(tls),
    tlsFiles,
    auth,
    timeoutMs,
    id: String(id),
    password: [...password],
  });
  return encodeURIComponent(text);
}

/** Decodes a text that `encodeSessionHandle` has made. Throws for any other text. */
export async function decodeSessionHandle(word: string): Promise<SessionHandle> {
  const { id, password, tls, tlsFiles, ...rest } = JSON.parse(decodeURIComponent(word)) as
    & Omit<SessionHandle, "identity">
    & { readonly id: string; readonly password: readonly number[]; readonly tlsFiles?: TlsFileNames };
  return {
    ...rest,
    tls: tlsFiles === undefined ? tls : (await renewedTls(tlsFiles)) ?? tls,
    identity: { id: BigInt(id), password: new Uint8Array(password) },
  };
}

/** Makes file names absolute, because the process that ends the session has another working directory. */
function absolute({ ca, cert, key, ...rest }: TlsFileNames): TlsFileNames {
  const pathOf = (name: string | undefined) => name === undefined ? undefined : resolve(name);
  return { ...rest, ca: pathOf(ca), cert: pathOf(cert), key: pathOf(key) };
}

/** Reads the TLS files again, because they may have been renewed. Returns null if they cannot be used now. */
async function renewedTls(names: TlsFileNames): Promise<TlsSource | null> {
  try {
    const { TlsFiles } = await import("../../base/sockets/tls_files.ts"); // few servers need it
    return new TlsFiles(names);
  } catch {
    return null;
  }
}
