/**
 * The protocol by hand: sends any frame, keeps everything that arrives in the order of its arrival, and hides nothing.
 * It pings only when told to, never reconnects, and shares only the jute table with the product's client.
 */
import { connect, type Socket } from "node:net";
import type { Address } from "../../src/base/sockets/connection.ts";
import { ByteReader, type ByteWriter } from "../../src/base/wire/bytes.ts";
import type { JuteCodec, JuteCodecValue } from "../../src/base/wire/record_codec.ts";
import { encodeLengthFrame, JuteFrameDecoder } from "../../src/base/wire/length_frame.ts";
import {
  type MultiRequest,
  multiRequestCodec,
  multiResponseCodec,
  type MultiResult,
} from "../../src/protocols/zookeeper/jute/multi_request.ts";
import * as table from "../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import {
  AuthPacket,
  ReplyHeader,
  RequestHeader,
  WatcherEvent,
} from "../../src/protocols/zookeeper/jute/zookeeper_records.ts";
import { connectRequestCodec, connectResponseCodec } from "../../src/protocols/zookeeper/jute/session_frames.ts";

export interface Reply<T = Uint8Array> {
  readonly xid: number;
  readonly zxid: bigint;
  readonly err: number;
  /** What stands behind the header, decoded; null when the error number is not 0. */
  readonly value: T | null;
  /** Behind the header. */
  readonly bytes: Uint8Array;
}

/** A reply, or a watch event as "type:path", such as "3:/a". */
export type Arrival = { readonly kind: "reply"; readonly reply: Reply } | {
  readonly kind: "event";
  readonly text: string;
};

export interface RawConnectOptions {
  /** Asked for, in milliseconds; 10,000 when left out. */
  readonly timeoutMs?: number;
  /** Of the session to resume. */
  readonly sessionId?: bigint;
  readonly passwd?: Uint8Array;
  readonly lastZxidSeen?: bigint;
  /** undefined leaves the byte out, as clients before 3.4 do. */
  readonly readOnly?: boolean | undefined;
}

/** How long an answer may take before a test fails, in milliseconds. */
const answerMsMax = 15_000;

/** Servers have no limit for replies: the names of 50,000 children need 5 MiB. */
const replyBytesMax = 64 * 1024 * 1024;

export class RawClient {
  readonly #socket: Socket;
  readonly #decoder = new JuteFrameDecoder(replyBytesMax);
  readonly #waiting: { xid: number; resolve: (reply: Reply) => void; reject: (error: Error) => void }[] = [];
  #hello: ((frame: Uint8Array | null) => void) | null = null;
  #nextXid = 1;
  #isClosed = false;
  /** Everything since the handshake, in order. */
  readonly arrivals: Arrival[] = [];
  /** The handshake's answer; sessionId 0n before it. */
  hello: JuteCodecValue<typeof connectResponseCodec> & { length: number } = {
    protocolVersion: 0,
    timeOut: 0,
    sessionId: 0n,
    passwd: null,
    readOnly: undefined,
    length: 0,
  };
  readonly closed: Promise<void>;

  /** A bare connection, before any handshake. */
  static open(address: Address): Promise<RawClient> {
    const socket = address.kind === "tcp" ? connect(address.port, address.host) : connect(address.path);
    return new Promise((resolve, reject) => {
      socket.once("error", reject);
      socket.once("connect", () => {
        socket.off("error", reject);
        resolve(new RawClient(socket));
      });
    });
  }

