/**
 * One connection: its handshake, its requests in, its replies and events out. Owns the connection, its identities and its
 * place in the reply stages; the state belongs to the host.
 */
import { BatonError } from "../../errors.ts";
import { ByteReader, type ByteWriter, protocolError } from "../../wire/bytes.ts";
import { zooKeeperErrorNumbers } from "../../wire/jute/zookeeper_error_codes.ts";
import { eventStateConnected, operations, specialXid } from "../../wire/jute/zookeeper_operations.ts";
import { AuthPacket, ReplyHeader, WatcherEvent } from "../../wire/jute/zookeeper_records.ts";
import { type ConnectRequest, connectRequest, connectResponse } from "../../wire/jute/session_frames.ts";
import type { Connection, ConnectionHandlers } from "../../sockets/connection.ts";
import { digestId, type Identity } from "../state/acl_check.ts";
import { isFourLetterWord } from "./four_letter_words.ts";
import { Intake } from "./read_buffer.ts";
import type { KeeperLimits } from "../state/keeper_limits.ts";
import type { Recipient, ReplyStages, Staged } from "./group_commit_queue.ts";
import { type Session, sessionPasswordBytes } from "../state/session_table.ts";
import type { KeeperState } from "../state/keeper_state.ts";
import type { Turns, Worker } from "./fair_scheduler.ts";

/** What a connection needs of its keeper. */
export interface ConnectionHost {
  readonly state: KeeperState<ClientConnection>;
  readonly stages: ReplyStages;
  readonly limits: KeeperLimits;
  readonly turns: Turns;
  /** What the log has for certain. */
  readonly durableZxid: bigint;
  /** False while the disk refuses to store anything. */
  readonly writable: boolean;
  /** False when the data may be another keeper's by now: nobody is answered. */
  readonly ownsData: boolean;
  /** This digest id may do everything. */
  readonly superDigest: string | null;
  /** Session time, in milliseconds. */
  now(): number;
  negotiate(timeoutMs: number): number;
  report(word: string): string;
  /** False when its address has as many connections with a session as it may; one that takes its own session over is let in. */
  hasRoom(connection: ClientConnection, sessionId: bigint): boolean;
  /** The session is this connection's from now on; another one that had it is closed. */
  attached(connection: ClientConnection, session: Session): void;
  /** The connection is gone. */
  closed(connection: ClientConnection): void;
  /** What the connection makes the keeper hold: requests that are not whole or wait, answers that it has not taken. */
  holds(connection: ClientConnection, inputBytes: number, outputBytes: number): void;
  /** Room for one more session, where that can be had. */
  roomForSession(): boolean;
  /** A connection said its last: it is closed if the other side does not do so. */
  closeSoon(connection: ClientConnection): void;
  /** Something was thrown that nobody threw on purpose. */
  bug(error: unknown): void;
  /** The end of a turn: what can go out goes out. */
  turnEnded(): void;
}

const wordBytes = 4;
const nothingHeld = { input: 0, output: 0 };
/** What one connection may have under way without being counted among those that make the keeper hold much. */
const countedBytesMin = 4 << 10;

export class ClientConnection implements ConnectionHandlers, Recipient, Worker {
  readonly #connection: Connection;
  readonly #host: ConnectionHost;
  readonly #intake: Intake;
  readonly #identities: Identity[];
  /** The first bytes, until it is clear whether they are a word; then null. */
  #word: Uint8Array | null = new Uint8Array(0);
  #session: Session | null = null;
  #asker: { session: Session; identities: readonly Identity[]; watcher: ClientConnection } | null = null;
  #ended = false;
  #paused = false;
  #outstanding = 0;
  #outstandingBytes = 0;
  /** Of the request that is being looked at. */
  #requestBytes = 0;
  /** Bytes in the reply stages. */
  #stagedBytes = 0;
  /** What the host was told of it last. */
  #held = nothingHeld;
  #received = 0;
  /** The zxid of the last reply: a ping's must not fall behind it. */
  #lastZxid = 0n;

  constructor(connection: Connection, host: ConnectionHost, ip: string) {
    this.#connection = connection;
    this.#host = host;
    this.#intake = new Intake(host.limits.frameBytesMax);
    this.#identities = [{ scheme: "ip", id: ip }];
  }

  get peer(): string {
    return this.#connection.peer;
  }

  get identities(): readonly Identity[] {
    return this.#identities;
  }

  get session(): Session | null {
    return this.#session;
  }

  /** Requests whose replies wait for the disk. */
  get outstanding(): number {
    return this.#outstanding;
  }

  get received(): number {
    return this.#received;
  }

