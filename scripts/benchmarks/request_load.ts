/**
 * Sends requests to a ZooKeeper server and measures their time. The client does as little as possible, so that the
 * server's cost is measured: it reads only the error number of replies, and counts events.
 */
import type { Address, Connection } from "../../src/base/sockets/connection.ts";
import { dial } from "../../src/base/sockets/dial.ts";
import type { ByteWriter } from "../../src/base/wire/bytes.ts";
import { encodeLengthFrame, JuteFrameDecoder } from "../../src/base/wire/length_frame.ts";
import { openAcl } from "../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import {
  specialXid,
  type ZooKeeperOperationName,
  type ZooKeeperOperationRequest,
  zooKeeperOperations,
} from "../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { RequestHeader } from "../../src/protocols/zookeeper/jute/zookeeper_records.ts";
import { connectRequestCodec } from "../../src/protocols/zookeeper/jute/session_frames.ts";
import type { JuteCodec } from "../../src/base/wire/record_codec.ts";

const sessionTimeoutMs = 60_000;
/** Size of the data that requests create and set, in bytes. */
export const requestDataBytes = 100;
const data = new Uint8Array(requestDataBytes).fill(0x61);
const errorAt = 12;

export type RequestFrame = Uint8Array;

/** Encodes one request as it is sent. */
export function requestFrame<Name extends ZooKeeperOperationName>(
  name: Name,
  request: ZooKeeperOperationRequest<Name>,
): RequestFrame {
  const { code } = zooKeeperOperations[name];
  const codec = zooKeeperOperations[name].request as unknown as JuteCodec<ZooKeeperOperationRequest<Name>>;
  return encodeLengthFrame((writer: ByteWriter) => {
    RequestHeader.write(writer, { xid: 1, type: code });
    codec.write(writer, request);
  });
}

export const createFrame = (path: string, flags = 0): RequestFrame =>
  requestFrame("create", { path, data, acl: [...openAcl], flags });
export const existsFrame = (path: string): RequestFrame => requestFrame("exists", { path, watch: false });
export const watchFrame = (path: string): RequestFrame => requestFrame("getData", { path, watch: true });
export const setFrame = (path: string): RequestFrame => requestFrame("setData", { path, data, version: -1 });

export class RequestLoad {
  readonly #decoder = new JuteFrameDecoder(64 << 20);
  #connection: Connection | null = null;
  #isGreeted = false;
  #reply: (isGood: boolean) => void = () => {};
  #closed: () => void = () => {};
  /** Called for each watch event. */
  onEvent: () => void = () => {};

  /** Connects and opens a session. */
  static async open(address: Address): Promise<RequestLoad> {
    const load = new RequestLoad();
    const handlers = { onData: (chunk: Uint8Array) => load.#received(chunk), onClosed: () => load.#closed() };
    load.#connection = await dial(address, handlers);
    const greeting = { protocolVersion: 0, lastZxidSeen: 0n, timeOut: sessionTimeoutMs, sessionId: 0n };
    const hello = { ...greeting, passwd: new Uint8Array(16), readOnly: false };
    await new Promise<void>((resolve, reject) => {
      load.#reply = () => resolve();
      load.#closed = () => reject(new Error("The server closed the connection instead of opening a session"));
      load.#connection?.write(encodeLengthFrame((writer) => connectRequestCodec.write(writer, hello)));
    });
    return load;
  }

  /**
   * Sends all frames, with at most `window` of them unanswered. Resolves with the total time, and, if `window` is 1,
   * with the time of each.
   */
  run(frames: readonly RequestFrame[], window: number): Promise<{ totalMs: number; eachMs: number[] }> {
    const { promise, resolve, reject } = Promise.withResolvers<{ totalMs: number; eachMs: number[] }>();
    const eachMs: number[] = [];
    let sent = 0;
    let answered = 0;
    let isSending = false;
    const startMs = performance.now();
    let sentMs = startMs;
    const send = () => {
      isSending = false;
      const until = Math.min(frames.length, answered + window);
      if (until <= sent) return;
      const batch = frames.slice(sent, until);
      sent = until;
      sentMs = performance.now();
      this.#connection?.write(batch.length === 1 ? batch[0] as RequestFrame : Buffer.concat(batch));
    };
    this.#closed = () => reject(new Error(`The server closed the connection after ${answered} answers`));
    this.#reply = (isGood) => {
      if (!isGood) return reject(new Error(`Request ${answered} was refused`));
      answered++;
      if (window === 1) eachMs.push(performance.now() - sentMs);
      if (answered === frames.length) return resolve({ totalMs: performance.now() - startMs, eachMs });
      if (window === 1) return send();
      if (isSending) return;
      isSending = true;
      queueMicrotask(send); // after all answers of this chunk
    };
    send();
    return promise;
  }

  close(): void {
    this.#closed = () => {};
    this.#connection?.destroy();
  }

  #received(chunk: Uint8Array): void {
    for (const frame of this.#decoder.push(chunk)) {
      if (!this.#isGreeted) {
        this.#isGreeted = true;
        this.#reply(true);
        continue;
      }
      const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
      if (view.getInt32(0) === specialXid.event) this.onEvent();
      else this.#reply(view.getInt32(errorAt) === 0);
    }
  }
}
