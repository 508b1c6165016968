/**
 * Servers without sockets, for tests of the client: each does what the test tells it to, and remembers what it heard.
 */
import type { ConnectionHandlers, Dial } from "../../../../src/base/sockets/connection.ts";
import { formatAddress } from "../../../../src/base/sockets/connection.ts";
import { ByteReader, type ByteWriter } from "../../../../src/base/wire/bytes.ts";
import { encodeLengthFrame, JuteFrameDecoder } from "../../../../src/base/wire/length_frame.ts";
import { specialXid, zooKeeperOperations } from "../../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { Stat, WatcherEvent } from "../../../../src/protocols/zookeeper/jute/zookeeper_records.ts";
import {
  type ConnectRequest,
  connectRequestCodec,
  connectResponseCodec,
} from "../../../../src/protocols/zookeeper/jute/session_frames.ts";

export const zeroStat: Stat = {
  czxid: 0n,
  mzxid: 0n,
  ctime: 0n,
  mtime: 0n,
  version: 0,
  cversion: 0,
  aversion: 0,
  ephemeralOwner: 0n,
  dataLength: 0,
  numChildren: 0,
  pzxid: 0n,
};

/** A request as a server got it. */
export interface Heard {
  readonly xid: number;
  readonly code: number;
  readonly body: Uint8Array;
  /** How many writes the connection had seen. */
  readonly write: number;
  readonly connection: ScriptedConnection;
}

/**
 * - serve: answers everything
 * - silent: accepts connections and reads, and says nothing
 * - refuse: connection refused
 * - deaf: the connection never opens
 */
export type ServerMode = "serve" | "silent" | "refuse" | "deaf";

export interface Answer {
  readonly err: number;
  readonly body?: (writer: ByteWriter) => void;
}

export class ScriptedServer {
  mode: ServerMode = "serve";
  /** What the ConnectRequest is answered with. */
  session: "accept" | "expired" | "readOnly" | "replaced" = "accept";
  /** The password of each session. */
  password = new Uint8Array(16).fill(9);
  timeoutMs: number | null = null;
  /** Closes without an answer when a client has seen more than `zxid`, as real ones do. */
  isJealous = false;
  /**
   * Requests that are answered only by `wake`, such as writes to a slow disk, and with them all that follow on their
   * connection.
   */
  isSlow: (code: number) => boolean = () => false;
  readonly heard: Heard[] = [];
  readonly hellos: ConnectRequest[] = [];
  readonly connections: ScriptedConnection[] = [];
  zxid = 1n;
  /** A test's own answers; undefined is the default one. */
  answer: (heard: Heard) => Answer | undefined = () => undefined;

  get codes(): number[] {
    return this.heard.map((heard) => heard.code);
  }

  /** Answers everything that was heard in silence, and serves from now on. */
  wake(): void {
    this.mode = "serve";
    for (const connection of this.connections) connection.catchUp();
  }
}

export class ScriptedConnection {
  readonly server: ScriptedServer;
  readonly handlers: ConnectionHandlers;
  open = true;
  #decoder = new JuteFrameDecoder();
  #hello = false;
  #writes = 0;
  #held: (() => void)[] = [];

  constructor(server: ScriptedServer, handlers: ConnectionHandlers) {
    this.server = server;
    this.handlers = handlers;
  }

