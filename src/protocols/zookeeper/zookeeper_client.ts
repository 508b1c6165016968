/** The ZooKeeper client: typed operations on a session. Checks paths, adds the chroot, and decodes responses. */
import { type Dial, formatAddress, type TlsSource } from "../../base/sockets/connection.ts";
import { dial } from "../../base/sockets/dial.ts";
import { type ResolveHost, resolveHost } from "../../base/sockets/resolve_host.ts";
import { throwIfAborted } from "../../base/support/abort.ts";
import { type Clock, systemClock } from "../../base/support/clock.ts";
import { formatDuration } from "../../base/support/duration.ts";
import { type ByteReader, ByteWriter } from "../../base/wire/bytes.ts";
import { type ZooKeeperErrorName, zooKeeperErrorName, zooKeeperErrorNumbers } from "./jute/zookeeper_error_codes.ts";
import { juteFrameBytesMaxDefault } from "../../base/wire/length_frame.ts";
import { type MultiRequest, multiRequestCodec, multiResponseCodec, type MultiResult } from "./jute/multi_request.ts";
import {
  createFlag,
  multiOperationCode,
  openAcl,
  type ZooKeeperOperationName,
  type ZooKeeperOperationRequest,
  type ZooKeeperOperationResponse,
  zooKeeperOperations,
} from "./jute/zookeeper_operations.ts";
import type { JuteCodec } from "../../base/wire/record_codec.ts";
import type { Acl, Stat } from "./jute/zookeeper_records.ts";
import { ZooKeeperClientSession } from "./zookeeper_session.ts";
import { type NewSessionOptions, ZooKeeperConnector } from "./connector.ts";
import type { EstablishedConnection } from "./establish.ts";
import { isSessionResumable, type ZooKeeperCredentials } from "./handshake.ts";
import { ZooKeeperHosts, type ZooKeeperServerList } from "./hosts.ts";
import { validateNodePath } from "./node_path.ts";
import type { PlainContainers } from "./plain_containers.ts";
import type { TreeOperations } from "./tree_operations.ts";
import { SessionWatches } from "./watches.ts";
import type {
  NodeCreateOptions,
  NodeData,
  NodeOperationOptions,
  NodeReadOptions,
  Watcher,
  ZooKeeper,
} from "./zookeeper.ts";
import {
  isUnknownOperationError,
  operationResponseError,
  ZooKeeperError,
  type ZooKeeperOperationLabel,
} from "./zookeeper_error.ts";

export interface ZooKeeperConnectOptions
  extends Pick<NewSessionOptions, "retries" | "delayMs" | "unreachableHint" | "report" | "signal" | "identity"> {
  readonly servers: ZooKeeperServerList;
  /** The session timeout to request, in milliseconds; 10,000 by default. The server may grant a different one. */
  readonly sessionTimeoutMs?: number;
  /** The time limit of `connect` in milliseconds. The default is 10,000; if `retries` is given, there is no limit. */
  readonly connectTimeoutMs?: number;
  readonly tls?: TlsSource;
  /** The credentials that the client sends first on every connection. */
  readonly auth?: readonly ZooKeeperCredentials[];
  /** The default ACL of new nodes; if it is missing, new nodes are open to all clients. */
  readonly acl?: Acl[];
  /** The longest request in bytes. It must equal the servers' jute.maxbuffer. */
  readonly frameBytesMax?: number;
  readonly clock?: Clock;
  /**
   * How long events may wait while no request is unanswered, in milliseconds. Reading several events together saves
   * time, but a lost connection is then detected later. By default, events are read immediately.
   */
  readonly gatherEventsMs?: number;
  /**
   * Called if servers accept connections but answer no request in time: after three such connections in a row, and
   * whenever their number has doubled.
   */
  readonly onSlow?: (sentence: string) => void;
  /** Starts a server at a `unix:` address if no process listens there. Resolves when the server listens. */
  readonly startServer?: () => Promise<void>;
  readonly dial?: Dial;
  readonly resolve?: ResolveHost;
}

export const connectTimeoutMsDefault = 10_000;

