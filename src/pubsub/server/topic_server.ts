/**
 * The publish/subscribe server. Owns one ROUTER socket, one store, the ownership of topics across sessions, and the
 * parts that connect them. `leave` ends the server in an orderly way, `close` ends it immediately.
 */
import { RouterSocket } from "../../protocols/zeromq/router_socket.ts";
import type { ZeroMqSocketOptions } from "../../protocols/zeromq/socket_options.ts";
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError, errorMessage } from "../../base/errors.ts";
import type { Clock } from "../../base/support/clock.ts";
import { anyAbortSignal, rejectOnAbort } from "../../base/support/abort.ts";
import { resultInTimeOrNull } from "../../base/support/deadline.ts";
import { isTransientFailure } from "../../coordination/nodes/node_requests.ts";
import { decodePubsubMessage, type InvalidPubsubMessage } from "../wire/decode_message.ts";
import { encodePubsubMessage } from "../wire/encode_message.ts";
import { pubsubSocketLimits } from "../wire/message_limits.ts";
import {
  messageFields,
  type PubsubMessage,
  type PubsubMessageName,
  type PubsubMessageOf,
} from "../wire/pubsub_messages.ts";
import { readPutFrameStart } from "../wire/put_frame.ts";
import { encodeTopicList } from "../wire/topic_list.ts";
import { checkStoreIsNotEmpty } from "../ownership/empty_store_check.ts";
import type { PubsubPath } from "../ownership/pubsub_path.ts";
import { TopicOwnership } from "../ownership/topic_ownership.ts";
import type { TopicStoreOptions } from "../store/limits/topic_store_limits.ts";
import { isClientRequestMessage } from "../store/thread/client_request.ts";
import {
  type EncodedResponse,
  type StartedStoreThread,
  TopicStore,
  type TopicStoreHooks,
} from "../store/topic_store.ts";
import { newGuid } from "../../base/support/guid.ts";
import { SocketOverloadReport } from "../overload_report.ts";
import { makeStatusMessage, type ResponseStatusMessage } from "../status_message.ts";
import { TopicHandoffs } from "./topic_handoffs.ts";
import { AnnouncedProcessWatch } from "./server_presence.ts";
import { ReportsToProxies } from "./proxy_reports.ts";
import { type RequestEnvelope, splitRequestEnvelope } from "./server_request.ts";
import { ServerRequestHandler } from "./request_handler.ts";
import {
  checkServerDataDir,
  claimServerDataDir,
  identifyServerDataDir,
  isNewServerDataDir,
  makeServerDataDir,
} from "./server_identity.ts";
import { queuedResponseBytesPerPeerMax, queuedResponsesPerPeerMax } from "./server_limits.ts";
import { TopicBalance } from "./topic_balance.ts";
import { ManageRequestHandler } from "./topic_manager.ts";
import { TopicTransferReceiver } from "./transfer_receiver.ts";
import { TopicTransferSender } from "./transfer_sender.ts";
import { newRequestLatencyHistograms } from "../request_latency.ts";
import { statusCodes } from "../wire/status_codes.ts";

function newServerCounters() {
  return {
    /** Valid requests by name. For a put, only the first line is checked. */
    requests: zeros(Object.keys(messageFields) as PubsubMessageName[]),
    responses: zeros(statusCodes),
    refused: 0,
    /** The number of responses that were not sent, because the peer does not read or has disconnected. */
    responsesDropped: 0,
    /** Times from the arrival of a request to the store's response. */
    latency: newRequestLatencyHistograms(),
  };
}

function zeros<Name extends string>(names: readonly Name[]): Record<Name, number> {
  return Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>;
}