  data(chunk: Uint8Array): void {
    if (this.#ended) return;
    this.#intake.push(this.#word === null ? chunk : this.#afterWord(chunk));
    if (this.#paused) this.#intake.keep(); // it was on its way already; whoever paused has seen to what comes next
    else this.work();
  }

  /** One slice: few bytes can ask for very many, and what there is no room to answer waits as it came. */
  work(): void {
    if (this.#ended) return;
    // Before anything is read that came in, not before it is answered: a lease is counted from when its holder asked.
    if (!this.#host.ownsData) return this.destroy();
    const endMs = this.#host.turns.sliceEnd();
    try {
      while (!this.#isFull) {
        const frame = this.#intake.next();
        if (frame === null) break;
        this.#frame(frame);
        if (this.#ended || this.#host.turns.isOver(endMs)) break;
      }
    } catch (error) {
      // As with the real server, whoever breaks the protocol gets no answer. Anything else is a bug, and undone already.
      if (!(error instanceof BatonError && error.code === "PROTOCOL")) this.#host.bug(error);
      this.#end();
    }
    if (this.#ended) this.#intake.drop();
    else this.#intake.keep();
    this.#pushBack();
    this.#host.turnEnded();
  }

  closed(): void {
    this.#ended = true;
    this.#host.turns.leave(this);
    this.#host.closed(this);
  }

  drained(): void {
    this.#pushBack();
  }

  deliver({ writer, replies, requestBytes, last }: Staged): void {
    this.#outstanding -= replies;
    this.#outstandingBytes -= requestBytes;
    this.#stagedBytes -= writer.length;
    this.#connection.write(writer.finish());
    if (last) this.#end();
    else this.#pushBack();
  }

  /** Stages an event, before anything that is staged after it. */
  notify(type: number, path: string): void {
    if (this.#ended) return;
    const { writer } = this.#host.stages.stage(this);
    this.#frameInto(writer, () => {
      ReplyHeader.write(writer, { xid: specialXid.event, zxid: -1n, err: 0 });
      WatcherEvent.write(writer, { type, state: eventStateConnected, path });
    });
  }

  destroy(): void {
    this.#ended = true;
    this.#connection.destroy();
  }

  #end(): void {
    this.#ended = true;
    this.#connection.end();
    this.#host.closeSoon(this);
  }

  /** Looks at the first four bytes: a word is answered, anything else is the beginning of frames. */
  #afterWord(chunk: Uint8Array): Uint8Array {
    const first = new Uint8Array((this.#word?.byteLength ?? 0) + chunk.byteLength);
    first.set(this.#word ?? []);
    first.set(chunk, this.#word?.byteLength ?? 0);
    if (first.byteLength < wordBytes) {
      this.#word = first;
      return new Uint8Array(0);
    }
    this.#word = null;
    const word = String.fromCharCode(...first.subarray(0, wordBytes));
    if (!isFourLetterWord(word)) return first;
    this.#connection.write(new TextEncoder().encode(this.#host.report(word)));
    this.#end();
    return new Uint8Array(0);
  }

  #frame(frame: Uint8Array): void {
    this.#received++;
    this.#requestBytes = frame.byteLength;
    const reader = new ByteReader(frame);
    if (this.#asker === null) this.#handshake(connectRequest.read(reader));
    else this.#request(reader, this.#asker);
  }

  #request(
    reader: ByteReader,
    asker: { session: Session; identities: readonly Identity[]; watcher: ClientConnection },
  ): void {
    const { state, stages } = this.#host;
    const xid = reader.i32();
    const code = reader.i32();
    state.sessions.touch(asker.session, this.#host.now());
    if (code === operations.ping.code) {
      return this.#reply(stages.unconditionalStage(this), { xid, zxid: this.#saidZxid, err: 0 });
    }
    if (code === operations.auth.code) return this.#authenticate(xid, reader);
    // Nothing is changed that could not be stored: the client learns that its connection is lost, not that it was done.
    if (!this.#host.writable && state.isWrite(code)) return this.destroy();
    const answer = state.apply(code, reader, asker);
    if (code === operations.sync.code) {
      // It says that what was asked before has been looked at; what is read after it waits for the disk by itself. With it
      // a lock's holder shows that it is there: others' writes must not delay that.
      return this.#reply(stages.unconditionalStage(this), { xid, zxid: this.#saidZxid, err: answer.error }, answer);
    }
    this.#lastZxid = answer.zxid;
    this.#reply(stages.stage(this), { xid, zxid: answer.zxid, err: answer.error }, answer);
  }

  /** What may be said before the disk has more. */
  get #saidZxid(): bigint {
    const { durableZxid } = this.#host;
    return durableZxid > this.#lastZxid ? durableZxid : this.#lastZxid;
  }

  #reply(
    staged: Staged,
    header: { xid: number; zxid: bigint; err: number },
    answer: { write: ((writer: ByteWriter) => void) | null; last: boolean } = { write: null, last: false },
  ): void {
    const { writer } = staged;
    this.#frameInto(writer, () => {
      ReplyHeader.write(writer, header);
      answer.write?.(writer);
    });
    staged.replies++;
    staged.requestBytes += this.#requestBytes;
    this.#outstanding++;
    this.#outstandingBytes += this.#requestBytes;
    if (!answer.last) return;
    staged.last = true;
    this.#ended = true;
  }

  #authenticate(xid: number, reader: ByteReader): void {
    const { scheme, auth } = AuthPacket.read(reader);
    const staged = this.#host.stages.unconditionalStage(this);
    if (scheme === "ip") return this.#reply(staged, { xid, zxid: 0n, err: 0 }); // as every connection has it anyway
    if (scheme !== "digest" || this.#identities.length >= this.#host.limits.identitiesMax) {
      const header = { xid, zxid: 0n, err: zooKeeperErrorNumbers.AUTHFAILED };
      return this.#reply(staged, header, { write: null, last: true });
    }
    const id = digestId(new TextDecoder().decode(auth ?? new Uint8Array(0)));
    if (id === this.#host.superDigest) this.#identities.push({ scheme: "super", id: "" });
    if (!this.#identities.some((own) => own.scheme === "digest" && own.id === id)) {
      this.#identities.push({ scheme: "digest", id });
    }
    this.#reply(staged, { xid, zxid: 0n, err: 0 });
  }

  #handshake(request: ConnectRequest): void {
    const { state, stages, writable } = this.#host;
    if (request.lastZxidSeen > state.zxid) {
      throw protocolError(`The client has seen zxid ${request.lastZxidSeen}, this keeper is at ${state.zxid}`);
    }
    if (!this.#host.hasRoom(this, request.sessionId)) return this.destroy();
    const timeoutMs = this.#host.negotiate(request.timeOut);
    const nowMs = this.#host.now();
    let session: Session | undefined;
    let staged: Staged | undefined;
    if (request.sessionId === 0n) {
      if (!writable || !this.#host.roomForSession()) return this.destroy();
      session = state.openSession(timeoutMs, nowMs);
      staged = stages.unconditionalStage(this); // see KeeperState.hasPressingChanges
    } else {
      // The password is looked at before anything is done to the connection that has the session now.
      session = state.sessions.find(request.sessionId, request.passwd);
      if (session === undefined) return this.#greet(request, null, stages.stage(this)); // it may have ended just now
      if (session.timeoutMs !== timeoutMs && !writable) return this.destroy();
      // A session that moves in the middle of a slow commit is welcomed at once: nothing new is said of it.
      if (session.timeoutMs === timeoutMs) staged = stages.unconditionalStage(this);
      state.sessions.setTimeout(session, timeoutMs);
      state.sessions.touch(session, nowMs);
    }
    this.#session = session;
    this.#asker = { session, identities: this.#identities, watcher: this };
    this.#host.attached(this, session);
    this.#greet(request, session, staged ?? stages.stage(this));
  }

  #greet(request: ConnectRequest, session: Session | null, staged: Staged): void {
    this.#frameInto(staged.writer, () =>
      connectResponse.write(staged.writer, {
        protocolVersion: 0,
        timeOut: session?.timeoutMs ?? 0,
        sessionId: session?.id ?? 0n,
        passwd: session?.password ?? new Uint8Array(sessionPasswordBytes),
        readOnly: request.readOnly === undefined ? undefined : false,
      }));
    if (session !== null) return;
    staged.last = true;
    this.#ended = true;
  }

  /** Reads on when there is room and nothing left over; asks for another slice when there is room for what is. */
  #pushBack(): void {
    if (this.#ended) return;
    if (this.#connection.bufferedBytes > this.#host.limits.unsentBytesEnd) return this.destroy();
    if (!this.#isFull && !this.#intake.isEmpty) this.#host.turns.later(this);
    const pause = this.#isFull || !this.#intake.isEmpty;
    this.#account();
    if (pause === this.#paused) return;
    this.#paused = pause;
    if (pause) this.#connection.pause();
    else this.#connection.resume();
  }

  /** Most connections make nobody hold anything worth counting, and are not counted. */
  #account(): void {
    const input = this.#intake.heldBytes;
    const output = this.#stagedBytes + this.#connection.bufferedBytes;
    const bytes = input + output >= countedBytesMin ? { input, output } : nothingHeld;
    if (bytes === this.#held) return;
    this.#held = bytes;
    this.#host.holds(this, bytes.input, bytes.output);
  }

  /** Whether it is owed so much already that nothing more it asks for is looked at. */
  get #isFull(): boolean {
    const { outstandingMax, outstandingBytesMax, unsentBytesMax } = this.#host.limits;
    return this.#outstanding > outstandingMax || this.#outstandingBytes > outstandingBytesMax ||
      this.#stagedBytes + this.#connection.bufferedBytes > unsentBytesMax;
  }

  #frameInto(writer: ByteWriter, write: () => void): void {
    const start = writer.length;
    writer.i32(0);
    write();
    writer.setI32(start, writer.length - start - 4);
    this.#stagedBytes += writer.length - start;
  }
}