  /** A connection with a session: rejects when the server closes it instead of answering. */
  static async connect(address: Address, options: RawConnectOptions = {}): Promise<RawClient> {
    const client = await RawClient.open(address);
    await client.handshake(options);
    return client;
  }

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (chunk: Uint8Array) => {
      for (const frame of this.#decoder.push(chunk)) this.#receive(frame);
    });
    socket.on("error", () => {}); // close follows
    this.closed = new Promise((resolve) =>
      socket.on("close", () => {
        this.#isClosed = true;
        this.#hello?.(null);
        for (const { reject } of this.#waiting.splice(0)) reject(new Error("The server closed the connection"));
        resolve();
      })
    );
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get sessionId(): bigint {
    return this.hello.sessionId;
  }

  /** The watch events so far. */
  get events(): string[] {
    return this.arrivals.flatMap((arrival) => arrival.kind === "event" ? [arrival.text] : []);
  }

  /** The watch events since the last call, after a round trip: all that was on its way has arrived. */
  async takeEvents(): Promise<string[]> {
    await this.ping();
    const events = this.events;
    this.arrivals.length = 0;
    return events;
  }

  async handshake(options: RawConnectOptions = {}): Promise<void> {
    const frame = await within(
      new Promise<Uint8Array | null>((resolve) => {
        this.#hello = resolve;
        this.sendFrame((writer) =>
          connectRequestCodec.write(writer, {
            protocolVersion: 0,
            lastZxidSeen: options.lastZxidSeen ?? 0n,
            timeOut: options.timeoutMs ?? 10_000,
            sessionId: options.sessionId ?? 0n,
            passwd: options.passwd ?? new Uint8Array(16),
            readOnly: "readOnly" in options ? options.readOnly : false,
          })
        );
      }),
      "an answer to the handshake",
    );
    this.#hello = null;
    if (frame === null) throw new Error("The server closed the connection instead of answering the handshake");
    this.hello = { ...connectResponseCodec.read(new ByteReader(frame)), length: frame.byteLength };
  }

  /** Any bytes, framed or not. */
  sendBytes(bytes: Uint8Array): void {
    this.#socket.write(bytes);
  }

  sendFrame(write: (writer: ByteWriter) => void): void {
    this.sendBytes(encodeLengthFrame(write));
  }

  /** One operation of the table. Rejects only when the connection closes: errors are in the reply. */
  async call<Name extends table.ZooKeeperOperationName>(
    name: Name,
    request: table.ZooKeeperOperationRequest<Name>,
  ): Promise<Reply<table.ZooKeeperOperationResponse<Name>>> {
    const row = table.zooKeeperOperations[name];
    const codec = row.request as unknown as JuteCodec<table.ZooKeeperOperationRequest<Name>>;
    const reply = await this.send(row.code, (writer) => codec.write(writer, request));
    return decoded(reply, row.response as unknown as JuteCodec<table.ZooKeeperOperationResponse<Name>>);
  }

  async multi(requests: MultiRequest[]): Promise<Reply<MultiResult[]>> {
    return decoded(
      await this.send(table.multiOperationCode, (writer) => multiRequestCodec.write(writer, requests)),
      multiResponseCodec,
    );
  }

  async multiRead(requests: MultiRequest[]): Promise<Reply<MultiResult[]>> {
    return decoded(
      await this.send(table.multiReadOperationCode, (writer) => multiRequestCodec.write(writer, requests)),
      multiResponseCodec,
    );
  }

  /** Any operation number, any body. */
  send(code: number, body: (writer: ByteWriter) => void = () => {}, xid = this.#nextXid++): Promise<Reply> {
    const answer = new Promise<Reply>((resolve, reject) => this.#waiting.push({ xid, resolve, reject }));
    this.sendFrame((writer) => {
      RequestHeader.write(writer, { xid, type: code });
      body(writer);
    });
    return within(answer, `an answer to operation ${code}`);
  }

  ping(): Promise<Reply> {
    return this.send(table.zooKeeperOperations.ping.code, undefined, table.specialXid.ping);
  }

  auth(scheme: string, credentials: string): Promise<Reply> {
    const packet = { type: 0, scheme, auth: new TextEncoder().encode(credentials) };
    return this.send(
      table.zooKeeperOperations.auth.code,
      (writer) => AuthPacket.write(writer, packet),
      table.specialXid.auth,
    );
  }

  /** Reads nothing until `resume`. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Ends the session in an orderly way. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    await this.send(table.zooKeeperOperations.closeSession.code).catch(() => {});
    this.#socket.end();
    await within(this.closed, "the end of the connection");
  }

  /** Ends the connection only; the session lives on. */
  async drop(): Promise<void> {
    this.#socket.resetAndDestroy();
    await this.closed;
  }

  #receive(frame: Uint8Array): void {
    if (this.#hello !== null) {
      this.#hello(frame.slice());
      this.#hello = null;
      return;
    }
    const reader = new ByteReader(frame);
    const { xid, zxid, err } = ReplyHeader.read(reader);
    if (xid === table.specialXid.event) {
      const { type, path } = WatcherEvent.read(reader);
      this.arrivals.push({ kind: "event", text: `${type}:${path}` });
      return;
    }
    const bytes = reader.view(reader.remaining).slice();
    const reply: Reply = { xid, zxid, err, value: err === 0 ? bytes : null, bytes };
    this.arrivals.push({ kind: "reply", reply });
    const at = this.#waiting.findIndex((waiting) => waiting.xid === xid);
    if (at !== -1) this.#waiting.splice(at, 1)[0]?.resolve(reply);
  }
}

function decoded<T>(reply: Reply, codec: JuteCodec<T>): Reply<T> {
  if (reply.err !== 0) return { ...reply, value: null };
  const reader = new ByteReader(reply.bytes);
  const value = codec.read(reader);
  reader.end();
  return { ...reply, value };
}

/** The promise, or a rejection when it takes longer than any answer may. */
function within<T>(promise: Promise<T>, what: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`Waited ${answerMsMax} ms for ${what}, in vain`)), answerMsMax);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