export interface TopicServerOptions {
  readonly id: string;
  /** The folder of the server's own store; null if `openSharedStore` opens the store. */
  readonly dataDir: string | null;
  readonly openSharedStore?:
    | ((hooks: TopicStoreHooks, options: Partial<TopicStoreOptions>, signal?: AbortSignal) => Promise<TopicStore>)
    | undefined;
  /**
   * How often to give topics to servers of a shared store that have fewer topics, in milliseconds; null for never. The
   * default is 10,000.
   */
  readonly balanceEveryMs?: number | null;
  /** True if the data directory is a copy whose original will never be served again. */
  readonly wasMoved?: boolean | undefined;
  /** The endpoint to listen on: `tcp://127.0.0.1:0`, `ipc:///path`. */
  readonly listen: string;
  /** The endpoint that proxies and other servers use. By default, the actual endpoint of `listen`. */
  readonly advertise?: string | undefined;
  readonly path: PubsubPath;
  /** Opens a session. Called again whenever a session has ended. */
  readonly connect: (signal: AbortSignal) => Promise<ZooKeeper>;
  readonly clock: Clock;
  readonly store?: Partial<TopicStoreOptions>;
  /** The security of the ROUTER, and of connections to other processes. */
  readonly security?: { readonly server: ZeroMqSocketOptions; readonly client: ZeroMqSocketOptions } | undefined;
  readonly limits?: Pick<ZeroMqSocketOptions, "connectionsMax">;
  /** The system's functions, which a simulation replaces. */
  readonly system?: TopicServerSystemFunctions;
  readonly onProblem: (problem: unknown) => void;
  /** Called when an operator starts or stops draining this server. */
  readonly onDraining?: (isDraining: boolean) => void;
}

/** The system functions that a server uses, apart from sockets, the clock and the files of its identity. */
export interface TopicServerSystemFunctions {
  readonly startStoreThreads?: () => StartedStoreThread;
  readonly storeLocation?: (dataDir: string) => string;
}

const balanceEveryMsDefault = 10_000;
const lingerMs = 1000;

export class TopicServer implements AsyncDisposable {
  /** Rejects when the server cannot continue: the store failed (IO), or its id belongs to another server (CONFIG). */
  readonly ended: Promise<never>;
  readonly counters: ReturnType<typeof newServerCounters> = newServerCounters();
  readonly #options: TopicServerOptions;
  readonly #router: RouterSocket;
  readonly #end = Promise.withResolvers<never>();
  readonly #stop = new AbortController();
  bound = "";
  /** The announced endpoint, for proxies and other servers. */
  endpoint = "";
  #store!: TopicStore;
  #ownership!: TopicOwnership;
  #requests!: ServerRequestHandler;
  #handoffs!: TopicHandoffs;
  #manager!: ManageRequestHandler;
  #receiver!: TopicTransferReceiver;
  #reports: ReportsToProxies | null = null;
  #balance: TopicBalance | null = null;
  #presence!: AnnouncedProcessWatch;
  /** The first session, until ownership uses it. */
  #firstSession: ZooKeeper | null = null;
  #isStoreClaimed = false;
  #running: Promise<unknown> = Promise.resolve();
  #closing: Promise<void> | null = null;

  /**
   * Starts a server: opens its store, listens, and announces itself; resolves when it serves. Rejects with LOCK_BUSY if
   * the data is in use, CONFIG if data or id belong to another server, CANNOT_CREATE, IO, UNREACHABLE, or the signal's
   * reason.
   */
  static async start(options: TopicServerOptions, signal?: AbortSignal): Promise<TopicServer> {
    const server = new TopicServer(options);
    try {
      await server.#start(signal);
      return server;
    } catch (thrown) {
      await server.close();
      throw thrown;
    }
  }

