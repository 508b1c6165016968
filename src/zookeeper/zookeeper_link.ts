/**
 * One connection that carries a session's requests: numbers them, sends those of one turn in one write, and gives each
 * reply to its request, in order. Knows nothing of what becomes of the session when the connection is lost.
 */
import process from "node:process";
import type { Clock } from "../support/clock.ts";
import { FifoQueue } from "../support/fifo_queue.ts";
import { ByteReader, ByteWriter, protocolError } from "../wire/bytes.ts";
import { eventType, type EventTypeName, operations, specialXid } from "../wire/jute/zookeeper_operations.ts";
import { WatcherEvent } from "../wire/jute/zookeeper_records.ts";
import { LeaderProof, provesByLeader } from "./leader_proof.ts";
import type { FrameListener, FrameStream } from "../sockets/frame_stream.ts";
import type { LivenessFacts } from "./session_timing.ts";
import type { RearmBatch } from "./watches.ts";

/** Who waits for one reply. Neither method may throw. */
export interface ReplyHandler {
  /** `reader` stands at the body, which is there only when `err` is 0. */
  received(err: number, reader: ByteReader): void;
  /** The connection was lost first. */
  connectionLost(cause: Error | null): void;
}

export interface ZooKeeperLinkOwner {
  eventReceived(type: EventTypeName, path: string): void;
  /** At least one reply came with the last bytes. */
  repliesReceived(): void;
  /** The connection is over, and every reply still pending was told so. Called once; not after `destroy`. */
  connectionLost(error: Error | null): void;
}

export interface ZooKeeperLinkOptions {
  readonly clock: Clock;
  /** The first xid to use. */
  readonly nextXid: number;
  /** When the ConnectRequest was sent, which the server has answered. */
  readonly connectSentMs: number;
  /** See LeaderProof. */
  readonly relayMs: number;
  readonly lastZxid: bigint;
}

interface PendingRequest {
  readonly xid: number;
  readonly code: number;
  readonly sentMs: number;
  /** See LeaderProof. */
  readonly provesMs: number;
  readonly reply: ReplyHandler;
}

const xidMax = 0x7fffffff;
const emptyBody = new Uint8Array(0);
const eventNames = new Map<number, EventTypeName>(
  Object.entries(eventType).map(([name, number]) => [number, name as EventTypeName]),
);

export class ZooKeeperLink implements FrameListener {
  readonly #stream: FrameStream;
  readonly #owner: ZooKeeperLinkOwner;
  readonly #clock: Clock;
  readonly #pending = new FifoQueue<PendingRequest>();
  #batch: ByteWriter | null = null;
  #batchMs = 0;
  #batchProvesMs = 0;
  #nextXid: number;
  #lastSentMs: number;
  /** Of a request that the leader answers. */
  #lastLeaderRequestMs: number;
  #leaderRequestsPending = 0;
  readonly #proof: LeaderProof;
  #lastZxid: bigint;
  #hasNewReplies = false;
  #over = false;

  constructor(stream: FrameStream, owner: ZooKeeperLinkOwner, options: ZooKeeperLinkOptions) {
    this.#stream = stream;
    this.#owner = owner;
    this.#clock = options.clock;
    this.#nextXid = options.nextXid;
    this.#lastSentMs = options.connectSentMs;
    this.#lastLeaderRequestMs = options.connectSentMs;
    this.#proof = new LeaderProof(options.relayMs, options.connectSentMs);
    this.#lastZxid = options.lastZxid;
    stream.listen(this);
  }

  /** Replies that have not come yet. */
  get inFlight(): number {
    return this.#pending.length;
  }

