/** A network in memory: connections that can be cut, held up and made silent, and whose writes are counted. */
import type {
  AcceptConnection,
  Address,
  Connection,
  ConnectionHandlers,
  Dial,
  Listen,
} from "../../../../src/base/sockets/connection.ts";
import { formatZeroMqEndpoint } from "../../../../src/protocols/zeromq/zeromq_endpoint.ts";
import { onAbort } from "../../../../src/base/support/abort.ts";

/** What the kernel takes although the other side does not read, in bytes. */
const windowBytes = 1000;

export class FakeEnd implements Connection {
  readonly peer: string;
  other!: FakeEnd;
  handlers: ConnectionHandlers | null = null;
  /** Every write of the program. */
  readonly writes: Uint8Array[] = [];
  /** What is sent is swallowed, in both directions: half open. */
  isSilent = false;
  isPaused = false;
  isClosed = false;
  #queue: Uint8Array[] = [];
  #queuedBytes = 0;
  #isEnding = false;
  #owesDrained = false;
  #isScheduled = false;

  constructor(peer: string) {
    this.peer = peer;
  }

  get bufferedBytes(): number {
    return this.other.isPaused ? Math.max(0, this.#queuedBytes - windowBytes) : 0;
  }

  write(bytes: Uint8Array): void {
    if (this.isClosed || this.#isEnding) return;
    this.writes.push(bytes.slice());
    if (this.isSilent) return;
    this.#queue.push(bytes.slice());
    this.#queuedBytes += bytes.byteLength;
    this.#owesDrained = this.bufferedBytes > 0;
    this.#schedule();
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
    this.other.#schedule();
  }

  end(): void {
    this.#isEnding = true;
    this.#schedule();
  }

  destroy(): void {
    this.close(null);
  }

  /** Both ends hear of it, unless nothing gets through. */
  close(error: Error | null): void {
    if (this.isClosed) return;
    this.isClosed = true;
    queueMicrotask(() => this.handlers?.onClosed(error));
    if (!this.isSilent) this.other.close(error);
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#deliver();
    });
  }

  #deliver(): void {
    while (this.#queue.length > 0 && !this.other.isPaused && !this.other.isClosed) {
      const chunk = this.#queue.shift() as Uint8Array;
      this.#queuedBytes -= chunk.byteLength;
      this.other.handlers?.onData(chunk);
      chunk.fill(0xee); // it was lent for the call
    }
    if (this.#owesDrained && this.bufferedBytes === 0) {
      this.#owesDrained = false;
      this.handlers?.onDrained?.();
    }
    if (this.#isEnding && this.#queue.length === 0) this.close(null);
  }
}

export class FakeNetwork {
  /** The ends of those who dialed, in order. */
  readonly dialed: FakeEnd[] = [];
  /** When somebody dialed, whether or not somebody answered. */
  readonly attempts: string[] = [];
  readonly #accepts = new Map<string, AcceptConnection>();
  /** Attempts hang instead of being refused. */
  isHanging = false;
  #ports = 7000;

  readonly dial: Dial = (address, handlers, { signal } = {}) => {
    const name = formatZeroMqEndpoint(address);
    this.attempts.push(name);
    return new Promise((resolve, reject) => {
      onAbort(signal, reject);
      if (this.isHanging) return;
      setImmediate(() => {
        const accept = this.#accepts.get(name);
        if (accept === undefined) {
          return reject(Object.assign(new Error("connection refused"), { code: "ECONNREFUSED" }));
        }
        const near = new FakeEnd(name);
        const far = new FakeEnd("192.0.2.9:1");
        near.other = far;
        far.other = near;
        near.handlers = handlers;
        far.handlers = accept(far);
        this.dialed.push(near);
        resolve(near);
      });
    });
  };

  readonly listen: Listen = (wanted, accept) => {
    const address: Address = wanted.kind === "tcp" && wanted.port === 0 ? { ...wanted, port: ++this.#ports } : wanted;
    const name = formatZeroMqEndpoint(address);
    this.#accepts.set(name, accept);
    const close = () => {
      this.#accepts.delete(name);
      return Promise.resolve();
    };
    return Promise.resolve({ address, close });
  };

  /** The newest connection, seen from who dialed. */
  get last(): FakeEnd {
    return this.dialed.at(-1) as FakeEnd;
  }
}
