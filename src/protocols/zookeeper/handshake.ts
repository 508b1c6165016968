/**
 * The exchange on a new connection before it can carry requests: ConnectRequest, SASL, auth packets. Uses no socket.
 * The ConnectRequest is sent alone: a server that refuses the session responds and closes the connection. If more bytes
 * were on their way, the server's kernel might reset the connection, and the response would be lost
 * (ClientCnxnSocketNIO).
 */
import { ByteReader, protocolError } from "../../base/wire/bytes.ts";
import { zooKeeperErrorNumbers } from "./jute/zookeeper_error_codes.ts";
import { encodeLengthFrame } from "../../base/wire/length_frame.ts";
import { saslOperationCode, specialXid, zooKeeperOperations } from "./jute/zookeeper_operations.ts";
import { AuthPacket, ReplyHeader, RequestHeader, SaslToken } from "./jute/zookeeper_records.ts";
import { connectRequestCodec, connectResponseCodec } from "./jute/session_frames.ts";
import type { SaslExchange } from "./sasl_digest_md5.ts";
import { ZooKeeperError } from "./zookeeper_error.ts";

/**
 * Credentials of a client, for one authentication scheme: `digest`, `sasl` (SASL DIGEST-MD5), or another scheme that
 * the server knows. `digest` and `sasl` take `user:password`.
 */
export interface ZooKeeperCredentials {
  readonly scheme: string;
  readonly credentials: string;
}

export interface SessionIdentity {
  readonly id: bigint;
  readonly password: Uint8Array;
}

/**
 * Returns true if the servers can resume the session on another connection. ClickHouse Keeper cannot: it gives every
 * session a password of zeros, and opens a new session instead of resuming one (KeeperTCPHandler; ClickHouse issue
 * 116690).
 */
export function isSessionResumable({ password }: Pick<SessionIdentity, "password">): boolean {
  return password.some((byte) => byte !== 0);
}

export interface SessionHandshakeOptions {
  /** The session to resume; null to open a new session. */
  readonly identity: SessionIdentity | null;
  readonly timeoutMs: number;
  readonly lastZxid: bigint;
  /** Credentials to send as auth packets, in this order. */
  readonly auth: readonly ZooKeeperCredentials[];
  readonly sasl: SaslExchange | null;
}

export interface AcceptedSession {
  readonly kind: "accepted";
  readonly identity: SessionIdentity;
  readonly timeoutMs: number;
  /** The first xid that the connection has not used. */
  readonly nextXid: number;
}

export type SessionHandshakeStep =
  | { readonly kind: "send"; readonly bytes: Uint8Array[] }
  | { readonly kind: "wait" }
  | { readonly kind: "expired" }
  | AcceptedSession;

/** The largest timeout that the protocol can express, in milliseconds. No server grants it. */
const timeOutMax = 0x7fffffff;

export class SessionHandshake {
  readonly #options: SessionHandshakeOptions;
  #accepted: Omit<AcceptedSession, "kind" | "nextXid"> | null = null;
  #stage: "session" | "SASL" | "authentication" = "session";
  /** True if the server has sent a readable response to the ConnectRequest, even a refusal. */
  hasResponse = false;
  #xid = 1;
  #authReplies = 0;

  constructor(options: SessionHandshakeOptions) {
    this.#options = options;
  }

  /** The step that waits for a response, as a name for messages. */
  get stage(): string {
    return this.#stage === "session" ? "the handshake" : this.#stage === "SASL" ? "SASL" : "the authentication";
  }

  /** Returns the first frame to send on the connection, the ConnectRequest. */
  begin(): Uint8Array {
    const { identity, timeoutMs, lastZxid } = this.#options;
    return encodeLengthFrame((writer) =>
      connectRequestCodec.write(writer, {
        protocolVersion: 0,
        lastZxidSeen: lastZxid,
        timeOut: Math.min(Math.round(timeoutMs), timeOutMax),
        sessionId: identity?.id ?? 0n,
        passwd: identity?.password ?? new Uint8Array(16),
        readOnly: false,
      })
    );
  }

  /**
   * Handles a frame from the server, and returns the next step. Throws PROTOCOL for unreadable bytes, and AUTHFAILED if
   * the server refuses the credentials.
   */
  receive(frame: Uint8Array): SessionHandshakeStep {
    const reader = new ByteReader(frame);
    switch (this.#stage) {
      case "session":
        return this.#receiveSession(reader);
      case "SASL":
        return this.#receiveSasl(reader);
      case "authentication":
        return this.#receiveAuth(reader);
    }
  }

  #receiveSession(reader: ByteReader): SessionHandshakeStep {
    const response = connectResponseCodec.read(reader);
    this.hasResponse = true;
    if (response.timeOut <= 0) return { kind: "expired" };
    if (response.readOnly) throw protocolError("The server is read-only: it has lost its quorum");
    if (response.passwd === null) throw protocolError("The server sent no password for the session");
    const identity = { id: response.sessionId, password: response.passwd };
    this.#accepted = { identity, timeoutMs: response.timeOut };
    if (this.#options.sasl === null) return this.#beginAuth();
    this.#stage = "SASL";
    // Sends an empty token, which asks the server for the first message of DIGEST-MD5.
    return { kind: "send", bytes: [this.#saslFrame(new Uint8Array(0))] };
  }

  #receiveSasl(reader: ByteReader): SessionHandshakeStep {
    const { err } = ReplyHeader.read(reader);
    if (err !== 0) throw authFailed("sasl", err);
    const { token } = SaslToken.read(reader);
    if (token === null) throw authFailed("sasl", zooKeeperErrorNumbers.AUTHFAILED);
    const answer = this.#options.sasl?.next(token) ?? null;
    return answer === null ? this.#beginAuth() : { kind: "send", bytes: [this.#saslFrame(answer)] };
  }

  #beginAuth(): SessionHandshakeStep {
    if (this.#options.auth.length === 0) return this.#finish();
    this.#stage = "authentication";
    return {
      kind: "send",
      bytes: this.#options.auth.map(({ scheme, credentials }) =>
        encodeLengthFrame((writer) => {
          RequestHeader.write(writer, { xid: specialXid.auth, type: zooKeeperOperations.auth.code });
          AuthPacket.write(writer, { type: 0, scheme, auth: new TextEncoder().encode(credentials) });
        })
      ),
    };
  }

  #receiveAuth(reader: ByteReader): SessionHandshakeStep {
    const { err } = ReplyHeader.read(reader);
    if (err !== 0) throw authFailed(this.#options.auth[this.#authReplies]?.scheme ?? "", err);
    return ++this.#authReplies === this.#options.auth.length ? this.#finish() : { kind: "wait" };
  }

  #finish(): SessionHandshakeStep {
    if (this.#accepted === null) throw protocolError("The server accepted credentials without a session");
    return { kind: "accepted", ...this.#accepted, nextXid: this.#xid };
  }

  #saslFrame(token: Uint8Array): Uint8Array {
    return encodeLengthFrame((writer) => {
      RequestHeader.write(writer, { xid: this.#xid++, type: saslOperationCode });
      SaslToken.write(writer, { token });
    });
  }
}

function authFailed(scheme: string, err: number): ZooKeeperError {
  const why = err === -115 ? "AUTHFAILED: unknown scheme or wrong credentials" : `error ${err}`;
  return new ZooKeeperError("AUTHFAILED", `The server refused the credentials of scheme "${scheme}" (${why})`);
}
