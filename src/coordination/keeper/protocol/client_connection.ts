/**
 * One client connection: its handshake, requests, replies and events. Owns the connection, its identities and its
 * entries in the group commit queue. The state belongs to the host.
 */
import { BatonError } from "../../../base/errors.ts";
import { ByteReader, type ByteWriter, protocolError } from "../../../base/wire/bytes.ts";
import { zooKeeperErrorNumbers } from "../../../protocols/zookeeper/jute/zookeeper_error_codes.ts";
import {
  specialXid,
  watchEventStateConnected,
  zooKeeperOperations,
} from "../../../protocols/zookeeper/jute/zookeeper_operations.ts";
import { AuthPacket, ReplyHeader, WatcherEvent } from "../../../protocols/zookeeper/jute/zookeeper_records.ts";
import {
  type ConnectRequest,
  connectRequestCodec,
  connectResponseCodec,
} from "../../../protocols/zookeeper/jute/session_frames.ts";
import type { Connection, ConnectionHandlers } from "../../../base/sockets/connection.ts";
import { type ClientIdentity, digestIdentityId } from "../state/acl_check.ts";
import { isFourLetterWord } from "./four_letter_words.ts";
import { KeeperReadBuffer } from "./read_buffer.ts";
import type { KeeperLimits } from "../state/keeper_limits.ts";
import type { KeeperCommitQueue, KeeperReplyRecipient, PendingKeeperReply } from "./group_commit_queue.ts";
import { type KeeperSession, sessionPasswordBytes } from "../state/session_table.ts";
import type { KeeperRequester, KeeperState } from "../state/keeper_state.ts";
import type { ConnectionScheduler, ScheduledConnection } from "./connection_scheduler.ts";

export interface KeeperConnectionHost {
  readonly state: KeeperState<KeeperClientConnection>;
  readonly commitQueue: KeeperCommitQueue;
  readonly limits: KeeperLimits;
  readonly scheduler: ConnectionScheduler;
  /** The zxid of the last transaction that is on the disk. */
  readonly durableZxid: bigint;
  /** False while the disk cannot store anything. */
  readonly writable: boolean;
  /** False if another keeper may have opened the data. The connection must then answer no request. */
  readonly ownsData: boolean;
  /** The digest ID that has all permissions; null if none is configured. */
  readonly superDigest: string | null;
  now(): number;
  negotiateTimeoutMs(timeoutMs: number): number;
  fourLetterResponse(word: string): string;
  readonly connections: {
    /**
     * Returns true if the connection's address may have one more session. Resuming a session of the same address is
     * always allowed.
     */
    hasRoom(connection: KeeperClientConnection, sessionId: bigint): boolean;
    /** Records that the session now belongs to this connection, and closes the connection that it had before. */
    sessionAttached(connection: KeeperClientConnection, session: KeeperSession): void;
    /** Closes a connection some time after its last response, unless the client closes it first. */
    closeSoon(connection: KeeperClientConnection): void;
  };
  /** Called once, when the connection has ended. */
  closed(connection: KeeperClientConnection): void;
  /** Reports the memory that a connection holds: incomplete and waiting requests, and unread responses. */
  setHeldBytes(connection: KeeperClientConnection, inputBytes: number, outputBytes: number): void;
  /** Ends idle sessions if the keeper is at its limit. Returns true if one more session may be opened. */
  makeRoomForSession(): boolean;
  reportBug(error: unknown): void;
}

const wordBytes = 4;
const noBytesHeld = { input: 0, output: 0 };
/** A connection that holds fewer bytes of memory than this is not counted in the memory budget. */
const reportedBytesMin = 4 << 10;

