/** One attempt to connect to one server and to complete the handshake. */
import { BatonError } from "../../base/errors.ts";
import type { Dial, TlsOptions, TlsSource } from "../../base/sockets/connection.ts";
import { isIpLiteral } from "../../base/sockets/resolve_host.ts";
import { CleanupScope, onAbort, rejectOnAbort, throwIfAborted } from "../../base/support/abort.ts";
import type { Clock } from "../../base/support/clock.ts";
import { newGuid } from "../../base/support/guid.ts";
import { systemErrorCode } from "../../base/sockets/describe_failure.ts";
import { FrameStream } from "../../base/sockets/frame_stream.ts";
import {
  type AcceptedSession,
  SessionHandshake,
  type SessionIdentity,
  type ZooKeeperCredentials,
} from "./handshake.ts";
import type { ZooKeeperServerEndpoint } from "./hosts.ts";
import { WrongProtocolError } from "./permanent_error.ts";

/** The options that all attempts of a client share. */
export interface EstablishOptions {
  readonly dial: Dial;
  readonly clock: Clock;
  readonly tls?: TlsSource | undefined;
  /** True to find out whether a port that closes connections without a response uses TLS. */
  readonly asksPorts: boolean;
  readonly auth: readonly ZooKeeperCredentials[];
  readonly startServer?: (() => Promise<void>) | undefined;
}

export interface SessionRequest {
  /** The session to resume; null asks for a new one. */
  readonly identity: SessionIdentity | null;
  readonly timeoutMs: number;
  readonly lastZxid: bigint;
}

export interface EstablishedConnection {
  readonly endpoint: ZooKeeperServerEndpoint;
  readonly stream: FrameStream;
  readonly accepted: AcceptedSession;
  readonly connectSentMs: number;
  /** The last transaction (zxid) that this client has seen. A server that has not seen it refuses the connection. */
  readonly lastZxid: bigint;
}

/** The error of a port that accepted the connection and closed it without a response. */
class SilentClose extends Error {}

/**
 * Returns true if a port closed the connection without a response. A port of another protocol does this, and so does a
 * busy server.
 */
export function isSilentCloseError(error: unknown): boolean {
  return error instanceof SilentClose || systemErrorCode(error) === "ECONNRESET";
}

/** The result if the server no longer knows the session. */
export const sessionExpiredOutcome = Symbol("expired");

/**
 * Makes one attempt. Resolves with a connection that is ready for requests, or with `sessionExpiredOutcome`. Rejects
 * with a system error, a BatonError, or the signal's reason. Calls `progress` with what the attempt is waiting for.
 */
export async function establishConnection(
  endpoint: ZooKeeperServerEndpoint,
  wanted: SessionRequest,
  { options, tls, signal, progress }: {
    readonly options: EstablishOptions;
    /** The current content of the TLS files. */
    readonly tls: TlsOptions | undefined;
    readonly signal: AbortSignal;
    readonly progress: (waitingFor: string) => void;
  },
): Promise<EstablishedConnection | typeof sessionExpiredOutcome> {
  const sasl = options.auth.find((credentials) => credentials.scheme === "sasl");
  const handshake = new SessionHandshake({
    ...wanted,
    auth: options.auth.filter((credentials) => credentials.scheme !== "sasl"),
    // Imported only if SASL is used, because node:crypto is slow to load.
    sasl: sasl === undefined
      ? null
      : (await import("./sasl_digest_md5.ts")).startSaslDigestMd5(sasl.credentials, newGuid()),
  });
  const outcome = Promise.withResolvers<AcceptedSession | typeof sessionExpiredOutcome>();
  outcome.promise.catch(() => {}); // prevents an unhandled rejection if connecting fails first
  const stream = new FrameStream({
    onFrame(frame) {
      const step = handshake.receive(frame);
      progress(`no response to ${handshake.stage}`);
      if (step.kind === "send") { for (const bytes of step.bytes) stream.send(bytes); }
      else if (step.kind === "expired") outcome.resolve(sessionExpiredOutcome);
      else if (step.kind === "accepted") outcome.resolve(step);
    },
    onChunkEnd() {},
    onClosed(error) {
      const isWrong = !handshake.hasResponse && error instanceof BatonError && error.code === "PROTOCOL";
      if (isWrong) outcome.reject(wrongProtocol(error, { isTls: tls !== undefined }));
      else if (error === null && !handshake.hasResponse) {
        const hint = endpoint.address.kind === "unix" ? keeperCloseHint : silentCloseHint(wanted, tls);
        outcome.reject(new SilentClose(`closed the connection during ${handshake.stage}${hint}`));
      } else outcome.reject(error ?? new Error(`closed the connection during ${handshake.stage}`));
    },
  });
  const dialOptions = { ...(tls === undefined ? {} : { tls: tlsFor(tls, endpoint) }), signal };
  progress("no connection");
  const connection = await dialOrStart(endpoint, options, {
    signal,
    dialNow: () => options.dial(endpoint.address, stream, dialOptions),
  });
  stream.attach(connection);
  using _abort = new CleanupScope(onAbort(signal, (reason) => outcome.reject(reason)));
  try {
    throwIfAborted(signal);
    progress(`no response to ${handshake.stage}`);
    const connectSentMs = options.clock.now();
    connection.write(handshake.begin());
    const accepted = await outcome.promise;
    if (accepted !== sessionExpiredOutcome) {
      return { endpoint, stream, accepted, connectSentMs, lastZxid: wanted.lastZxid };
    }
    stream.destroy();
    return sessionExpiredOutcome;
  } catch (error) {
    stream.destroy();
    throw error;
  }
}

/** The reason why a keeper closes a connection of a Unix socket without a response. */
const keeperCloseHint = " (the keeper could not open the session; its log says why)";

/** Lists possible reasons why a server closes the connection without a response. */
function silentCloseHint({ identity }: SessionRequest, tls: TlsOptions | undefined): string {
  if (tls?.cert !== undefined) {
    return " (a server without a quorum does that, and so does one that does not accept the certificate in tls.cert)";
  }
  if (identity !== null) return "";
  return ` (a server without a quorum does that${tls === undefined ? ", and so does a port that needs TLS" : ""})`;
}

/** Makes the error for an unreadable first response, which probably comes from a web server or a port with TLS. */
function wrongProtocol(error: BatonError, { isTls }: { readonly isTls: boolean }): WrongProtocolError {
  const hint = isTls ? "" : "; does this port need TLS?";
  const message = `the port does not use ZooKeeper's protocol (${error.message})${hint}`;
  return new WrongProtocolError(error.code, message, { cause: error });
}

/** Connects. If no process listens at a Unix socket, starts the local server and connects again. */
async function dialOrStart<T>(
  endpoint: ZooKeeperServerEndpoint,
  { startServer }: EstablishOptions,
  { dialNow, signal }: {
    readonly dialNow: () => Promise<T>;
    readonly signal: AbortSignal;
  },
): Promise<T> {
  try {
    return await dialNow();
  } catch (error) {
    if (endpoint.address.kind !== "unix" || startServer === undefined || !isNotListening(error)) throw error;
    await rejectOnAbort(startServer(), signal);
    return await dialNow();
  }
}

function isNotListening(error: unknown): boolean {
  const code = systemErrorCode(error);
  return code === "ENOENT" || code === "ECONNREFUSED";
}

function tlsFor(tls: TlsOptions, { host }: ZooKeeperServerEndpoint): TlsOptions {
  // The certificate contains the host name that the user wrote, not the resolved address.
  return tls.serverName !== undefined || isIpLiteral(host) ? tls : { ...tls, serverName: host };
}
