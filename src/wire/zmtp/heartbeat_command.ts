/**
 * PING and PONG: a time to live in tenths of a second, and a context that is sent back. RFC 37, "Connection
 * Heartbeating".
 */
import { encodeCommand, type ZmtpCommand } from "./zmtp_command.ts";
import { ZmtpError } from "./zmtp_error.ts";

const contextBytesMax = 16;
const ttlMsMax = 0xffff * 100;

export interface Ping {
  /** Milliseconds of silence after which the peer wants to be considered dead; 0 for never. */
  readonly ttlMs: number;
  /** Bytes to send back; a view of the command. */
  readonly context: Uint8Array;
}

/** Encodes the body of a PING. The maximum time to live is 6553.5 s. */
export function encodePing(ttlMs: number, context: Uint8Array = new Uint8Array(0)): Uint8Array {
  const ttl = Math.round(Math.min(ttlMs, ttlMsMax) / 100);
  return encodeCommand("PING", new Uint8Array([ttl >> 8, ttl & 0xff, ...context.subarray(0, contextBytesMax)]));
}

/** Decodes the data of a PING. A context over 16 bytes is truncated, as in libzmq. Throws ZmtpError COMMAND. */
export function decodePing({ data }: ZmtpCommand): Ping {
  const [high, low] = data;
  if (high === undefined || low === undefined) {
    throw new ZmtpError("COMMAND", `A PING has ${data.byteLength} bytes of data; its time to live takes 2`);
  }
  return { ttlMs: (high * 256 + low) * 100, context: data.subarray(2, 2 + contextBytesMax) };
}

/** Encodes the body of the PONG that responds to a PING with this context. */
export function encodePong(context: Uint8Array): Uint8Array {
  return encodeCommand("PONG", context);
}
