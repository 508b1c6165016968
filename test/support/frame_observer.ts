/** Tells what each frame of one ZooKeeper connection is, from the bytes of both directions. Touches no socket. */
import { ByteReader } from "../../src/base/wire/bytes.ts";
import {
  multiOperationCode,
  multiReadOperationCode,
  specialXid,
  type ZooKeeperOperationName,
  zooKeeperOperations,
} from "../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { ReplyHeader, RequestHeader } from "../../src/protocols/zookeeper/jute/zookeeper_records.ts";

export interface FrameInfo {
  readonly kind: "request" | "reply" | "event";
  /**
   * "connect" for the handshake, "multi", "multiRead", a number as text for what is not in the table. "event" for an
   * event.
   */
  readonly operation: ZooKeeperOperationName | "connect" | "multi" | "multiRead" | "event" | string;
  readonly xid: number;
  /** A reply's error number; 0 otherwise. */
  readonly err: number;
  /** Without the length in front. */
  readonly body: Uint8Array;
}

/** A frame with its length, or bytes that make no frame (`info` null), to be handed on as they are. */
export interface ObservedBytes {
  readonly bytes: Uint8Array;
  readonly info: FrameInfo | null;
}

const operationNames = new Map<number, string>([
  ...Object.entries(zooKeeperOperations).map(([name, { code }]) => [code, name] as const),
  [multiOperationCode, "multi"],
  [multiReadOperationCode, "multiRead"],
]);

export class FrameObserver {
  readonly #requests = new Splitter();
  readonly #replies = new Splitter();
  /** Operations whose replies have not passed, in order of sending: replies come in that order. */
  readonly #unanswered: { xid: number; operation: string }[] = [];

  requests(chunk: Uint8Array): ObservedBytes[] {
    return this.#requests.push(chunk, (body, first) => this.#request(body, first));
  }

  replies(chunk: Uint8Array): ObservedBytes[] {
    return this.#replies.push(chunk, (body, first) => this.#reply(body, first));
  }

  #request(body: Uint8Array, first: boolean): FrameInfo | null {
    if (first) return { kind: "request", operation: "connect", xid: 0, err: 0, body };
    if (body.byteLength < 8) return null;
    const { xid, type } = RequestHeader.read(new ByteReader(body));
    const operation = operationNames.get(type) ?? String(type);
    this.#unanswered.push({ xid, operation });
    return { kind: "request", operation, xid, err: 0, body };
  }

  #reply(body: Uint8Array, first: boolean): FrameInfo | null {
    if (first) return { kind: "reply", operation: "connect", xid: 0, err: 0, body };
    if (body.byteLength < 16) return null;
    const { xid, err } = ReplyHeader.read(new ByteReader(body));
    if (xid === specialXid.event) return { kind: "event", operation: "event", xid, err, body };
    const at = this.#unanswered.findIndex((request) => request.xid === xid);
    const [request] = at === -1 ? [] : this.#unanswered.splice(at, 1);
    return { kind: "reply", operation: request?.operation ?? "unknown", xid, err, body };
  }
}

/**
 * Cuts a stream at frame boundaries, and gives up cutting at the first length that cannot be one (a four-letter word,
 * garbage).
 */
class Splitter {
  #pending = new Uint8Array(0);
  #raw = false;
  #first = true;

  push(chunk: Uint8Array, describe: (body: Uint8Array, first: boolean) => FrameInfo | null): ObservedBytes[] {
    if (this.#raw) return [{ bytes: chunk, info: null }];
    const bytes = new Uint8Array(this.#pending.byteLength + chunk.byteLength);
    bytes.set(this.#pending);
    bytes.set(chunk, this.#pending.byteLength);
    const observed: ObservedBytes[] = [];
    let at = 0;
    while (bytes.byteLength - at >= 4) {
      const length = new DataView(bytes.buffer, at, 4).getInt32(0);
      if (length < 0 || length > lengthMax) {
        this.#raw = true;
        observed.push({ bytes: bytes.subarray(at), info: null });
        return observed;
      }
      if (bytes.byteLength - at - 4 < length) break;
      const frame = bytes.subarray(at, at + 4 + length);
      observed.push({ bytes: frame, info: describe(frame.subarray(4), this.#first) });
      this.#first = false;
      at += frame.byteLength;
    }
    this.#pending = bytes.slice(at);
    return observed;
  }
}

/** Well over any jute.maxbuffer in the tests, well under four ASCII letters. */
const lengthMax = 0x4000000;
