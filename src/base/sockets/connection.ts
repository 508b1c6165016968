/**
 * The interface of byte streams. dial.ts and listen.ts create connections; only src/base/sockets imports node:net and
 * node:tls.
 */
export type Address =
  | { readonly kind: "tcp"; readonly host: string; readonly port: number }
  | { readonly kind: "unix"; readonly path: string };

/** TLS settings. Values are file contents (PEM), not file names. */
export interface TlsOptions {
  /** Certificates to trust instead of the system's. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly passphrase?: string;
  /** The name in the server's certificate; the host name when left out. */
  readonly serverName?: string;
}

/** TLS settings from files, which are read again when they change. */
export interface TlsFileSource {
  readonly names: TlsFileNames;
  /** Returns the settings for a new connection. */
  current(): TlsOptions;
}

/** File names, and the settings that are not in files. */
export interface TlsFileNames extends Pick<TlsOptions, "passphrase" | "serverName"> {
  readonly ca?: string | undefined;
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

export type TlsSource = TlsOptions | TlsFileSource;

/** Returns the settings for a new connection. */
export function currentTlsOptions(source: TlsSource): TlsOptions;
export function currentTlsOptions(source: TlsSource | undefined): TlsOptions | undefined;
export function currentTlsOptions(source: TlsSource | undefined): TlsOptions | undefined {
  return source !== undefined && "current" in source ? source.current() : source;
}

/** Receives the events of a connection. Nothing is called after `onClosed`. */
export interface ConnectionHandlers {
  /** The chunk is only valid during the call. */
  onData(chunk: Uint8Array): void;
  /** The connection has ended; `error` is the reason if it failed. Called exactly once. */
  onClosed(error: Error | null): void;
  /**
   * Called only with `halfOpen`: the peer will send nothing more. This side can still send; when it ends too,
   * `onClosed` follows. If this side ended first, only `onClosed` may be called.
   */
  onEnded?(): void;
  /** The kernel has taken all written bytes. */
  onDrained?(): void;
}

export interface Connection {
  /** Queues bytes; unsent bytes are counted in `bufferedBytes`. Do not change the bytes afterwards. */
  write(bytes: Uint8Array): void;
  /** Written bytes that the kernel has not taken yet. */
  readonly bufferedBytes: number;
  /** The peer's name for messages: `host:port` or the socket's path. */
  readonly peer: string;
  /** Stops `onData` until `resume`, so that the sender must wait. */
  pause(): void;
  resume(): void;
  /** Sends all queued bytes, then closes. */
  end(): void;
  /** Closes immediately; `onClosed` follows. */
  destroy(): void;
}

export interface DialOptions {
  /** Uses TLS and checks the server's certificate. */
  readonly tls?: TlsOptions;
  /** `onEnded` reports the end of the peer's direction, which closes only that direction. Not with TLS. */
  readonly halfOpen?: boolean;
  /** Cancels the attempt: the promise rejects with the signal's reason. Has no effect on an open connection. */
  readonly signal?: AbortSignal;
}

/** The type of `dial`, which tests may replace. */
export type Dial = (address: Address, handlers: ConnectionHandlers, options?: DialOptions) => Promise<Connection>;

export interface ListenOptions {
  /**
   * Uses TLS with this certificate and key. With `ca`, clients must have a certificate that this authority has signed.
   */
  readonly tls?: TlsSource;
  /** `onEnded` reports the end of the peer's direction, which closes only that direction. Not with TLS. */
  readonly halfOpen?: boolean;
  /** The time limit of a new connection's TLS handshake, in milliseconds; 10,000 when left out. */
  readonly handshakeMsMax?: number;
  /**
   * The most concurrent TLS handshakes over TCP, 1,000 by default. A further one closes the oldest connection.
   */
  readonly handshakesMax?: number;
}

/** Called for every new connection; returns the receiver of its events. */
export type AcceptConnection = (connection: Connection) => ConnectionHandlers;

export interface Listener {
  /** The actual address: port 0 is replaced by the port that the system chose. */
  readonly address: Address;
  /** Stops accepting connections; open ones continue. */
  close(): Promise<void>;
}

export type Listen = (address: Address, accept: AcceptConnection, options?: ListenOptions) => Promise<Listener>;

/** Splits `host:port`, `[address]:port` (IPv6), or either without a port. Returns null for other texts. */
export function splitHostPort(text: string): { readonly host: string; readonly port: number | null } | null {
  const [, bracketed, plain, digits] = /^(?:\[([0-9A-Fa-f:.%\w]+)\]|([^\s:[\]/]+))(?::(\d+))?$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  return host === undefined ? null : { host, port: digits === undefined ? null : Number(digits) };
}

export function formatAddress(address: Address): string {
  if (address.kind === "unix") return `unix:${address.path}`;
  return address.host.includes(":") ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`;
}