  receive(bytes: Uint8Array): void {
    this.#writes++;
    for (const frame of this.#decoder.push(bytes.slice())) this.#frame(frame);
  }

  catchUp(): void {
    for (const act of this.#held.splice(0)) act();
  }

  /** Bytes to the client, as a chunk of their own. */
  send(frame: Uint8Array): void {
    queueMicrotask(() => this.open && this.handlers.onData(frame));
  }

  event(type: number, path: string): void {
    this.send(encodeLengthFrame((writer) => {
      header(writer, { xid: specialXid.event, zxid: -1n, err: 0 });
      WatcherEvent.write(writer, { type, state: 3, path });
    }));
  }

  close(error: Error | null = null): void {
    if (!this.open) return;
    this.open = false;
    queueMicrotask(() => this.handlers.onClosed(error));
  }

  #frame(frame: Uint8Array): void {
    const isSlow = this.#hello && this.server.isSlow(new ByteReader(frame.subarray(4)).i32());
    const act = this.#hello ? this.#request(frame) : this.#greeting(frame);
    if (this.server.mode === "serve" && !isSlow && this.#held.length === 0) act();
    else this.#held.push(act);
  }

  #greeting(frame: Uint8Array): () => void {
    this.#hello = true;
    const hello = connectRequestCodec.read(new ByteReader(frame));
    this.server.hellos.push(hello);
    return () => {
      if (this.server.isJealous && hello.lastZxidSeen > this.server.zxid) return this.close();
      const expired = this.server.session === "expired";
      this.send(encodeLengthFrame((writer) =>
        connectResponseCodec.write(writer, {
          protocolVersion: 0,
          timeOut: expired ? 0 : this.server.timeoutMs ?? hello.timeOut,
          sessionId: expired ? 0n : this.server.session === "replaced" ? 0xdefn : hello.sessionId || 0xabcn,
          passwd: this.server.password,
          readOnly: this.server.session === "readOnly",
        })
      ));
      if (expired) queueMicrotask(() => this.close());
    };
  }

  #request(frame: Uint8Array): () => void {
    const reader = new ByteReader(frame);
    const heard: Heard = {
      xid: reader.i32(),
      code: reader.i32(),
      body: reader.view(reader.remaining),
      write: this.#writes,
      connection: this,
    };
    this.server.heard.push(heard);
    return () => {
      const { err, body } = this.server.answer(heard) ?? defaultAnswer(heard.code);
      this.send(encodeLengthFrame((writer) => {
        header(writer, { xid: heard.xid, zxid: this.server.zxid, err });
        if (err === 0) body?.(writer);
      }));
    };
  }
}

function header(writer: ByteWriter, { xid, zxid, err }: { xid: number; zxid: bigint; err: number }): void {
  writer.i32(xid);
  writer.i64(zxid);
  writer.i32(err);
}

function defaultAnswer(code: number): Answer {
  if (code === zooKeeperOperations.exists.code) return { err: -101 };
  if (code === zooKeeperOperations.setData.code) return { err: 0, body: (writer) => Stat.write(writer, zeroStat) };
  return { err: 0 };
}

/** `zk1:2181`, `zk2:2181` … */
export class ScriptedEnsemble {
  readonly servers: ScriptedServer[];
  readonly text: string;
  readonly dials: string[] = [];

  constructor(count: number) {
    this.servers = Array.from({ length: count }, () => new ScriptedServer());
    this.text = this.servers.map((_, index) => `10.0.0.${index + 1}:2181`).join(",");
  }

  server(number: number): ScriptedServer {
    const server = this.servers[number - 1];
    if (server === undefined) throw new Error(`There is no server ${number}`);
    return server;
  }

  /** The server of the connection that is open; fails unless there is exactly one. */
  get current(): ScriptedServer {
    const [server, ...more] = this.servers.filter((one) => one.connections.some((connection) => connection.open));
    if (server === undefined || more.length > 0) throw new Error(`${more.length} servers too many or none`);
    return server;
  }

  get others(): ScriptedServer[] {
    return this.servers.filter((server) => server !== this.current);
  }

  readonly dial: Dial = (address, handlers, { signal } = {}) => {
    this.dials.push(formatAddress(address));
    const host = address.kind === "tcp" ? address.host : address.path;
    const server = this.server(Number(host.slice(host.lastIndexOf(".") + 1)));
    if (server.mode === "refuse") return Promise.reject(Object.assign(new Error("refused"), { code: "ECONNREFUSED" }));
    if (server.mode === "deaf") {
      return new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
    }
    const connection = new ScriptedConnection(server, handlers);
    server.connections.push(connection);
    return Promise.resolve({
      write: (bytes) => connection.open && connection.receive(bytes),
      bufferedBytes: 0,
      peer: formatAddress(address),
      pause() {},
      resume() {},
      end: () => connection.close(),
      destroy: () => connection.close(),
    });
  };
}