  /** A heartbeat is anything that is sent or, if the leader has to be heard of, only what the leader answers. */
  livenessFacts(isLeaderAsked: boolean): LivenessFacts {
    const oldestUnansweredMs = this.#pending.peek()?.sentMs ?? null;
    return isLeaderAsked
      ? {
        lastHeartbeatMs: this.#lastLeaderRequestMs,
        isHeartbeatPending: this.#leaderRequestsPending > 0,
        oldestUnansweredMs,
      }
      : { lastHeartbeatMs: this.#lastSentMs, isHeartbeatPending: oldestUnansweredMs !== null, oldestUnansweredMs };
  }

  /** Send time of the last request that the leader is known to have heard of. */
  get provenMs(): number {
    return this.#proof.provenMs;
  }

  /** See LeaderProof. */
  shortenRelay(relayMs: number): void {
    this.#proof.shortenRelay(relayMs);
  }

  get lastZxid(): bigint {
    return this.#lastZxid;
  }

  /** Sends a request under the next number. */
  send(code: number, body: Uint8Array, reply: ReplyHandler): void {
    const xid = this.#nextXid;
    this.#nextXid = xid === xidMax ? 1 : xid + 1;
    this.#write(xid, code, { body, reply });
  }

  ping(): void {
    this.#write(specialXid.ping, operations.ping.code, { body: emptyBody, reply: ignoredReply });
  }

  /** A ping that goes through the leader. */
  pingLeader(): void {
    this.send(operations.sync.code, rootPath, ignoredReply);
  }

  setWatches({ body, confirmed }: RearmBatch): void {
    this.#write(specialXid.setWatches, operations.setWatches.code, {
      body,
      reply: {
        received(err) {
          if (err !== 0) throw protocolError(`The server would not set the watches again: it answered error ${err}`);
          confirmed();
        },
        connectionLost() {},
      },
    });
  }

  /** Closes at once; the owner is not told, the replies still pending are. */
  destroy(cause: Error | null): void {
    this.#stream.destroy();
    this.#fail(cause);
  }

  /** The rest is the stream's to call. */
  frame(frame: Uint8Array): void {
    const reader = new ByteReader(frame);
    const xid = reader.i32();
    const zxid = reader.i64();
    const err = reader.i32();
    if (zxid > this.#lastZxid) this.#lastZxid = zxid;
    if (xid === specialXid.event) {
      const event = WatcherEvent.read(reader);
      const type = eventNames.get(event.type);
      if (type !== undefined) this.#owner.eventReceived(type, event.path);
      return;
    }
    const pending = this.#pending.peek();
    if (pending === undefined || pending.xid !== xid) {
      throw protocolError(`The server answered request ${xid}, but the next in order is ${pending?.xid ?? "none"}`);
    }
    this.#pending.shift();
    if (provesByLeader(pending.code)) this.#leaderRequestsPending--;
    this.#proof.answered(pending.code, err, pending.provesMs);
    this.#hasNewReplies = true;
    pending.reply.received(err, reader);
  }

  chunkEnd(): void {
    if (!this.#hasNewReplies) return;
    this.#hasNewReplies = false;
    this.#owner.repliesReceived();
  }

  closed(error: Error | null): void {
    this.#fail(error);
    this.#owner.connectionLost(error);
  }

  /** All requests of this turn share one send time, that of the first: early is the safe side for a lease. */
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
      this.#batchProvesMs = this.#proof.sent(this.#batchMs);
      // Behind everything that this turn does, however many promises it waits for: what belongs together leaves together.
      queueMicrotask(() => process.nextTick(() => this.#flush()));
    }
    batch.i32(body.byteLength + 8);
    batch.i32(xid);
    batch.i32(code);
    batch.raw(body);
    if (provesByLeader(code)) {
      this.#lastLeaderRequestMs = this.#batchMs;
      this.#leaderRequestsPending++;
    }
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
    for (const { reply } of this.#pending.drain()) reply.connectionLost(cause);
  }
}

/** The body of a sync of `/`. */
const rootPath = new Uint8Array([0, 0, 0, 1, 0x2f]);

const ignoredReply: ReplyHandler = { received() {}, connectionLost() {} };
