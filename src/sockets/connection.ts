/** What the layers above know of a byte stream. How it is made is in dial.ts and listen.ts, the only files that import node:net and node:tls. */

/** Where to connect to or listen on. */
export type Address =
  | { readonly kind: "tcp"; readonly host: string; readonly port: number }
  | { readonly kind: "unix"; readonly path: string };

/** TLS settings; file contents (PEM), not file names. */
export interface TlsOptions {
  /** Certificates to trust instead of the system's. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly passphrase?: string;
  /** The name the server's certificate must carry; the host name when left out. */
  readonly serverName?: string;
}

/** What a connection tells its owner. After `closed` nothing more is called. */
export interface ConnectionHandlers {
  /** The chunk belongs to the receiver for the length of the call only. */
  data(chunk: Uint8Array): void;
  /** The stream is over, by either side; `error` says why when it was not an orderly end. Called exactly once. */
  closed(error: Error | null): void;
  /**
   * With `halfOpen`: the peer sends no more, and can be sent to until this side ends as well; then `closed` follows. Where
   * this side had ended before, `closed` may come alone.
   */
  ended?(): void;
  /** Everything written has left this process. */
  drained?(): void;
}

export interface Connection {
  /** Queues bytes; what is not yet sent is counted in `bufferedBytes`. The bytes must not be changed afterwards. */
  write(bytes: Uint8Array): void;
  /** Bytes written that the kernel has not taken yet. */
  readonly bufferedBytes: number;
  /** The other end, for messages: `host:port` or the socket's path. */
  readonly peer: string;
  /** No more `data` until `resume`: pushes back on the sender. */
  pause(): void;
  resume(): void;
  /** Sends what is queued, then closes. */
  end(): void;
  /** Closes at once; `closed` follows. */
  destroy(): void;
}

export interface DialOptions {
  /** TLS over the stream when given, with the server's certificate checked. */
  readonly tls?: TlsOptions;
  /** The peer's end is told by `ended` and closes its half only. Not with TLS. */
  readonly halfOpen?: boolean;
  /** Ends the attempt; the promise then rejects with the signal's reason. No effect on a connection that was made. */
  readonly signal?: AbortSignal;
}

/** How a connection is made; a test may put its own in place of `dial`. */
export type Dial = (address: Address, handlers: ConnectionHandlers, options?: DialOptions) => Promise<Connection>;

export interface ListenOptions {
  /** TLS with this certificate and key; when `ca` is given, clients must show a certificate signed by it. */
  readonly tls?: TlsOptions;
  /** A peer's end is told by `ended` and closes its half only. Not with TLS. */
  readonly halfOpen?: boolean;
  /** How long the TLS handshake of a new connection may take, in milliseconds; 10,000 when left out. */
  readonly handshakeMsMax?: number;
  /** TLS handshakes at the same time over TCP; for one more the oldest is closed. 1,000 when left out. */
  readonly handshakesMax?: number;
}

/** Called for every new connection; what it returns hears what happens on it. */
export type Accept = (connection: Connection) => ConnectionHandlers;

export interface Listener {
  /** Where it really listens: port 0 is replaced by the port the system chose. */
  readonly address: Address;
  /** No new connections; those already accepted go on. */
  close(): Promise<void>;
}

export type Listen = (address: Address, accept: Accept, options?: ListenOptions) => Promise<Listener>;

/** An address as users write it. */
export function formatAddress(address: Address): string {
  if (address.kind === "unix") return `unix:${address.path}`;
  return address.host.includes(":") ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`;
}
