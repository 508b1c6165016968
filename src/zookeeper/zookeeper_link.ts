/**
 * One connection that carries a session's requests: numbers them, sends those of one turn in one write, and gives each
 * reply to its request, in order. Knows nothing of what becomes of the session when the connection is lost.
 */
import process from "node:process";
import type { Clock } from "../support/clock.ts";
import { Fifo } from "../support/fifo.ts";
import { ByteReader, ByteWriter, protocolError } from "../wire/bytes.ts";
import { eventType, type EventTypeName, operations, specialXid } from "../wire/jute/zookeeper_operations.ts";
import { WatcherEvent } from "../wire/jute/zookeeper_records.ts";
import { LeaderProof, provesByLeader } from "./leader_proof.ts";
import type { FrameListener, FrameStream } from "../sockets/frame_stream.ts";
import type { Signs } from "./session_timing.ts";
import type { RearmBatch } from "./watches.ts";

/** Who waits for one reply. Neither method may throw. */
export interface Reply {
  /** `reader` stands at the body, which is there only when `err` is 0. */
  answer(err: number, reader: ByteReader): void;
  /** The connection was lost first. */
  lose(cause: Error | null): void;
}

export interface LinkOwner {
  event(type: EventTypeName, path: string): void;
  /** At least one reply came with the last bytes. */
  answered(): void;
  /** The connection is over, and every reply still owed was told so. Called once; not after `destroy`. */
  lost(error: Error | null): void;
}

export interface LinkOptions {
  readonly clock: Clock;
  /** The first xid to use. */
  readonly nextXid: number;
  /** When the ConnectRequest was sent, which the server has answered. */
  readonly connectSentMs: number;
  /** See LeaderProof. */
  readonly relayMs: number;
  readonly lastZxid: bigint;
}

interface Owed {
  readonly xid: number;
  readonly code: number;
  readonly sentMs: number;
  /** See LeaderProof. */
  readonly provesMs: number;
  readonly reply: Reply;
}

const xidMax = 0x7fffffff;
const noBody = new Uint8Array(0);
const eventNames = new Map<number, EventTypeName>(
  Object.entries(eventType).map(([name, number]) => [number, name as EventTypeName]),
);

export class Link implements FrameListener {
  readonly #stream: FrameStream;
  readonly #owner: LinkOwner;
  readonly #clock: Clock;
  readonly #owed = new Fifo<Owed>();
  #batch: ByteWriter | null = null;
  #batchMs = 0;
  #batchProvesMs = 0;
  #nextXid: number;
  #lastSentMs: number;
  /** Of a request that the leader answers. */
  #lastAskedMs: number;
  #asksOwed = 0;
  readonly #proof: LeaderProof;
  #lastZxid: bigint;
  #newlyAnswered = false;
  #over = false;

  constructor(stream: FrameStream, owner: LinkOwner, options: LinkOptions) {
    this.#stream = stream;
    this.#owner = owner;
    this.#clock = options.clock;
    this.#nextXid = options.nextXid;
    this.#lastSentMs = options.connectSentMs;
    this.#lastAskedMs = options.connectSentMs;
    this.#proof = new LeaderProof(options.relayMs, options.connectSentMs);
    this.#lastZxid = options.lastZxid;
    stream.listen(this);
  }

  /** Replies that have not come yet. */
  get owed(): number {
    return this.#owed.length;
  }

  /** A heartbeat is anything that is sent or, if the leader has to be heard of, only what the leader answers. */
  signs(isLeaderAsked: boolean): Signs {
    const oldestUnansweredMs = this.#owed.peek()?.sentMs ?? null;
    return isLeaderAsked
      ? { lastBeatMs: this.#lastAskedMs, isBeatUnanswered: this.#asksOwed > 0, oldestUnansweredMs }
      : { lastBeatMs: this.#lastSentMs, isBeatUnanswered: oldestUnansweredMs !== null, oldestUnansweredMs };
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
  send(code: number, body: Uint8Array, reply: Reply): void {
    const xid = this.#nextXid;
    this.#nextXid = xid === xidMax ? 1 : xid + 1;
    this.#write(xid, code, { body, reply });
  }

  ping(): void {
    this.#write(specialXid.ping, operations.ping.code, { body: noBody, reply: ignoredReply });
  }

  /** A ping that goes through the leader. */
  askLeader(): void {
    this.send(operations.sync.code, rootPath, ignoredReply);
  }

  setWatches({ body, confirmed }: RearmBatch): void {
    this.#write(specialXid.setWatches, operations.setWatches.code, {
      body,
      reply: {
        answer(err) {
          if (err !== 0) throw protocolError(`The server would not set the watches again: it answered error ${err}`);
          confirmed();
        },
        lose() {},
      },
    });
  }

  /** Closes at once; the owner is not told, the replies still owed are. */
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
      if (type !== undefined) this.#owner.event(type, event.path);
      return;
    }
    const owed = this.#owed.peek();
    if (owed === undefined || owed.xid !== xid) {
      throw protocolError(`The server answered request ${xid}, but the next in order is ${owed?.xid ?? "none"}`);
    }
    this.#owed.shift();
    if (provesByLeader(owed.code)) this.#asksOwed--;
    this.#proof.answered(owed.code, err, owed.provesMs);
    this.#newlyAnswered = true;
    owed.reply.answer(err, reader);
  }

  turn(): void {
    if (!this.#newlyAnswered) return;
    this.#newlyAnswered = false;
    this.#owner.answered();
  }

  closed(error: Error | null): void {
    this.#fail(error);
    this.#owner.lost(error);
  }

  /** All requests of this turn share one send time, that of the first: early is the safe side for a lease. */
  #write(xid: number, code: number, { body, reply }: { readonly body: Uint8Array; readonly reply: Reply }): void {
    if (this.#over) return reply.lose(null);
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
      this.#lastAskedMs = this.#batchMs;
      this.#asksOwed++;
    }
    this.#owed.push({ xid, code, sentMs: this.#batchMs, provesMs: this.#batchProvesMs, reply });
  }

  #flush(): void {
    if (this.#batch === null || this.#over) return;
    const bytes = this.#batch.finish();
    this.#batch = null;
    this.#stream.send(bytes);
  }

  #fail(cause: Error | null): void {
    this.#over = true;
    for (const { reply } of this.#owed.drain()) reply.lose(cause);
  }
}

/** The body of a sync of `/`. */
const rootPath = new Uint8Array([0, 0, 0, 1, 0x2f]);

const ignoredReply: Reply = { answer() {}, lose() {} };