export class KeeperClientConnection implements ConnectionHandlers, KeeperReplyRecipient, ScheduledConnection {
  readonly #connection: Connection;
  readonly #host: KeeperConnectionHost;
  readonly #readBuffer: KeeperReadBuffer;
  readonly identities: ClientIdentity[];
  /** The first received bytes, until it is clear whether they are a four-letter word or a frame; null afterwards. */
  #firstBytes: Uint8Array | null = new Uint8Array(0);
  #requester: KeeperRequester<KeeperClientConnection> | null = null;
  #ended = false;
  #paused = false;
  /** The number of requests whose replies wait for the disk. */
  outstandingCount = 0;
  #outstandingBytes = 0;
  /** The length of the request that is being handled, in bytes. */
  #requestBytes = 0;
  /** The bytes of replies in the group commit queue. */
  #pendingBytes = 0;
  #reportedBytes = noBytesHeld;
  receivedCount = 0;
  /** The zxid of the last reply. The reply to a ping must not have a lower zxid. */
  #lastZxid = 0n;

  constructor(connection: Connection, host: KeeperConnectionHost, ip: string) {
    this.#connection = connection;
    this.#host = host;
    this.#readBuffer = new KeeperReadBuffer(host.limits.frameBytesMax);
    this.identities = [{ scheme: "ip", id: ip }];
  }

  get peer(): string {
    return this.#connection.peer;
  }

  get session(): KeeperSession | null {
    return this.#requester?.session ?? null;
  }

