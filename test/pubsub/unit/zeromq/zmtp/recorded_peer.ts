/** A ZmtpPeer whose events are kept as plain values, to be compared. */
import { zmtpLimitsDefault } from "../../../../../src/protocols/zeromq/zmtp/zmtp_limits.ts";
import { nullSecurityMechanism } from "../../../../../src/protocols/zeromq/zmtp/null_mechanism.ts";
import { ZmtpError } from "../../../../../src/protocols/zeromq/zmtp/zmtp_error.ts";
import {
  ZmtpPeer,
  type ZmtpPeerEvents,
  type ZmtpPeerOptions,
} from "../../../../../src/protocols/zeromq/zmtp/zmtp_peer.ts";
import { join } from "../../../../support/zmtp_bytes.ts";

export interface RecordedOptions extends Partial<ZmtpPeerOptions> {
  /** Stops behind each message. */
  readonly stops?: boolean;
  readonly prefix?: Uint8Array;
}

export class RecordedPeer {
  readonly options: ZmtpPeerOptions;
  readonly listener: ZmtpPeerEvents;
  readonly peer: ZmtpPeer;
  readonly events: unknown[] = [];
  error: ZmtpError | null = null;

  constructor({ stops = false, prefix, ...options }: RecordedOptions = {}) {
    this.options = {
      socketType: "DEALER",
      identity: new Uint8Array(0),
      mechanism: nullSecurityMechanism,
      limits: zmtpLimitsDefault,
      ...options,
    };
    this.listener = {
      onReady: ({ socketType, identity, userId, knowsHeartbeats }) => {
        this.events.push({ ready: socketType, identity: [...identity], userId, knowsHeartbeats });
        return { prefix: prefix ?? null, wantsMore: true };
      },
      onMessage: (frames) => {
        this.events.push(frames.map((body) => [...body]));
        return !stops;
      },
      onPing: (ttlMs) => this.events.push({ pinged: ttlMs }) > 0,
    };
    this.peer = new ZmtpPeer(this.options, this.listener);
  }

  /** Pushes all of it, however often it stops; the chunk is overwritten afterwards, as its owner may do. */
  push(...chunks: readonly Uint8Array[]): this {
    for (const original of chunks) {
      const chunk = original.slice();
      this.#try(() => {
        for (let at = 0; at < chunk.byteLength && this.error === null;) {
          const next = this.peer.push(chunk, at);
          if (next === at) break;
          at = next;
        }
      });
      chunk.fill(0xee);
      if (this.error !== null) break;
    }
    return this;
  }

  /** Everything that is to be written, once. */
  sent(): Uint8Array {
    const pieces: Uint8Array[] = [];
    this.peer.output.flush((bytes) => {
      pieces.push(bytes.slice());
      return false;
    });
    return join(pieces);
  }

  #try(action: () => void): void {
    try {
      action();
    } catch (error) {
      if (!(error instanceof ZmtpError)) throw error;
      this.error = error;
    }
  }
}