/**
 * Opens a session: `await using zk = await connectToZooKeeper({ servers: parseZooKeeperServers("zk1,zk2,zk3/app") })`.
 * Rejects with UNREACHABLE (naming each server and its failure), with REFUSED for wrong credentials, or with the
 * signal's reason.
 */
export async function connectToZooKeeper(options: ZooKeeperConnectOptions): Promise<ZooKeeper> {
  throwIfAborted(options.signal);
  const { clock = systemClock(), sessionTimeoutMs: timeoutMs = 10_000, retries } = options;
  const hosts = new ZooKeeperHosts(options.servers, { resolve: options.resolve ?? resolveHost, clock });
  const connector = new ZooKeeperConnector(hosts, {
    dial: options.dial ?? dial,
    clock,
    tls: options.tls,
    asksPorts: options.dial === undefined,
    auth: options.auth ?? [],
    startServer: options.startServer === undefined ? undefined : joinConcurrentStarts(options.startServer),
  });
  const established = await connector.open({
    ...options,
    timeoutMs,
    connectTimeoutMs: options.connectTimeoutMs ??
      (retries === undefined ? connectTimeoutMsDefault : Number.MAX_SAFE_INTEGER),
  });
  const openingMs = clock.now() - established.connectSentMs;
  if (openingMs > established.accepted.timeoutMs) options.onSlow?.(slowOpening(established, openingMs));
  const chroot = new Chroot(options.servers.chroot);
  const { frameBytesMax = juteFrameBytesMaxDefault } = options;
  const watches = new SessionWatches({ frameBytesMax });
  const toClientPath = (path: string) => chroot.toClient(path);
  const { gatherEventsMs, onSlow } = options;
  const session = new ZooKeeperClientSession(established, {
    clock,
    connector,
    timeoutMs,
    watches,
    toClientPath,
    gatherEventsMs,
    onSlow,
  });
  const client = new ZooKeeperClient(session, { watches, chroot, acl: options.acl, frameBytesMax });
  // Avoids operations that ClickHouse Keeper does not know, such as createContainer: it would close the connection, and
  // the session would be lost.
  if (!isSessionResumable(session)) await client.avoidContainers();
  return client;
}

/**
 * Warns that the session may already have expired, because ZooKeeper measures its timeout from the request that opens
 * the session.
 */
function slowOpening({ endpoint, accepted: { timeoutMs } }: EstablishedConnection, openingMs: number): string {
  return `${formatAddress(endpoint.address)} needed ${formatDuration(openingMs)} to open a session of ${
    formatDuration(timeoutMs)
  }, which may have expired meanwhile; its disk may be slow: choose a longer session timeout`;
}

/** Joins concurrent starts: an attempt waits for a start that an earlier attempt has begun. */
function joinConcurrentStarts(start: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | null = null;
  return () => running ??= start().finally(() => running = null);
}

class ZooKeeperClient implements ZooKeeper {
  readonly session: ZooKeeperClientSession;
  readonly #watches: SessionWatches;
  readonly #chroot: Chroot;
  readonly acl: Acl[];
  readonly #frameBytesMax: number;
  /** Replaces containers with plain nodes; null while the server may know containers. */
  #plainContainers: PlainContainers | null = null;

  constructor(session: ZooKeeperClientSession, { watches, chroot, acl = openAcl, frameBytesMax }: {
    readonly watches: SessionWatches;
    readonly chroot: Chroot;
    readonly acl?: Acl[] | undefined;
    readonly frameBytesMax: number;
  }) {
    this.session = session;
    this.#watches = watches;
    this.#chroot = chroot;
    this.acl = acl;
    this.#frameBytesMax = frameBytesMax;
  }

  usesContainer(path: string): void {
    this.#plainContainers?.use(path);
  }

