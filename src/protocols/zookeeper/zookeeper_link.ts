/**
 * One connection that carries a session's requests. Numbers the requests, sends the requests of one event-loop turn in
 * one write, and passes each reply to its request. The session handles a lost connection.
 */
import process from "node:process";
import type { Clock } from "../../base/support/clock.ts";
import { FifoQueue } from "../../base/support/fifo_queue.ts";
import { ByteReader, ByteWriter, protocolError } from "../../base/wire/bytes.ts";
import {
  specialXid,
  watchEventType,
  type WatchEventTypeName,
  zooKeeperOperations,
} from "./jute/zookeeper_operations.ts";
import { WatcherEvent } from "./jute/zookeeper_records.ts";
import { isAnsweredByLeader, LeaderProof } from "./leader_proof.ts";
import type { FrameStream, FrameStreamListener } from "../../base/sockets/frame_stream.ts";
import type { ConnectionLivenessFacts, ReadOrWriteRequest, SilencePatience } from "./session_timing.ts";
import type { SetWatchesBatch } from "./watches.ts";
import { onAbort } from "../../base/support/abort.ts";
import type { ZooKeeperErrorName } from "./jute/zookeeper_error_codes.ts";
import { givenUpOperationError, ZooKeeperError, type ZooKeeperOperationLabel } from "./zookeeper_error.ts";

/** Handles the reply to one request. Its methods must not throw. */
interface ReplyHandler {
  /** `reader` is at the start of the body, which exists only if `err` is 0. */
  received(err: number, reader: ByteReader): void;
  connectionLost(cause: Error | null): void;
}

export interface ZooKeeperLinkOwner {
  eventReceived(type: WatchEventTypeName, path: string): void;
  /** Called after input that contained at least one reply. */
  repliesReceived(): void;
  /** Called once when the connection is lost, after the pending requests were told. Not called after `destroy`. */
  connectionLost(error: Error | null): void;
}

interface ZooKeeperLinkOptions {
  readonly clock: Clock;
  readonly nextXid: number;
  /** The send time of the ConnectRequest. */
  readonly connectSentMs: number;
  /** See LeaderProof. */
  readonly relayMs: number;
  readonly lastZxid: bigint;
  readonly patience: SilencePatience;
  /** How long input may wait while no request is unanswered, in milliseconds. By default input is read immediately. */
  readonly gatherMs?: number | undefined;
}

interface PendingRequest {
  readonly xid: number;
  readonly code: number;
  readonly sentMs: number;
  /** The send time that a response to this request proves; see LeaderProof. */
  readonly provesMs: number;
  readonly reply: ReplyHandler;
}

/** The size, in bytes, from which a chunk may be followed by more data; reading then does not pause. */
const gatheredBytesMax = 64 << 10;

const xidMax = 0x7fffffff;
const emptyBody = new Uint8Array(0);
const eventNames = new Map<number, WatchEventTypeName>(
  Object.entries(watchEventType).map(([name, number]) => [number, name as WatchEventTypeName]),
);

export class ZooKeeperLink implements FrameStreamListener {
  readonly #stream: FrameStream;
  readonly #owner: ZooKeeperLinkOwner;
  readonly #clock: Clock;
  readonly #pending = new FifoQueue<PendingRequest>();
  #batch: ByteWriter | null = null;
  #batchMs = 0;
  #batchProvesMs = 0;
  #nextXid: number;
  #lastSentMs: number;
  /** The send time of the last request that only the leader answers. */
  #lastLeaderRequestMs: number;
  #leaderRequestsPending = 0;
  /** The numbers of unanswered requests, not counting heartbeats. */
  readonly #waiting = { read: 0, write: 0 };
  readonly #patience: SilencePatience;
  readonly #proof: LeaderProof;
  lastZxid: bigint;
  #hasNewReplies = false;
  #over = false;
  readonly #gatherMs: number;
  /** Ends the current pause in reading; null if there is no pause. */
  #endGathering: (() => void) | null = null;

  constructor(stream: FrameStream, owner: ZooKeeperLinkOwner, options: ZooKeeperLinkOptions) {
    this.#stream = stream;
    this.#owner = owner;
    this.#clock = options.clock;
    this.#nextXid = options.nextXid;
    this.#lastSentMs = options.connectSentMs;
    this.#lastLeaderRequestMs = options.connectSentMs;
    this.#proof = new LeaderProof(options.relayMs, options.connectSentMs);
    this.lastZxid = options.lastZxid;
    this.#patience = options.patience;
    this.#gatherMs = options.gatherMs ?? 0;
    stream.listen(this);
  }