  private constructor(options: TopicServerOptions) {
    this.#options = options;
    this.ended = this.#end.promise;
    this.ended.catch(() => {});
    const cancelDisconnected = () => this.#requests?.cancelDisconnected((peer) => this.#router.peer(peer) !== null);
    const overload = new SocketOverloadReport(options.clock, options.onProblem);
    this.#router = new RouterSocket({
      ...options.security?.server,
      ...options.limits,
      limits: pubsubSocketLimits,
      sendHighWater: queuedResponsesPerPeerMax,
      sendHighWaterBytes: queuedResponseBytesPerPeerMax,
      // Done later, because the socket still knows the peer during the event.
      onEvent: (event) => {
        overload.observe(event);
        if (event.kind === "disconnected") queueMicrotask(cancelDisconnected);
      },
    });
  }

  /** True if the server is announced and has its lease. */
  get isRegistered(): boolean {
    return this.#ownership.isRegistered;
  }

  /** True if this server gets no new topics. */
  get isDraining(): boolean {
    return this.#presence?.isDraining === true;
  }

  /** True if `topics` is complete; false at the start, and without a session. */
  get hasReadTopics(): boolean {
    return this.#ownership.hasReadTopics;
  }

  topics(): Iterable<string> {
    return this.#ownership.servedTopics();
  }

  /** Returns load and counters, for the status page and metrics. */
  async statistics() {
    const { inFlight, pendingGets, pendingAdmissions } = this.#requests;
    const load = {
      inFlight,
      pendingGets,
      pendingAdmissions,
      incomingTransfers: this.#receiver.size,
      outgoingHandoffs: this.#handoffs.size,
    };
    return {
      ...load,
      ...await this.#store.statistics(),
      served: [...this.topics()].length,
      socket: { ...this.#router.load, ...this.#router.counters },
    };
  }

  /** Returns why messages cannot be stored now; null if they can. */
  whyNotStored(): Promise<string | null> {
    return this.#store.whyNotStored();
  }

  /**
   * Refuses new requests, completes the requests in flight, and closes. If `handOff` is true, first hands off its
   * topics to other servers. Takes little longer than `withinMs`. Resolves with the topics that the server still owns.
   */
  async leave(
    { withinMs, handOff = false }: { readonly withinMs: number; readonly handOff?: boolean },
  ): Promise<string[]> {
    const { clock } = this.#options;
    const endMs = clock.now() + withinMs;
    if (handOff) await resultInTimeOrNull(clock, withinMs, this.#handOffTopics());
    const kept = [...this.topics()];
    await resultInTimeOrNull(clock, endMs - clock.now(), this.#requests.drain());
    await this.close();
    return kept;
  }

  /** Hands off all topics to other servers. First marks this server as draining, so that it gets no new topics. */
  async #handOffTopics(): Promise<void> {
    const { id } = this.#options;
    await this.#presence.drain();
    const others = () => this.#presence.serversTakingTopics(this.#sharedStore).filter((other) => other !== id);
    await this.#handoffs.handOffAll(() => [...this.topics()], others);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #start(signal: AbortSignal | undefined): Promise<void> {
    const { id, dataDir, clock, path, onProblem } = this.#options;
    if (dataDir !== null) {
      // A refused start must not create files. A server that owns topics has its store elsewhere.
      if (isNewServerDataDir(dataDir)) await this.#checkOwnsNoTopics(signal);
      makeServerDataDir(dataDir);
    }
    const hooks: TopicStoreHooks = {
      onResponses: (responses) => this.#requests.handleStoreResponses(responses),
      onBroken: (error) => this.#handleStoreFailure(error),
      onProblem,
      onTopicLost: (topic) => this.#ownership.topicLost(topic),
    };
    this.#store = await this.#openStore(hooks, signal);
    if (dataDir !== null) checkServerDataDir(dataDir, id, { wasMoved: this.#options.wasMoved ?? false });
    this.bound = await this.#router.bind(this.#options.listen, { signal });
    this.endpoint = this.#options.advertise ?? this.bound;
    this.#presence = new AnnouncedProcessWatch({
      id,
      path,
      clock,
      onProblem,
      onDraining: this.#options.onDraining,
      endpoint: this.endpoint,
      onProxies: (proxies) => this.#reports?.setProxies(proxies),
    });
    this.#ownership = new TopicOwnership({
      id,
      endpoint: this.endpoint,
      path,
      store: this.#store,
      // Two processes with the same ID share the store, but count as different servers.
      storeLocation: dataDir === null
        ? `${id} ${newGuid()}`
        : (this.#options.system?.storeLocation ?? identifyServerDataDir)(dataDir),
      isStoreShared: dataDir === null,
      claimStore: () => this.#claimStore(),
      channel: new TopicTransferSender(id, clock, this.#options.security?.client),
      clock,
      isDraining: () => this.#presence.isDraining,
      onProblem,
    });
    this.#createParts();
    void this.#readMessages();
    await this.#announce(signal);
  }

  async #checkOwnsNoTopics(signal: AbortSignal | undefined): Promise<void> {
    const { id, path } = this.#options;
    const zk = this.#firstSession = await this.#connect(signal);
    const store = { isEmpty: () => Promise.resolve(true) };
    try {
      await rejectOnAbort(checkStoreIsNotEmpty(zk, path, { id, store, task: "serve" }), signal);
    } catch (thrown) {
      if (!isTransientFailure(thrown)) throw thrown; // each session checks again
    }
  }

  #connect(signal: AbortSignal | undefined): Promise<ZooKeeper> {
    return this.#options.connect(anyAbortSignal(signal, this.#stop.signal));
  }

  /** Writes the server's identity into its data directory, once per process. A failure ends the server. */
  #claimStore(): void {
    const { id, dataDir, wasMoved = false } = this.#options;
    if (dataDir === null || this.#isStoreClaimed) return;
    try {
      claimServerDataDir(dataDir, id, { wasMoved });
      this.#isStoreClaimed = true;
    } catch (thrown) {
      this.#end.reject(thrown);
      throw thrown;
    }
  }

  /** The id of the store that this server shares; null if it has its own store. */
  get #sharedStore(): string | null {
    return this.#options.dataDir === null ? this.#store.storeId : null;
  }

  #openStore(hooks: TopicStoreHooks, signal: AbortSignal | undefined): Promise<TopicStore> {
    const { id, dataDir, store = {}, openSharedStore, system = {} } = this.#options;
    if (dataDir !== null) {
      const { startStoreThreads: startThreads } = system;
      return TopicStore.open(dataDir, hooks, {
        server: id,
        ...store,
        ...(startThreads === undefined ? {} : { startThreads }),
      });
    }
    if (openSharedStore === undefined) {
      throw new BatonError("INTERNAL", "The server has neither a folder nor a database");
    }
    return openSharedStore(hooks, store, signal);
  }

  #createParts(): void {
    const { id, clock } = this.#options;
    const reply = (envelope: RequestEnvelope, status: ResponseStatusMessage) => this.#reply(envelope, status);
    const ownership = this.#ownership;
    const endpointOf = (server: string) => this.#presence.endpointOf(server);
    const { latency } = this.counters;
    this.#requests = new ServerRequestHandler({
      server: id,
      ownership,
      store: this.#store,
      clock,
      reply: (envelope, response) => this.#reply(envelope, response),
      refuseInvalid: (envelope, message) => this.#refuseInvalid(envelope, message),
      endpointOf,
      latency,
      confirmsByCommit: this.#options.dataDir === null,
    });
    this.#handoffs = new TopicHandoffs({ server: id, ownership, reply });
    this.#manager = new ManageRequestHandler({ server: id, ownership, store: this.#store, reply });
    this.#receiver = new TopicTransferReceiver({
      server: id,
      clock,
      reply,
      receive: (topic, content, incoming) => ownership.receive(topic, content, incoming),
    });
    const topics = () => this.topics();
    const store = this.#sharedStore;
    const { balanceEveryMs = balanceEveryMsDefault } = this.#options;
    if (store !== null && balanceEveryMs !== null) {
      this.#balance = new TopicBalance({
        server: id,
        clock,
        everyMs: balanceEveryMs,
        topics,
        counts: () => this.#presence.topicCounts(store),
        handOff: (some, to) => this.#handoffs.handOffSome(some, to),
      });
    }
    this.#reports = new ReportsToProxies({ server: id, clock, socket: this.#options.security?.client, topics });
  }

  /**
   * Announces the server, and resolves when that is done. Rejects if the first session fails; later sessions are
   * retried forever.
   */
  async #announce(signal: AbortSignal | undefined): Promise<void> {
    this.#firstSession ??= await this.#connect(signal);
    const open = async (opening: AbortSignal) => {
      const zk = this.#firstSession ?? await this.#options.connect(opening);
      this.#firstSession = null;
      void this.#presence.watch(zk);
      return zk;
    };
    const there = new Promise<void>((resolve) => {
      const off = this.#ownership.subscribe(() => {
        if (!this.#ownership.isRegistered) return;
        off();
        resolve();
      });
    });
    this.#running = this.#ownership.run(open, this.#stop.signal).catch((thrown) => {
      if (!this.#stop.signal.aborted) this.#end.reject(thrown);
    });
    await rejectOnAbort(Promise.race([there, this.ended]), signal);
  }

  async #readMessages(): Promise<void> {
    try {
      for await (const batch of this.#router.batches()) for (const frames of batch) this.#receive(frames);
    } catch (thrown) {
      this.#end.reject(thrown);
    }
  }

  #receive(frames: readonly Uint8Array[]): void {
    const { envelope, content } = splitRequestEnvelope(frames);
    try {
      this.#dispatch(envelope, content);
    } catch (thrown) {
      // Reports a bug, or a response that no message can contain. Only this request is affected.
      this.#options.onProblem(thrown);
      const reason = `internal error: ${errorMessage(thrown)}`;
      this.#reply(
        envelope,
        makeStatusMessage(this.#options.id, { headers: {} }, "ERROR", { reason, headers: { unknown: true } }),
      );
    }
  }

  #dispatch(envelope: RequestEnvelope, content: readonly Uint8Array[]): void {
    const put = readPutFrameStart(content[0]);
    if (put !== null) {
      this.counters.requests.PUT++;
      return this.#requests.handle({ envelope, frames: content, name: "PUT", topic: put.topic, message: null });
    }
    const message = decodePubsubMessage(content);
    if (message.name === null) return this.#refuseInvalid(envelope, message);
    this.counters.requests[message.name]++;
    if (!isClientRequestMessage(message)) return this.#dispatchOther(envelope, message);
    this.#requests.handle({ envelope, frames: content, name: message.name, topic: message.topic, message });
  }

  #refuseInvalid(envelope: RequestEnvelope, { hasHeaders, reason }: InvalidPubsubMessage): void {
    this.counters.refused++;
    const asked = hasHeaders ? { headers: {} } : {};
    this.#reply(envelope, makeStatusMessage(this.#options.id, asked, "BAD_REQUEST", { reason }));
  }

  #dispatchOther(envelope: RequestEnvelope, message: PubsubMessage): void {
    const { id } = this.#options;
    switch (message.name) {
      case "HELLO":
        return this.#reply(envelope, makeStatusMessage(id, { headers: {} }, "OK", { headers: { version: 1 } }));
      case "TOPICS":
        return this.#reply(envelope, { ...makeStatusMessage(id, message, "OK"), body: encodeTopicList(this.topics()) });
      case "MERGE":
        return this.#handoffs.handle(envelope, message);
      case "MANAGE":
        return this.#manager.handle(envelope, message);
      case "CANCEL":
        return this.#requests.cancel(envelope);
      case "TRANSFER":
        return this.#receiver.handle(envelope, message as PubsubMessageOf<"TRANSFER">);
      default: {
        const reason = `a server does not handle ${message.name}`;
        return this.#reply(envelope, makeStatusMessage(id, message, "BAD_REQUEST", { reason }));
      }
    }
  }

  #reply(envelope: RequestEnvelope, response: ResponseStatusMessage | EncodedResponse): void {
    const isEncoded = "frames" in response;
    this.counters.responses[isEncoded ? response.code : response.status]++;
    try {
      const frames = isEncoded ? response.frames : encodePubsubMessage(response);
      if (!this.#router.trySend([...envelope, ...frames])) this.counters.responsesDropped++;
    } catch (thrown) {
      this.counters.responsesDropped++;
      // If the server is closing the socket, there is nothing to report.
      if (this.#closing === null) this.#options.onProblem(thrown);
    }
  }

  #handleStoreFailure(error: BatonError): void {
    this.#requests?.handleStoreFailure();
    this.#end.reject(error);
  }

  async #close(): Promise<void> {
    this.#stop.abort(new BatonError("NOT_HELD", "The server is shutting down"));
    this.#balance?.[Symbol.dispose]();
    this.#receiver?.close();
    await this.#running;
    await this.#firstSession?.close();
    await this.#reports?.[Symbol.asyncDispose]();
    this.#presence?.[Symbol.dispose]();
    await this.#router.close({ lingerMs });
    await this.#store?.close();
  }
}