  /** Stops sending operations that the server lacks: containers and create2. */
  async avoidContainers(): Promise<PlainContainers> {
    const { PlainContainers } = await import("./plain_containers.ts"); // few servers need it
    return this.#plainContainers ??= new PlainContainers({
      create: async (path, data, options) => (await this.#create("create", path, data, options)).path,
      exists: (path, options) => this.exists(path, options),
      multi: (requests, options) => this.#multi(requests, options),
      delete: (path, version) => this.#delete(path, version),
    });
  }

  /**
   * Sends a request. If the server does not know containers or create2, sends the request again without them; the
   * server has not executed the first request.
   */
  async #orPlainly<T>(send: (plain: PlainContainers | null) => Promise<T>): Promise<T> {
    try {
      return await send(this.#plainContainers);
    } catch (thrown) {
      if (this.#plainContainers !== null || !isUnknownOperationError(thrown)) throw thrown;
      return await send(await this.avoidContainers());
    }
  }

  /**
   * Creates a node. If it is the first node in a chroot, also creates the chroot's nodes.
   */
  async create(path: string, data: Uint8Array, options: NodeCreateOptions = {}) {
    const create = () =>
      this.#orPlainly((plain) =>
        plain === null
          ? this.#create(options.mode === "container" ? "createContainer" : "create2", path, data, options)
          : plain.create(path, data, options)
      );
    try {
      return await create();
    } catch (error) {
      const isFirst = this.#chroot.prefix !== "" && path.lastIndexOf("/") === 0;
      if (!isFirst || !(error instanceof ZooKeeperError) || error.reason !== "NONODE") throw error;
      await this.#makeChroot(options);
      return await create();
    }
  }

  async #create<Name extends "create" | "create2" | "createContainer">(
    operation: Name,
    path: string,
    data: Uint8Array,
    { mode = "persistent", acl = this.acl, signal }: NodeCreateOptions,
  ): Promise<ZooKeeperOperationResponse<Name>> {
    const flags = createFlag[mode];
    const serverPath = this.#chroot.toServer(path, isSequential(flags));
    const label = { action: "create", path };
    const request = { path: serverPath, data, acl, flags } as ZooKeeperOperationRequest<Name>;
    const created = await this.#request(operation, { label, request, signal });
    return { ...created, path: this.#chroot.toClient(created.path) };
  }

  async #makeChroot({ signal }: NodeOperationOptions): Promise<void> {
    const names = this.#chroot.prefix.slice(1).split("/");
    for (let count = 1; count <= names.length; count++) {
      const path = `/${names.slice(0, count).join("/")}`;
      await this.#request("create", {
        label: { action: "create the chroot's node", path },
        request: { path, data: new Uint8Array(0), acl: this.acl, flags: createFlag.persistent },
        signal,
        expected: { NODEEXISTS: null },
      });
    }
  }

  async delete(path: string, version: number, options: NodeOperationOptions = {}): Promise<void> {
    await this.#delete(path, version, options);
    this.#plainContainers?.deleted(path);
  }

  async #delete(path: string, version: number, { signal }: NodeOperationOptions = {}): Promise<void> {
    const request = { path: this.#chroot.toServer(path), version };
    await this.#request("delete", { label: { action: "delete", path }, request, signal });
  }

  async exists(path: string, { watch, signal }: NodeReadOptions = {}): Promise<Stat | null> {
    const serverPath = this.#chroot.toServer(path);
    const found = await this.#request("exists", {
      label: { action: "look for", path, reads: true },
      request: { path: serverPath, watch: watch !== undefined },
      signal,
      replied: (err) => {
        if (watch !== undefined && err === 0) this.#watches.add("data", serverPath, watch);
        if (watch !== undefined && err === NONODE) this.#watches.add("exist", serverPath, watch);
      },
      expected: { NONODE: { stat: null } },
    });
    return found.stat;
  }

  async getData(path: string, { watch, signal }: NodeReadOptions = {}): Promise<NodeData> {
    const serverPath = this.#chroot.toServer(path);
    const { data, stat } = await this.#request("getData", {
      label: { action: "read", path, reads: true },
      request: { path: serverPath, watch: watch !== undefined },
      signal,
      replied: (err) => {
        if (watch !== undefined && err === 0) this.#watches.add("data", serverPath, watch);
      },
    });
    return { data: data ?? new Uint8Array(0), stat };
  }

  async setData(path: string, data: Uint8Array, version: number, { signal }: NodeOperationOptions = {}): Promise<Stat> {
    const request = { path: this.#chroot.toServer(path), data, version };
    return (await this.#request("setData", { label: { action: "write", path }, request, signal })).stat;
  }

  async getChildren(
    path: string,
    { watch, signal }: NodeReadOptions = {},
  ): Promise<{ children: string[]; stat: Stat }> {
    const serverPath = this.#chroot.toServer(path);
    const { children, stat } = await this.#request("getChildren2", {
      label: { action: "list", path, reads: true },
      request: { path: serverPath, watch: watch !== undefined },
      signal,
      replied: (err) => {
        if (watch !== undefined && err === 0) this.#watches.add("child", serverPath, watch);
      },
    });
    return { children: children ?? [], stat };
  }

  async addRecursiveWatch(path: string, watcher: Watcher, options: NodeOperationOptions = {}): Promise<void> {
    await (await this.#treeReads()).addRecursiveWatch(path, watcher, options);
  }

  async getDataOfAll(
    paths: readonly string[],
    options: NodeOperationOptions = {},
  ): Promise<(NodeData | ZooKeeperError)[]> {
    return await (await this.#treeReads()).getDataOfAll(paths, options);
  }

  async #treeReads(): Promise<TreeOperations> {
    const { TreeOperations } = await import("./tree_operations.ts"); // few commands need it
    const encode = (label: ZooKeeperOperationLabel, write: (writer: ByteWriter) => void) =>
      this.#encodeBody(label, write);
    return new TreeOperations({
      session: this.session,
      watches: this.#watches,
      chroot: { toServer: (path) => this.#chroot.toServer(path) },
      encode,
    });
  }

  async getAcl(path: string, { signal }: NodeOperationOptions = {}): Promise<{ acl: Acl[]; stat: Stat }> {
    const request = { path: this.#chroot.toServer(path) };
    const label = { action: "read the ACL of", path, reads: true };
    const { acl, stat } = await this.#request("getAcl", { label, request, signal });
    return { acl: acl ?? [], stat };
  }

  async setAcl(path: string, acl: Acl[], version: number, { signal }: NodeOperationOptions = {}): Promise<Stat> {
    const request = { path: this.#chroot.toServer(path), acl, version };
    return (await this.#request("setAcl", { label: { action: "set the ACL of", path }, request, signal })).stat;
  }

  async sync(path: string, { signal }: NodeOperationOptions = {}): Promise<void> {
    const request = { path: this.#chroot.toServer(path) };
    await this.#request("sync", { label: { action: "sync", path, reads: true }, request, signal });
  }

  async multi(requests: MultiRequest[], options: NodeOperationOptions = {}): Promise<MultiResult[]> {
    return await this.#orPlainly((
      plain,
    ) => (plain === null ? this.#multi(requests, options) : plain.multi(requests, options)));
  }

  async #multi(requests: MultiRequest[], { signal }: NodeOperationOptions = {}): Promise<MultiResult[]> {
    const sent = requests.map((request) => this.#toServerRequest(request));
    const label = { action: "execute the transaction at", path: requests[0]?.path ?? "/" };
    const results = await this.session.request({
      label,
      code: multiOperationCode,
      body: this.#encodeBody(label, (writer) => multiRequestCodec.write(writer, sent)),
      decode(err, reader) {
        if (err !== 0) throw operationResponseError(label, err);
        return multiResponseCodec.read(reader);
      },
    }, signal);
    const failed = results.findIndex((result) => isFailure(result));
    const failedResult = results[failed];
    if (failedResult !== undefined && isFailure(failedResult)) {
      const request = requests[failed];
      throw operationResponseError(
        { action: request?.type ?? "do", path: request?.path ?? "" },
        failedResult.err,
        failed,
      );
    }
    return results.map((result) => "path" in result ? { ...result, path: this.#chroot.toClient(result.path) } : result);
  }

  leave(): void {
    this.session.leave();
  }

  close(): Promise<void> {
    this.#plainContainers?.clean();
    return this.session.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /**
   * Sends a request. Calls `replied` with the error code before the result is used. If the error's name is in
   * `expected`, resolves with the value in `expected` instead of rejecting.
   */
  #request<Name extends ZooKeeperOperationName, Expected = never>(
    name: Name,
    { label, request, signal, replied, expected }: {
      readonly label: ZooKeeperOperationLabel;
      readonly request: ZooKeeperOperationRequest<Name>;
      readonly signal: AbortSignal | undefined;
      readonly replied?: (err: number) => void;
      readonly expected?: Readonly<Partial<Record<ZooKeeperErrorName, Expected>>>;
    },
  ): Promise<ZooKeeperOperationResponse<Name> | Expected> {
    const row = rowOf(name);
    return this.session.request({
      label,
      code: row.code,
      body: this.#encodeBody(label, (writer) => row.request.write(writer, request)),
      decode(err: number, reader: ByteReader): ZooKeeperOperationResponse<Name> | Expected {
        replied?.(err);
        if (err === 0) return row.response.read(reader);
        const name = zooKeeperErrorName(err);
        const instead = name === undefined ? undefined : expected?.[name];
        if (instead !== undefined) return instead;
        throw operationResponseError(label, err);
      },
    }, signal);
  }

  #encodeBody(label: ZooKeeperOperationLabel, write: (writer: ByteWriter) => void): Uint8Array {
    const writer = new ByteWriter();
    write(writer);
    const frameBytes = writer.length + requestHeaderBytes;
    if (frameBytes > this.#frameBytesMax) {
      throw new ZooKeeperError(
        "BADARGUMENTS",
        `Cannot ${label.action} "${label.path}": the request has ${frameBytes} bytes; ` +
          `the limit is ${this.#frameBytesMax} (connect.max_request_size, jute.maxbuffer of the servers)`,
        { path: label.path },
      );
    }
    return writer.finish();
  }

  #toServerRequest(request: MultiRequest): MultiRequest {
    const sequential = "flags" in request && isSequential(request.flags);
    const path = this.#chroot.toServer(request.path, sequential);
    return "acl" in request ? { ...request, path, acl: request.acl ?? this.acl } : { ...request, path };
  }
}

interface OperationRow<Name extends ZooKeeperOperationName> {
  readonly code: number;
  readonly request: JuteCodec<ZooKeeperOperationRequest<Name>>;
  readonly response: JuteCodec<ZooKeeperOperationResponse<Name>>;
}

/** Returns an operation's row of the table with its exact types, which TypeScript cannot derive. */
const rowOf = <Name extends ZooKeeperOperationName>(name: Name) =>
  zooKeeperOperations[name] as unknown as OperationRow<Name>;

const { NONODE } = zooKeeperErrorNumbers;

/** The size of a RequestHeader (xid and type) in bytes. */
const requestHeaderBytes = 8;

function isSequential(flags: number): boolean {
  return flags === createFlag.persistentSequential || flags === createFlag.ephemeralSequential ||
    flags === createFlag.persistentSequentialTtl;
}

/**
 * Returns true if this operation made the transaction fail. Operations before it have error 0, and operations after it
 * have error -2.
 */
function isFailure(result: MultiResult): result is { type: "error"; err: number } {
  return result.type === "error" && result.err !== 0 && result.err !== zooKeeperErrorNumbers.RUNTIMEINCONSISTENCY;
}

/**
 * Converts paths between the server's tree and the chroot: the part of that tree that a client sees as the whole tree.
 */
export class Chroot {
  readonly prefix: string;

  constructor(prefix: string) {
    this.prefix = prefix === "/" ? "" : prefix;
    if (this.prefix !== "") validateNodePath(this.prefix);
  }

  /** Returns the path on the server. Throws BADARGUMENTS for an invalid path. */
  toServer(path: string, sequential = false): string {
    validateNodePath(path, sequential);
    if (this.prefix === "") return path;
    return path === "/" && !sequential ? this.prefix : this.prefix + path;
  }

  toClient(path: string): string {
    if (this.prefix === "" || !path.startsWith(this.prefix)) return path;
    return path.slice(this.prefix.length) || "/";
  }
}
