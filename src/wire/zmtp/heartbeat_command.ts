/** PING and PONG. RFC 37, "Connection Heartbeating": a time to live in tenths of a second, and a context to be sent back. */
import { encodeCommand, type ZmtpCommand } from "./zmtp_command.ts";
import { ZmtpError } from "./zmtp_error.ts";

const contextBytesMax = 16;
const ttlMsMax = 0xffff * 100;

export interface Ping {
  /** The peer wants to be taken for dead when this side hears nothing for so long, in milliseconds; 0 for not at all. */
  readonly ttlMs: number;
  /** To be sent back. A view onto the command. */
  readonly context: Uint8Array;
}

/** The body of a PING; a time to live over 6553.5 s is sent as that. */
export function encodePing(ttlMs: number, context: Uint8Array = new Uint8Array(0)): Uint8Array {
  const ttl = Math.round(Math.min(ttlMs, ttlMsMax) / 100);
  return encodeCommand("PING", new Uint8Array([ttl >> 8, ttl & 0xff, ...context.subarray(0, contextBytesMax)]));
}

/** The data of a PING. A context over 16 bytes is cut, as libzmq does. Throws ZmtpError COMMAND. */
export function decodePing({ data }: ZmtpCommand): Ping {
  const [high, low] = data;
  if (high === undefined || low === undefined) {
    throw new ZmtpError("COMMAND", `A PING has ${data.byteLength} bytes of data; its time to live takes 2`);
  }
  return { ttlMs: (high * 256 + low) * 100, context: data.subarray(2, 2 + contextBytesMax) };
}

/** The body of the PONG that answers a PING with this context. */
export function encodePong(context: Uint8Array): Uint8Array {
  return encodeCommand("PONG", context);
}
