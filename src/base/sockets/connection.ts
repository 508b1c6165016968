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
  /** The name that the server's certificate must have; by default the host name. */
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

/** Returns the settings for a new connection: those given, or the current content of the files. */
export function currentTlsOptions(source: TlsSource): TlsOptions;
export function currentTlsOptions(source: TlsSource | undefined): TlsOptions | undefined;
export function currentTlsOptions(source: TlsSource | undefined): TlsOptions | undefined {
  return source !== undefined && "current" in source ? source.current() : source;
}

/** The receiver of a connection's events. No method is called after `onClosed`. */
export interface ConnectionHandlers {
  /** Called when bytes have arrived. The chunk is only valid during the call. */
  onData(chunk: Uint8Array): void;
  /**
   * Called exactly once, when the connection has ended. `error` is the reason if the connection failed; otherwise null.
   */
  onClosed(error: Error | null): void;
  /**
   * Called only if `halfOpen` is true, when the peer has ended its direction. This side can still send; `onClosed`
   * follows when this side ends its direction, too. If this side ended first, perhaps only `onClosed` is called.
   */
  onEnded?(): void;
  /** Called when the kernel has taken all written bytes. */
  onDrained?(): void;
}

export interface Connection {
  /** Queues bytes to send; `bufferedBytes` counts the unsent bytes. The caller must not change the bytes afterwards. */
  write(bytes: Uint8Array): void;
  /** The number of written bytes that the kernel has not taken yet. */
  readonly bufferedBytes: number;
  /** The peer's name for messages: `host:port` or the socket's path. */
  readonly peer: string;
  /** Stops calls of `onData` until `resume` is called. The sender must then wait. */
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
  /**
   * If true, the end of the peer's direction closes only that direction, and `onEnded` reports it. Not possible with
   * TLS.
   */
  readonly halfOpen?: boolean;
  /**
   * If it aborts, the attempt is canceled, and the promise rejects with the signal's reason. It has no effect on an
   * open connection.
   */
  readonly signal?: AbortSignal;
}

/** The type of the function `dial`, which tests may replace. */
export type Dial = (address: Address, handlers: ConnectionHandlers, options?: DialOptions) => Promise<Connection>;

export interface ListenOptions {
  /**
   * Uses TLS with this certificate and key. With `ca`, clients must have a certificate that this authority has signed.
   */
  readonly tls?: TlsSource;
  /**
   * If true, the end of the peer's direction closes only that direction, and `onEnded` reports it. Not possible with
   * TLS.
   */
  readonly halfOpen?: boolean;
  /** The time limit of a new connection's TLS handshake, in milliseconds; by default 10,000. */
  readonly handshakeMsMax?: number;
  /**
   * The most concurrent TLS handshakes over TCP; by default 1,000. One more handshake closes the connection whose
   * handshake began first.
   */
  readonly handshakesMax?: number;
}

/** Called for every new connection. Returns the receiver of the connection's events. */
export type AcceptConnection = (connection: Connection) => ConnectionHandlers;

export interface Listener {
  /** The actual address: port 0 is replaced by the port that the system chose. */
  readonly address: Address;
  /** Stops accepting connections; open connections continue. */
  close(): Promise<void>;
}

export type Listen = (address: Address, accept: AcceptConnection, options?: ListenOptions) => Promise<Listener>;

/** Splits `host:port`, `[address]:port` (IPv6), or the same without a port. Returns null for other texts. */
export function splitHostPort(text: string): { readonly host: string; readonly port: number | null } | null {
  const [, bracketed, plain, digits] = /^(?:\[([0-9A-Fa-f:.%\w]+)\]|([^\s:[\]/]+))(?::(\d+))?$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  return host === undefined ? null : { host, port: digits === undefined ? null : Number(digits) };
}

export function formatAddress(address: Address): string {
  if (address.kind === "unix") return `unix:${address.path}`;
  return address.host.includes(":") ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`;
}