  onData(chunk: Uint8Array): void {
    if (this.#ended) return;
    this.#readBuffer.push(this.#firstBytes === null ? chunk : this.#afterFirstBytes(chunk));
    if (this.#paused) this.#readBuffer.copyRest(); // the chunk arrived after the pause, so the scheduler handles it
    else this.runSlice();
  }

  /** Handles requests for one time slice. Stops early if too much output is unsent, because responses can be large. */
  runSlice(): void {
    if (this.#ended) return;
    // Checks this before reading the input, because a lease counts from the moment when its holder sent the request.
    if (!this.#host.ownsData) return this.destroy();
    const endMs = this.#host.scheduler.sliceEnd();
    try {
      while (!this.#isFull) {
        const frame = this.#readBuffer.nextFrame();
        if (frame === null) break;
        this.#handleFrame(frame);
        if (this.#ended || this.#host.scheduler.isOver(endMs)) break;
      }
    } catch (error) {
      // Sends no response to a client that breaks the protocol, like ZooKeeper. Any other error is a bug.
      if (!(error instanceof BatonError && error.code === "PROTOCOL")) this.#host.reportBug(error);
      this.#end();
    }
    if (this.#ended) this.#readBuffer.clear();
    else this.#readBuffer.copyRest();
    this.#applyBackpressure();
    this.#host.commitQueue.flush();
  }

  onClosed(): void {
    this.#ended = true;
    this.#host.scheduler.remove(this);
    this.#host.closed(this);
  }

  onDrained(): void {
    this.#applyBackpressure();
  }

  deliver({ writer, replies, requestBytes, last }: PendingKeeperReply): void {
    this.outstandingCount -= replies;
    this.#outstandingBytes -= requestBytes;
    this.#pendingBytes -= writer.length;
    this.#connection.write(writer.finish());
    if (last) this.#end();
    else this.#applyBackpressure();
  }

  /** Queues a watch event. The event is sent before all replies that are queued later. */
  notify(type: number, path: string): void {
    if (this.#ended) return;
    const { writer } = this.#host.commitQueue.enqueue(this);
    this.#writeFrame(writer, () => {
      ReplyHeader.write(writer, { xid: specialXid.event, zxid: -1n, err: 0 });
      WatcherEvent.write(writer, { type, state: watchEventStateConnected, path });
    });
  }

  destroy(): void {
    this.#ended = true;
    this.#connection.destroy();
  }

  #end(): void {
    this.#ended = true;
    this.#connection.end();
    this.#host.connections.closeSoon(this);
  }

  /** Checks the first four bytes. Answers a four-letter word; returns anything else as the beginning of frames. */
  #afterFirstBytes(chunk: Uint8Array): Uint8Array {
    const first = new Uint8Array((this.#firstBytes?.byteLength ?? 0) + chunk.byteLength);
    first.set(this.#firstBytes ?? []);
    first.set(chunk, this.#firstBytes?.byteLength ?? 0);
    if (first.byteLength < wordBytes) {
      this.#firstBytes = first;
      return new Uint8Array(0);
    }
    this.#firstBytes = null;
    const word = String.fromCharCode(...first.subarray(0, wordBytes));
    if (!isFourLetterWord(word)) return first;
    this.#connection.write(new TextEncoder().encode(this.#host.fourLetterResponse(word)));
    this.#end();
    return new Uint8Array(0);
  }

  #handleFrame(frame: Uint8Array): void {
    this.receivedCount++;
    this.#requestBytes = frame.byteLength;
    const reader = new ByteReader(frame);
    if (this.#requester === null) this.#handshake(connectRequestCodec.read(reader));
    else this.#handleRequest(reader, this.#requester);
  }

  #handleRequest(reader: ByteReader, requester: KeeperRequester<KeeperClientConnection>): void {
    const { state, commitQueue } = this.#host;
    const xid = reader.i32();
    const code = reader.i32();
    state.sessions.touch(requester.session, this.#host.now());
    if (code === zooKeeperOperations.ping.code) {
      return this.#reply(commitQueue.enqueueUnconditional(this), { xid, zxid: this.#zxidToReport, err: 0 });
    }
    if (code === zooKeeperOperations.auth.code) return this.#authenticate(xid, reader);
    // Does not apply a change that cannot be stored. Closing the connection tells the client that the outcome is
    // unknown.
    if (!this.#host.writable && state.isWrite(code)) return this.destroy();
    const result = state.apply(code, reader, requester);
    if (code === zooKeeperOperations.sync.code) {
      // Does not wait for the disk: a sync only confirms that earlier requests were handled, and the reads after it
      // wait for the disk themselves. Holders of locks renew their leases with a sync, which other clients' writes must
      // not delay.
      const header = { xid, zxid: this.#zxidToReport, err: result.error };
      return this.#reply(commitQueue.enqueueUnconditional(this), header, result);
    }
    this.#lastZxid = result.zxid;
    this.#reply(commitQueue.enqueue(this), { xid, zxid: result.zxid, err: result.error }, result);
  }

  /** The zxid for a reply that does not wait for the disk. */
  get #zxidToReport(): bigint {
    const { durableZxid } = this.#host;
    return durableZxid > this.#lastZxid ? durableZxid : this.#lastZxid;
  }

  #reply(
    pending: PendingKeeperReply,
    header: { xid: number; zxid: bigint; err: number },
    result: { write: ((writer: ByteWriter) => void) | null; last: boolean } = { write: null, last: false },
  ): void {
    const { writer } = pending;
    this.#writeFrame(writer, () => {
      ReplyHeader.write(writer, header);
      result.write?.(writer);
    });
    pending.replies++;
    pending.requestBytes += this.#requestBytes;
    this.outstandingCount++;
    this.#outstandingBytes += this.#requestBytes;
    if (!result.last) return;
    pending.last = true;
    this.#ended = true;
  }

  #authenticate(xid: number, reader: ByteReader): void {
    const { scheme, auth } = AuthPacket.read(reader);
    const pending = this.#host.commitQueue.enqueueUnconditional(this);
    if (scheme === "ip") return this.#reply(pending, { xid, zxid: 0n, err: 0 }); // every connection has this identity
    if (scheme !== "digest" || this.identities.length >= this.#host.limits.identitiesMax) {
      const header = { xid, zxid: 0n, err: zooKeeperErrorNumbers.AUTHFAILED };
      return this.#reply(pending, header, { write: null, last: true });
    }
    const id = digestIdentityId(new TextDecoder().decode(auth ?? new Uint8Array(0)));
    if (id === this.#host.superDigest) this.identities.push({ scheme: "super", id: "" });
    if (!this.identities.some((own) => own.scheme === "digest" && own.id === id)) {
      this.identities.push({ scheme: "digest", id });
    }
    this.#reply(pending, { xid, zxid: 0n, err: 0 });
  }

  #handshake(request: ConnectRequest): void {
    const { state, commitQueue, writable } = this.#host;
    if (!state.mayHaveGiven(request.lastZxidSeen)) {
      throw protocolError(
        `The client has seen zxid ${request.lastZxidSeen}, but the last one of this keeper is ${state.zxid}`,
      );
    }
    if (!this.#host.connections.hasRoom(this, request.sessionId)) return this.destroy();
    const timeoutMs = this.#host.negotiateTimeoutMs(request.timeOut);
    const nowMs = this.#host.now();
    let session: KeeperSession | undefined;
    let pending: PendingKeeperReply | undefined;
    if (request.sessionId === 0n) {
      if (!writable || !this.#host.makeRoomForSession()) return this.destroy();
      session = state.openSession(timeoutMs, nowMs);
      pending = commitQueue.enqueueUnconditional(this); // see KeeperState.hasUrgentChanges
    } else {
      // Checks the password before changing anything for the connection that has the session now.
      session = state.sessions.find(request.sessionId, request.passwd);
      // The session may have ended just now, so this response waits for that change.
      if (session === undefined) return this.#sendConnectResponse(request, null, commitQueue.enqueue(this));
      if (session.timeoutMs !== timeoutMs && !writable) return this.destroy();
      // If a session moves to this connection during a slow commit, sends the response immediately, because the
      // response contains nothing new.
      if (session.timeoutMs === timeoutMs) pending = commitQueue.enqueueUnconditional(this);
      state.sessions.setTimeout(session, timeoutMs);
      state.sessions.touch(session, nowMs);
    }
    this.#requester = { session, identities: this.identities, watcher: this };
    this.#host.connections.sessionAttached(this, session);
    this.#sendConnectResponse(request, session, pending ?? commitQueue.enqueue(this));
  }

  #sendConnectResponse(request: ConnectRequest, session: KeeperSession | null, pending: PendingKeeperReply): void {
    this.#writeFrame(pending.writer, () =>
      connectResponseCodec.write(pending.writer, {
        protocolVersion: 0,
        timeOut: session?.timeoutMs ?? 0,
        sessionId: session?.id ?? 0n,
        passwd: session?.password ?? new Uint8Array(sessionPasswordBytes),
        readOnly: request.readOnly === undefined ? undefined : false,
      }));
    if (session !== null) return;
    pending.last = true;
    this.#ended = true;
  }

  /** Pauses reading while too much output is unsent or input is left to handle. */
  #applyBackpressure(): void {
    if (this.#ended) return;
    if (this.#connection.bufferedBytes > this.#host.limits.unsentBytesCloseMax) return this.destroy();
    if (!this.#isFull && !this.#readBuffer.isEmpty) this.#host.scheduler.schedule(this);
    const pause = this.#isFull || !this.#readBuffer.isEmpty;
    this.#reportHeldBytes();
    if (pause === this.#paused) return;
    this.#paused = pause;
    if (pause) this.#connection.pause();
    else this.#connection.resume();
  }

  /** Reports the memory of this connection to the host. Most connections hold too little memory to be counted. */
  #reportHeldBytes(): void {
    const input = this.#readBuffer.heldBytes;
    const output = this.#pendingBytes + this.#connection.bufferedBytes;
    const bytes = input + output >= reportedBytesMin ? { input, output } : noBytesHeld;
    if (bytes === this.#reportedBytes) return;
    this.#reportedBytes = bytes;
    this.#host.setHeldBytes(this, bytes.input, bytes.output);
  }

  /** True if the client has too many requests or bytes outstanding; the keeper then handles no other request. */
  get #isFull(): boolean {
    return this.waitsForDisk || this.#pendingBytes + this.#connection.bufferedBytes > this.#host.limits.unsentBytesMax;
  }

  /** True if reading from this client has stopped until the disk has stored its earlier requests. */
  get waitsForDisk(): boolean {
    const { outstandingRequestsMax, outstandingBytesMax } = this.#host.limits;
    return this.outstandingCount > outstandingRequestsMax || this.#outstandingBytes > outstandingBytesMax;
  }

  #writeFrame(writer: ByteWriter, write: () => void): void {
    const start = writer.length;
    writer.i32(0);
    write();
    writer.setI32(start, writer.length - start - 4);
    this.#pendingBytes += writer.length - start;
  }
}