  get inFlight(): number {
    return this.#pending.length;
  }

  /**
   * Returns the facts about the last heartbeat. Any request counts as a heartbeat. If `isLeaderAsked` is true, only a
   * request that the leader answers counts.
   */
  livenessFacts(isLeaderAsked: boolean): ConnectionLivenessFacts {
    const oldestUnansweredMs = this.#pending.peek()?.sentMs ?? null;
    return isLeaderAsked
      ? {
        lastHeartbeatMs: this.#lastLeaderRequestMs,
        isHeartbeatPending: this.#leaderRequestsPending > 0,
        oldestUnansweredMs,
      }
      : { lastHeartbeatMs: this.#lastSentMs, isHeartbeatPending: oldestUnansweredMs !== null, oldestUnansweredMs };
  }

  /**
   * The send time of the oldest unanswered message; null if only heartbeats are unanswered.
   */
  get oldestRequestMs(): number | null {
    return this.#waiting.read + this.#waiting.write > 0 ? this.#pending.peek()?.sentMs ?? null : null;
  }

  /**
   * Records that the session gives up this connection although the servers can be reached. The session then waits
   * longer next time.
   */
  gaveUp(timeoutMs: number): void {
    const { read, write } = this.#waiting;
    if (read + write > 0) this.#patience.gaveUp(timeoutMs, write > 0 ? "write" : "read");
  }

  /** The send time of the last request that the leader has certainly heard of. */
  get provenMs(): number {
    return this.#proof.provenMs;
  }

  /** Sets a shorter relay time; see LeaderProof. */
  shortenRelay(relayMs: number): void {
    this.#proof.shortenRelay(relayMs);
  }

  send(code: number, body: Uint8Array, reply: ReplyHandler): void {
    const xid = this.#nextXid;
    this.#nextXid = xid === xidMax ? 1 : xid + 1;
    this.#write(xid, code, { body, reply });
  }

  ping(): void {
    this.#write(specialXid.ping, zooKeeperOperations.ping.code, { body: emptyBody, reply: ignoredReply });
  }

  /** Sends a ping that goes through the leader. */
  pingLeader(): void {
    this.send(zooKeeperOperations.sync.code, rootPath, ignoredReply);
  }

  setWatches({ body, onConfirmed }: SetWatchesBatch): void {
    this.#write(specialXid.setWatches, zooKeeperOperations.setWatches.code, {
      body,
      reply: {
        received(err) {
          if (err !== 0) throw protocolError(`The server did not set the watches again: error ${err}`);
          onConfirmed();
        },
        connectionLost() {},
      },
    });
  }

  /** Closes the connection. Tells the pending requests, but not the owner. */
  destroy(cause: Error | null): void {
    this.#stream.destroy();
    this.#fail(cause);
  }

  /** The stream calls this method and the next two. */
  onFrame(frame: Uint8Array): void {
    const reader = new ByteReader(frame);
    const xid = reader.i32();
    const zxid = reader.i64();
    const err = reader.i32();
    if (zxid > this.lastZxid) this.lastZxid = zxid;
    if (xid === specialXid.event) {
      const event = WatcherEvent.read(reader);
      const type = eventNames.get(event.type);
      if (type !== undefined) this.#owner.eventReceived(type, event.path);
      return;
    }
    const pending = this.#pending.peek();
    if (pending === undefined || pending.xid !== xid) {
      throw protocolError(`The server responded to request ${xid}, but the next one is ${pending?.xid ?? "none"}`);
    }
    this.#pending.shift();
    const nowMs = this.#clock.now();
    if (isAnsweredByLeader(pending.code)) this.#leaderRequestsPending--;
    if (pending.reply !== ignoredReply) {
      const kind = kindOf(pending.code);
      this.#waiting[kind]--;
      this.#patience.answered(kind, nowMs - pending.sentMs);
    }
    this.#proof.recordResponse(pending, { err, nowMs });
    this.#hasNewReplies = true;
    pending.reply.received(err, reader);
  }

  onChunkEnd(bytes: number): void {
    if (bytes < gatheredBytesMax) this.#gather();
    if (!this.#hasNewReplies) return;
    this.#hasNewReplies = false;
    this.#owner.repliesReceived();
  }

  onClosed(error: Error | null): void {
    this.#fail(error);
    this.#owner.connectionLost(error);
  }

  /** Pauses reading for a while, because waking up the process costs more time than handling the events. */
  #gather(): void {
    if (this.#gatherMs === 0 || this.#pending.length > 0 || this.#over || this.#endGathering !== null) return;
    const cancel = this.#clock.startTimer(this.#gatherMs, () => this.#endGathering?.());
    this.#stream.pause();
    this.#endGathering = () => {
      cancel();
      this.#endGathering = null;
      this.#stream.resume();
    };
  }

  /**
   * Adds a request to the batch. All requests of a batch share the send time of the first one, because a lease may end
   * early but never late.
   */
  #write(
    xid: number,
    code: number,
    { body, reply }: { readonly body: Uint8Array; readonly reply: ReplyHandler },
  ): void {
    if (this.#over) return reply.connectionLost(null);
    let batch = this.#batch;
    if (batch === null) {
      batch = new ByteWriter(body.byteLength + 128);
      this.#batch = batch;
      this.#batchMs = this.#clock.now();
      this.#lastSentMs = this.#batchMs;
      this.#batchProvesMs = this.#proof.recordSent(this.#batchMs);
      // Flushes after all work of this event-loop turn, so that its requests leave together.
      queueMicrotask(() => process.nextTick(() => this.#flush()));
    }
    batch.i32(body.byteLength + 8);
    batch.i32(xid);
    batch.i32(code);
    batch.raw(body);
    if (isAnsweredByLeader(code)) {
      this.#lastLeaderRequestMs = this.#batchMs;
      this.#leaderRequestsPending++;
    }
    this.#endGathering?.();
    if (reply !== ignoredReply) this.#waiting[kindOf(code)]++;
    this.#pending.push({ xid, code, sentMs: this.#batchMs, provesMs: this.#batchProvesMs, reply });
  }

  #flush(): void {
    if (this.#batch === null || this.#over) return;
    const bytes = this.#batch.finish();
    this.#batch = null;
    this.#stream.send(bytes);
  }

  #fail(cause: Error | null): void {
    this.#over = true;
    this.#endGathering?.();
    for (const { reply } of this.#pending.drain()) reply.connectionLost(cause);
  }
}

/** The body of a sync request for the path `/`. */
const rootPath = new Uint8Array([0, 0, 0, 1, 0x2f]);

const ignoredReply: ReplyHandler = { received() {}, connectionLost() {} };

/** Returns the kind of a request. Writes wait for the servers' disks, and reads do not. */
function kindOf(code: number): ReadOrWriteRequest {
  return isAnsweredByLeader(code) && code !== zooKeeperOperations.sync.code ? "write" : "read";
}

export interface ZooKeeperOperationCall<T> {
  readonly label: ZooKeeperOperationLabel;
  readonly code: number;
  readonly body: Uint8Array;
  /** Decodes the reply. If the reply is an error, throws the error with which the operation rejects. */
  decode(err: number, reader: ByteReader): T;
}

/** An operation in progress. It is queued, sent, and settled exactly once. */
export class ZooKeeperRequest<T> implements ReplyHandler {
  readonly code: number;
  readonly body: Uint8Array;
  /** The clock time after which the request must not be sent. */
  readonly deadlineMs: number;
  readonly #call: ZooKeeperOperationCall<T>;
  readonly #result = Promise.withResolvers<T>();
  readonly promise = this.#result.promise;
  #offAbort: () => void = () => {};
  /** True if the operation was answered, has failed, or was canceled by the caller. */
  settled = false;

  constructor(call: ZooKeeperOperationCall<T>, deadlineMs: number, signal?: AbortSignal) {
    this.#call = call;
    this.code = call.code;
    this.body = call.body;
    this.deadlineMs = deadlineMs;
    this.#offAbort = onAbort(signal, (reason) => this.#settle(() => this.#result.reject(reason)));
  }

  received(err: number, reader: ByteReader): void {
    if (this.settled) return;
    let value: T;
    try {
      value = this.#call.decode(err, reader);
    } catch (error) {
      if (error instanceof ZooKeeperError) return this.#settle(() => this.#result.reject(error));
      this.connectionLost(error instanceof Error ? error : null);
      throw error; // the reply cannot be read, so the connection is unusable
    }
    this.#settle(() => this.#result.resolve(value));
  }

  connectionLost(cause: Error | null): void {
    if (cause === null) this.fail("CONNECTIONLOSS");
    else this.fail("CONNECTIONLOSS", cause, `the connection was lost before the response arrived (${cause.message})`);
  }

  fail(reason: ZooKeeperErrorName, cause?: unknown, why?: string): void {
    if (this.settled) return;
    this.#settle(() =>
      this.#result.reject(
        givenUpOperationError(this.#call.label, reason, why === undefined ? { cause } : { cause, why }),
      )
    );
  }

  #settle(act: () => void): void {
    this.settled = true;
    this.#offAbort();
    act();
  }
}
